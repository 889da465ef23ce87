// SPDX-License-Identifier: Apache-2.0
// bf16 and fp16 against a reference made of the format's definition: all values, and around every rounding boundary.
#include "core/float16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tileglu {
namespace {

template <class Half>
struct Format;
template <>
struct Format<Fp16> {
  static constexpr int kMantissa = 10, kBias = 15, kMaxExponent = 31;
};
template <>
struct Format<Bf16> {
  static constexpr int kMantissa = 7, kBias = 127, kMaxExponent = 255;
};

// The value of a bit pattern, by the definition.
template <class Half>
double meaning(std::uint16_t bits) {
  using F = Format<Half>;
  const int exponent = (bits & 0x7FFF) >> F::kMantissa;
  const int mantissa = bits & ((1 << F::kMantissa) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == F::kMaxExponent) {
    return mantissa == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - F::kBias - F::kMantissa);
  return sign * std::ldexp(mantissa + (1 << F::kMantissa), exponent - F::kBias - F::kMantissa);
}

template <class Half>
class Float16 : public testing::Test {
 protected:
  static constexpr std::uint16_t kInfinity =
      static_cast<std::uint16_t>(Format<Half>::kMaxExponent << Format<Half>::kMantissa);
};
using Halves = testing::Types<Fp16, Bf16>;
TYPED_TEST_SUITE(Float16, Halves);

TYPED_TEST(Float16, EveryValueWidensExactlyAndComesBack) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const double expected = meaning<TypeParam>(bits);
    const float wide = widen(TypeParam{bits});
    const std::uint16_t back = narrow<TypeParam>(wide).bits;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide)) << i;
      ASSERT_TRUE(std::isnan(meaning<TypeParam>(back))) << i;
      ASSERT_EQ(back & 0x8000, bits & 0x8000) << i;
    } else {
      ASSERT_EQ(static_cast<double>(wide), expected) << i;
      ASSERT_EQ(std::signbit(wide), std::signbit(expected)) << i;
      ASSERT_EQ(back, bits) << i;
    }
  }
}

// Between each value and the next larger one (infinity counting as the value that would follow the largest) lies one
// boundary. Rounding is monotonic, so the boundary and its two float neighbours settle all that lies between.
TYPED_TEST(Float16, RoundsToNearestAndTiesToEven) {
  for (std::uint16_t low = 0; low < TestFixture::kInfinity; ++low) {
    const std::uint16_t high = low + 1;
    const double below = meaning<TypeParam>(low);
    const double above =
        high == TestFixture::kInfinity ? 2 * below - meaning<TypeParam>(low - 1) : meaning<TypeParam>(high);
    const auto middle = static_cast<float>((below + above) / 2);
    ASSERT_EQ(static_cast<double>(middle), (below + above) / 2) << low;
    for (const int sign : {0, 0x8000}) {
      const float s = sign != 0 ? -1.0F : 1.0F;
      const std::uint16_t even = (low & 1) == 0 ? low : high;
      ASSERT_EQ(narrow<TypeParam>(s * middle).bits, even | sign) << low;
      ASSERT_EQ(narrow<TypeParam>(s * std::nextafter(middle, 0.0F)).bits, low | sign) << low;
      ASSERT_EQ(narrow<TypeParam>(s * std::nextafter(middle, INFINITY)).bits, high | sign) << low;
    }
  }
}

TYPED_TEST(Float16, OverflowsToInfinityAndKeepsInfinityAndNaN) {
  EXPECT_EQ(narrow<TypeParam>(std::numeric_limits<float>::max()).bits, TestFixture::kInfinity);
  EXPECT_EQ(narrow<TypeParam>(INFINITY).bits, TestFixture::kInfinity);
  EXPECT_EQ(narrow<TypeParam>(-INFINITY).bits, TestFixture::kInfinity | 0x8000);
  // A NaN whose payload lies only in the bits that narrowing drops must not become an infinity.
  EXPECT_TRUE(std::isnan(meaning<TypeParam>(narrow<TypeParam>(std::bit_cast<float>(0x7F800001U)).bits)));
  EXPECT_TRUE(std::isnan(meaning<TypeParam>(narrow<TypeParam>(std::bit_cast<float>(0xFFFFFFFFU)).bits)));
}

TEST(Float16Values, OfFieldCaseC11) {
  EXPECT_EQ(narrow<Fp16>(66975.28F).bits, 0x7C00);
  EXPECT_EQ(widen(narrow<Fp16>(65519.0F)), 65504.0F);
  EXPECT_EQ(narrow<Fp16>(65520.0F).bits, 0x7C00);
  EXPECT_EQ(widen(narrow<Bf16>(66975.28F)), 67072.0F);
  EXPECT_EQ(narrow<float>(1.25F), 1.25F);
}

TEST(Float16Values, TiniestFloatsBecomeZeroWithTheirSign) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(narrow<Fp16>(tiny).bits, 0);
  EXPECT_EQ(narrow<Fp16>(-tiny).bits, 0x8000);
  EXPECT_EQ(narrow<Bf16>(-tiny).bits, 0x8000);
}

}  // namespace
}  // namespace tileglu
