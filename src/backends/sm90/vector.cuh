// SPDX-License-Identifier: Apache-2.0
// "decode" for very few tokens on the CUDA cores: a warp multiplies a few gate rows and the up rows of the same outputs
// with all tokens, 16 bytes of each row a lane at a time.
#pragma once

#include "backends/sm90/streamed.cuh"

namespace tileglu::sm90 {

inline constexpr int kVectorWarps = 4;   // of a block
inline constexpr int kVectorStep = 256;  // elements along k that a warp takes at a time

template <bool IsBf16>
__device__ __forceinline__ void unpack8(const uint4& v, float (&f)[8]) {
  const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (IsBf16) {
      f[2 * i] = __uint_as_float(words[i] << 16);
      f[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
    } else {
      const float2 pair = __half22float2(reinterpret_cast<const __half2&>(words[i]));
      f[2 * i] = pair.x;
      f[2 * i + 1] = pair.y;
    }
  }
}

// Tokens: at most; Rows: outputs of a warp; Depth: steps along k whose weights are in flight together.
template <int Tokens, int Rows, int Depth, bool IsBf16>
__global__ void __launch_bounds__(32 * kVectorWarps) vector_kernel(const __grid_constant__ StreamedParams p) {
  static_assert(Tokens * Rows <= 32, "a lane writes one output");
  let_next_grid_start();
  const int lane = threadIdx.x % 32;
  const int row = (blockIdx.x * kVectorWarps + threadIdx.x / 32) * Rows;
  if (row >= p.n) return;
  const std::uint16_t* rows[2 * Rows];
#pragma unroll
  for (int r = 0; r < Rows; ++r) {  // rows past the last repeat it
    rows[2 * r] = row_of(p.gate, min(row + r, p.n - 1));
    rows[2 * r + 1] = row_of(p.up, min(row + r, p.n - 1));
  }
  if (!p.prefetch_weights) wait_for_previous_grid();
  float sums[Tokens][2 * Rows] = {};
  bool may_read_a = !p.prefetch_weights;
  for (int k0 = lane * 8; k0 < p.k; k0 += Depth * kVectorStep) {
    uint4 weights[Depth][2 * Rows];
#pragma unroll
    for (int i = 0; i < Depth; ++i) {
#pragma unroll
      for (int r = 0; r < 2 * Rows; ++r) {
        if (k0 + i * kVectorStep < p.k) weights[i][r] = load_weights8(rows[r] + k0 + i * kVectorStep);
      }
    }
    if (!may_read_a) wait_for_previous_grid();
    may_read_a = true;
#pragma unroll
    for (int i = 0; i < Depth; ++i) {
      if (k0 + i * kVectorStep >= p.k) break;
#pragma unroll
      for (int r = 0; r < 2 * Rows; ++r) {
        float w[8];
        unpack8<IsBf16>(weights[i][r], w);
#pragma unroll
        for (int token = 0; token < Tokens; ++token) {
          float x[8];
          unpack8<IsBf16>(*reinterpret_cast<const uint4*>(p.a + min(token, p.m - 1) * p.lda + k0 + i * kVectorStep), x);
#pragma unroll
          for (int j = 0; j < 8; ++j) sums[token][r] = fmaf(w[j], x[j], sums[token][r]);
        }
      }
    }
  }
  float gate = 0, up = 0;  // lane i finishes output i
#pragma unroll
  for (int token = 0; token < Tokens; ++token) {
#pragma unroll
    for (int r = 0; r < 2 * Rows; ++r) {
      float sum = sums[token][r];
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
      if (lane == token * Rows + r / 2) (r % 2 == 0 ? gate : up) = sum;
    }
  }
  const int token = lane / Rows, column = row + lane % Rows;
  if (token >= min(Tokens, p.m) || column >= p.n) return;
  finish<IsBf16>(p.finish, token, column, gate, up);
}

template <KernelConfig C>
Result<std::unique_ptr<Launcher>> make(const Problem& problem, const LaunchOptions& options) {
  constexpr int kRows = C.tile_n2 / 2, kDepth = C.tile_k / kVectorStep;
  const auto kernel = problem.dtype == Dtype::kBf16 ? vector_kernel<C.tile_m, kRows, kDepth, true>
                                                    : vector_kernel<C.tile_m, kRows, kDepth, false>;
  return std::unique_ptr<Launcher>(
      std::make_unique<StreamedLauncher>(C, kernel, kVectorWarps * kRows, 32 * kVectorWarps, problem, options));
}

}  // namespace tileglu::sm90
