// SPDX-License-Identifier: Apache-2.0
// One handle, many threads: every call gets the plan of its own problem, every thread its own error text.
#include <gtest/gtest.h>
#include <tileglu/tileglu.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 8;
constexpr int kCalls = 20000;
constexpr std::uint16_t kPoison = 0x7E7E;

tileglu_problem zero_fill_problem(std::int64_t m, std::int64_t n) {
  tileglu_problem p = TILEGLU_PROBLEM_INIT;
  p.dtype = TILEGLU_BF16;
  p.activation = TILEGLU_SILU;
  p.layout = TILEGLU_SEPARATE;
  p.memory = TILEGLU_MEMORY_HOST;
  p.m = m, p.n = n, p.k = 0;
  return p;
}

// Exactly the first m * n elements are zero.
bool right(const std::vector<std::uint16_t>& y, std::int64_t written) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (y[i] != (static_cast<std::int64_t>(i) < written ? 0 : kPoison)) return false;
  }
  return true;
}

void hammer(tileglu_handle* handle, int thread, std::atomic<int>& wrong) {
  std::mt19937 random(static_cast<unsigned>(thread));
  std::vector<std::uint16_t> y(300);
  for (int call = 0; call < kCalls; ++call) {
    // A few problems that all threads meet at once, so that they also race to plan them.
    const std::int64_t m = 1 + random() % 16, n = 1 + random() % 16;
    tileglu_problem problem = zero_fill_problem(m, n);
    tileglu_args args = TILEGLU_ARGS_INIT;
    y.assign(y.size(), kPoison);
    args.y = y.data();
    if (tileglu_run(handle, &problem, nullptr, &args) != TILEGLU_OK || !right(y, m * n)) ++wrong;
    if (call % 16 != 0) continue;
    problem.m = -1000 * (thread + 1) - call;
    const bool refused = tileglu_run(handle, &problem, nullptr, &args) == TILEGLU_INVALID_ARGUMENT;
    const std::string text = tileglu_last_error();
    if (!refused || text.find("m=" + std::to_string(problem.m) + " ") != 0) ++wrong;
  }
}

TEST(Threads, ShareAHandle) {
  tileglu_handle* handle = nullptr;
  ASSERT_EQ(tileglu_create(&handle), TILEGLU_OK);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(hammer, handle, t, std::ref(wrong));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  tileglu_destroy(handle);
}

TEST(Threads, ShareAPlan) {
  const tileglu_problem problem = zero_fill_problem(5, 7);
  tileglu_plan* plan = nullptr;
  ASSERT_EQ(tileglu_plan_create(&problem, nullptr, &plan), TILEGLU_OK);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::vector<std::uint16_t> y(64);
      for (int call = 0; call < kCalls; ++call) {
        y.assign(y.size(), kPoison);
        tileglu_args args = TILEGLU_ARGS_INIT;
        args.y = y.data();
        if (tileglu_plan_run(plan, &args) != TILEGLU_OK || !right(y, 35)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  tileglu_plan_destroy(plan);
}

}  // namespace
