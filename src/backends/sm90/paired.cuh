// SPDX-License-Identifier: Apache-2.0
// "paired": the fused kernel that takes weights where they lie. One WGMMA of width 2*half whose first half of columns
// is gate rows and whose second half is up rows of the same output columns, filled by two TMA loads from two
// descriptors: gate and up of an output end up in the same thread, so nothing is ever repacked.
//
//   shared memory of a stage (rows of 128 bytes, 128-byte swizzle):   A [tile_m][64]   gate [half][64]   up [half][64]
//   warpgroup 0: producer (one thread issues TMA);   warpgroups 1, 2: consumers, ping-pong (a tile each) or cooperative
//
// A cluster of two CTAs works on two neighbouring tiles along m; each loads one half of the weights and multicasts it.
// The y tile goes out by TMA from a staging buffer while the next tile's main loop already runs.
#pragma once

#include "backends/sm90/gate_math.cuh"
#include "backends/sm90/kernel_entry.hpp"
#include "backends/sm90/paired_tile.cuh"
#include "backends/sm90/tensor_map.hpp"

#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/cluster_launch.hpp>

namespace tileglu::sm90 {

struct PairedParams {
  CUtensorMap a, gate, up, y;
  int m, n, k;
  int raster_group;
};

// The output tiles of a persistent grid in the order in which clusters take them: groups of `raster_group` cluster
// tiles along m, m fastest inside a group, so that the CTAs at work share weight tiles and rows of A in L2.
template <class T>
struct Raster {
  int m_tiles, n_tiles, group;

  CUTLASS_DEVICE explicit Raster(const PairedParams& p)
      : m_tiles((p.m + T::kTileM * T::kClusterM - 1) / (T::kTileM * T::kClusterM)),
        n_tiles((p.n + T::kTileN2 / 2 - 1) / (T::kTileN2 / 2)),
        group(p.raster_group) {}

  CUTLASS_DEVICE int tiles() const { return m_tiles * n_tiles; }
  CUTLASS_DEVICE void locate(int tile, int& m, int& n) const {
    const int in_group = group * n_tiles;
    const int first = tile / in_group * group;
    const int rest = tile % in_group;
    const int height = min(group, m_tiles - first);
    m = first + rest % height;
    n = rest / height;
  }
};

// Position in the ring of stages: index and the parity of the barrier's phase.
template <int Stages>
struct Ring {
  int stage = 0;
  std::uint32_t phase = 0;

  CUTLASS_DEVICE void advance(int by = 1) {
    const int next = stage + by;
    phase ^= (next / Stages) & 1;
    stage = next % Stages;
  }
};

template <class T>
CUTLASS_DEVICE void paired_producer(const PairedParams& p, PairedStorage<T>& s, int first_tile, int tile_step,
                                    int rank) {
  const int k_blocks = (p.k + T::kTileK - 1) / T::kTileK;
  const Raster<T> raster(p);
  Ring<T::kStages> ring;
  constexpr auto kHint = static_cast<std::uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL);
  for (int tile = first_tile; tile < raster.tiles(); tile += tile_step) {
    int m, n;
    raster.locate(tile, m, n);
    const int row = (m * T::kClusterM + rank) * T::kTileM;
    const int group = n * T::kHalf / 8;  // weight rows come in groups of 8: see weight_map()
    for (int k = 0; k < k_blocks; ++k, ring.advance()) {
      s.empty[ring.stage].wait(ring.phase ^ 1);
      auto& full = s.full[ring.stage];
      full.arrive_and_expect_tx(T::kStageBytes);
      auto* barrier = reinterpret_cast<std::uint64_t*>(&full);
      auto* weights = s.weights[ring.stage];
      cute::SM90_TMA_LOAD_2D::copy(&p.a, barrier, kHint, s.a[ring.stage], k * T::kTileK, row);
      if constexpr (T::kClusterM == 1) {
        cute::SM90_TMA_LOAD_3D::copy(&p.gate, barrier, kHint, weights, k * T::kTileK, 0, group);
        cute::SM90_TMA_LOAD_3D::copy(&p.up, barrier, kHint, weights + T::kHalf * T::kTileK, k * T::kTileK, 0, group);
      } else {
        cute::SM90_TMA_LOAD_MULTICAST_3D::copy(rank != 0 ? &p.up : &p.gate, barrier, std::uint16_t{3}, kHint,
                                               weights + rank * T::kHalf * T::kTileK, k * T::kTileK, 0, group);
      }
    }
  }
  if constexpr (T::kClusterM > 1) {  // the other CTA may still arrive on our barriers: do not leave before it has
    for (int i = 0; i < T::kStages; ++i, ring.advance()) s.empty[ring.stage].wait(ring.phase ^ 1);
  }
}

