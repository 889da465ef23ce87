// SPDX-License-Identifier: Apache-2.0
// tileglu.hpp as C++17.
#include <gtest/gtest.h>
#include <tileglu/tileglu.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

// The example at the head of tileglu.hpp, word for word.
void example(std::int64_t tokens, std::int64_t intermediate, std::int64_t hidden, const void* a, const void* gate,
             const void* up, void* y, void* stream) {
  tileglu::Problem problem;  // a tileglu_problem with struct_size set
  problem.dtype = TILEGLU_BF16;
  problem.activation = TILEGLU_SILU;
  problem.layout = TILEGLU_SEPARATE;
  problem.memory = TILEGLU_MEMORY_CUDA;
  problem.m = tokens, problem.n = intermediate, problem.k = hidden;
  const tileglu::Plan plan(problem);  // throws tileglu::Error
  tileglu::Args args;
  args.a = a, args.gate = gate, args.up = up, args.y = y, args.stream = stream;
  plan.run(args);
}

tileglu::Problem zero_fill_problem() {
  tileglu::Problem problem;
  problem.dtype = TILEGLU_FP32;
  problem.activation = TILEGLU_GELU_TANH;
  problem.layout = TILEGLU_GATE_UP;
  problem.memory = TILEGLU_MEMORY_HOST;
  problem.m = 3, problem.n = 4, problem.k = 0;
  return problem;
}

TEST(Wrapper, TheDocumentedExampleRuns) {
  EXPECT_NO_THROW(example(0, 64, 128, nullptr, nullptr, nullptr, nullptr, nullptr));
}

TEST(Wrapper, ErrorsCarryStatusAndText) {
  try {
    example(-1, 64, 128, nullptr, nullptr, nullptr, nullptr, nullptr);
    FAIL() << "accepted";
  } catch (const tileglu::Error& error) {
    EXPECT_EQ(error.status(), TILEGLU_INVALID_ARGUMENT);
    EXPECT_STREQ(error.what(), "INVALID_ARGUMENT: m=-1 is outside 0..2^56");
  }
}

TEST(Wrapper, PlanOwnsAndMoves) {
  static_assert(!std::is_copy_constructible_v<tileglu::Plan> && std::is_nothrow_move_constructible_v<tileglu::Plan>);
  static_assert(!std::is_copy_constructible_v<tileglu::Handle>);
  tileglu::Plan plan(zero_fill_problem());
  const tileglu_plan* raw = plan.get();
  const tileglu::Plan moved = std::move(plan);
  EXPECT_EQ(moved.get(), raw);
  EXPECT_EQ(plan.get(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_STREQ(moved.backend(), "none");
  EXPECT_STREQ(moved.kernel(), "zero_fill");
  EXPECT_EQ(moved.workspace(), 0U);
  EXPECT_STREQ(moved.describe(), "backend none, kernel zero_fill, workspace 0 bytes");
}

TEST(Wrapper, PlanAndHandleRun) {
  alignas(16) float y[12];
  tileglu::Args args;
  args.y = y;
  for (float& value : y) value = 1;
  tileglu::Plan(zero_fill_problem()).run(args);
  for (const float value : y) EXPECT_EQ(value, 0);
  for (float& value : y) value = 1;
  const tileglu::Handle handle;
  EXPECT_EQ(handle.workspace(zero_fill_problem()), 0U);
  handle.run(zero_fill_problem(), args);
  for (const float value : y) EXPECT_EQ(value, 0);
  args.y = nullptr;
  EXPECT_THROW(handle.run(zero_fill_problem(), args), tileglu::Error);
}

TEST(Wrapper, OptionsAndCanImplement) {
  tileglu::Problem problem = zero_fill_problem();
  EXPECT_TRUE(tileglu::can_implement(problem));
  problem.k = 16;
  tileglu::Options options;
  options.backend = TILEGLU_BACKEND_SM90;
  std::string reason;
  EXPECT_FALSE(tileglu::can_implement(problem, options, &reason));
  EXPECT_EQ(reason, "backend=sm90 cannot use operands in memory=host");
  EXPECT_FALSE(tileglu::can_implement(problem, options));
  EXPECT_THROW(tileglu::Plan(problem, options), tileglu::Error);
}

TEST(Wrapper, Relayout) {
  tileglu::Problem problem;
  problem.dtype = TILEGLU_FP32;
  problem.memory = TILEGLU_MEMORY_HOST;
  problem.n = 2, problem.k = 1;
  float gate[2] = {1, 2}, up[2] = {10, 20}, merged[4] = {};
  tileglu::Weights source, destination;
  source.layout = TILEGLU_SEPARATE, source.gate = gate, source.up = up;
  destination.layout = TILEGLU_INTERLEAVED_1, destination.gate = merged;
  tileglu::relayout(problem, source, destination);
  EXPECT_EQ((std::vector<float>(merged, merged + 4)), (std::vector<float>{1, 10, 2, 20}));
  destination.layout = TILEGLU_UP_GATE;
  tileglu::relayout(problem, source, destination);
  EXPECT_EQ((std::vector<float>(merged, merged + 4)), (std::vector<float>{10, 20, 1, 2}));
  destination.gate = gate;
  EXPECT_THROW(tileglu::relayout(problem, source, destination), tileglu::Error);
}

}  // namespace
