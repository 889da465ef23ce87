// SPDX-License-Identifier: Apache-2.0
// The fused kernels that take weights where they lie: a persistent kernel around a tile shape T (token_rows.cuh,
// decode.cuh). Gate and up rows come by two TMA loads from two descriptors; nothing is repacked.
//
//   shared memory of a stage (rows of 128 bytes, 128-byte swizzle):   A [tile_m][64]   gate [half][64]   up [half][64]
//   warpgroup 0: producer (one thread issues TMA);   the others: consumers, ping-pong (a tile each) or cooperative
//
// A cluster of two CTAs works on two tiles that neighbour along m: each loads gate or up and multicasts it. The y tile
// goes out by TMA from a staging buffer while the next tile's main loop already runs.
#pragma once

#include "backends/sm90/dependent_launch.cuh"
#include "backends/sm90/finish.cuh"
#include "backends/sm90/fused_tile.cuh"
#include "backends/sm90/kernel_entry.hpp"
#include "backends/sm90/parts.cuh"
#include "backends/sm90/tensor_map.hpp"
#include "backends/sm90/wgmma.cuh"
#include "plan/work_split.hpp"

#include <cute/arch/cluster_sm90.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cutlass/arch/reg_reconfig.h>

namespace tileglu::sm90 {

// Named barriers; the first two are one per consumer warpgroup.
inline constexpr int kTensorCoresBarrier = 2;  // ping-pong: the tensor cores are yours
inline constexpr int kWarpgroupBarrier = 4;    // inside a warpgroup, or of all that finish a tile together
inline constexpr int kConsumersBarrier = 6;    // of all consumers

struct FusedParams {
  CUtensorMap a, gate, up, y;
  WorkSplit work;        // its workers are clusters
  int m_tiles, n_tiles;  // m_tiles: of clusters
  int columns;           // of a tile; those of a narrowing tile may be fewer than the kernel's
  int raster_group;
  bool grouped;           // weight rows come in groups of 8
  bool prefetch_weights;  // before the grid ahead in the stream has ended
  int m, n;
  GateParams gate_params;
  FinishParams finish;  // all of it for general tiles, else the biases
  Parts parts;
  int rows;  // of a tile, as columns; here, since elsewhere it moves what sync_pingpong's registers cannot spare
};

// First row of A and first output column of a CTA's tile, in the order in which clusters take tiles: groups of
// `raster_group` cluster tiles along m, m fastest inside a group, so that the CTAs at work share weight tiles and rows
// of A in L2.
struct Corner {
  int row, column;
};
template <class T>
__device__ __forceinline__ Corner corner_of(const FusedParams& p, int tile, int rank) {
  const int in_group = p.raster_group * p.n_tiles;
  const int first = tile / in_group * p.raster_group;
  const int rest = tile % in_group;
  const int height = min(p.raster_group, p.m_tiles - first);
  const int rank_m = T::kCluster > 1 ? rank : 0;
  const int row = ((first + rest % height) * T::kCluster + rank_m) * (T::kNarrows ? p.rows : T::kTileM);
  const int tile_n = rest / height;
  // The last narrow tile ends where n does: it has columns of its neighbour too, to which both give the same values.
  if constexpr (T::kNarrows) return {row, min(tile_n * p.columns, p.n - p.columns)};
  return {row, tile_n * T::kHalf};
}

// Of a whole tile what a CTA multiplies: all of it, or its share where the CTAs of a cluster divide k. Of few k-blocks
// the last ones have none.
template <class T>
__device__ __forceinline__ int share_blocks(const FusedParams& p) {
  return (p.work.k_blocks + T::kSplit - 1) / T::kSplit;
}
template <class T>
__device__ __forceinline__ void take_share(const FusedParams& p, WorkItem& item, int rank) {
  if constexpr (T::kSplit > 1) {
    item.k_begin = min(rank * share_blocks<T>(p), p.work.k_blocks);
    item.k_end = min(item.k_begin + share_blocks<T>(p), p.work.k_blocks);
  }
}

// That the loads of a stage bring.
template <class T>
__device__ __forceinline__ std::uint32_t stage_bytes(const FusedParams& p) {
  if constexpr (T::kNarrows) return (p.rows + 2 * p.columns) * kTileK * 2;
  return T::kStageBytes;
}

// Position in the ring of stages: index and the parity of the barrier's phase.
template <int Stages>
struct Ring {
  int stage = 0;
  std::uint32_t phase = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == Stages) {
      stage = 0;
      phase ^= 1;
    }
  }
  __device__ __forceinline__ void skip(int by) {
    const int next = stage + by;
    phase ^= (next / Stages) & 1;
    stage = next % Stages;
  }
};

