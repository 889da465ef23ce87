// SPDX-License-Identifier: Apache-2.0
// Tiles with tokens as the rows of the WGMMA.
//   one pass  ("paired"): a WGMMA is 2*half wide; its first half of columns is gate rows, its second half up rows of
//   the
//             same output columns, so that gate and up of an output end up in the same thread.
//   two passes ("sync_pingpong"): the gate's columns first, the activation on them, then the up's.
#pragma once

#include "backends/sm90/fused.cuh"

namespace tileglu::sm90 {

// Floats from row to row of staged sums: rows 4 apart share banks, as 8-byte stores want it.
constexpr int sums_stride(int half) {
  return half + 8;
}

// Ping-pong: two consumer warpgroups with a tile each. Cooperative: two, each with every second 64-row block of one
// tile. Integers and not a KernelConfig: nvcc 13.0 cannot name a __global__ function whose template arguments hold a
// class value.
template <int TileM, int TileN2, int Passes, int Cluster, bool Pingpong, bool Shared, bool General>
struct TokenRowsTile : FusedTile<TileM, TileN2 / 2, Passes, Cluster, 2, Pingpong ? 1 : 2, Shared,
                                 General ? 64 * 2 * sums_stride(TileN2 / 2) * 2 : 64 * TileN2 / 2> {
  using Base = FusedTile<TileM, TileN2 / 2, Passes, Cluster, 2, Pingpong ? 1 : 2, Shared,
                         General ? 64 * 2 * sums_stride(TileN2 / 2) * 2 : 64 * TileN2 / 2>;
  using Base::kHalf, Base::kSharers, Base::kTileM;
  static constexpr bool kThreadsStore = General, kFinishTogether = false, kNarrows = false;
  static constexpr bool kScarceRegisters = Base::kAccumulators > 160;
  static constexpr bool kTakesBias = !Shared;
  static constexpr int kWidth = TileN2 / Passes;                  // of a WGMMA
  static constexpr int kBlocks = TileM / 64 / kSharers;           // 64-row WGMMAs of a warpgroup
  static constexpr int kPortions = kBlocks;                       // of y: 64 rows each
  static constexpr int kBox = box_columns(kHalf), kBoxRows = 64;  // of a TMA store
  using Accumulators = float[Passes * kBlocks][kWidth / 2];
  static_assert(kHalf % 8 == 0);
  static_assert(TileM % (64 * kSharers) == 0 && TileM <= 256);
  static_assert(Passes * kBlocks * kWidth / 2 <= 192, "registers to work with must remain");

  // Operands of the 64-row block `block` in stage 0; the other stages follow at kStrideRows and kStrideColumns.
  static constexpr int kStrideRows = kTileM * 128 / 16, kStrideColumns = kWidth * 128 / 16;
  __device__ static int rows(const FusedStorage<TokenRowsTile>& s, int block) {
    return static_cast<int>(descriptor_low(cute::cast_smem_ptr_to_uint(s.a))) +
           (block * kSharers + Base::sharer()) * kStepRows64;
  }
  __device__ static int columns(const FusedStorage<TokenRowsTile>& s) {
    return static_cast<int>(descriptor_low(cute::cast_smem_ptr_to_uint(s.weights)));
  }

  // Element offset of 16-byte unit `unit` of row `row` of a portion: boxes side by side, each [64][kBox].
  __device__ static int staging_offset(int row, int unit) {
    constexpr int kUnits = kBox / 8;
    return (unit / kUnits * 64 + row) * kBox + swizzled_unit<kBox>(row, unit % kUnits) * 8;
  }

  // To the accumulators of a pass.
  template <int Pass, bool IsBf16>
  __device__ __forceinline__ static void add_biases(const FinishParams& p, int n, Corner corner, Accumulators& d) {
#pragma unroll
    for (int unit = 0; unit < kWidth / 8; ++unit) {
      const bool is_up = Passes == 2 ? Pass == 1 : unit >= kHalf / 8;
      const int column = corner.column + unit % (kHalf / 8) * 8 + lane_here() % 4 * 2;
      const float first = p.bias_at<IsBf16>(is_up, column, n), second = p.bias_at<IsBf16>(is_up, column + 1, n);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        float* values = &d[Pass * kBlocks + block][4 * unit];
        values[0] += first;
        values[1] += second;
        values[2] += first;
        values[3] += second;
      }
    }
  }

