// SPDX-License-Identifier: Apache-2.0
// What the compile-time shapes of "paired", "decode" and "sync_pingpong" tiles have in common: the division of a CTA
// into warpgroups, its pipeline and its shared memory.
#pragma once

#include "backends/sm90/gate_math.cuh"

#include <cute/arch/copy_sm90.hpp>
#include <cutlass/arch/barrier.h>

#include <cstdint>

namespace tileglu::sm90 {

inline constexpr int kTileK = 64;  // 128 bytes of a 16-bit type: one swizzle atom

// TileM: tokens, Half: output columns, Passes: 1 if gate and up are multiplied together, 2 if one after the other,
// Consumers: warpgroups, Sharers: those that share a tile, StagingElements: of y, that a consumer sends off at a time.
template <int TileM, int Half, int Passes, int Cluster, int Consumers, int Sharers, bool Shared, int StagingElements>
struct FusedTile {
  static constexpr int kTileM = TileM, kHalf = Half, kCluster = Cluster;
  static constexpr int kPasses = Passes;
  static constexpr int kWeightRows = 2 * kHalf / kPasses;                        // in a stage
  static constexpr int kLoadRows = kWeightRows / (kPasses == 1 ? 2 : kCluster);  // that a TMA load brings
  static constexpr int kConsumers = Consumers, kSharers = Sharers;
  static constexpr bool kPingpong = kConsumers > kSharers;
  static constexpr bool kShared = Shared;  // tiles may be cut along k (plan/work_split.hpp)
  static constexpr int kSplit = 1;         // CTAs of a cluster that divide k
  static constexpr int kThreads = 128 * (1 + kConsumers);
  static constexpr int kAccumulators = 2 * kTileM * kHalf / (128 * kSharers);  // of a thread
  // A thread of each of three warpgroups has 168 at first; what leaves no spill on either side.
  static constexpr int kProducerRegisters = kAccumulators > 150 ? 40 : 72;
  static constexpr int kConsumerRegisters = (3 * 168 - kProducerRegisters) / 2;

  static constexpr int kStageBytes = (kTileM + kWeightRows) * kTileK * 2;
  // The SM's 228 KiB, less 1 KiB that a CTA has to leave, the staging buffers, barriers and the alignment.
  static constexpr int kStagingElements = StagingElements;
  static constexpr int kStages = (233472 - 1024 - 2048 - kConsumers * kStagingElements * 2) / kStageBytes;
  static constexpr int kPartFloats = kTileM * 2 * kHalf;  // accumulators of a CTA
  static_assert(kCluster <= 2, "each CTA of a cluster multicasts one of two halves");
  static_assert(kStages >= 3);
  static_assert(!kShared || kPasses == 1);

  // Of a stage whose tile has `columns` columns; the first gate row is row 0.
  __device__ static int first_up_row(int /*columns*/) { return kHalf; }
  // The warpgroup's place among those that share its tile.
  __device__ static int sharer() { return kPingpong ? 0 : static_cast<int>(threadIdx.x) / 128 - 1; }
};

template <class T>
struct FusedStorage {
  alignas(1024) std::uint16_t a[T::kStages][T::kTileM * kTileK];
  alignas(1024) std::uint16_t weights[T::kStages][T::kWeightRows * kTileK];  // gate rows, then up rows; or one of them
  alignas(1024) std::uint16_t y[T::kConsumers][T::kStagingElements];
  alignas(8) cutlass::arch::ClusterTransactionBarrier full[T::kStages];
  cutlass::arch::ClusterBarrier empty[T::kStages];
};

}  // namespace tileglu::sm90
