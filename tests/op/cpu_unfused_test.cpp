// SPDX-License-Identifier: Apache-2.0
// The cpu backend's baseline: it must make the error of three roundings, neither more (it would be wrong) nor less (it
// would not be the path that it stands for).
#include "op/op_cases.hpp"

namespace tileglu::test {
namespace {

TEST(CpuUnfused, MakesTheErrorOfThreeRoundings) {
  for (const OpCase& shape : combination_cases()) {
    OpCase op = shape;
    if (op.activation == Activation::kSwiglu) continue;  // refused
    op.m = 65;
    op.n = 136;
    const Outcome outcome = run_case(op, {.backend = BackendId::kCpu, .kernel = "two_gemms_act_mul"}, Memory::kHost);
    ASSERT_EQ(outcome.status, TILEGLU_OK) << describe(op) << ": " << outcome.error;
    EXPECT_TRUE(outcome.guards_intact) << describe(op);
    const reference::ErrorReport mine =
        reference::compare(op.result_dtype(), op.m, op.n, outcome.y.data(), op.n, outcome.baselines.exact);
    EXPECT_EQ(mine.not_finite + mine.unwritten, 0) << describe(op);
    const double expected = outcome.baselines.unfused.relative_frobenius;
    if (op.result_dtype() == Dtype::kFp32) {
      EXPECT_LE(mine.relative_frobenius, 1e-5) << describe(op);
    } else {
      EXPECT_NEAR(mine.relative_frobenius, expected, 0.05 * expected) << describe(op);
    }
  }
}

}  // namespace
}  // namespace tileglu::test
