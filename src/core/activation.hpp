// SPDX-License-Identifier: Apache-2.0
// The gate activations: one definition for the GPU epilogues (float), the CPU backend (float, written so that compilers
// vectorise it) and the fp64 reference. To add one: a value in tileglu.h, a functor here, a line in visit_activation.
// A functor maps the gate; one that changes up as well has a member up(u). gated() puts them together.
//
// Everything exponential is built on e = 2^x with x <= 0, so that 1 + e lies in (1, 2] and nothing overflows.
// Policy: NaN in, NaN out; +inf gives +inf (sigmoid 1, gelu and silu inf); silu and gelu of -inf are -inf * 0 = NaN, as
// in the formula x / (1 + exp(-x)) evaluated by IEEE rules, on every backend alike. Clamps let NaN pass.
#pragma once

#include "core/layout.hpp"

#include <bit>
#include <cmath>
#include <utility>

namespace tileglu {

// 2^x for x <= 0 (and NaN). Device: one MUFU instruction, 2 ulp. Host float: polynomial of degree 6 after splitting off
// the integer part, 1.2 ulp measured over [-126, 0] (tests/unit/activation_test.cpp); below -126 it is 0.
TILEGLU_HOST_DEVICE float exp2_nonpositive(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer held in the low mantissa bits
  const float clamped = x < -126.0F ? -126.0F : x;  // NaN passes
  const float shifted = clamped + kRound;
  const float f = clamped - (shifted - kRound);  // in [-0.5, 0.5]
  float p = 1.535336188319500e-4F;               // Cephes exp2f coefficients (Moshier), |f| <= 0.5
  p = p * f + 1.339887440266574e-3F;
  p = p * f + 9.618437357674640e-3F;
  p = p * f + 5.550332471162809e-2F;
  p = p * f + 2.402264791363012e-1F;
  p = p * f + 6.931472028550421e-1F;
  p = p * f + 1.0F;
  const float scale = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3F800000U);
  return x < -126.0F ? 0.0F : p * scale;
#endif
}
TILEGLU_HOST_DEVICE double exp2_nonpositive(double x) {
  return std::exp2(x);
}

// 1 / d for d in [1, 2].
TILEGLU_HOST_DEVICE float reciprocal(float d) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
  return r;
#else
  return 1.0F / d;
#endif
}
TILEGLU_HOST_DEVICE double reciprocal(double d) {
  return 1.0 / d;
}

// min(e, 1), and 1 for NaN.
TILEGLU_HOST_DEVICE float at_most_one(float e) {
#if defined(__CUDA_ARCH__)
  return fminf(e, 1.0F);
#else
  return e < 1.0F ? e : 1.0F;
#endif
}
TILEGLU_HOST_DEVICE double at_most_one(double e) {
  return e < 1.0 ? e : 1.0;
}

// A value as numerator / denominator, the denominator always in [1, 2]: kernels may let one reciprocal serve several
// values (the product of 127 such denominators cannot overflow), and a NaN, which only the numerator carries, stays its
// own.
template <class T>
struct Ratio {
  T numerator, denominator;
};

// x * sigmoid(s), with sigmoid(s) = 1 / (1 + e^-s).
template <class T>
TILEGLU_HOST_DEVICE Ratio<T> times_sigmoid(T x, T s) {
  const T magnitude = s < T(0) ? -s : s;
  const T e = exp2_nonpositive(magnitude * T(-1.4426950408889634));
  return {s >= T(0) ? x : x * e, T(1) + at_most_one(e)};
}

// Activations with a ratio: Derived defines ratio(g).
template <class Derived>
struct RatioActivation {
  template <class T>
  TILEGLU_HOST_DEVICE T operator()(T g) const {
    const Ratio<T> r = static_cast<const Derived*>(this)->ratio(g);
    return r.numerator * reciprocal(r.denominator);
  }
};

struct Silu : RatioActivation<Silu> {
  template <class T>
  TILEGLU_HOST_DEVICE Ratio<T> ratio(T g) const {
    return times_sigmoid(g, g);
  }
};

// 0.5 g (1 + tanh(z)) = g sigmoid(2 z)
struct GeluTanh : RatioActivation<GeluTanh> {
  static constexpr double kLinear = 1.5957691216057308, kCubic = 0.07135481627260025;  // 2 z = g (linear + cubic g^2)
  template <class T>
  TILEGLU_HOST_DEVICE Ratio<T> ratio(T g) const {
    return times_sigmoid(g, g * (T(kLinear) + T(kCubic) * g * g));
  }
};

