// SPDX-License-Identifier: Apache-2.0
// What the kernels for very few tokens share (vector.cuh, mma.cuh). Each thread loads weights into its registers; there
// are no descriptors, no barriers and no pipeline to fill, so that a kernel starts to read as soon as it starts to run.
#pragma once

#include "backends/sm90/dependent_launch.cuh"
#include "backends/sm90/finish.cuh"
#include "backends/sm90/kernel_entry.hpp"
#include "backends/sm90/tensor_map.hpp"

namespace tileglu::sm90 {

struct StreamedParams {
  const std::uint16_t* a;
  HalfView gate, up;
  std::int64_t lda;
  int m, n, k;
  bool prefetch_weights;  // before the grid ahead in the stream has ended
  FinishParams finish;
};

// Eight elements of a matrix that is read once.
__device__ __forceinline__ uint4 load_weights8(const std::uint16_t* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

__device__ __forceinline__ const std::uint16_t* row_of(const HalfView& half, int row) {
  return static_cast<const std::uint16_t*>(half.base) + row / 8 * half.group_stride + row % 8 * half.row_stride;
}

// Blocks of `threads` threads that have `block_outputs` output columns each.
class StreamedLauncher final : public Launcher {
 public:
  using Kernel = void (*)(StreamedParams);

  StreamedLauncher(const KernelConfig& config, Kernel kernel, int block_outputs, int threads, const Problem& problem,
                   const LaunchOptions& options)
      : config_(config),
        kernel_(kernel),
        blocks_(static_cast<unsigned>((problem.n + block_outputs - 1) / block_outputs)),
        threads_(static_cast<unsigned>(threads)),
        problem_(problem),
        params_{.lda = problem.lda,
                .m = static_cast<int>(problem.m),
                .n = static_cast<int>(problem.n),
                .k = static_cast<int>(problem.k),
                .prefetch_weights = options.prefetch_weights} {}

  Status run(const Operands& operands) const noexcept override {
    StreamedParams params = params_;
    params.a = static_cast<const std::uint16_t*>(operands.a);
    params.gate = gate_half(problem_, operands);
    params.up = up_half(problem_, operands);
    params.finish = finish_params(problem_, operands);
    cudaLaunchAttribute attributes[]{dependent_launch()};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks_);
    config.blockDim = dim3(threads_);
    config.stream = static_cast<cudaStream_t>(operands.stream);
    config.attrs = attributes;
    config.numAttrs = 1;
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel_, params);
    if (error == cudaSuccess) return {};
    return cuda_failure(config_, "launch", cudaGetErrorString(error));
  }

 private:
  KernelConfig config_;
  Kernel kernel_;
  unsigned blocks_, threads_;
  Problem problem_;
  StreamedParams params_;
};

}  // namespace tileglu::sm90