inline constexpr auto kKeep = static_cast<std::uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL);
inline constexpr auto kReadOnce = static_cast<std::uint64_t>(cute::TMA::CacheHintSm90::EVICT_FIRST);
inline constexpr std::uint16_t kBothCtas = 3;  // of a cluster

template <class T>
__device__ __forceinline__ void load_weights(const FusedParams& p, FusedStorage<T>& s, int stage, int k, int pass,
                                             Corner corner, int rank) {
  auto* barrier = reinterpret_cast<std::uint64_t*>(&s.full[stage]);
  auto* weights = s.weights[stage];
  const std::uint64_t hint = p.m_tiles == 1 ? kReadOnce : kKeep;
  // Weight rows that lie one after the other are one box; else they come in groups of 8 (HalfView).
  const auto load = [&](const CUtensorMap& map, std::uint16_t* target, int row) {
    const int inner = p.grouped ? 0 : row, outer = p.grouped ? row / 8 : 0;
    if constexpr (T::kCluster == 1) {
      cute::SM90_TMA_LOAD_3D::copy(&map, barrier, hint, target, k * kTileK, inner, outer);
    } else {
      cute::SM90_TMA_LOAD_MULTICAST_3D::copy(&map, barrier, kBothCtas, hint, target, k * kTileK, inner, outer);
    }
  };
  if constexpr (T::kPasses == 2) {
    const int first = T::kCluster > 1 ? rank * T::kLoadRows : 0;
    load(pass == 0 ? p.gate : p.up, weights + first * kTileK, corner.column + first);
  } else {
    if (T::kCluster == 1 || rank == 0) load(p.gate, weights, corner.column);
    if (T::kCluster == 1 || rank == 1) load(p.up, weights + T::first_up_row(p.columns) * kTileK, corner.column);
  }
}

template <class T>
__device__ __forceinline__ void load_tokens(const FusedParams& p, FusedStorage<T>& s, int stage, int k, Corner corner) {
  cute::SM90_TMA_LOAD_2D::copy(&p.a, reinterpret_cast<std::uint64_t*>(&s.full[stage]), kKeep, s.a[stage], k * kTileK,
                               corner.row);
}

template <class T>
__device__ __forceinline__ void produce(const FusedParams& p, FusedStorage<T>& s, int worker, int rank) {
  Ring<T::kStages> ring;
  WorkCursor<T::kShared> cursor(p.work, worker);
  bool first = true;
  for (WorkItem item; cursor.next(item);) {
    take_share<T>(p, item, rank);
    const Corner corner = corner_of<T>(p, item.tile, rank);
    for (int pass = 0; pass < T::kPasses; ++pass) {
      int k = item.k_begin;
      if (first) {  // the ring is empty; A may be what the grid before this one writes
        first = false;
        if (!p.prefetch_weights) wait_for_previous_grid();
        const int ahead = min(T::kStages, item.k_end - k);
        for (int i = 0; i < ahead; ++i) {
          s.full[i].arrive_and_expect_tx(stage_bytes<T>(p));
          load_weights<T>(p, s, i, k + i, pass, corner, rank);
        }
        if (p.prefetch_weights) wait_for_previous_grid();
        for (int i = 0; i < ahead; ++i) load_tokens<T>(p, s, i, k + i, corner);
        k += ahead;
        ring.skip(ahead);
      }
      for (; k < item.k_end; ++k, ring.advance()) {
        s.empty[ring.stage].wait(ring.phase ^ 1);
        s.full[ring.stage].arrive_and_expect_tx(stage_bytes<T>(p));
        load_weights<T>(p, s, ring.stage, k, pass, corner, rank);
        load_tokens<T>(p, s, ring.stage, k, corner);
      }
    }
  }
  if constexpr (T::kCluster > 1) {  // the other CTA may still arrive on our barriers: do not leave before it has
    for (int i = 0; i < T::kStages; ++i, ring.advance()) s.empty[ring.stage].wait(ring.phase ^ 1);
  }
}

