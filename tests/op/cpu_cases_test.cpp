// SPDX-License-Identifier: Apache-2.0
// The tables of op_cases.hpp on the cpu backend, with each of its kernels.
#include "op/op_cases.hpp"

namespace tileglu::test {
namespace {

// The empty name is the planner's choice.
void expect_accepted(const OpCase& op,
                     const std::vector<std::string>& kernels = {"", "onednn_blocked", "dot_blocked"}) {
  std::optional<Baselines> known;
  for (const std::string& kernel : kernels) {
    const PlanOptions options{.backend = BackendId::kCpu, .kernel = kernel};
    const Outcome outcome = run_case(op, options, Memory::kHost, known ? &*known : nullptr);
    EXPECT_TRUE(accepted(op, outcome)) << "kernel=" << kernel;
    if (outcome.status == TILEGLU_OK) {
      known = outcome.baselines;
      EXPECT_EQ(outcome.backend, "cpu");
      EXPECT_TRUE(kernel.empty() || outcome.kernel == kernel) << outcome.kernel;
    }
  }
}

class CpuRagged : public ::testing::TestWithParam<std::int64_t> {};
TEST_P(CpuRagged, EveryNAndK) {
  for (const OpCase& op : ragged_cases(GetParam())) expect_accepted(op);
}
INSTANTIATE_TEST_SUITE_P(M, CpuRagged, ::testing::ValuesIn(kRaggedM), ::testing::PrintToStringParamName());

TEST(CpuCases, EveryDtypeActivationAndLayout) {
  for (const OpCase& op : combination_cases()) expect_accepted(op);
}

TEST(CpuCases, OperandsRoundingsAndSwiglu) {
  for (const OpCase& op : operand_cases()) expect_accepted(op);
}

TEST(CpuCases, BasesAndStridesOffAlignment) {
  for (const OpCase& op : alignment_cases()) expect_accepted(op);
}

TEST(CpuCases, EdgesOfBlocks) {
  for (const OpCase& op : block_edge_cases()) expect_accepted(op);
}

class CpuField : public ::testing::TestWithParam<NamedCase> {};
TEST_P(CpuField, Case) {
  expect_accepted(GetParam().op);
}
INSTANTIATE_TEST_SUITE_P(Table, CpuField, ::testing::ValuesIn(field_cases()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tileglu::test
