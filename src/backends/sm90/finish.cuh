// SPDX-License-Identifier: Apache-2.0
// What becomes of the two sums of one output where every wish is granted: biases, addend, saved pre-activations, any
// activation, both roundings, y of any type and alignment. One element at a time; the epilogues of gate_math.cuh are
// the fast ones for what most models need.
#pragma once

#include "core/activation.hpp"
#include "core/layout.hpp"
#include "core/problem.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tileglu::sm90 {

// Bits of a 16-bit type.
template <bool IsBf16>
TILEGLU_HOST_DEVICE float widen(std::uint16_t bits) {
  if constexpr (IsBf16) {
    return __bfloat162float(__ushort_as_bfloat16(bits));
  } else {
    return __half2float(__ushort_as_half(bits));
  }
}
template <bool IsBf16>
TILEGLU_HOST_DEVICE std::uint16_t narrow(float value) {
  if constexpr (IsBf16) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  } else {
    return __half_as_ushort(__float2half_rn(value));
  }
}

// Gate or up columns of a matrix (ColumnHalf) without divisions; base null: not there.
struct Columns {
  std::uint16_t* base;
  std::int64_t ld;
  int pitch, shift;  // columns lie in groups of 2^shift

  __device__ __forceinline__ std::uint16_t& at(int row, int column) const {
    return base[row * ld + (column >> shift) * static_cast<std::int64_t>(pitch) + (column & ((1 << shift) - 1))];
  }
};

struct FinishParams {
  const std::uint16_t* bias[2];  // gate, up; null: none
  Columns add[2], pre[2];
  Activation activation;
  SwigluNumbers swiglu;
  bool unfused;
  Dtype dtype_y;
  void* y;
  std::int64_t ldy;

  __device__ __forceinline__ bool has_bias() const { return bias[0] != nullptr || bias[1] != nullptr; }
  // 0 outside.
  template <bool IsBf16>
  __device__ __forceinline__ float bias_at(bool is_up, int column, int n) const {
    return bias[is_up] != nullptr && column < n ? widen<IsBf16>(bias[is_up][column]) : 0.0F;
  }
};

template <class Pointer>
Columns columns_of(const ColumnHalf<Pointer>& half) {
  Columns columns{};
  if (half.base == nullptr) return columns;
  columns.base = static_cast<std::uint16_t*>(const_cast<void*>(half.base)) + half.columns.first;
  columns.ld = half.ld;
  columns.pitch = static_cast<int>(half.columns.pitch);
  columns.shift = half.columns.group == 8 ? 3 : 0;
  return columns;
}
inline FinishParams finish_params(const Problem& p, const Operands& operands) {
  FinishParams params{};
  params.bias[0] = static_cast<const std::uint16_t*>(operands.bias_gate);
  params.bias[1] = static_cast<const std::uint16_t*>(operands.bias_up);
  for (const bool is_up : {false, true}) {
    params.add[is_up] = columns_of(add_half(p, operands, is_up));
    params.pre[is_up] = columns_of(pre_half(p, operands, is_up));
  }
  params.activation = p.activation;
  params.swiglu = p.swiglu;
  params.unfused = p.rounding == Rounding::kUnfused;
  params.dtype_y = p.dtype_y;
  params.y = operands.y;
  params.ldy = p.ldy;
  return params;
}

struct RoundTo {
  Dtype dtype;
  TILEGLU_HOST_DEVICE float operator()(float x) const {
    switch (dtype) {
      case Dtype::kBf16: return widen<true>(narrow<true>(x));
      case Dtype::kFp16: return widen<false>(narrow<false>(x));
      case Dtype::kFp32: break;
    }
    return x;
  }
};

// For visit_activation; nvcc 13.0 fails on a lambda here (internal error in i_copy_expr_tree).
struct Gated {
  RoundTo round;
  bool unfused;
  float gate, up;
  template <class Act>
  TILEGLU_HOST_DEVICE float operator()(Act act) const {
    return unfused ? gated_unfused(act, gate, up, round) : gated(act, gate, up);
  }
};

// Before the activation. IsBf16: A, the weights, and what lies beside them.
template <bool IsBf16>
__device__ __forceinline__ void add_operands(const FinishParams& p, int row, int column, float (&sums)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (p.bias[half] != nullptr) sums[half] += widen<IsBf16>(__ldg(p.bias[half] + column));
    if (p.add[half].base != nullptr) sums[half] += widen<IsBf16>(__ldg(&p.add[half].at(row, column)));
  }
}

// And from there on.
template <bool IsBf16>
__device__ __forceinline__ void store_output(const FinishParams& p, int row, int column, const float (&sums)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (p.pre[half].base != nullptr) p.pre[half].at(row, column) = narrow<IsBf16>(sums[half]);
  }
  const float value = visit_activation(p.activation, p.swiglu, Gated{{p.dtype_y}, p.unfused, sums[0], sums[1]});
  const std::int64_t i = row * p.ldy + column;
  if (p.dtype_y == Dtype::kFp32) {
    static_cast<float*>(p.y)[i] = value;
  } else {
    static_cast<std::uint16_t*>(p.y)[i] = p.dtype_y == Dtype::kBf16 ? narrow<true>(value) : narrow<false>(value);
  }
}

template <bool IsBf16>
__device__ __forceinline__ void finish(const FinishParams& p, int row, int column, float gate, float up) {
  float sums[2] = {gate, up};
  add_operands<IsBf16>(p, row, column, sums);
  store_output<IsBf16>(p, row, column, sums);
}

}  // namespace tileglu::sm90