// Main loop of one item and pass: one group of WGMMAs is always in flight while the stage before it is released.
template <class T, int Pass, bool IsBf16>
__device__ __forceinline__ void multiply(FusedStorage<T>& s, Ring<T::kStages>& ring, int k_blocks,
                                         typename T::Accumulators& d) {
  const int thread = threadIdx.x % 128;
  const auto release = [&](int stage) {
    if constexpr (T::kCluster > 1) {
      s.empty[stage].arrive(thread % T::kCluster, thread < T::kCluster);
    } else if (thread == 0) {
      s.empty[stage].arrive();
    }
  };
  constexpr int kFirst = Pass * T::kBlocks;
  const auto hold = [&] {
#pragma unroll
    for (int block = 0; block < T::kBlocks; ++block) wgmma_hold(d[kFirst + block]);
  };
  const int first_rows = T::rows(s, 0), first_columns = T::columns(s);
  constexpr int kStrideBlocks = T::kSharers * kStepRows64;
  int accumulate = 0, previous = -1;
  for (int k = 0; k < k_blocks; ++k) {
    s.full[ring.stage].wait(ring.phase);
    const int rows = uniform(first_rows + ring.stage * T::kStrideRows);
    const int columns = uniform(first_columns + ring.stage * T::kStrideColumns);
    hold();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kTileK / 16; ++i) {
#pragma unroll
      for (int block = 0; block < T::kBlocks; ++block) {
        Wgmma<T::kWidth, IsBf16>::issue(d[kFirst + block], rows + block * kStrideBlocks + i * kStepK,
                                        columns + i * kStepK, accumulate);
      }
      accumulate = 1;
    }
    wgmma_commit();
    wgmma_wait<1>();
    if (previous >= 0) release(previous);
    previous = ring.stage;
    ring.advance();
  }
  // Ping-pong: the tensor cores go to the other warpgroup while the last WGMMAs drain.
  if constexpr (T::kPingpong && Pass == T::kPasses - 1) {
    cutlass::arch::NamedBarrier::arrive(256, kTensorCoresBarrier + 2 - threadIdx.x / 128);
  }
  wgmma_wait<0>();
  hold();
  if (T::kSplit == 1 || previous >= 0) release(previous);
}

// Accumulators of an item: of both passes, with the activation on those of the first.
template <class T, bool IsBf16>
__device__ __forceinline__ void sum(const FusedParams& p, FusedStorage<T>& s, const WorkItem& item, int rank,
                                    Ring<T::kStages>& ring, typename T::Accumulators& d) {
  const int k_blocks = item.k_end - item.k_begin;
  multiply<T, 0, IsBf16>(s, ring, k_blocks, d);
  if constexpr (T::kPasses == 2) {  // while the up tiles are on their way
    if (p.finish.has_bias()) T::template add_biases<0, IsBf16>(p.finish, p.n, corner_of<T>(p, item.tile, rank), d);
    visit_formula<IsBf16>(p.gate_params, [&](const auto& act, const auto&) { T::activate(act, d); });
    multiply<T, 1, IsBf16>(s, ring, k_blocks, d);
  }
}

// A tile's outputs, stored by the threads that compute them.
template <class T, bool IsBf16, class Synchronize>
__device__ __forceinline__ void put_by_threads(const FusedParams& p, std::uint16_t* staging, int tile, int rank,
                                               const typename T::Accumulators& d, const Synchronize& synchronize) {
  const Corner corner = corner_of<T>(p, tile, rank);
  auto* sums = reinterpret_cast<float*>(staging);
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
    T::stage_sums(sums, d, block);
    synchronize();
    T::template finish_rows<IsBf16>(p, sums, corner, rank, block);
    synchronize();  // the sums have been read
  }
}

