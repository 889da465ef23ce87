// SPDX-License-Identifier: Apache-2.0
// The tables of cases that the CPU backend is tested with (tests/op), in CUDA memory and with the planner's choice:
// every one has to be computed, by whatever kernel.
#include "launch.hpp"
#include "op/op_cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
TEST(OpTables, OperandsRoundingsAndSwiglu) {
  expect_computed(test::operand_cases());
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

// The kernels that a plan can pick for one token and for many.
std::vector<double> first_row(test::OpCase op, std::int64_t m) {
  const std::vector<double> row = op.a;
  op.m = m;
  op.a.clear();
  for (std::int64_t i = 0; i < m; ++i) op.a.insert(op.a.end(), row.begin(), row.end());
  const test::Outcome outcome = test::run_case(op, {}, Memory::kCuda);
  EXPECT_EQ(outcome.status, TILEGLU_OK) << outcome.error;
  return test::values(op, outcome);
}

// Results past 65504 become the infinity of one right rounding; a gate past 65504 is no overflow.
TEST(OpTables, C11_Fp16Overflow) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  test::OpCase op{.dtype = Dtype::kFp16, .n = 8, .k = 8};
  op.pad = {};
  op.a.assign(8, 1);
  op.gate.assign(64, 0), op.up.assign(64, 0);
  const double gates[8][2] = {{255.875, 0}, {255.875, 0},   {2047, 0},   {65504, 15},
                              {65504, 32},  {50000, 50000}, {65504, 15}, {1024, 0}};
  const double ups[8] = {261.75, -261.75, 32, 1, 1, 0x1p-10, -1, -64};
  const double expected[8] = {kInf, -kInf, 65504, 65504, kInf, 97.625, -65504, -kInf};
  for (std::size_t j = 0; j < 8; ++j) {
    op.gate[8 * j] = gates[j][0], op.gate[8 * j + 1] = gates[j][1];
    op.up[8 * j] = ups[j];
  }
  for (const std::int64_t m : {1, 16, 128}) {
    const std::vector<double> y = first_row(op, m);
    for (std::size_t j = 0; j < 8; ++j) EXPECT_EQ(y[j], expected[j]) << "m=" << m << " column " << j;
  }
}

// gate 10, up 10 under gpt-oss's numbers: 56.0, not silu's 99.995.
TEST(OpTables, C18_GptOssClampsAndOffset) {
  test::OpCase op{.activation = Activation::kSwiglu, .n = 8, .k = 8, .swiglu = test::kGptOss};
  op.pad = {};
  op.a = {1, 0, 0, 0, 0, 0, 0, 0};
  op.gate.assign(64, 0), op.up.assign(64, 0);
  op.gate[0] = 10, op.up[0] = 10, op.gate[8] = -2, op.up[8] = -9;
  for (const std::int64_t m : {1, 16, 128}) {
    const std::vector<double> y = first_row(op, m);
    EXPECT_EQ(y[0], 56) << m;
    EXPECT_NEAR(y[1], -2 / (1 + std::exp(2 * 1.702)) * -6, 0x1p-9) << m;
  }
}

}  // namespace
}  // namespace tileglu::gpu
