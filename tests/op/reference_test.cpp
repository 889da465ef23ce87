// SPDX-License-Identifier: Apache-2.0
// The yardstick itself: number formats, sums and error figures against what is worked out another way.
#include "reference/reference.hpp"

#include "core/float16.hpp"
#include "op/op_cases.hpp"
#include "op/op_data.hpp"
#include "reference/metrics.hpp"
#include "reference/number_format.hpp"

#include <cmath>
#include <random>

namespace tileglu::test {
namespace {

using reference::compare;
using reference::number_format;
using reference::round_to;

// The backends widen and narrow by core/float16.hpp; the reference by arithmetic of its own.
TEST(NumberFormat, AgreesWithTheBackendsOnEveryPattern) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const double bf16 = reference::decode16(number_format(Dtype::kBf16), bits);
    const double fp16 = reference::decode16(number_format(Dtype::kFp16), bits);
    const auto same = [](double one, double other) { return one == other || (std::isnan(one) && std::isnan(other)); };
    ASSERT_TRUE(same(bf16, static_cast<double>(widen(Bf16{pattern})))) << bits;
    ASSERT_TRUE(same(fp16, static_cast<double>(widen(Fp16{pattern})))) << bits;
  }
}

TEST(NumberFormat, RoundsLikeTheBackends) {
  std::mt19937 generator(3);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(round_to(number_format(Dtype::kBf16), value), static_cast<double>(widen(narrow<Bf16>(value)))) << value;
    ASSERT_EQ(round_to(number_format(Dtype::kFp16), value), static_cast<double>(widen(narrow<Fp16>(value)))) << value;
  }
}

TEST(NumberFormat, RoundsDoublesOnceAndToEven) {
  EXPECT_EQ(round_to(number_format(Dtype::kBf16), 1 + 0x1p-8), 1);                     // a tie, down to even
  EXPECT_EQ(round_to(number_format(Dtype::kBf16), 1 + 3 * 0x1p-8), 1 + 0x1p-6);        // a tie, up to even
  EXPECT_EQ(round_to(number_format(Dtype::kBf16), 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);  // fp32 on the way would lose it
  EXPECT_EQ(round_to(number_format(Dtype::kFp16), 65519.999), 65504);
  EXPECT_EQ(round_to(number_format(Dtype::kFp16), -65520), -INFINITY);
  EXPECT_EQ(round_to(number_format(Dtype::kFp16), 0x1p-24 * 0.75), 0x1p-24);
  EXPECT_EQ(round_to(number_format(Dtype::kFp32), 1e300), INFINITY);
  for (int i = -140; i < 120; ++i) {
    const double value = std::ldexp(1.2345678912345, i);
    EXPECT_EQ(round_to(number_format(Dtype::kFp32), value), static_cast<double>(static_cast<float>(value)));
  }
  EXPECT_TRUE(std::signbit(round_to(number_format(Dtype::kBf16), -0.0)));
}

// Against sums in long double over values read through the layout by hand.
TEST(Reference, SumsOfEveryLayoutAndDtype) {
  for (const Layout layout : kLayouts) {
    for (const Dtype dtype : kDtypes) {
      const OpCase op{.dtype = dtype, .layout = layout, .m = 67, .n = 40, .k = 23, .pad = {.a = 3, .gate = 2, .up = 1}};
      OpData data(op, Memory::kHost);
      const Problem problem{.dtype = dtype,
                            .layout = layout,
                            .m = op.m,
                            .n = op.n,
                            .k = op.k,
                            .lda = data.a().ld,
                            .ld_gate = data.gate().ld,
                            .ld_up = data.up().ld};
      const bool single = is_single_matrix(layout);
      const Operands operands{
          .a = data.a().address(), .gate = data.gate().address(), .up = single ? nullptr : data.up().address()};
      const auto pre = reference::preactivations(problem, operands);
      ASSERT_TRUE(pre.ok());
      const reference::Decoder decoder(dtype);
      for (const std::int64_t index : {0, 39, 40, 1000, 67 * 40 - 1}) {
        const std::int64_t row = index / op.n, column = index % op.n;
        long double up = 0;
        for (std::int64_t i = 0; i < op.k; ++i) {
          const std::int64_t at = up_rows(layout, op.n).row(column) * (single ? problem.ld_gate : problem.ld_up) + i;
          up += static_cast<long double>(decoder(operands.a, row * problem.lda + i)) *
                decoder(single ? operands.gate : operands.up, at);
        }
        EXPECT_NEAR(pre.value().up[static_cast<std::size_t>(index)], static_cast<double>(up), 1e-14);
      }
    }
  }
}

TEST(Reference, UnfusedRoundsThreeTimes) {
  const reference::Preactivations pre{.gate = {3.001}, .up = {2.003}};
  const auto bf16 = [](double value) { return round_to(number_format(Dtype::kBf16), value); };
  EXPECT_EQ(reference::unfused({.activation = Activation::kRelu}, pre).front(), bf16(bf16(3.001) * bf16(2.003)));
  const double silu = bf16(3.001) / (1 + std::exp(-bf16(3.001)));
  EXPECT_EQ(reference::unfused({.activation = Activation::kSilu}, pre).front(), bf16(bf16(silu) * bf16(2.003)));
  EXPECT_NEAR(reference::exact({.activation = Activation::kSilu}, pre).front(), 3.001 / (1 + std::exp(-3.001)) * 2.003,
              1e-14);
}

TEST(Metrics, FiguresOfAKnownDifference) {
  std::vector<double> exact(2 * 20, 1.0), y = exact;
  y[3] = 1.5;          // in the first stripe of 16
  y[39] = 1 + 0x1p-6;  // in the second, of 4 columns
  const reference::ErrorReport report = compare(Dtype::kBf16, 2, 20, y, exact);
  EXPECT_DOUBLE_EQ(report.relative_frobenius, std::sqrt((0.25 + 0x1p-12) / 40));
  EXPECT_DOUBLE_EQ(report.worst_stripe, std::sqrt(0.25 / 32));
  EXPECT_DOUBLE_EQ(report.share_over_1_percent, 2.0 / 40);
  EXPECT_DOUBLE_EQ(report.max_ulp, 64);
  EXPECT_EQ(report.not_finite, 0);
}

TEST(Metrics, CountsWhatIsNotFiniteOrNotWritten) {
  const std::vector<double> exact = {1, 70000, NAN, 1, INFINITY};
  EXPECT_EQ(compare(Dtype::kFp16, 1, 5, {1, INFINITY, NAN, 1, INFINITY}, exact).not_finite, 0);
  EXPECT_EQ(compare(Dtype::kFp16, 1, 5, {NAN, 65504, 1, INFINITY, -INFINITY}, exact).not_finite, 5);
  std::vector<unsigned char> bytes = encode(Dtype::kBf16, {1, 0, 1, 1, 1, 0});
  bytes[6] = bytes[7] = bytes[2] = bytes[3] = reference::kPoisonByte;  // element (1,0) and the gap of row 0
  const reference::ErrorReport report = compare(Dtype::kBf16, 3, 1, bytes.data(), 2, {1, 1, 1});
  EXPECT_EQ(report.unwritten, 0);
  EXPECT_EQ(report.relative_frobenius, 0);
  EXPECT_EQ(compare(Dtype::kBf16, 2, 2, bytes.data(), 2, {1, 1, 1, 1}).unwritten, 2);
}

}  // namespace
}  // namespace tileglu::test