// The same for a tile whose k the CTAs of a cluster have divided; the only one of each, so that the sums may take the
// place of the pipeline. All other threads of the cluster pass its barrier twice meanwhile.
template <class T, bool IsBf16, class Synchronize>
__device__ __forceinline__ void put_together(const FusedParams& p, FusedStorage<T>& s, int tile, int rank,
                                             const typename T::Accumulators& d, const Synchronize& synchronize) {
  static_assert(T::kBlocks == 1 && T::kSumsBytes <= T::kStages * T::kStageBytes);
  auto* sums = reinterpret_cast<float*>(&s);
  synchronize();  // all have multiplied
  T::stage_sums(sums, d, 0);
  cute::cluster_arrive();
  cute::cluster_wait();
  T::collect(p, sums, rank);
  synchronize();
  cute::cluster_arrive();
  T::template finish_rows<IsBf16>(p, sums, corner_of<T>(p, tile, rank), rank, 0);
  cute::cluster_wait();  // until nobody reads the sums
}

// The same by TMA, from the staging buffer of the warpgroup.
template <class T, bool IsBf16, class Synchronize>
__device__ __forceinline__ void put(const FusedParams& p, std::uint16_t* staging, int tile, int rank,
                                    typename T::Accumulators& d, const Synchronize& synchronize) {
  const bool leader = threadIdx.x % 128 == 0;
  const Corner corner = corner_of<T>(p, tile, rank);
  if constexpr (T::kTakesBias) {
    if (p.finish.has_bias()) T::template add_biases<T::kPasses - 1, IsBf16>(p.finish, p.n, corner, d);
  }
  const auto store = [&](const auto& act, const auto& pack) {
#pragma unroll
    for (int portion = 0; portion < T::kPortions; ++portion) {
      if (leader) cute::tma_store_wait<0>();  // the store of the portion before has read the staging buffer
      synchronize();
      T::stage_y(act, pack, staging, d, portion);
      cute::tma_store_fence();
      synchronize();
      if (leader) {  // the corner is made anew where the arithmetic would leave no registers to keep it in
        const Corner to = T::kScarceRegisters ? corner_of<T>(p, again(tile), rank) : corner;
        T::store_y(p.y, staging, to.row, to.column, portion);
        cute::tma_store_arrive();
      }
    }
  };
  if constexpr (T::kPasses == 2) {
    store(Identity{}, PackEither{p.gate_params.bf16});
  } else {
    visit_formula<IsBf16>(p.gate_params, store);
  }
}

// Tokens that a narrowing tile does not load are multiplied all the same: as zeros, since a token that is there may
// share a reciprocal with them.
template <class T>
__device__ __forceinline__ void clear_unused_tokens(const FusedParams& p, FusedStorage<T>& s) {
  constexpr int kThreads = 128 * T::kConsumers;
  const int unused = (T::kTileM - p.rows) * kTileK * 2 / static_cast<int>(sizeof(uint4));
  for (int stage = 0; stage < T::kStages; ++stage) {
    auto* rows = reinterpret_cast<uint4*>(s.a[stage] + p.rows * kTileK);
    for (int i = threadIdx.x % 128 + 128 * T::sharer(); i < unused; i += kThreads) rows[i] = uint4{};
  }
  cutlass::arch::fence_view_async_shared();
  cutlass::arch::NamedBarrier::sync(kThreads, kConsumersBarrier);
}

