// SPDX-License-Identifier: Apache-2.0
// The tables of cases that the CPU backend is tested with (tests/op), in CUDA memory and with the planner's choice:
// every one has to be computed, by whatever kernel.
#include "launch.hpp"
#include "op/op_cases.hpp"

#include <algorithm>

namespace tileglu::gpu {
namespace {

void expect_computed(const test::OpCase& op) {
  test::Outcome outcome = test::run_case(op, {}, Memory::kCuda);
  if (outcome.status == TILEGLU_OK) allow_unfused_path(op, outcome);
  EXPECT_TRUE(test::accepted(op, outcome)) << outcome.backend << ' ' << outcome.kernel;
}

void expect_computed(const std::vector<test::OpCase>& table) {
  for (const test::OpCase& op : table) expect_computed(op);
}

TEST(OpTables, Ragged) {
  for (const std::int64_t m : test::kRaggedM) expect_computed(test::ragged_cases(m));
}
TEST(OpTables, Combinations) {
  expect_computed(test::combination_cases());
}
TEST(OpTables, Alignments) {
  expect_computed(test::alignment_cases());
}
TEST(OpTables, BlockEdges) {
  expect_computed(test::block_edge_cases());
}
TEST(OpTables, FieldCases) {
  for (const test::NamedCase& named : test::field_cases()) expect_computed(named.op);
}

}  // namespace
}  // namespace tileglu::gpu
