// SPDX-License-Identifier: Apache-2.0
// "decode" tiles whose gate rows and up rows lie one below the other, without a gap, and are cut into blocks of 64 rows
// for as many warpgroups: 2 * columns rows cost as many WGMMAs as they fill, where decode.cuh's warpgroups multiply 64
// gate and 64 up rows each, however few a narrow tile has. Gate and up of an output meet in shared memory.
//
// Where few columns leave few tiles, the CTAs of a cluster divide k of a tile: wider tiles need fewer bytes of L2 for a
// FLOP. Each CTA then finishes its share of the outputs, from the sums of all, added in the order of k.
#pragma once

#include "backends/sm90/cluster_memory.cuh"
#include "backends/sm90/fused.cuh"

namespace tileglu::sm90 {

// Floats from weight row to weight row of the staged sums: four rows apart share banks, as 8-byte stores want it.
constexpr int stacked_stride(int tile_m) {
  return tile_m + 8;
}

// Elements of y's staging buffer that hold the sums of a warpgroup; a tile that is the only one of its CTAs needs none.
constexpr int stacked_staging(int tile_m, int split) {
  return split > 1 ? 1 : 64 * stacked_stride(tile_m) * 2;
}

template <int TileM, int Warpgroups, int Split>
struct StackedTile
    : FusedTile<TileM, 32 * Warpgroups, 1, 1, Warpgroups, Warpgroups, false, stacked_staging(TileM, Split)> {
  using Base = FusedTile<TileM, 32 * Warpgroups, 1, 1, Warpgroups, Warpgroups, false, stacked_staging(TileM, Split)>;
  static constexpr int kSplit = Split;
  static constexpr int kSumsBytes = 64 * Warpgroups * stacked_stride(TileM) * 4;
  static constexpr bool kThreadsStore = true, kFinishTogether = true;
  static constexpr bool kTakesBias = true;
  static constexpr bool kNarrows = true;
  static constexpr int kWidth = TileM;  // of a WGMMA
  static constexpr int kBlocks = 1;
  using Accumulators = float[kBlocks][kWidth / 2];
  static_assert(TileM % 16 == 0 && TileM <= 128);

  static constexpr int kTokens = TileM / Split;  // that a CTA finishes
  static constexpr int kConsumerThreads = 128 * Warpgroups;
  __device__ static int consumer_thread() { return Base::sharer() * 128 + static_cast<int>(threadIdx.x) % 128; }

  static constexpr int kStrideRows = 64 * Warpgroups * 128 / 16, kStrideColumns = TileM * 128 / 16;
  __device__ static int rows(const FusedStorage<StackedTile>& s, int) {
    return static_cast<int>(descriptor_low(cute::cast_smem_ptr_to_uint(s.weights))) + Base::sharer() * kStepRows64;
  }
  __device__ static int columns(const FusedStorage<StackedTile>& s) {
    return static_cast<int>(descriptor_low(cute::cast_smem_ptr_to_uint(s.a)));
  }
  __device__ static int first_up_row(int columns) { return columns; }

  // sums: of the tile, a row for each weight row.
  __device__ __forceinline__ static void stage_sums(float* sums, const Accumulators& d, int) {
    const int lane = lane_here(), row = Base::sharer() * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int unit = 0; unit < kWidth / 8; ++unit) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *reinterpret_cast<float2*>(sums + (row + 8 * h) * stacked_stride(TileM) + unit * 8 + lane % 4 * 2) =
            make_float2(d[0][4 * unit + 2 * h], d[0][4 * unit + 2 * h + 1]);
      }
    }
  }

  // Adds up what the CTAs of the cluster have summed of the tokens that this one finishes; into its own sums, which for
  // these tokens nobody else reads.
  __device__ __forceinline__ static void collect(const FusedParams& p, float* sums, int rank) {
    constexpr int kQuads = kTokens / 4;  // of tokens
    for (int i = consumer_thread(); i < 2 * p.columns * kQuads; i += kConsumerThreads) {
      float* at = sums + i / kQuads * stacked_stride(TileM) + rank * kTokens + i % kQuads * 4;
      float4 total{};
#pragma unroll
      for (int cta = 0; cta < Split; ++cta) {
        if (cta * share_blocks<StackedTile>(p) >= p.work.k_blocks) continue;
        const float4 v = load_from_cta(cute::cast_smem_ptr_to_uint(at), cta);
        total = make_float4(total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w);
      }
      *reinterpret_cast<float4*>(at) = total;
    }
  }

  // Eight columns of a token at a time.
  template <bool IsBf16>
  __device__ __forceinline__ static void finish_rows(const FusedParams& p, const float* sums, Corner corner, int rank,
                                                     int) {
    const int tokens = min(p.rows, p.m - corner.row);
    const auto sum = [&](bool is_up, int token, int column) {
      const float value = sums[(column + (is_up ? p.columns : 0)) * stacked_stride(TileM) + token];
      return p.finish.has_bias() ? value + p.finish.bias_at<IsBf16>(is_up, corner.column + column, p.n) : value;
    };
    visit_formula<IsBf16>(p.gate_params, [&](const auto& act, const auto& pack) {
      const int pieces = kTokens * p.columns / 8;
      for (int piece = consumer_thread(); piece < pieces; piece += kConsumerThreads) {
        const int token = rank * kTokens + piece % kTokens, column = piece / kTokens * 8;
        if (token >= tokens) continue;
        std::uint32_t packed[4];
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          Quad gate, up;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            gate.v[i] = sum(false, token, column + 4 * part + i);
            up.v[i] = sum(true, token, column + 4 * part + i);
          }
          const Quad value = act_times_up(act, gate, up);
          packed[2 * part] = pack(value.v[0], value.v[1]);
          packed[2 * part + 1] = pack(value.v[2], value.v[3]);
        }
        auto* y =
            static_cast<std::uint16_t*>(p.finish.y) + (corner.row + token) * p.finish.ldy + corner.column + column;
        *reinterpret_cast<uint4*>(y) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
      }
    });
  }
};

}  // namespace tileglu::sm90
