// SPDX-License-Identifier: Apache-2.0
// One element a thread: the sums are read as they lie, whatever the layouts and alignments. Bound by memory, so that
// all but the types is told at run time.
#include "backends/cublas/elementwise.cuh"
#include "backends/cublas/finish.hpp"
#include "core/activation.hpp"
#include "runtime/device_guard.hpp"

namespace tileglu::cublas {
namespace {

struct Arguments {
  FinishShape shape;
  FinishOperands operands;
};

// The pre-activation in fp32, saved on the way.
template <class T>
__device__ float preactivation(const FinishHalf& half, std::int64_t row, std::int64_t column) {
  float sum = 0;
  if (half.sums.base != nullptr) sum = static_cast<const float*>(half.sums.base)[half.sums.index(row, column)];
  if (half.bias != nullptr) sum += to_float(static_cast<const T*>(half.bias)[column]);
  if (half.add.base != nullptr) sum += to_float(static_cast<const T*>(half.add.base)[half.add.index(row, column)]);
  if (half.pre.base != nullptr) static_cast<T*>(half.pre.base)[half.pre.index(row, column)] = from_float<T>(sum);
  return sum;
}

template <class T, class Y>
__global__ void __launch_bounds__(kThreads) finish(const __grid_constant__ Arguments p) {
  const std::int64_t row_step = std::int64_t{gridDim.y} * blockDim.y;
  const std::int64_t column_step = std::int64_t{gridDim.x} * blockDim.x;
  const auto round = [](float x) { return to_float(from_float<Y>(x)); };
  for (std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < p.operands.m; row += row_step) {
#pragma unroll 1
    for (std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; column < p.shape.n;
         column += column_step) {
      const float gate = preactivation<T>(p.operands.gate, row, column);
      const float up = preactivation<T>(p.operands.up, row, column);
      const float y = visit_activation(p.shape.activation, p.shape.swiglu, [&](auto act) {
        return p.shape.rounding == Rounding::kOnce ? gated(act, gate, up) : gated_unfused(act, gate, up, round);
      });
      static_cast<Y*>(p.operands.y)[row * p.shape.ldy + column] = from_float<Y>(y);
    }
  }
}

template <class T>
const void* pick_output(Dtype dtype_y) {
  switch (dtype_y) {
    case Dtype::kBf16: return reinterpret_cast<const void*>(&finish<T, __nv_bfloat16>);
    case Dtype::kFp16: return reinterpret_cast<const void*>(&finish<T, __half>);
    case Dtype::kFp32: break;
  }
  return reinterpret_cast<const void*>(&finish<T, float>);
}

const void* pick(Dtype dtype, Dtype dtype_y) {
  switch (dtype) {
    case Dtype::kBf16: return pick_output<__nv_bfloat16>(dtype_y);
    case Dtype::kFp16: return pick_output<__half>(dtype_y);
    case Dtype::kFp32: break;
  }
  return pick_output<float>(dtype_y);
}

}  // namespace

Result<Finish> Finish::make(const FinishShape& shape) {
  Finish made;
  made.shape_ = shape;
  made.kernel_ = pick(shape.dtype, shape.dtype_y);
  // Loads the module now: a kernel that is first needed in a captured run must already be there.
  cudaFuncAttributes attributes{};
  TILEGLU_TRY(runtime::cuda_check(cudaFuncGetAttributes(&attributes, made.kernel_), "loading the finishing kernel"));
  return made;
}

Status Finish::run(const FinishOperands& operands, cudaStream_t stream) const {
  Arguments arguments{.shape = shape_, .operands = operands};
  const Grid grid = grid_over(operands.m, shape_.n, shape_.sm_count);
  void* parameters[] = {&arguments};
  return runtime::cuda_check(cudaLaunchKernel(kernel_, grid.blocks, grid.threads, parameters, 0, stream),
                             "launching the finishing kernel");
}

}  // namespace tileglu::cublas