  // General: the sums of 64 rows, gate then up, for finish_rows().
  __device__ __forceinline__ static void stage_sums(float* sums, const Accumulators& d, int block) {
    const int lane = lane_here(), row = threadIdx.x / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int unit = 0; unit < kWidth / 8; ++unit) {
      float* half = sums + (unit >= kHalf / 8 ? 64 * sums_stride(kHalf) : 0) + unit % (kHalf / 8) * 8 + lane % 4 * 2;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *reinterpret_cast<float2*>(half + (row + 8 * h) * sums_stride(kHalf)) =
            make_float2(d[block][4 * unit + 2 * h], d[block][4 * unit + 2 * h + 1]);
      }
    }
  }
  template <bool IsBf16>
  __device__ __forceinline__ static void finish_rows(const FusedParams& p, const float* sums, Corner corner, int,
                                                     int block) {
    const int first_row = corner.row + (block * kSharers + Base::sharer()) * 64;
    constexpr int kBatch = 4;  // of a thread, so that its loads of operands wait for each other no more
    static_assert(64 * kHalf % (128 * kBatch) == 0);
    for (int first = threadIdx.x % 128; first < 64 * kHalf; first += 128 * kBatch) {
      const auto row_of = [&](int i) { return first_row + (first + i * 128) / kHalf; };
      const auto column_of = [&](int i) { return corner.column + (first + i * 128) % kHalf; };
      float values[kBatch][2];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const float* gate = sums + (row_of(i) - first_row) * sums_stride(kHalf) + column_of(i) - corner.column;
        values[i][0] = gate[0];
        values[i][1] = gate[64 * sums_stride(kHalf)];
        if (row_of(i) < p.m && column_of(i) < p.n) add_operands<IsBf16>(p.finish, row_of(i), column_of(i), values[i]);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (row_of(i) < p.m && column_of(i) < p.n) store_output<IsBf16>(p.finish, row_of(i), column_of(i), values[i]);
      }
    }
  }

  // Two passes: the gate's accumulators become the activation's values.
  template <class Act>
  __device__ __forceinline__ static void activate(const Act& act, Accumulators& d) {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int i = 0; i < kWidth / 2; i += 4) {
        const Quad gate{d[block][i], d[block][i + 1], d[block][i + 2], d[block][i + 3]};
        const Quad value = act_times_up(act, gate, Quad{1, 1, 1, 1});
#pragma unroll
        for (int j = 0; j < 4; ++j) d[block][i + j] = value.v[j];
      }
    }
  }

  // Four outputs (two rows, two columns) of 8-column unit `unit`.
  template <class Act>
  __device__ __forceinline__ static Quad outputs(const Act& act, const Accumulators& d, int block, int unit) {
    Quad gate, up;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      gate.v[i] = d[block][4 * unit + i];
      up.v[i] = Passes == 1 ? d[block][4 * (unit + kHalf / 8) + i] : d[(Passes - 1) * kBlocks + block][4 * unit + i];
    }
    return act_times_up(act, gate, up);
  }

  template <class Act, class Pack>
  __device__ __forceinline__ static void stage_y(const Act& act, const Pack& pack, std::uint16_t* y,
                                                 const Accumulators& d, int block) {
    const int lane = lane_here(), row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
    for (int unit = 0; unit < kHalf / 8; unit += 2) {  // 8 columns each; stmatrix x4 stores two
      const Quad first = outputs(act, d, block, unit);
      const std::uint32_t f0 = pack(first.v[0], first.v[1]), f1 = pack(first.v[2], first.v[3]);
      if (unit + 1 < kHalf / 8) {
        const Quad second = outputs(act, d, block, unit + 1);
        cute::SM90_U32x4_STSM_N::copy(f0, f1, pack(second.v[0], second.v[1]), pack(second.v[2], second.v[3]),
                                      *reinterpret_cast<cute::uint128_t*>(y + staging_offset(row, unit + lane / 16)));
      } else {
        cute::SM90_U32x2_STSM_N::copy(f0, f1, *reinterpret_cast<cute::uint128_t*>(y + staging_offset(row, unit)));
      }
    }
  }

  // By one thread of the warpgroup.
  __device__ __forceinline__ static void store_y(const CUtensorMap& map, const std::uint16_t* y, int row, int column,
                                                 int block) {
#pragma unroll
    for (int box = 0; box < kHalf / kBox; ++box) {
      cute::SM90_TMA_STORE_2D::copy(&map, y + box * 64 * kBox, column + box * kBox,
                                    row + (block * kSharers + Base::sharer()) * 64);
    }
  }
};

}  // namespace tileglu::sm90
