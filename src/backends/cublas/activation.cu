// SPDX-License-Identifier: Apache-2.0
// One kernel template for every element type, activation and column pattern; bound by memory, so the pattern is a
// run-time value. All offsets are 64-bit (field case C02). What takes more than an activation is finish.cu's.
#include "backends/cublas/activation.hpp"
#include "backends/cublas/elementwise.cuh"
#include "core/activation.hpp"
#include "runtime/device_guard.hpp"

namespace tileglu::cublas {
namespace {

struct Arguments {
  const void* gate;
  const void* up;
  void* out;
  std::int64_t m, n;
  std::int64_t ld_in, ld_out;
  Columns columns;
};

template <class T, int Count>
struct alignas(sizeof(T) * Count < 16 ? sizeof(T) * Count : 16) Pack {
  T element[Count];
};

// Gate and up of `Vector` consecutive columns.
template <class In, int Vector>
struct Inputs {
  Pack<In, Vector> gate, up;
};

template <class In, int Vector>
__device__ Pack<In, Vector> load(const In* from) {
  return *reinterpret_cast<const Pack<In, Vector>*>(from);
}

template <class In, int Vector>
__device__ Inputs<In, Vector> split_pairs(const Pack<In, Vector>& first, const Pack<In, Vector>& second) {
  Inputs<In, Vector> in;
#pragma unroll
  for (int j = 0; j < Vector; ++j) {
    in.gate.element[j] = (2 * j < Vector ? first : second).element[2 * j % Vector];
    in.up.element[j] = (2 * j + 1 < Vector ? first : second).element[(2 * j + 1) % Vector];
  }
  return in;
}

// From the rows of the intermediate that `gate` and `up` point at.
template <class In, int Vector, bool Multiply>
__device__ Inputs<In, Vector> load_inputs(const In* gate, const In* up, std::int64_t column, Columns columns) {
  if (columns == Columns::kInterleaved1) {
    return split_pairs(load<In, Vector>(gate + 2 * column), load<In, Vector>(gate + 2 * column + Vector));
  }
  if (columns == Columns::kInterleaved8) {
    const In* first = gate + column / 8 * 16 + column % 8;
    return {load<In, Vector>(first), load<In, Vector>(first + 8)};
  }
  Inputs<In, Vector> in;
  in.gate = load<In, Vector>(gate + column);
  if constexpr (Multiply) in.up = load<In, Vector>(up + column);
  return in;
}

template <class In, class Out, class Function, int Vector, bool Multiply>
__global__ void __launch_bounds__(kThreads) elementwise(const __grid_constant__ Arguments p) {
  const std::int64_t row_step = std::int64_t{gridDim.y} * blockDim.y;
  const std::int64_t column_step = std::int64_t{gridDim.x} * blockDim.x * Vector;
  const std::int64_t first_column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * Vector;
  for (std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < p.m; row += row_step) {
    const In* gate = static_cast<const In*>(p.gate) + row * p.ld_in;
    const In* up = static_cast<const In*>(p.up) + row * p.ld_in;
    Out* out = static_cast<Out*>(p.out) + row * p.ld_out;
#pragma unroll 1
    for (std::int64_t column = first_column; column < p.n; column += column_step) {
      const Inputs<In, Vector> in = load_inputs<In, Vector, Multiply>(gate, up, column, p.columns);
      Pack<Out, Vector> result;
#pragma unroll
      for (int j = 0; j < Vector; ++j) {
        float value = Function{}(to_float(in.gate.element[j]));
        if constexpr (Multiply) value *= to_float(in.up.element[j]);
        result.element[j] = from_float<Out>(value);
      }
      *reinterpret_cast<Pack<Out, Vector>*>(out + column) = result;
    }
  }
}

template <class In>
constexpr int kVector = 16 / static_cast<int>(sizeof(In));

template <class In, class Out>
const void* pick_kernel(const ElementwiseShape& shape, bool vectors) {
  return visit_activation(shape.activation, {}, [&](auto function) -> const void* {
    using Function = decltype(function);
    if (shape.multiply) {
      return vectors ? reinterpret_cast<const void*>(&elementwise<In, Out, Function, kVector<In>, true>)
                     : reinterpret_cast<const void*>(&elementwise<In, Out, Function, 1, true>);
    }
    if constexpr (std::is_same_v<In, Out>) {
      return vectors ? reinterpret_cast<const void*>(&elementwise<In, Out, Function, kVector<In>, false>)
                     : reinterpret_cast<const void*>(&elementwise<In, Out, Function, 1, false>);
    }
    return nullptr;
  });
}

template <class In>
const void* pick_output(const ElementwiseShape& shape, bool vectors) {
  switch (shape.dtype_out) {
    case Dtype::kBf16: return pick_kernel<In, __nv_bfloat16>(shape, vectors);
    case Dtype::kFp16: return pick_kernel<In, __half>(shape, vectors);
    case Dtype::kFp32: break;
  }
  return pick_kernel<In, float>(shape, vectors);
}

const void* pick(const ElementwiseShape& shape, bool vectors) {
  switch (shape.dtype_in) {
    case Dtype::kBf16: return pick_output<__nv_bfloat16>(shape, vectors);
    case Dtype::kFp16: return pick_output<__half>(shape, vectors);
    case Dtype::kFp32: break;
  }
  return pick_output<float>(shape, vectors);
}

// Whether every vector of every row is aligned as its Pack demands.
bool can_use_vectors(const ElementwiseShape& shape) {
  const auto vector = static_cast<std::int64_t>(16 / size_of(shape.dtype_in));
  const auto size_out = static_cast<std::int64_t>(size_of(shape.dtype_out));
  const std::int64_t store = std::min<std::int64_t>(16, vector * size_out);
  return shape.n % vector == 0 && shape.ld_in % vector == 0 && shape.align_in % 16 == 0 &&
         shape.align_out % store == 0 && shape.ld_out * size_out % store == 0;
}

}  // namespace

Result<Elementwise> Elementwise::make(const ElementwiseShape& shape) {
  const bool vectors = can_use_vectors(shape);
  Elementwise made;
  made.shape_ = shape;
  made.vector_ = vectors ? static_cast<int>(16 / size_of(shape.dtype_in)) : 1;
  made.kernel_ = pick(shape, vectors);
  if (made.kernel_ == nullptr) return Status{Code::kInternalError, "act(gate) alone cannot change the dtype"};
  // Loads the module now: a kernel that is first needed in a captured run must already be there.
  cudaFuncAttributes attributes{};
  TILEGLU_TRY(runtime::cuda_check(cudaFuncGetAttributes(&attributes, made.kernel_), "loading the activation kernel"));
  return made;
}

Status Elementwise::run(const ElementwiseOperands& operands, cudaStream_t stream) const {
  Arguments arguments{.gate = operands.gate,
                      .up = operands.up,
                      .out = operands.out,
                      .m = operands.m,
                      .n = shape_.n,
                      .ld_in = shape_.ld_in,
                      .ld_out = shape_.ld_out,
                      .columns = shape_.columns};
  const Grid grid = grid_over(arguments.m, shape_.n / vector_, shape_.sm_count);
  void* parameters[] = {&arguments};
  return runtime::cuda_check(cudaLaunchKernel(kernel_, grid.blocks, grid.threads, parameters, 0, stream),
                             "launching the activation kernel");
}

}  // namespace tileglu::cublas