// Main loop of one tile: one group of WGMMAs is always in flight while the stage before it is released.
template <class T, class Mma, class FragmentA, class FragmentB, class Accumulators>
CUTLASS_DEVICE void paired_main_loop(PairedStorage<T>& s, Ring<T::kStages>& ring, int k_blocks, Mma& mma,
                                     const FragmentA& a, const FragmentB& b, Accumulators& accumulators) {
  const int thread = threadIdx.x % 128;
  const auto release = [&](int stage) {
    if constexpr (T::kClusterM > 1) {
      s.empty[stage].arrive(thread % T::kClusterM, thread < T::kClusterM);
    } else if (thread == 0) {
      s.empty[stage].arrive();
    }
  };
  mma.accumulate_ = cute::GMMA::ScaleOut::Zero;
  int previous = -1;
  for (int k = 0; k < k_blocks; ++k) {
    s.full[ring.stage].wait(ring.phase);
    cute::warpgroup_fence_operand(accumulators);
    cute::warpgroup_arrive();
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < cute::size<2>(a); ++i) {
      cute::gemm(mma, a(cute::_, cute::_, i, ring.stage), b(cute::_, cute::_, i, ring.stage), accumulators);
      mma.accumulate_ = cute::GMMA::ScaleOut::One;
    }
    cute::warpgroup_commit_batch();
    cute::warpgroup_wait<1>();
    if (previous >= 0) release(previous);
    previous = ring.stage;
    ring.advance();
  }
  // Ping-pong: the tensor cores go to the other warpgroup while the last WGMMAs drain.
  if constexpr (T::kPingpong) {
    cutlass::arch::NamedBarrier::arrive(256, kTensorCoresBarrier + 2 - threadIdx.x / 128);
  }
  cute::warpgroup_wait<0>();
  cute::warpgroup_fence_operand(accumulators);
  release(previous);
}

// act(gate) * up of a thread's accumulators into the staging buffer, in the swizzle of the y map's boxes.
template <class T, class Act, class Accumulators>
CUTLASS_DEVICE void paired_stage_y(cutlass::bfloat16_t* y, const Accumulators& accumulators) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, warpgroup = threadIdx.x / 128 - 1;
  CUTLASS_PRAGMA_UNROLL
  for (int block = 0; block < cute::size<1>(accumulators); ++block) {  // 64-row blocks of this warpgroup
    const int row = (T::kPingpong ? block : block * 2 + warpgroup) * 64 + warp * 16 + lane % 16;
    CUTLASS_PRAGMA_UNROLL
    for (int unit = 0; unit < T::kHalf / 8; unit += 2) {  // 8 columns each; stmatrix x4 stores two
      std::uint32_t packed[4];
      CUTLASS_PRAGMA_UNROLL
      for (int side = 0; side < 2; ++side) {
        Quad gate, up;
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < 4; ++i) {
          gate.v[i] = accumulators(cute::make_coord(i % 2, i / 2, unit + side), block, 0);
          up.v[i] = accumulators(cute::make_coord(i % 2, i / 2, unit + side + T::kHalf / 8), block, 0);
        }
        const Quad value = act_times_up<Act>(gate, up);
        packed[2 * side] = pack_bf16(value.v[0], value.v[1]);
        packed[2 * side + 1] = pack_bf16(value.v[2], value.v[3]);
      }
      const int mine = unit + lane / 16;
      cute::SM90_U32x4_STSM_N::copy(packed[0], packed[1], packed[2], packed[3],
                                    *reinterpret_cast<cute::uint128_t*>(y + T::staging_offset(row, mine)));
    }
  }
}