template <class T, bool IsBf16>
__device__ __forceinline__ void consume(const FusedParams& p, FusedStorage<T>& s, int worker, int rank, int warpgroup) {
  constexpr int kFinishers = T::kFinishTogether ? T::kSharers : 1;  // warpgroups that finish outputs together
  const int finisher = T::kFinishTogether ? 0 : warpgroup;
  const auto synchronize = [&] { cutlass::arch::NamedBarrier::sync(128 * kFinishers, kWarpgroupBarrier + finisher); };
  std::uint16_t* staging = s.y[finisher];
  if constexpr (T::kNarrows && !T::kThreadsStore) clear_unused_tokens<T>(p, s);
  typename T::Accumulators d;
  Ring<T::kStages> ring;
  WorkCursor<T::kShared> cursor(p.work, worker);
  int turn = 0;  // ping-pong: items go to the two warpgroups in turn
  for (WorkItem item; cursor.next(item); ++turn) {
    if constexpr (T::kPingpong) {
      if (turn % 2 != warpgroup) {
        ring.skip((item.k_end - item.k_begin) * T::kPasses);
        continue;
      }
      if (turn > 0) cutlass::arch::NamedBarrier::sync(256, kTensorCoresBarrier + warpgroup);
    }
    take_share<T>(p, item, rank);
    sum<T, IsBf16>(p, s, item, rank, ring, d);
    if constexpr (T::kShared) {
      if (item.is_part()) {
        give_part<T>(p.parts, blockIdx.x, d, synchronize);
        continue;
      }
      if (item.needs_parts(p.work.k_blocks)) {
        p.work.for_each_part(worker, item.tile,
                             [&](int giver) { take_part<T>(p.parts, giver * T::kCluster + rank, d, synchronize); });
      }
    }
    if constexpr (T::kSplit > 1) {
      put_together<T, IsBf16>(p, s, item.tile, rank, d, synchronize);
    } else if constexpr (T::kThreadsStore) {
      put_by_threads<T, IsBf16>(p, staging, item.tile, rank, d, synchronize);
    } else {
      put<T, IsBf16>(p, staging, item.tile, rank, d, synchronize);
    }
  }
  if (threadIdx.x % 128 == 0) cute::tma_store_wait<0>();
}

template <class T, bool IsBf16>
__global__ void __launch_bounds__(T::kThreads, 1) fused_kernel(const __grid_constant__ FusedParams p) {
  extern __shared__ __align__(1024) char raw[];
  auto& s = *reinterpret_cast<FusedStorage<T>*>(raw);
  constexpr int kCtas = T::kCluster * T::kSplit;  // of a cluster
  const int rank = kCtas > 1 ? static_cast<int>(cute::block_rank_in_cluster()) : 0;
  const int worker = blockIdx.x / kCtas;
  if (threadIdx.x == 128) {
    for (const CUtensorMap* map : {&p.a, &p.gate, &p.up, &p.y}) {
      asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
    }
  }
  if (threadIdx.x == 0) {
    for (int i = 0; i < T::kStages; ++i) {
      s.full[i].init(1);
      s.empty[i].init(T::kCluster * T::kSharers);  // every consumer of the stage, in every CTA of the cluster
    }
    cutlass::arch::fence_barrier_init();
  }
  const auto cluster_synchronize = [] {
    if constexpr (kCtas > 1) {
      cute::cluster_arrive_relaxed();
      cute::cluster_wait();
    } else {
      __syncthreads();
    }
  };
  cluster_synchronize();
  let_next_grid_start();
  const int warpgroup = uniform(static_cast<int>(threadIdx.x) / 128);
  if (warpgroup == 0) {
    cutlass::arch::warpgroup_reg_dealloc<T::kProducerRegisters>();
    if (threadIdx.x == 0) produce<T>(p, s, worker, rank);
    if constexpr (T::kSplit > 1) {
      __syncwarp();
      for (int i = 0; i < 2; ++i) {  // put_together()
        cute::cluster_arrive();
        cute::cluster_wait();
      }
    }
  } else {
    cutlass::arch::warpgroup_reg_alloc<T::kConsumerRegisters>();
    consume<T, IsBf16>(p, s, worker, rank, warpgroup - 1);
  }
  if constexpr (T::kCluster > 1) cluster_synchronize();
}

template <KernelConfig C, class T>
class FusedLauncher final : public Launcher {
  static_assert(C.takes_bias() == T::kTakesBias && C.narrows() == T::kNarrows);
  static_assert(C.cluster_m == T::kCluster && C.split_k == T::kSplit);

