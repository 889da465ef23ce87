// SPDX-License-Identifier: Apache-2.0
// Each instruction set of the cpu backend's own loops that this processor has, against plain scalar code; and the
// arithmetic of its blocks.
#include "backends/cpu/blocking.hpp"
#include "backends/cpu/simd.hpp"
#include "core/activation.hpp"
#include "core/float16.hpp"
#include "op/op_cases.hpp"
#include "op/op_data.hpp"

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace tileglu::test {
namespace {

class CpuSimd : public ::testing::TestWithParam<const cpu::Simd*> {
 protected:
  void SetUp() override {
    if (!GetParam()->supported()) GTEST_SKIP() << "this processor has no " << GetParam()->name;
  }
  const cpu::Simd& simd_ = *GetParam();
};

TEST_P(CpuSimd, WidensEveryPatternExactly) {
  std::vector<std::uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), 0);
  std::vector<float> wide(bits.size());
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16}) {
    const std::vector<unsigned char> bytes(reinterpret_cast<unsigned char*>(bits.data()),
                                           reinterpret_cast<unsigned char*>(bits.data() + bits.size()));
    const std::vector<double> expected = decode(dtype, bytes);
    for (const std::int64_t k : {std::int64_t{65536}, std::int64_t{1037}}) {
      simd_.widen_row[cpu::Simd::index(dtype)](bits.data(), k, wide.data());
      for (std::int64_t i = 0; i < k; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(std::isnan(wide[at]), std::isnan(expected[at])) << at;
        if (!std::isnan(wide[at])) {
          ASSERT_EQ(static_cast<double>(wide[at]), expected[at]) << at;
        }
      }
    }
  }
}

// Small integers, so that every order of summation gives the same sum.
TEST_P(CpuSimd, DotProductsOfEveryTail) {
  std::mt19937 generator(5);
  for (const Dtype dtype : kDtypes) {
    for (std::int64_t rows = 1; rows <= 9; ++rows) {
      for (const std::int64_t k : {1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 95}) {
        const std::int64_t count = 1 + (rows + k) % 9, lda = (k + 15) / 16 * 16;
        std::vector<double> a(static_cast<std::size_t>(rows * k)), w(static_cast<std::size_t>(count * k));
        for (double& x : a) x = static_cast<double>(generator() % 9) - 4;
        for (double& x : w) x = static_cast<double>(generator() % 9) - 4;
        const std::vector<unsigned char> stored_a = encode(dtype, a), stored_w = encode(dtype, w);
        std::vector<float> prepared(static_cast<std::size_t>(rows * lda), NAN), sums(100, -1.0F);
        for (std::int64_t row = 0; row < rows; ++row) {
          simd_.prepare_row[cpu::Simd::index(dtype)](&stored_a[static_cast<std::size_t>(row * k) * size_of(dtype)], k,
                                                     &prepared[static_cast<std::size_t>(row * lda)]);
        }
        simd_.dot[cpu::Simd::index(dtype)](
            {.a = prepared.data(),
             .lda = lda,
             .rows = rows,
             .k = k,
             .weights = {.base = stored_w.data(), .ld = k, .half = {}, .first = 0, .count = count},
             .sums = sums.data(),
             .sums_ld = 11});
        for (std::int64_t i = 0; i < rows * 11; ++i) {
          const std::int64_t row = i / 11, column = i % 11;
          const double expected = column >= count ? -1
                                                  : std::inner_product(a.begin() + row * k, a.begin() + (row + 1) * k,
                                                                       w.begin() + column * k, 0.0);
          ASSERT_EQ(static_cast<double>(sums[static_cast<std::size_t>(i)]), expected)
              << name_of(dtype) << " rows=" << rows << " k=" << k << " at " << row << "," << column;
        }
      }
    }
  }
}