template <class T, class Act>
CUTLASS_DEVICE void paired_consumer(const PairedParams& p, PairedStorage<T>& s, int tile, int tile_step, int rank) {
  const int warpgroup = threadIdx.x / 128 - 1;
  const bool leader = threadIdx.x % 128 == 0;
  const auto a_tile = cute::make_tensor(cute::make_smem_ptr(&s.a[0][0]), typename T::LayoutA{});
  const auto b_tile = cute::make_tensor(cute::make_smem_ptr(&s.weights[0][0]), typename T::LayoutWeights{});
  typename T::Mma mma;
  const auto slice = mma.get_thread_slice(threadIdx.x - 128 - (T::kPingpong ? warpgroup * 128 : 0));
  const auto a = slice.partition_fragment_A(a_tile);
  const auto b = slice.partition_fragment_B(b_tile);
  auto accumulators = cute::partition_fragment_C(
      mma, cute::Shape<cute::Int<T::kTileM>, cute::Int<T::kTileN2>>{});  // ((2,2,n2/8),m/64,1)
  cutlass::bfloat16_t* y = s.y[T::kPingpong ? warpgroup : 0];

  const int k_blocks = (p.k + T::kTileK - 1) / T::kTileK;
  const Raster<T> raster(p);
  Ring<T::kStages> ring;
  if (T::kPingpong && warpgroup == 1) {  // the first warpgroup's tile comes before
    tile += tile_step;
    ring.advance(k_blocks);
  }
  bool first = true;
  for (; tile < raster.tiles(); tile += (T::kPingpong ? 2 : 1) * tile_step, first = false) {
    if (T::kPingpong && !(warpgroup == 0 && first)) {
      cutlass::arch::NamedBarrier::sync(256, kTensorCoresBarrier + warpgroup);
    }
    paired_main_loop<T>(s, ring, k_blocks, mma, a, b, accumulators);
    if constexpr (T::kPingpong) ring.advance(k_blocks);

    int m, n;
    raster.locate(tile, m, n);
    if (leader) cute::tma_store_wait<0>();  // the store of our previous tile has read the staging buffer
    cutlass::arch::NamedBarrier::sync(128, kStagingBarrier + warpgroup);
    paired_stage_y<T, Act>(y, accumulators);
    cute::tma_store_fence();
    cutlass::arch::NamedBarrier::sync(128, kStagingBarrier + warpgroup);
    if (leader) {
      const int row = (m * T::kClusterM + rank) * T::kTileM;
      for (int box = 0; box < T::kHalf / T::kBox; ++box) {
        for (int block = T::kPingpong ? 0 : warpgroup; block < T::kTileM / 64; block += T::kPingpong ? 1 : 2) {
          cute::SM90_TMA_STORE_2D::copy(&p.y, y + T::staging_offset(block * 64, 0) + box * T::kTileM * T::kBox,
                                        n * T::kHalf + box * T::kBox, row + block * 64);
        }
      }
      cute::tma_store_arrive();
    }
  }
  if (leader) cute::tma_store_wait<0>();
}

