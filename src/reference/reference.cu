// SPDX-License-Identifier: Apache-2.0
// preactivations_cuda: both fp64 sums of an output by one tiled kernel on the CUDA cores. Written for clarity; at about
// a third of the fp64 rate it is fast enough to check large problems.
#include "core/layout.hpp"
#include "reference/reference_cuda.hpp"
#include "runtime/device_guard.hpp"
#include "runtime/runtime.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

namespace tileglu::reference {
namespace {

constexpr int kTile = 64;             // rows and columns of a block's tile
constexpr int kSide = 16;             // the block has kSide x kSide threads
constexpr int kEach = kTile / kSide;  // a thread sums kEach x kEach outputs
constexpr int kDepth = 16;            // steps of k that are in shared memory at a time
constexpr std::int64_t kMaxRows = std::int64_t{65535} * kTile;
constexpr std::int64_t kSliceElements = std::int64_t{1} << 24;

struct Matrix {
  const void* base;
  HalfRows rows;  // of a weight half; the identity for A
  std::int64_t ld;
  std::int64_t count;  // rows
};

struct Arguments {
  Matrix a, gate, up;
  std::int64_t k;
  double* gate_sums;  // [a.count, gate.count]
  double* up_sums;
  const void *bias_gate, *bias_up;  // null: none
  ColumnHalf<const void*> add_gate, add_up;
};

__device__ double to_double(float x) {
  return x;
}
__device__ double to_double(__half x) {
  return __half2float(x);
}
__device__ double to_double(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

using Tile = double[kDepth][kTile + 1];  // [k][row]; the odd row length spreads the columns over the banks

// Rows first_row... and k first_k... of a matrix, zeros outside it.
template <class T>
__device__ void load_tile(const Matrix& matrix, std::int64_t first_row, std::int64_t first_k, std::int64_t k,
                          Tile& tile) {
  const int depth = threadIdx.x;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int local = threadIdx.y + i * kSide;
    const std::int64_t row = first_row + local;
    double value = 0;
    if (row < matrix.count && first_k + depth < k) {
      value = to_double(static_cast<const T*>(matrix.base)[matrix.rows.row(row) * matrix.ld + first_k + depth]);
    }
    tile[depth][local] = value;
  }
}

template <class T>
__device__ double added(const void* bias, const ColumnHalf<const void*>& add, std::int64_t row, std::int64_t column) {
  double sum = bias != nullptr ? to_double(static_cast<const T*>(bias)[column]) : 0;
  if (add.base != nullptr) sum += to_double(static_cast<const T*>(add.base)[add.index(row, column)]);
  return sum;
}

template <class T>
__global__ void __launch_bounds__(kSide* kSide) sum(const __grid_constant__ Arguments p) {
  __shared__ Tile a_tile, gate_tile, up_tile;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  double gate[kEach][kEach] = {}, up[kEach][kEach] = {};
  for (std::int64_t first_k = 0; first_k < p.k; first_k += kDepth) {
    load_tile<T>(p.a, first_row, first_k, p.k, a_tile);
    load_tile<T>(p.gate, first_column, first_k, p.k, gate_tile);
    load_tile<T>(p.up, first_column, first_k, p.k, up_tile);
    __syncthreads();
    for (int depth = 0; depth < kDepth; ++depth) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const double g = gate_tile[depth][threadIdx.x + j * kSide];
        const double u = up_tile[depth][threadIdx.x + j * kSide];
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          const double x = a_tile[depth][threadIdx.y + i * kSide];
          gate[i][j] = fma(x, g, gate[i][j]);
          up[i][j] = fma(x, u, up[i][j]);
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t row = first_row + threadIdx.y + i * kSide;
      const std::int64_t column = first_column + threadIdx.x + j * kSide;
      if (row < p.a.count && column < p.gate.count) {
        p.gate_sums[row * p.gate.count + column] = gate[i][j] + added<T>(p.bias_gate, p.add_gate, row, column);
        p.up_sums[row * p.gate.count + column] = up[i][j] + added<T>(p.bias_up, p.add_up, row, column);
      }
    }
  }
}

const void* kernel_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return reinterpret_cast<const void*>(&sum<__nv_bfloat16>);
    case Dtype::kFp16: return reinterpret_cast<const void*>(&sum<__half>);
    case Dtype::kFp32: break;
  }
  return reinterpret_cast<const void*>(&sum<float>);
}