 public:
  static Result<std::unique_ptr<Launcher>> make(const Problem& problem, const LaunchOptions& options) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel_for(problem), cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    if (error != cudaSuccess) {
      return cuda_failure(C, "cudaFuncSetAttribute(MaxDynamicSharedMemorySize)", cudaGetErrorString(error));
    }
    std::unique_ptr<FusedLauncher> launcher(new FusedLauncher(problem, options));
    TILEGLU_TRY(launcher->encode_maps());
    return std::unique_ptr<Launcher>(std::move(launcher));
  }

  std::size_t workspace_bytes() const override {
    if (params_.work.shared_tiles == 0) return 0;
    return flags_offset() + static_cast<std::size_t>(params_.work.workers) * T::kCluster * T::kSharers * kFlagBytes;
  }

  Status run(const Operands& operands) const noexcept override {
    FusedParams params = params_;
    TILEGLU_TRY(set_base(params.a, operands.a));
    TILEGLU_TRY(set_base(params.gate, gate_half(problem_, operands).base));
    TILEGLU_TRY(set_base(params.up, up_half(problem_, operands).base));
    if constexpr (!T::kThreadsStore) TILEGLU_TRY(set_base(params.y, operands.y));
    params.finish = finish_params(problem_, operands);
    if (params.work.shared_tiles > 0) {
      params.parts.values = static_cast<float4*>(operands.workspace);
      params.parts.flags =
          reinterpret_cast<unsigned long long*>(static_cast<char*>(operands.workspace) + flags_offset());
      params.parts.ticket = next_ticket();
    }
    cudaLaunchAttribute attributes[]{dependent_launch(), {}};
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {static_cast<unsigned>(C.cluster_size()), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(params.work.workers * C.cluster_size()));
    config.blockDim = dim3(T::kThreads);
    config.dynamicSmemBytes = kSharedBytes;
    config.stream = static_cast<cudaStream_t>(operands.stream);
    config.attrs = attributes;
    config.numAttrs = 2;
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel_for(problem_), params);
    if (error == cudaSuccess) return {};
    return cuda_failure(C, "launch", cudaGetErrorString(error));
  }

 private:
  static constexpr int kSharedBytes = sizeof(FusedStorage<T>);

  static auto kernel_for(const Problem& problem) {
    return problem.dtype == Dtype::kBf16 ? &fused_kernel<T, true> : &fused_kernel<T, false>;
  }

  FusedLauncher(const Problem& problem, const LaunchOptions& options) : problem_(problem) {
    params_.work = split_of(C, problem, options.sm_count);
    params_.m_tiles = static_cast<int>(cluster_tiles_m(C, problem));
    params_.rows = tile_rows(C, problem);
    params_.columns = tile_columns(C, problem, options.sm_count);
    params_.n_tiles = static_cast<int>(tiles_n(problem, params_.columns));
    params_.raster_group = C.raster_group;
    params_.grouped = gate_rows(problem.layout, problem.n).group > 1;
    params_.prefetch_weights = options.prefetch_weights;
    params_.m = static_cast<int>(problem.m);
    params_.n = static_cast<int>(problem.n);
    params_.gate_params = gate_params(problem, options.batch_invariant);
  }

  Status encode_maps() {
    const Problem& p = problem_;
    const auto matrix = [](std::int64_t rows, std::int64_t columns, std::int64_t stride, int box_rows,
                           int box_columns) {
      return MatrixView{
          .rows = rows, .columns = columns, .stride = stride, .box_rows = box_rows, .box_columns = box_columns};
    };
    TILEGLU_TRY(encode(matrix(p.m, p.k, p.lda, params_.rows, kTileK), params_.a));
    const int load_rows = T::kNarrows ? params_.columns : T::kLoadRows;
    TILEGLU_TRY(encode_half(gate_half(p, {}), load_rows, params_.grouped, params_.gate));
    TILEGLU_TRY(encode_half(up_half(p, {}), load_rows, params_.grouped, params_.up));
    if constexpr (T::kThreadsStore) {
      return {};
    } else if constexpr (T::kNarrows) {
      const SlicesView slices{.rows = p.m, .columns = p.n, .stride = p.ldy, .slice_columns = params_.columns};
      return encode(slices, params_.rows, params_.y);
    } else {
      return encode(matrix(p.m, p.n, p.ldy, T::kBoxRows, T::kBox), params_.y);
    }
  }

  std::size_t flags_offset() const {
    return static_cast<std::size_t>(params_.work.workers) * T::kCluster * T::kPartFloats * sizeof(float);
  }

  Problem problem_;
  FusedParams params_{};
};

}  // namespace tileglu::sm90