template <class T, class Act>
__global__ void __launch_bounds__(384, 1) paired_kernel(const __grid_constant__ PairedParams p) {
  extern __shared__ char raw[];
  auto& s =
      *reinterpret_cast<PairedStorage<T>*>((reinterpret_cast<std::uintptr_t>(raw) + 1023) & ~std::uintptr_t{1023});
  const int rank = T::kClusterM > 1 ? static_cast<int>(cute::block_rank_in_cluster()) : 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < T::kStages; ++i) {
      s.full[i].init(1);
      s.empty[i].init(T::kClusterM *
                      (T::kPingpong ? 1 : 2));  // every consumer of the stage, in every CTA of the cluster
    }
    cutlass::arch::fence_barrier_init();
  }
  if constexpr (T::kClusterM > 1) {
    cute::cluster_arrive_relaxed();
    cute::cluster_wait();
  } else {
    __syncthreads();
  }
  const int first_tile = blockIdx.x / T::kClusterM, tile_step = gridDim.x / T::kClusterM;
  if (threadIdx.x < 128) {
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (threadIdx.x == 0) paired_producer<T>(p, s, first_tile, tile_step, rank);
  } else {
    cutlass::arch::warpgroup_reg_alloc<232>();
    paired_consumer<T, Act>(p, s, first_tile, tile_step, rank);
  }
  if constexpr (T::kClusterM > 1) {
    cute::cluster_arrive_relaxed();
    cute::cluster_wait();
  }
}

template <KernelConfig C, class Act>
struct Paired {
  using T = PairedTile<C.tile_m, C.tile_n2, C.cluster_m, C.schedule == Schedule::kPingpong>;
  static constexpr int kSharedBytes = sizeof(PairedStorage<T>) + 1024;

  static Status prepare() {
    const cudaError_t error =
        cudaFuncSetAttribute(paired_kernel<T, Act>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    if (error == cudaSuccess) return load_encoder();
    return cuda_failure(C, "cudaFuncSetAttribute(MaxDynamicSharedMemorySize)", cudaGetErrorString(error));
  }

  static Status launch(const Problem& problem, const Operands& operands, int sm_count) {
    PairedParams params{};
    params.m = static_cast<int>(problem.m);
    params.n = static_cast<int>(problem.n);
    params.k = static_cast<int>(problem.k);
    params.raster_group = C.raster_group;
    TILEGLU_TRY(encode({.base = operands.a,
                        .rows = problem.m,
                        .columns = problem.k,
                        .stride = problem.lda,
                        .box_rows = C.tile_m,
                        .box_columns = C.tile_k},
                       params.a));
    TILEGLU_TRY(encode_half(gate_half(problem, operands), T::kHalf, params.gate));
    TILEGLU_TRY(encode_half(up_half(problem, operands), T::kHalf, params.up));
    TILEGLU_TRY(encode({.base = operands.y,
                        .rows = problem.m,
                        .columns = problem.n,
                        .stride = problem.ldy,
                        .box_rows = 64,
                        .box_columns = T::kBox},
                       params.y));

    const std::int64_t m_tiles = (problem.m + C.tile_m * C.cluster_m - 1) / (C.tile_m * C.cluster_m);
    const std::int64_t n_tiles = (problem.n + T::kHalf - 1) / T::kHalf;
    const std::int64_t clusters = std::min<std::int64_t>(m_tiles * n_tiles, sm_count / C.cluster_m);
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(C.cluster_m), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(clusters * C.cluster_m));
    config.blockDim = dim3(384);
    config.dynamicSmemBytes = kSharedBytes;
    config.stream = static_cast<cudaStream_t>(operands.stream);
    config.attrs = &cluster;
    config.numAttrs = 1;
    const cudaError_t error = cudaLaunchKernelEx(&config, paired_kernel<T, Act>, params);
    if (error == cudaSuccess) return {};
    return cuda_failure(C, "launch", cudaGetErrorString(error));
  }
};

template <KernelConfig C>
constexpr KernelEntry make_entry() {
  using Kernel = Paired<C, Silu>;
  return {.prepare = &Kernel::prepare, .launch = &Kernel::launch};
}

}  // namespace tileglu::sm90
