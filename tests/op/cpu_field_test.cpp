// SPDX-License-Identifier: Apache-2.0
// Cases of the field-failure collection on the cpu backend that need more than a row of a table, named after the case.
#include "core/format.hpp"
#include "core/layout.hpp"
#include "op/op_cases.hpp"
#include "op/op_data.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace tileglu::test {
namespace {

const std::string kBothKernels[] = {"onednn_blocked", "dot_blocked"};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Outcome run_on_cpu(const OpCase& op, const std::string& kernel = "") {
  return run_case(op, {.backend = BackendId::kCpu, .kernel = kernel}, Memory::kHost);
}

// No tokens: a success that does nothing, and the next call is right.
TEST(CpuField, C01_NoTokens) {
  const Outcome nothing = run_on_cpu({.m = 0, .n = 96, .k = 64});
  EXPECT_EQ(nothing.status, TILEGLU_OK) << nothing.error;
  EXPECT_TRUE(nothing.guards_intact);
  const OpCase seven{.m = 7, .n = 96, .k = 64};
  EXPECT_TRUE(accepted(seven, run_on_cpu(seven)));
}

// An empty sum is 0 and act(0) * 0 = 0; no columns are no work.
TEST(CpuField, C03_NoDepthAndNoColumns) {
  for (const Dtype dtype : kDtypes) {
    const OpCase op{.dtype = dtype, .m = 16, .n = 256, .k = 0};
    const Outcome outcome = run_on_cpu(op);
    EXPECT_EQ(outcome.status, TILEGLU_OK) << outcome.error;
    EXPECT_TRUE(outcome.guards_intact);
    for (const double y : values(op, outcome)) ASSERT_EQ(y, 0);
  }
  const Outcome none = run_on_cpu({.m = 16, .n = 0, .k = 64});
  EXPECT_EQ(none.status, TILEGLU_OK) << none.error;
  EXPECT_TRUE(none.guards_intact);
}

// Gate and up take every pair of these values: column j has them as the one weight that row 0 of A, (1, 0, 0, ...),
// meets. Row 1 has a NaN, row 2 is ordinary.
struct SpecialValues {
  OpCase op;
  std::vector<double> gates, ups;  // of column j
};

SpecialValues special_values(Dtype dtype, Activation activation) {
  SpecialValues special;
  for (const double gate : {-kInf, kInf, kNan, -1e4, -3e38, -100.0, -1.0, -0.0, 0.0, 3.0, 1e4}) {
    for (const double up : {0.0, 1.0, -2.0, -kInf, kNan}) {
      if (dtype == Dtype::kFp16 && gate == -3e38) continue;
      special.gates.push_back(gate);
      special.ups.push_back(up);
    }
  }
  OpCase& op = special.op;
  op = {.dtype = dtype, .activation = activation, .m = 3, .n = std::ssize(special.gates), .k = 16};
  op.swiglu = numbers_of(activation);
  op.a = std::vector<double>(48, 0.0);
  op.a[0] = 1;
  op.a[17] = kNan;
  op.a[32] = 0.5;
  op.gate = op.up = std::vector<double>(special.gates.size() * 16, 0.0);
  for (std::size_t j = 0; j < special.gates.size(); ++j) {
    op.gate[j * 16] = special.gates[j];
    op.up[j * 16] = special.ups[j];
  }
  return special;
}

// What is not a number, or infinite, is so in the reference and the other way round; the rest agrees up to rounding and
// fp32's smallest numbers.
void expect_same_policy(double y, double exact, const std::string& where, double smallest = 1e-36) {
  EXPECT_EQ(std::isnan(y), std::isnan(exact)) << where;
  if (std::isnan(exact)) return;
  if (std::isinf(y) || std::isinf(exact)) {
    EXPECT_EQ(y, exact) << where;
  } else {
    EXPECT_NEAR(y, exact, std::abs(exact) * 0x1p-7 + smallest) << where;
  }
}

TEST(CpuField, C09_InfinitiesAndNan) {
  for (const Dtype dtype : kDtypes) {
    for (const Activation activation : kActivations) {
      const SpecialValues special = special_values(dtype, activation);
      for (const std::string& kernel : kBothKernels) {
        const Outcome outcome = run_on_cpu(special.op, kernel);
        ASSERT_EQ(outcome.status, TILEGLU_OK) << outcome.error;
        const std::vector<double> y = values(special.op, outcome);
        const double smallest = dtype == Dtype::kFp16 ? 0x1p-24 : 1e-36;
        for (std::size_t j = 0; j < special.gates.size(); ++j) {
          const std::string where = formatted("{} {} {} gate={} up={}", kernel, name_of(dtype), name_of(activation),
                                              special.gates[j], special.ups[j]);
          const std::size_t n = special.gates.size();
          if (std::abs(outcome.baselines.exact[j]) < 6e4)
            expect_same_policy(y[j], outcome.baselines.exact[j], where, smallest);
          EXPECT_TRUE(std::isnan(y[n + j])) << where << " (row with NaN)";
          expect_same_policy(y[2 * n + j], outcome.baselines.exact[2 * n + j], where + " (ordinary row)", smallest);
        }
      }
    }
  }
}

// The policy itself, on the fp64 functors that the reference uses.
TEST(CpuField, C09_PolicyOfTheReference) {
  struct Row {
    Activation activation;
    double minus_infinity, plus_infinity, very_negative;
  };
  const Row rows[] = {{Activation::kSilu, kNan, kInf, 0},    {Activation::kGeluTanh, kNan, kInf, 0},
                      {Activation::kGeluErf, kNan, kInf, 0}, {Activation::kRelu, 0, kInf, 0},
                      {Activation::kSigmoid, 0, 1, 0},       {Activation::kIdentity, -kInf, kInf, -3e38},
                      {Activation::kSwiglu, kNan, kInf, 0}};
  for (const Row& row : rows) {
    const std::vector<double> y =
        reference::exact({.activation = row.activation}, {.gate = {-kInf, kInf, -3e38, kNan}, .up = {1, 1, 1, 1}});
    const std::string name = name_of(row.activation);
    expect_same_policy(y[0], row.minus_infinity, name + "(-inf)");
    expect_same_policy(y[1], row.plus_infinity, name + "(+inf)");
    expect_same_policy(y[2], row.very_negative, name + "(-3e38)");
    EXPECT_TRUE(std::isnan(y[3])) << name;
  }
}

// Which reference is met: all in fp32 with one rounding. Hardly an element is off the correctly rounded exact result,
// and the error is about half of that of a path that rounds gate, up and the activated gate as well.
TEST(CpuField, C10_OneRounding) {
  const OpCase op{.m = 128, .n = 608, .k = 1024, .seed = 10};
  const Outcome outcome = run_on_cpu(op);
  ASSERT_TRUE(accepted(op, outcome));
  const std::vector<double> y = values(op, outcome);
  const std::vector<double> once = reference::rounded(op.dtype, outcome.baselines.exact);
  std::int64_t different = 0;
  for (std::size_t i = 0; i < y.size(); ++i) different += y[i] != once[i] ? 1 : 0;
  EXPECT_LT(static_cast<double>(different), 0.005 * static_cast<double>(y.size()));
  const reference::ErrorReport mine = reference::compare(op.dtype, op.m, op.n, y, outcome.baselines.exact);
  EXPECT_LT(mine.relative_frobenius, 0.55 * outcome.baselines.unfused.relative_frobenius);
}

// fp16 results past 65504 become the infinity that a single correct rounding gives; a gate past 65504 is no overflow.
TEST(CpuField, C11_Fp16Overflow) {
  struct Column {
    std::vector<double> gate, up;
    double y;
  };
  const Column columns[] = {{{255.875}, {261.75}, kInf}, {{255.875}, {-261.75}, -kInf}, {{2047}, {32}, 65504},
                            {{65504, 15}, {1}, 65504},   {{65504, 16}, {1}, kInf},      {{50000, 50000}, {0.001}, 100},
                            {{65504, 15}, {-1}, -65504}, {{1024}, {-64}, -kInf}};
  OpCase op{.dtype = Dtype::kFp16, .m = 1, .n = 8, .k = 8};
  op.a = std::vector<double>(8, 1.0);
  op.gate = op.up = std::vector<double>(64, 0.0);
  for (std::size_t j = 0; j < 8; ++j) {
    std::copy(columns[j].gate.begin(), columns[j].gate.end(), op.gate.begin() + static_cast<std::ptrdiff_t>(8 * j));
    std::copy(columns[j].up.begin(), columns[j].up.end(), op.up.begin() + static_cast<std::ptrdiff_t>(8 * j));
  }
  for (const std::string& kernel : kBothKernels) {
    const std::vector<double> y = values(op, run_on_cpu(op, kernel));
    for (std::size_t j = 0; j < 8; ++j) EXPECT_EQ(y[j], columns[j].y) << kernel << " column " << j;
  }
  op.dtype_y = Dtype::kBf16;
  EXPECT_EQ(values(op, run_on_cpu(op))[0], 67072);
}

// 1 x 1 probes whose results differ if gate and up are exchanged. n = 8 for the layout in groups of 8.
TEST(CpuField, C26_GateAndUpAreNotExchanged) {
  struct Probe {
    double gate, up, y;
  };
  for (const Probe probe : {Probe{1, 2, 1.4621171572600098}, Probe{-3, 5, -0.7113880976101404}}) {
    for (const Layout layout : kLayouts) {
      for (const Dtype dtype : kDtypes) {
        const std::int64_t n = layout == Layout::kInterleaved8 ? 8 : 1;
        OpCase op{.dtype = dtype, .layout = layout, .m = 1, .n = n, .k = 1};
        op.a = {1};
        op.gate = std::vector<double>(static_cast<std::size_t>(n), probe.gate);
        op.up = std::vector<double>(static_cast<std::size_t>(n), probe.up);
        const double nearest = reference::rounded(dtype, {probe.y}).front();
        const double slack = dtype == Dtype::kFp32 ? std::abs(nearest) * 0x1p-22 : 0;  // exp, division, product
        for (const std::string& kernel : kBothKernels) {
          for (const double y : values(op, run_on_cpu(op, kernel))) {
            EXPECT_NEAR(y, nearest, slack) << kernel << " " << name_of(layout) << " " << name_of(dtype);
          }
        }
      }
    }
  }
}

// The same weights in each layout give the same Y. Bit for bit where the same code does the sums; oneDNN may be called
// for gate and up together or one after the other.
TEST(CpuField, C27_SameResultInEveryLayout) {
  for (const std::string& kernel : kBothKernels) {
    for (const Dtype dtype : kDtypes) {
      std::optional<Outcome> first;
      for (const Layout layout : kLayouts) {
        const OpCase op{.dtype = dtype, .layout = layout, .m = 9, .n = 88, .k = 70};
        const Outcome outcome = run_on_cpu(op, kernel);
        if (!first) first = outcome;
        EXPECT_TRUE(judge(op, first->baselines, outcome.y)) << kernel;
        EXPECT_TRUE(kernel != "dot_blocked" || outcome.y == first->y) << name_of(dtype) << " " << name_of(layout);
      }
    }
  }
}

}  // namespace
}  // namespace tileglu::test
