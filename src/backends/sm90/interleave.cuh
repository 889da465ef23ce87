// SPDX-License-Identifier: Apache-2.0
// Kernel-2, "interleave": one GEMM [m,2n] over interleaved weights on CUTLASS's warp-specialised TMA main loop, with
// PairMulStore as its epilogue. Instantiated once per row of plan/sm90_configs.hpp (instance.cu.in).
#pragma once

#include "backends/sm90/kernel_entry.hpp"
#include "backends/sm90/pair_mul_store.cuh"
#include "backends/sm90/tensor_map.hpp"
#include "plan/kernel_config.hpp"

#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

namespace tileglu::sm90 {

template <KernelConfig C>
class InterleaveLauncher final : public Launcher {
  static_assert(C.tile_m == 128, "both schedules are built for 128 rows");
  static constexpr bool kCooperative = C.schedule == Schedule::kCooperative;
  using Element = cutlass::bfloat16_t;
  using Tile = cute::Shape<cute::Int<C.tile_m>, cute::Int<C.tile_n2>, cute::Int<C.tile_k>>;
  using Cluster = cute::Shape<cute::Int<C.cluster_m>, cute::_1, cute::_1>;
  // A sub-tile of the epilogue: 64 rows for each warpgroup that shares the tile, and the widest of 128, 64 and 32
  // weight rows that divides the tile, so that a TMA box of y is 128, 64 or 32 bytes wide.
  static constexpr int kEpilogueRows = kCooperative ? 128 : 64;
  static constexpr int kEpilogueN2 = C.tile_n2 % 128 == 0 ? 128 : C.tile_n2 % 64 == 0 ? 64 : 32;
  using EpilogueTile = cute::Shape<cute::Int<kEpilogueRows>, cute::Int<kEpilogueN2>>;
  using Node = PairMulStore<kEpilogueRows, kEpilogueN2 / 2, Silu, C.granularity>;

  using RowMajor = cutlass::layout::RowMajor;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, EpilogueTile, float, float, void, RowMajor,
      16, void, RowMajor, 16,
      std::conditional_t<kCooperative, cutlass::epilogue::TmaWarpSpecializedCooperative,
                         cutlass::epilogue::TmaWarpSpecialized>,
      cutlass::epilogue::fusion::Sm90EVT<Node, cutlass::epilogue::fusion::Sm90AccFetch>>::CollectiveOp;
  using MainLoop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, RowMajor, 8, Element, cutlass::layout::ColumnMajor,
      8, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      std::conditional_t<kCooperative, cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                         cutlass::gemm::KernelTmaWarpSpecializedPingpong>>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, MainLoop, Epilogue,
                                                      cutlass::gemm::PersistentScheduler>;
  using Adapter = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

 public:
  static Result<std::unique_ptr<Launcher>> make(const Problem& problem, const LaunchOptions& options) {
    const cudaError_t error = cudaFuncSetAttribute(
        cutlass::device_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, Kernel::SharedStorageSize);
    if (error != cudaSuccess) {
      return cuda_failure(C, "cudaFuncSetAttribute(MaxDynamicSharedMemorySize)", cudaGetErrorString(error));
    }
    std::unique_ptr<InterleaveLauncher> launcher(new InterleaveLauncher(problem, options.sm_count));
    TILEGLU_TRY(encode({.rows = problem.m,
                        .columns = problem.n,
                        .stride = problem.ldy,
                        .box_rows = kEpilogueRows,
                        .box_columns = kEpilogueN2 / 2},
                       launcher->y_));
    return std::unique_ptr<Launcher>(std::move(launcher));
  }

  Status run(const Operands& operands) const noexcept override {
    typename Kernel::Arguments args{};
    args.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    args.problem_shape = {static_cast<int>(problem_.m), static_cast<int>(2 * problem_.n), static_cast<int>(problem_.k),
                          1};
    args.mainloop.ptr_A = static_cast<const Element*>(operands.a);
    args.mainloop.dA = {problem_.lda, cute::_1{}, std::int64_t{0}};
    args.mainloop.ptr_B = static_cast<const Element*>(operands.gate);
    args.mainloop.dB = {problem_.ld_gate, cute::_1{}, std::int64_t{0}};
    args.epilogue.thread.op_1.y = y_;
    TILEGLU_TRY(set_base(args.epilogue.thread.op_1.y, operands.y));
    args.hw_info.device_id = problem_.device;
    args.hw_info.sm_count = sm_count_;
    args.scheduler.max_swizzle_size = C.raster_group;
    typename Kernel::Params params = Kernel::to_underlying_arguments(args, nullptr);
    const cutlass::Status status = Adapter::run(params, static_cast<cudaStream_t>(operands.stream), nullptr, true);
    if (status == cutlass::Status::kSuccess) return {};
    return cuda_failure(C, "launch", cutlass::cutlassGetStatusString(status));
  }

 private:
  InterleaveLauncher(const Problem& problem, int sm_count) : problem_(problem), sm_count_(sm_count) {}

  Problem problem_;
  int sm_count_;
  CUtensorMap y_{};
};

template <KernelConfig C>
Result<std::unique_ptr<Launcher>> make(const Problem& problem, const LaunchOptions& options) {
  return InterleaveLauncher<C>::make(problem, options);
}

}  // namespace tileglu::sm90
