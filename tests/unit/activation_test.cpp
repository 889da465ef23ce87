// SPDX-License-Identifier: Apache-2.0
// The float functors of the host against the same functors in double.
#include "core/activation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tileglu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// |got - expected| in units in the last place of a float at `expected`; subnormals count in units of the smallest
// normal's.
double ulps(float got, double expected) {
  const double magnitude = std::max(std::abs(expected), static_cast<double>(std::numeric_limits<float>::min()));
  return std::abs(static_cast<double>(got) - expected) / std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

// Every `step`-th bit pattern of the finite floats in [low, high] of one sign.
template <class Visit>
void sweep(float from_zero, float magnitude_limit, std::uint32_t step, Visit visit) {
  const std::uint32_t sign = std::signbit(from_zero) ? 0x80000000U : 0;
  const auto last = std::bit_cast<std::uint32_t>(magnitude_limit);
  for (std::uint32_t bits = 0; bits <= last; bits += step) visit(std::bit_cast<float>(bits | sign));
}

TEST(Exp2Nonpositive, IsWithinTheDocumentedUlps) {
  double worst = 0;
  const auto check = [&](float x) { worst = std::max(worst, ulps(exp2_nonpositive(x), std::exp2(double{x}))); };
  sweep(-0.0F, 126.0F, 251, check);
  for (int i = 0; i <= 126 * 20000; ++i) check(static_cast<float>(-i) / 20000.0F);
  EXPECT_LE(worst, 1.2);
  EXPECT_GT(worst, 0.5) << "better than correct rounding: is the sweep empty?";
}

TEST(Exp2Nonpositive, AtItsEdges) {
  EXPECT_EQ(exp2_nonpositive(0.0F), 1.0F);
  EXPECT_EQ(exp2_nonpositive(-0.0F), 1.0F);
  for (int i = 1; i <= 126; ++i) EXPECT_EQ(exp2_nonpositive(static_cast<float>(-i)), std::ldexp(1.0F, -i));
  EXPECT_EQ(exp2_nonpositive(-126.001F), 0.0F);
  EXPECT_EQ(exp2_nonpositive(-3e38F), 0.0F);
  EXPECT_EQ(exp2_nonpositive(-kInf), 0.0F);
  EXPECT_TRUE(std::isnan(exp2_nonpositive(kNan)));
}

// e^-s carries the rounding of s * log2(e) and of the constant: a relative error of 1.25 |s| 2^-24, which is up to
// 1.25 |s| ulp. Below 2^-126 it is 0, which costs at most |x| * 2^-126. `exponent` is that 1.25 |s| of an activation.
template <class Activation>
void expect_accurate(const char* name, Activation activation, double (*exponent)(double)) {
  double worst = 0;
  float worst_at = 0;
  for (const float sign : {1.0F, -1.0F}) {
    sweep(sign, std::numeric_limits<float>::max(), 1021, [&](float g) {
      const double expected = activation(double{g});
      const float got = activation(g);
      if (!std::isfinite(static_cast<float>(expected))) return;
      const double flushed = std::max(1.0, std::abs(double{g})) * std::ldexp(1.0, -126);
      if (std::abs(double{got} - expected) <= flushed && std::abs(expected) <= flushed) return;
      const double ratio = ulps(got, expected) / (3 + exponent(std::min(std::abs(double{g}), 1e3)));
      if (!(ratio <= worst)) worst = ratio, worst_at = g;
    });
  }
  EXPECT_LE(worst, 1.0) << name << " at " << worst_at << ": " << activation(worst_at) << ", expected "
                        << activation(double{worst_at});
  EXPECT_GE(worst, 0.1) << name << ": is the sweep empty?";
}

TEST(ActivationAccuracy, Silu) {
  expect_accurate("silu", Silu{}, [](double g) { return 1.25 * g; });
}
TEST(ActivationAccuracy, Sigmoid) {
  expect_accurate("sigmoid", Sigmoid{}, [](double g) { return 1.25 * g; });
}
TEST(ActivationAccuracy, GeluTanh) {
  // The exponent itself is a float polynomial: four more roundings of up to one half ulp.
  expect_accurate("gelu_tanh", GeluTanh{}, [](double g) { return (1.25 + 2) * g * (1.6 + 0.0714 * g * g); });
}
TEST(ActivationAccuracy, GeluErf) {
  // erfc(z) falls as e^(-z^2), z = g / sqrt(2): rounding z alone costs z^2 ulp.
  // The polynomials and their products add 1.5 ulp to the 3 that the others have.
  expect_accurate("gelu_erf", GeluErf{}, [](double g) { return 2 * g * g + 1.5; });
}

TEST(ActivationAccuracy, ReluAndIdentityAreExact) {
  for (const float sign : {1.0F, -1.0F}) {
    sweep(sign, std::numeric_limits<float>::max(), 65521, [](float g) {
      ASSERT_EQ(Relu{}(g), std::max(g, 0.0F));
      ASSERT_EQ(Identity{}(g), g);
    });
  }
}

// Values worked out apart from the code, so that a wrong formula in both precisions is caught.
TEST(ActivationValues, KnownPoints) {
  EXPECT_NEAR(Silu{}(1.0), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(Silu{}(-3.0), -0.1422776195327004, 1e-15);
  EXPECT_NEAR(Sigmoid{}(2.0), 0.8807970779778823, 1e-15);
  EXPECT_NEAR(GeluErf{}(1.0), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(GeluErf{}(-2.0), -0.04550026389635842, 1e-15);
  EXPECT_NEAR(GeluTanh{}(1.0), 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * 1.044715)), 1e-15);
  EXPECT_NEAR(GeluTanh{}(-2.0), -(1 + std::tanh(std::sqrt(2 / M_PI) * (-2 - 0.044715 * 8))), 1e-15);
}

// gpt-oss: alpha 1.702, limit 7, offset 1. Field case C18's numbers, and each clamp on its own side.
TEST(ActivationValues, SwigluOfGptOss) {
  const Swiglu swiglu{{}, {.alpha = 1.702F, .limit = 7, .up_offset = 1}};
  const double alpha = double{1.702F}, at_limit = 7 / (1 + std::exp(-7 * alpha));
  EXPECT_NEAR(gated(swiglu, 10.0, 10.0), 8 * at_limit, 1e-14);  // 55.9996
  EXPECT_NEAR(gated(swiglu, 7.0, -10.0), -6 * at_limit, 1e-14);
  EXPECT_NEAR(gated(swiglu, -10.0, 0.5), -10 / (1 + std::exp(10 * alpha)) * 1.5, 1e-14) << "no clamp from below";
  EXPECT_NEAR(gated(swiglu, 1.0F, 2.0F), 3 / (1 + std::exp(-alpha)), 1e-6);
  EXPECT_TRUE(std::isnan(gated(swiglu, kNan, 1.0F)) && std::isnan(gated(swiglu, 1.0F, kNan)));
  EXPECT_NEAR(gated(swiglu, kInf, -kInf), -6 * at_limit, 1e-4);
  EXPECT_EQ(gated(Swiglu{}, 1.5F, -2.0F), gated(Silu{}, 1.5F, -2.0F)) << "without numbers it is silu";
}

// Every step rounded to whole numbers, so that the steps can be followed by hand.
TEST(ActivationValues, UnfusedRoundsEveryStep) {
  const auto whole = [](double x) { return std::nearbyint(x); };
  EXPECT_EQ(gated_unfused(Identity{}, 2.4, 3.6, whole), 8);
  EXPECT_EQ(gated_unfused(Silu{}, 1.6, 10.0, whole), 20) << "gate 2, silu(2) = 1.76 is 2";
  const Swiglu swiglu{{}, {.alpha = 0.2F, .limit = 7.4F, .up_offset = 0.4F}};
  // gate 9 -> 7.4 -> 7; 0.2 * 7 = 1.4 -> 1, its sigmoid 0.73 -> 1; 7 * 1; up 3.3 -> 3, 3.4 -> 3
  EXPECT_EQ(gated_unfused(swiglu, 9.0, 3.3, whole), 21);
}

struct SpecialCase {
  Activation activation;
  float at_infinity, at_minus_infinity;
};
constexpr std::array kSpecialCases{
    SpecialCase{Activation::kSilu, kInf, kNan},    SpecialCase{Activation::kGeluTanh, kInf, kNan},
    SpecialCase{Activation::kGeluErf, kInf, kNan}, SpecialCase{Activation::kRelu, kInf, 0},
    SpecialCase{Activation::kSigmoid, 1, 0},       SpecialCase{Activation::kIdentity, kInf, -kInf},
    SpecialCase{Activation::kSwiglu, kInf, kNan},
};

template <class T>
void expect_same(T got, float expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else {
    EXPECT_EQ(got, T(expected));
  }
}

TEST(ActivationPolicy, NaNAndInfinitiesInBothPrecisions) {
  for (const SpecialCase& c : kSpecialCases) {
    SCOPED_TRACE(static_cast<int>(c.activation));
    visit_activation(c.activation, {}, [&](auto activation) {
      expect_same(activation(kInf), c.at_infinity);
      expect_same(activation(static_cast<double>(kInf)), c.at_infinity);
      expect_same(activation(-kInf), c.at_minus_infinity);
      expect_same(activation(-static_cast<double>(kInf)), c.at_minus_infinity);
      expect_same(activation(kNan), kNan);
      expect_same(activation(static_cast<double>(kNan)), kNan);
    });
  }
}

TEST(ActivationPolicy, FiniteGatesNeverGiveNaN) {
  for (const SpecialCase& c : kSpecialCases) {
    visit_activation(c.activation, {}, [&](auto activation) {
      for (const float sign : {1.0F, -1.0F}) {
        sweep(sign, std::numeric_limits<float>::max(), 16381, [&](float g) {
          ASSERT_FALSE(std::isnan(activation(g))) << static_cast<int>(c.activation) << " at " << g;
        });
      }
    });
  }
}

TEST(ActivationSwitch, ReachesEachFunctor) {
  const auto at = [](Activation activation) {
    return visit_activation(activation, {}, [](auto f) { return f(-1.5); });
  };
  EXPECT_EQ(at(Activation::kSilu), Silu{}(-1.5));
  EXPECT_EQ(at(Activation::kGeluTanh), GeluTanh{}(-1.5));
  EXPECT_EQ(at(Activation::kGeluErf), GeluErf{}(-1.5));
  EXPECT_EQ(at(Activation::kRelu), 0);
  EXPECT_EQ(at(Activation::kSigmoid), Sigmoid{}(-1.5));
  EXPECT_EQ(at(Activation::kIdentity), -1.5);
  const SwigluNumbers numbers{.alpha = 2, .limit = 1, .up_offset = 3};
  visit_activation(Activation::kSwiglu, numbers, [](auto f) {
    EXPECT_EQ(f(1.5), Swiglu({{}, {.alpha = 2, .limit = 1}})(1.5));
    EXPECT_EQ(up_factor(f, 2.0), 4);
  });
}

}  // namespace
}  // namespace tileglu