Matrix half_of(const Problem& problem, const Operands& operands, bool up) {
  const bool from_up = up && !is_single_matrix(problem.layout);
  return {.base = from_up ? operands.up : operands.gate,
          .rows = up ? up_rows(problem.layout, problem.n) : gate_rows(problem.layout, problem.n),
          .ld = from_up ? problem.ld_up : problem.ld_gate,
          .count = problem.n};
}

// The half from row `row` on.
ColumnHalf<const void*> add_from(const Problem& problem, const Operands& operands, bool is_up, std::int64_t row) {
  ColumnHalf<const void*> half = add_half(problem, operands, is_up);
  if (half.base == nullptr) return half;
  half.base = static_cast<const char*>(half.base) + static_cast<std::size_t>(row * half.ld) * size_of(problem.dtype);
  return half;
}

Status launch(Dtype dtype, Arguments arguments, cudaStream_t stream) {
  const auto across = static_cast<unsigned>((arguments.gate.count + kTile - 1) / kTile);
  const auto down = static_cast<unsigned>((arguments.a.count + kTile - 1) / kTile);
  void* parameters[] = {&arguments};
  TILEGLU_TRY(runtime::cuda_check(
      cudaLaunchKernel(kernel_of(dtype), dim3(across, down), dim3(kSide, kSide), parameters, 0, stream),
      "launching the reference kernel"));
  return runtime::cuda_check(cudaStreamSynchronize(stream), "the reference kernel");
}

}  // namespace

Status preactivations_cuda(const Problem& problem, const Operands& operands, double* gate, double* up) {
  if (problem.m == 0 || problem.n == 0) return {};
  const runtime::DeviceGuard guard(problem.device);
  TILEGLU_TRY(guard.status());
  const std::int64_t slice = std::clamp(kSliceElements / problem.n, std::int64_t{1}, std::min(kMaxRows, problem.m));
  const std::size_t slice_bytes = static_cast<std::size_t>(slice * problem.n) * sizeof(double);
  const Result<runtime::Buffer> gate_sums = runtime::Buffer::make(Memory::kCuda, problem.device, slice_bytes);
  TILEGLU_TRY(gate_sums.status());
  const Result<runtime::Buffer> up_sums = runtime::Buffer::make(Memory::kCuda, problem.device, slice_bytes);
  TILEGLU_TRY(up_sums.status());

  for (std::int64_t row = 0; row < problem.m; row += slice) {
    const std::int64_t rows = std::min(slice, problem.m - row);
    const auto a_offset = static_cast<std::size_t>(row * problem.lda) * size_of(problem.dtype);
    TILEGLU_TRY(launch(
        problem.dtype,
        {.a = {.base = static_cast<const char*>(operands.a) + a_offset, .rows = {}, .ld = problem.lda, .count = rows},
         .gate = half_of(problem, operands, false),
         .up = half_of(problem, operands, true),
         .k = problem.k,
         .gate_sums = static_cast<double*>(gate_sums.value().data()),
         .up_sums = static_cast<double*>(up_sums.value().data()),
         .bias_gate = operands.bias_gate,
         .bias_up = operands.bias_up,
         .add_gate = add_from(problem, operands, false, row),
         .add_up = add_from(problem, operands, true, row)},
        static_cast<cudaStream_t>(operands.stream)));
    const auto bytes = static_cast<std::size_t>(rows * problem.n) * sizeof(double);
    TILEGLU_TRY(gate_sums.value().download(gate + row * problem.n, bytes));
    TILEGLU_TRY(up_sums.value().download(up + row * problem.n, bytes));
  }
  return {};
}

}  // namespace tileglu::reference