// act(gate) * up within a few ulp of fp64 before the rounding, and nothing written past the columns.
TEST_P(CpuSimd, FinishOfEveryActivationAndDtype) {
  constexpr std::int64_t kRows = 3, kColumns = 53, kLdy = 60;
  std::mt19937 generator(6);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> sums(2 * kRows * kColumns);
  for (float& sum : sums) sum = normal(generator);
  for (const Activation activation : kActivations) {
    for (const Dtype dtype : kDtypes) {
      std::vector<unsigned char> y(kRows * kLdy * size_of(dtype), reference::kPoisonByte);
      simd_.finish[cpu::Simd::index(Rounding::kOnce)][cpu::Simd::index(activation)][cpu::Simd::index(dtype)](
          {.swiglu = {},
           .gate = sums.data(),
           .up = sums.data() + kColumns,
           .sums_ld = 2 * kColumns,
           .rows = kRows,
           .columns = kColumns,
           .y = y.data(),
           .ldy = kLdy});
      const std::vector<double> values = decode(dtype, y);
      const double poison = decode(dtype, std::vector<unsigned char>(size_of(dtype), reference::kPoisonByte)).front();
      const double epsilon = dtype == Dtype::kBf16 ? 0x1p-8 : dtype == Dtype::kFp16 ? 0x1p-11 : 0;
      for (std::int64_t i = 0; i < kRows * kLdy; ++i) {
        const std::int64_t row = i / kLdy, column = i % kLdy;
        const double value = values[static_cast<std::size_t>(i)];
        if (column >= kColumns) {
          ASSERT_TRUE(value == poison || (std::isnan(value) && std::isnan(poison)));
          continue;
        }
        const double gate = sums[static_cast<std::size_t>(row * 2 * kColumns + column)];
        const double up = sums[static_cast<std::size_t>(row * 2 * kColumns + kColumns + column)];
        const double exact = reference::exact({.activation = activation}, {.gate = {gate}, .up = {up}}).front();
        // The exponent's rounding error is relative to the exponent, which for gelu_tanh is cubic in the gate.
        const double relative = epsilon + 0x1p-22 * (4 + std::abs(gate * gate * gate));
        ASSERT_NEAR(value, exact, std::abs(exact) * relative + (dtype == Dtype::kFp16 ? 0x1p-25 : 1e-36))
            << name_of(activation) << " " << name_of(dtype) << " gate=" << gate << " up=" << up;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuSimd, ::testing::ValuesIn(cpu::all_simd().begin(), cpu::all_simd().end()),
                         [](const auto& instance) { return instance.param->name; });

TEST(CpuBlocking, CoversTheProblemWithinTheWorkspace) {
  for (const std::int64_t m : {1, 16, 17, 256, 300, 1024, 5000}) {
    for (const std::int64_t n : {1, 40, 4864, 29568}) {
      for (const std::int64_t k : {1, 896, 8192, 100000}) {
        for (const int threads : {1, 2, 64}) {
          for (const bool few_rows : {false, true}) {
            const Problem problem{.m = m, .n = n, .k = k};
            const cpu::Needs needs{.a_bytes = 4, .weight_bytes = few_rows ? 0U : 4U, .few_rows = few_rows};
            cpu::Blocking b = cpu::choose_blocks(problem, needs, threads);
            cpu::lay_out_workspace(problem, needs, b);
            ASSERT_TRUE(b.threads >= 1 && b.threads <= threads);
            ASSERT_TRUE(b.panel_rows == m || b.panel_rows % b.block_rows == 0);
            ASSERT_GE(b.row_blocks * b.block_rows, b.panel_rows);
            ASSERT_GE(b.column_blocks * b.block_columns, n);
            ASSERT_LE(b.block_columns, n);
            ASSERT_GE(b.weights_offset, static_cast<std::size_t>(b.block_rows * 2 * b.block_columns) * 4);
            ASSERT_GE(b.matmul_offset - b.weights_offset,
                      static_cast<std::size_t>(2 * b.block_columns * k) * needs.weight_bytes);
            ASSERT_GE(b.panel_bytes, static_cast<std::size_t>(b.panel_rows * k) * 4);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tileglu::test