// erfc(-g / sqrt 2), twice the normal distribution function. It keeps the relative accuracy of the negative tail. Host
// float: written so that it vectorises, unlike the library's erfcf: for |g| < 1 as 1 + erf, a polynomial in g^2 (degree
// 5, 7e-10); else exp(-g^2 / 2) times a polynomial in t = 1 / (1 + |g| / sqrt 8) (degree 7, 4e-8); both minimax fits.
TILEGLU_HOST_DEVICE float twice_normal_cdf(float g) {
#if defined(__CUDA_ARCH__)
  return erfcf(g * -0.7071067811865476F);
#else
  const float square = g * g;
  float erf = -1.530841673e-5F;
  erf = erf * square + 2.269727459e-4F;
  erf = erf * square - 2.372659887e-3F;
  erf = erf * square + 1.994664682e-2F;
  erf = erf * square - 1.329807198e-1F;
  erf = erf * square + 7.978845602e-1F;
  erf = erf * g;
  const float magnitude = g < 0.0F ? -g : g;
  const float t = 1.0F / (1.0F + 0.35355339059327373F * magnitude);
  float tail = 7.701649244e-2F;
  tail = tail * t - 1.784550993e-1F;
  tail = tail * t + 2.483421668e-2F;
  tail = tail * t + 9.830914283e-2F;
  tail = tail * t + 1.648058768e-1F;
  tail = tail * t + 2.499865922e-1F;
  tail = tail * t + 2.816904961e-1F;
  tail = tail * t + 2.821150031e-1F;
  tail = tail * t * exp2_nonpositive(square * -0.7213475204444817F);
  return magnitude < 1.0F ? 1.0F + erf : (g > 0.0F ? 2.0F - tail : tail);
#endif
}
TILEGLU_HOST_DEVICE double twice_normal_cdf(double g) {
  return std::erfc(g * -0.7071067811865476);
}

struct GeluErf {
  template <class T>
  TILEGLU_HOST_DEVICE T operator()(T g) const {
    return T(0.5) * g * twice_normal_cdf(g);
  }
};

struct Relu {
  template <class T>
  TILEGLU_HOST_DEVICE T operator()(T g) const {
    return g < T(0) ? T(0) : g;  // NaN passes
  }
};

struct Sigmoid : RatioActivation<Sigmoid> {
  template <class T>
  TILEGLU_HOST_DEVICE Ratio<T> ratio(T g) const {
    return times_sigmoid(T(1), g);
  }
};

struct Identity {
  template <class T>
  TILEGLU_HOST_DEVICE T operator()(T g) const {
    return g;
  }
};

// min(g, limit) sigmoid(alpha min(g, limit)), and up clamped on both sides with an offset.
struct Swiglu : RatioActivation<Swiglu> {
  SwigluNumbers numbers;

  template <class T>
  TILEGLU_HOST_DEVICE T at_most_limit(T x) const {
    return x > T(numbers.limit) ? T(numbers.limit) : x;
  }
  template <class T>
  TILEGLU_HOST_DEVICE T within_limits(T x) const {
    return x < T(-numbers.limit) ? T(-numbers.limit) : at_most_limit(x);
  }
  template <class T>
  TILEGLU_HOST_DEVICE Ratio<T> ratio(T g) const {
    const T clamped = at_most_limit(g);
    return times_sigmoid(clamped, T(numbers.alpha) * clamped);
  }
  template <class T>
  TILEGLU_HOST_DEVICE T up(T u) const {
    return within_limits(u) + T(numbers.up_offset);
  }
};

template <class Act>
concept ChangesUp = requires(Act act) {
  act.up(0.0F);
};

// What up becomes beside the activated gate.
template <class Act, class T>
TILEGLU_HOST_DEVICE T up_factor(const Act& act, T up) {
  if constexpr (ChangesUp<Act>) {
    return act.up(up);
  } else {
    return up;
  }
}

// The output before its one rounding.
template <class Act, class T>
TILEGLU_HOST_DEVICE T gated(const Act& act, T gate, T up) {
  return act(gate) * up_factor(act, up);
}

// The same in the steps of TILEGLU_ROUND_UNFUSED; `round` rounds a T to the type of Y.
template <class Act, class T, class Round>
TILEGLU_HOST_DEVICE T gated_unfused(const Act& act, T gate, T up, const Round& round) {
  return round(round(act(round(gate))) * round(up));
}
template <class T, class Round>
TILEGLU_HOST_DEVICE T gated_unfused(const Swiglu& act, T gate, T up, const Round& round) {
  const T g = round(act.at_most_limit(round(gate)));
  const T u = round(act.within_limits(round(up)));
  const T sigmoid = round(Sigmoid{}(round(T(act.numbers.alpha) * g)));
  return round(round(u + T(act.numbers.up_offset)) * round(g * sigmoid));
}

// Calls visitor(functor) for the activation; the one run-time to compile-time switch.
template <class Visitor>
TILEGLU_HOST_DEVICE decltype(auto) visit_activation(Activation activation, const SwigluNumbers& numbers,
                                                    Visitor&& visitor) {
  switch (activation) {
    case Activation::kSilu: return std::forward<Visitor>(visitor)(Silu{});
    case Activation::kGeluTanh: return std::forward<Visitor>(visitor)(GeluTanh{});
    case Activation::kGeluErf: return std::forward<Visitor>(visitor)(GeluErf{});
    case Activation::kRelu: return std::forward<Visitor>(visitor)(Relu{});
    case Activation::kSigmoid: return std::forward<Visitor>(visitor)(Sigmoid{});
    case Activation::kSwiglu: {
      Swiglu act;
      act.numbers = numbers;
      return std::forward<Visitor>(visitor)(act);
    }
    case Activation::kIdentity: break;
  }
  return std::forward<Visitor>(visitor)(Identity{});
}

}  // namespace tileglu
