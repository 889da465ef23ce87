// SPDX-License-Identifier: Apache-2.0
// "decode" for few tokens on mma.sync: weights go from memory straight into the registers of the tensor cores. Like
// vector.cuh it has no descriptors and no pipeline to fill, and its tiles are fine: a block has 8 outputs or
// a few times that, its warps share k.
//
// mma.m16n8k16: 8 gate rows and the 8 up rows of the same outputs are the rows of the A fragment, tokens the columns of
// B, so that gate and up of an output end up in the same thread. The order of the elements along k is free as long as
// both fragments agree: a lane takes 8 neighbouring elements (16 bytes) of its rows, which serve two instructions.
#pragma once

#include "backends/sm90/streamed.cuh"

namespace tileglu::sm90 {

inline constexpr int kMmaWarps = 4;  // of a block
inline constexpr int kMmaStep = 32;  // elements along k that a warp takes at a time

template <bool IsBf16>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], std::uint32_t gate0, std::uint32_t up0, std::uint32_t gate1,
                                            std::uint32_t up1, std::uint32_t tokens0, std::uint32_t tokens1) {
  if constexpr (IsBf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(gate0), "r"(up0), "r"(gate1), "r"(up1), "r"(tokens0), "r"(tokens1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(gate0), "r"(up0), "r"(gate1), "r"(up1), "r"(tokens0), "r"(tokens1));
  }
}

// Tokens: at most, a multiple of 8; Rows: groups of 8 outputs of a block; Depth: steps along k whose weights a warp has
// in flight together.
template <int Tokens, int Rows, int Depth, bool IsBf16>
__global__ void __launch_bounds__(32 * kMmaWarps, 4) mma_kernel(const __grid_constant__ StreamedParams p) {
  constexpr int kColumns = Tokens / 8;  // of mma tiles
  __shared__ float parts[kMmaWarps - 1][Rows][kColumns][4][32];
  let_next_grid_start();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = blockIdx.x * Rows * 8 + lane / 4, offset = lane % 4 * 8;
  const std::uint16_t *gate[Rows], *up[Rows], *tokens[kColumns];
#pragma unroll
  for (int r = 0; r < Rows; ++r) {  // rows past the last repeat it
    gate[r] = row_of(p.gate, min(first_row + 8 * r, p.n - 1)) + offset;
    up[r] = row_of(p.up, min(first_row + 8 * r, p.n - 1)) + offset;
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) tokens[j] = p.a + min(8 * j + lane / 4, p.m - 1) * p.lda + offset;
  if (!p.prefetch_weights) wait_for_previous_grid();
  bool may_read_a = !p.prefetch_weights;
  float d[Rows][kColumns][4] = {};
  for (int k0 = warp * kMmaStep; k0 < p.k; k0 += Depth * kMmaWarps * kMmaStep) {
    uint4 g[Depth][Rows], u[Depth][Rows], x[Depth][kColumns];
    const auto k_of = [&](int i) { return k0 + i * kMmaWarps * kMmaStep; };
    const auto inside = [&](int i) { return k_of(i) + offset < p.k; };
#pragma unroll
    for (int i = 0; i < Depth; ++i) {
#pragma unroll
      for (int r = 0; r < Rows; ++r) {
        g[i][r] = inside(i) ? load_weights8(gate[r] + k_of(i)) : uint4{};
        u[i][r] = inside(i) ? load_weights8(up[r] + k_of(i)) : uint4{};
      }
    }
    if (!may_read_a) wait_for_previous_grid();
    may_read_a = true;
#pragma unroll
    for (int i = 0; i < Depth; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        x[i][j] = inside(i) ? *reinterpret_cast<const uint4*>(tokens[j] + k_of(i)) : uint4{};
      }
    }
#pragma unroll
    for (int i = 0; i < Depth; ++i) {
#pragma unroll
      for (int r = 0; r < Rows; ++r) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          mma_16x8x16<IsBf16>(d[r][j], g[i][r].x, u[i][r].x, g[i][r].y, u[i][r].y, x[i][j].x, x[i][j].y);
          mma_16x8x16<IsBf16>(d[r][j], g[i][r].z, u[i][r].z, g[i][r].w, u[i][r].w, x[i][j].z, x[i][j].w);
        }
      }
    }
  }
  const auto for_each_tile = [&](const auto& visit) {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) visit(r, j);
    }
  };
  if (warp > 0) {
    for_each_tile([&](int r, int j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) parts[warp - 1][r][j][i][lane] = d[r][j][i];
    });
  }
  __syncthreads();
  if (warp > 0) return;
  for_each_tile([&](int r, int j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int w = 0; w < kMmaWarps - 1; ++w) d[r][j][i] += parts[w][r][j][i][lane];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int token = 8 * j + lane % 4 * 2 + i, column = first_row + 8 * r;
      if (token < p.m && column < p.n) finish<IsBf16>(p.finish, token, column, d[r][j][i], d[r][j][i + 2]);
    }
  });
}

template <KernelConfig C>
Result<std::unique_ptr<Launcher>> make(const Problem& problem, const LaunchOptions& options) {
  constexpr int kRows = C.tile_n2 / 16, kDepth = C.tile_k / (kMmaWarps * kMmaStep);
  static_assert(C.tile_m % 8 == 0 && C.tile_n2 % 16 == 0 && kDepth > 0);
  const auto kernel = problem.dtype == Dtype::kBf16 ? mma_kernel<C.tile_m, kRows, kDepth, true>
                                                    : mma_kernel<C.tile_m, kRows, kDepth, false>;
  return std::unique_ptr<Launcher>(
      std::make_unique<StreamedLauncher>(C, kernel, 8 * kRows, 32 * kMmaWarps, problem, options));
}

}  // namespace tileglu::sm90
