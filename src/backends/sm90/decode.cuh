// SPDX-License-Identifier: Apache-2.0
// "decode": weights are the rows of the WGMMA and tokens its columns, which may be as few as 8. A warpgroup multiplies
// 64 gate rows and the 64 up rows of the same outputs, so that gate and up of an output end up in the same thread; y is
// transposed on its way through shared memory (stmatrix.trans). A tile may have fewer columns than the kernel at run
// time: it then loads fewer weight rows, multiplies what happens to lie in their place, and stores its columns only.
// decode_stacked.cuh has the tiles that multiply 32 gate and 32 up rows together.
#pragma once

#include "backends/sm90/decode_stacked.cuh"
#include "backends/sm90/fused.cuh"

namespace tileglu::sm90 {

// stmatrix.trans, two or four 8x8 matrices; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void store_transposed(std::uint16_t* row, std::uint32_t m0, std::uint32_t m1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(cute::cast_smem_ptr_to_uint(row)),
               "r"(m0), "r"(m1)
               : "memory");
}
__device__ __forceinline__ void store_transposed(std::uint16_t* row, std::uint32_t m0, std::uint32_t m1,
                                                 std::uint32_t m2, std::uint32_t m3) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(cute::cast_smem_ptr_to_uint(row)),
      "r"(m0), "r"(m1), "r"(m2), "r"(m3)
      : "memory");
}

// Warpgroups: each has 64 of the tile's output columns.
template <int TileM, int Warpgroups, int Cluster, bool Shared>
struct DecodeTile : FusedTile<TileM, 64 * Warpgroups, 1, Cluster, Warpgroups, Warpgroups, Shared, TileM * 64> {
  using Base = FusedTile<TileM, 64 * Warpgroups, 1, Cluster, Warpgroups, Warpgroups, Shared, TileM * 64>;
  using Base::kHalf, Base::kTileM;
  static constexpr int kProducerRegisters = TileM > 64 ? 40 : Base::kProducerRegisters;
  static constexpr int kConsumerRegisters = TileM > 64 ? 232 : Base::kConsumerRegisters;
  static constexpr bool kThreadsStore = false, kFinishTogether = false;
  static constexpr bool kTakesBias = true;
  static constexpr bool kNarrows = !Shared;
  static constexpr bool kScarceRegisters = TileM > 64;
  static constexpr int kWidth = TileM;               // of a WGMMA
  static constexpr int kBlocks = 2;                  // gate, up
  static constexpr int kPortions = 1;                // of y
  static constexpr int kBox = 64, kBoxRows = TileM;  // rows of a narrowing tile: as it has
  using Accumulators = float[kBlocks][kWidth / 2];
  static_assert(TileM % 8 == 0 && TileM <= 192, "registers to work with must remain");

  static constexpr int kStrideRows = 2 * kHalf * 128 / 16, kStrideColumns = kTileM * 128 / 16;
  __device__ static int rows(const FusedStorage<DecodeTile>& s, int block) {
    return static_cast<int>(descriptor_low(cute::cast_smem_ptr_to_uint(s.weights))) +
           (block * Warpgroups + Base::sharer()) * kStepRows64;
  }
  __device__ static int columns(const FusedStorage<DecodeTile>& s) {
    return static_cast<int>(descriptor_low(cute::cast_smem_ptr_to_uint(s.a)));
  }

  template <int Pass, bool IsBf16>
  __device__ __forceinline__ static void add_biases(const FinishParams& p, int n, Corner corner, Accumulators& d) {
    const int column = corner.column + Base::sharer() * 64 + threadIdx.x / 32 % 4 * 16 + lane_here() / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // gate and up of rows 8 apart
      const float bias = p.bias_at<IsBf16>(i / 2, column + i % 2 * 8, n);
#pragma unroll
      for (int tokens = 0; tokens < kTileM / 8; ++tokens) {
        d[i / 2][4 * tokens + i % 2 * 2] += bias;
        d[i / 2][4 * tokens + i % 2 * 2 + 1] += bias;
      }
    }
  }

  template <class Act, class Pack>
  __device__ __forceinline__ static void stage_y(const Act& act, const Pack& pack, std::uint16_t* y,
                                                 const Accumulators& d, int) {
    const int lane = lane_here(), warp = threadIdx.x / 32 % 4;
    const int unit = 2 * warp + lane / 8 % 2;  // of 8 columns: the matrices of rows r and r + 8 of the accumulators
    const auto address = [&](int row) { return y + row * kBox + swizzled_unit<kBox>(row, unit) * 8; };
#pragma unroll
    for (int first = 0; first < kTileM / 8; first += 2) {  // groups of 8 tokens; stmatrix x4 stores two
      const bool pair = first + 1 < kTileM / 8;
      std::uint32_t packed[2][2];  // of a group, rows r and r + 8
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // Four tokens of one column: what shares a reciprocal must not lie in a row that a narrow tile did not load.
        Quad gate{}, up{};
#pragma unroll
        for (int i = 0; i < (pair ? 4 : 2); ++i) {
          gate.v[i] = d[0][4 * (first + i / 2) + 2 * h + i % 2];
          up.v[i] = d[1][4 * (first + i / 2) + 2 * h + i % 2];
        }
        const Quad value = act_times_up(act, gate, up);
        packed[0][h] = pack(value.v[0], value.v[1]);
        packed[1][h] = pack(value.v[2], value.v[3]);
      }
      if (pair) {
        store_transposed(address((first + lane / 16) * 8 + lane % 8), packed[0][0], packed[0][1], packed[1][0],
                         packed[1][1]);
      } else {
        store_transposed(address(first * 8 + lane % 8), packed[0][0], packed[0][1]);
      }
    }
  }

  __device__ __forceinline__ static void store_y(const CUtensorMap& map, const std::uint16_t* y, int row, int column,
                                                 int) {
    if constexpr (kNarrows) {  // a slice's other columns are not written
      cute::SM90_TMA_STORE_3D::copy(&map, y, Base::sharer() * kBox, column / 8, row);
    } else {
      cute::SM90_TMA_STORE_2D::copy(&map, y, column + Base::sharer() * kBox, row);
    }
  }
};

template <KernelConfig C>
Result<std::unique_ptr<Launcher>> make(const Problem& problem, const LaunchOptions& options) {
  static_assert(C.schedule == Schedule::kCooperative);
  if constexpr (C.stacked()) {
    static_assert(!C.shared);
    static_assert(C.cluster_m == 1);
    return FusedLauncher<C, StackedTile<C.tile_m, C.tile_n2 / 64, C.split_k>>::make(problem, options);
  } else {
    using Tile = DecodeTile<C.tile_m, C.tile_n2 / 128, C.cluster_m, C.shared>;
    return FusedLauncher<C, Tile>::make(problem, options);
  }
}

}  // namespace tileglu::sm90
