// SPDX-License-Identifier: Apache-2.0
// Biases, addend, saved pre-activations, swiglu and roundings on the cpu backend, beyond the table of operand_cases().
#include "op/op_cases.hpp"
#include "op/op_data.hpp"
#include "op/unfused_steps.hpp"

#include <cmath>

namespace tileglu::test {
namespace {

const std::string kBothKernels[] = {"onednn_blocked", "dot_blocked"};

Outcome run_on_cpu(const OpCase& op, const std::string& kernel = "") {
  return run_case(op, {.backend = BackendId::kCpu, .kernel = kernel}, Memory::kHost);
}

// A bias that is forgotten or on the wrong half must be seen, and so a forgotten addend.
TEST(CpuOperands, EachIsToldFromItsAbsence) {
  const ExtraOperands each[] = {{.bias_gate = true}, {.bias_up = true}, {.addend = true}};
  for (const ExtraOperands& extra : each) {
    const OpCase op{.m = 17, .n = 48, .k = 64, .extra = extra};
    const OpCase without{.m = 17, .n = 48, .k = 64};
    EXPECT_FALSE(judge(op, run_on_cpu(op).baselines, run_on_cpu(without).y)) << describe(op);
    if (extra.addend) continue;
    OpCase other = op;
    std::swap(other.extra.bias_gate, other.extra.bias_up);
    EXPECT_FALSE(judge(op, run_on_cpu(op).baselines, run_on_cpu(other).y)) << describe(op);
  }
}

// K = 0 with operands: y is what biases and addend alone make.
TEST(CpuOperands, C03_NoDepthButOperands) {
  for (const Dtype dtype : kDtypes) {
    for (const std::string& kernel : kBothKernels) {
      const ExtraOperands all{.bias_gate = true, .bias_up = true, .addend = true, .preactivations = true};
      const OpCase op{.dtype = dtype, .m = 19, .n = 40, .k = 0, .extra = all, .layout_pre = Layout::kSeparate};
      EXPECT_TRUE(accepted(op, run_on_cpu(op, kernel))) << kernel;
    }
  }
}

TEST(CpuOperands, C01_NoTokensAskNothingOfOperands) {
  const ExtraOperands all{.bias_gate = true, .bias_up = true, .addend = true, .preactivations = true};
  const Outcome outcome = run_on_cpu({.m = 0, .n = 40, .k = 8, .extra = all});
  EXPECT_EQ(outcome.status, TILEGLU_OK) << outcome.error;
}

// gate 10, up 10 under gpt-oss's numbers: 56.0, not silu's 99.995.
TEST(CpuOperands, C18_GptOssClampsAndOffset) {
  OpCase op{.dtype = Dtype::kFp32, .activation = Activation::kSwiglu, .m = 1, .n = 3, .k = 1, .swiglu = kGptOss};
  op.a = {1};
  op.gate = {10, -2, 1}, op.up = {10, -9, 0.5};
  const std::vector<double> y = values(op, run_on_cpu(op));
  const auto expected = [](double g, double u) { return g / (1 + std::exp(-double{1.702F} * g)) * (u + 1); };
  EXPECT_NEAR(y[0], expected(7, 7), 1e-5);
  EXPECT_NEAR(y[0], 56.0, 0.01);
  EXPECT_NEAR(y[1], expected(-2, -7), 1e-6);
  EXPECT_NEAR(y[2], expected(1, 0.5), 1e-6);
}

// The bits of the unfused path, from the saved sums, at every 16-bit type and activation.
TEST(CpuOperands, C10_UnfusedHasTheBitsOfTheSteps) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16}) {
    for (const Activation activation : kActivations) {
      for (const std::string& kernel : kBothKernels) {
        const OpCase op{.dtype = dtype,
                        .activation = activation,
                        .m = 33,
                        .n = 136,
                        .k = 96,
                        .input_scale = 2,
                        .swiglu = numbers_of(activation),
                        .rounding = Rounding::kUnfused,
                        .extra = {.preactivations = true}};
        const Outcome unfused = run_on_cpu(op, kernel);
        ASSERT_EQ(unfused.status, TILEGLU_OK) << unfused.error;
        EXPECT_TRUE(judge_steps(op, unfused)) << kernel;
        // One rounding is told from it, but where nothing is rounded on the way.
        OpCase once = op;
        once.rounding = Rounding::kOnce;
        EXPECT_FALSE(judge_steps(op, run_on_cpu(once, kernel))) << kernel << ' ' << name_of(activation);
      }
    }
  }
}

// The results, not only the saved values, do not depend on what is saved or where.
TEST(CpuOperands, SavingChangesNoBit) {
  OpCase op{.m = 37, .n = 264, .k = 130, .extra = {.bias_gate = true}};
  const std::vector<unsigned char> plain = run_on_cpu(op).y;
  op.extra.preactivations = true;
  for (const Layout layout : kLayouts) {
    op.layout_pre = layout, op.pad_pre = 3;
    EXPECT_EQ(run_on_cpu(op).y, plain) << name_of(layout);
  }
}

TEST(CpuOperands, TheBaselineRefusesThem) {
  const OpCase cases[] = {{.m = 4, .n = 8, .k = 8, .extra = {.bias_up = true}},
                          {.activation = Activation::kSwiglu, .m = 4, .n = 8, .k = 8}};
  for (const OpCase& op : cases) {
    const Outcome outcome = run_on_cpu(op, "two_gemms_act_mul");
    EXPECT_EQ(outcome.status, TILEGLU_NOT_SUPPORTED);
    EXPECT_NE(outcome.error.find("kernel=two_gemms_act_mul"), std::string::npos) << outcome.error;
    EXPECT_TRUE(outcome.untouched);
  }
}

}  // namespace
}  // namespace tileglu::test
