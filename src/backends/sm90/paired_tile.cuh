// SPDX-License-Identifier: Apache-2.0
// Compile-time shape of a "paired" tile: WGMMA, layouts, shared memory.
#pragma once

#include "backends/sm90/gate_math.cuh"

#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>

#include <cuda.h>

namespace tileglu::sm90 {

// Named barriers: two each, one per consumer warpgroup.
inline constexpr int kTensorCoresBarrier = 2;  // ping-pong: the tensor cores are yours
inline constexpr int kStagingBarrier = 4;      // inside a warpgroup, around the staging buffer

template <int Width>
struct WgmmaAtom;
#define TILEGLU_WGMMA_ATOM(width)                                                                                     \
  template <>                                                                                                         \
  struct WgmmaAtom<width> {                                                                                           \
    using Type =                                                                                                      \
        cute::SM90::GMMA::MMA_64x##width##x16_F32BF16BF16_SS<cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::K>; \
  }
TILEGLU_WGMMA_ATOM(128);
TILEGLU_WGMMA_ATOM(192);
TILEGLU_WGMMA_ATOM(256);
#ifdef CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED
TILEGLU_WGMMA_ATOM(160);
TILEGLU_WGMMA_ATOM(224);
#endif
#undef TILEGLU_WGMMA_ATOM

// Integers and not a KernelConfig: nvcc 13.0 cannot name a __global__ function whose template arguments hold a class
// value.
template <int TileM, int TileN2, int ClusterM, bool Pingpong>
struct PairedTile {
  static constexpr int kTileM = TileM, kTileN2 = TileN2, kTileK = 64, kClusterM = ClusterM;
  static constexpr bool kPingpong = Pingpong;
  static constexpr int kHalf = kTileN2 / 2;                                      // output columns of a tile
  static constexpr int kBox = kHalf % 64 == 0 ? 64 : kHalf % 32 == 0 ? 32 : 16;  // output columns of a TMA store box
  static constexpr int kStageBytes = (kTileM + kTileN2) * kTileK * 2;
  static constexpr int kStagingElements = kTileM * kHalf;
  static constexpr int kStagings = kPingpong ? 2 : 1;
  // All of the 227 KiB that a block may have, less the staging buffers, barriers and the alignment of the whole.
  static constexpr int kStages = (232448 - 2048 - kStagings * kStagingElements * 2) / kStageBytes;
  static_assert(kHalf % 16 == 0, "stmatrix x4 stores two units of 8 columns");
  static_assert(kTileM % (kPingpong ? 64 : 128) == 0 && kTileM <= 256);
  static_assert(kTileM * kTileN2 / (kPingpong ? 128 : 256) <= 192, "accumulators must leave registers to work with");
  static_assert(kClusterM <= 2, "each CTA of a cluster multicasts one of the two halves");
  static_assert(kStages >= 3);

  using Atom = cute::GMMA::Layout_K_SW128_Atom<cutlass::bfloat16_t>;
  using LayoutA =
      decltype(cute::tile_to_shape(Atom{}, cute::Shape<cute::Int<kTileM>, cute::Int<kTileK>, cute::Int<kStages>>{}));
  using LayoutWeights =
      decltype(cute::tile_to_shape(Atom{}, cute::Shape<cute::Int<kTileN2>, cute::Int<kTileK>, cute::Int<kStages>>{}));
  using Mma =
      decltype(cute::make_tiled_mma(typename WgmmaAtom<kTileN2>::Type{},
                                    cute::Layout<cute::Shape<cute::Int<kPingpong ? 1 : 2>, cute::_1, cute::_1>>{}));

  // Element offset of 16-byte unit `unit` of row `row`: boxes side by side, each [tile_m][kBox], swizzled as TMA
  // expects for rows of 128, 64 or 32 bytes.
  CUTE_DEVICE static int staging_offset(int row, int unit) {
    constexpr int kUnits = kBox / 8;
    return (unit / kUnits * kTileM + row) * kBox + swizzled_unit<kBox>(row, unit % kUnits) * 8;
  }
};

template <class T>
struct PairedStorage {
  alignas(1024) cutlass::bfloat16_t a[T::kStages][T::kTileM * T::kTileK];
  alignas(1024) cutlass::bfloat16_t weights[T::kStages][T::kTileN2 * T::kTileK];
  alignas(1024) cutlass::bfloat16_t y[T::kStagings][T::kStagingElements];
  alignas(8) cutlass::arch::ClusterTransactionBarrier full[T::kStages];
  cutlass::arch::ClusterBarrier empty[T::kStages];
};

}  // namespace tileglu::sm90
