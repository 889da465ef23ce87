// SPDX-License-Identifier: Apache-2.0
// What the epilogues share: act(gate) * up for four accumulator pairs of one thread (two rows x two output columns; in
// decode, four tokens of one column), packing, and the swizzle of TMA boxes.
//
// A kernel holds a copy of its epilogue for each formula, not for each activation: SiLU with one reciprocal for four
// outputs, and three that are told at run time which activation they are (core/activation.hpp).
#pragma once

#include "core/activation.hpp"
#include "core/problem.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace tileglu::sm90 {

struct Quad {
  float v[4];
};

template <class Act>
concept HasRatio = requires(Act act) {
  act.ratio(0.0F);
};

// With a ratio, one reciprocal serves all four: 1.25 MUFU instructions a value instead of 2. The multiplications run on
// the FMA pipe, which the epilogue leaves idle (H200: MUFU gives 16 results a clock and SM, FMA 128).
template <class Act>
__device__ __forceinline__ Quad act_times_up(const Act& act, const Quad& gate, const Quad& up) {
  Quad y;
  if constexpr (HasRatio<Act>) {
    Ratio<float> r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) r[i] = act.ratio(gate.v[i]);
    const float d01 = r[0].denominator * r[1].denominator;
    const float d23 = r[2].denominator * r[3].denominator;
    const float all = reciprocal(d01 * d23);
    const float inverse01 = all * d23;
    const float inverse23 = all * d01;
    y.v[0] = r[0].numerator * up.v[0] * (inverse01 * r[1].denominator);
    y.v[1] = r[1].numerator * up.v[1] * (inverse01 * r[0].denominator);
    y.v[2] = r[2].numerator * up.v[2] * (inverse23 * r[3].denominator);
    y.v[3] = r[3].numerator * up.v[3] * (inverse23 * r[2].denominator);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) y.v[i] = gated(act, gate.v[i], up.v[i]);
  }
  return y;
}

// Two values as 16-bit elements of one register.
struct PackBf16 {
  __device__ __forceinline__ std::uint32_t operator()(float low, float high) const {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
};
struct PackFp16 {
  __device__ __forceinline__ std::uint32_t operator()(float low, float high) const {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
};
struct PackEither {
  bool bf16;
  __device__ __forceinline__ std::uint32_t operator()(float low, float high) const {
    return bf16 ? PackBf16{}(low, high) : PackFp16{}(low, high);
  }
};

// The epilogue as it is told at run time.
enum class Formula { kSharedSilu, kSigmoid, kFloor, kErf };

// (g or 1) * sigmoid(g (linear + cubic g^2)): SiLU, GELU tanh, sigmoid; with limits and an offset of up, SwiGLU.
struct SigmoidFormula {
  float linear = 1, cubic = 0;
  bool times_gate = true;
  Swiglu limits{};
  __device__ __forceinline__ float operator()(float gate) const {
    const float g = limits.at_most_limit(gate);
    const float square = fminf(g * g, 1e30F);  // finite: cubic may be 0
    const Ratio<float> r = times_sigmoid(times_gate ? g : 1.0F, g * (linear + cubic * square));
    return r.numerator * reciprocal(r.denominator);
  }
  __device__ __forceinline__ float up(float u) const { return limits.up(u); }
};

// max(g, floor): ReLU, identity.
struct FloorFormula {
  float floor = 0;
  __device__ __forceinline__ float operator()(float g) const { return g < floor ? floor : g; }  // NaN passes
};

struct GateParams {
  Formula formula = Formula::kSharedSilu;  // which is for y of the type of A
  SigmoidFormula sigmoid{};
  FloorFormula floor{};
  bool bf16 = true;  // y; else fp16
};
inline GateParams gate_params(const Problem& problem, bool batch_invariant) {
  constexpr float kNoFloor = -std::numeric_limits<float>::infinity();
  const bool bf16 = problem.dtype_y == Dtype::kBf16, shared = !batch_invariant && problem.dtype_y == problem.dtype;
  switch (problem.activation) {
    case Activation::kSilu: return {.formula = shared ? Formula::kSharedSilu : Formula::kSigmoid, .bf16 = bf16};
    case Activation::kGeluTanh:
      return {.formula = Formula::kSigmoid, .sigmoid = {GeluTanh::kLinear, GeluTanh::kCubic}, .bf16 = bf16};
    case Activation::kSigmoid: return {.formula = Formula::kSigmoid, .sigmoid = {.times_gate = false}, .bf16 = bf16};
    case Activation::kSwiglu:
      return {
          .formula = Formula::kSigmoid, .sigmoid = {problem.swiglu.alpha, 0, true, {{}, problem.swiglu}}, .bf16 = bf16};
    case Activation::kGeluErf: return {.formula = Formula::kErf, .bf16 = bf16};
    case Activation::kRelu: return {.formula = Formula::kFloor, .bf16 = bf16};
    case Activation::kIdentity: break;
  }
  return {.formula = Formula::kFloor, .floor = {kNoFloor}, .bf16 = bf16};
}

// Calls visitor(activation, packer).
template <bool IsBf16, class Visitor>
__device__ __forceinline__ void visit_formula(const GateParams& p, const Visitor& visitor) {
  switch (p.formula) {
    case Formula::kSharedSilu: return visitor(Silu{}, std::conditional_t<IsBf16, PackBf16, PackFp16>{});
    case Formula::kSigmoid: return visitor(p.sigmoid, PackEither{p.bf16});
    case Formula::kFloor: return visitor(p.floor, PackEither{p.bf16});
    case Formula::kErf: return visitor(GeluErf{}, PackEither{p.bf16});
  }
}

// Widest TMA box that divides `half` columns of y: 64 or 32 columns, swizzled, or an odd number of 16-byte units, whose
// rows fall on different banks as they are.
constexpr int box_columns(int half) {
  return half % 64 == 0 ? 64 : half % 32 == 0 ? 32 : half / 8 % 2 == 1 ? half : box_columns(half / 2);
}
// Where TMA expects 16-byte unit `unit` of row `row` of such a box.
template <int BoxColumns>
__device__ __forceinline__ int swizzled_unit(int row, int unit) {
  static_assert(BoxColumns == 64 || BoxColumns == 32 || BoxColumns == 16 || BoxColumns / 8 % 2 == 1);
  return unit ^ (BoxColumns == 64 ? row % 8 : BoxColumns == 32 ? row / 2 % 4 : BoxColumns == 16 ? row / 4 % 2 : 0);
}

}  // namespace tileglu::sm90
