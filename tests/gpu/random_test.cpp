// SPDX-License-Identifier: Apache-2.0
// Random problems in CUDA memory, on every kernel that can run them. --gtest_random_seed=1 (2, …) takes the next 200.
#include "op/random_cases.hpp"

namespace tileglu::gpu {
namespace {

TEST(RandomCases, OnEveryKernel) {
  constexpr unsigned kSeeds = 200;
  int accepted = 0;
  const unsigned first = 1 + kSeeds * static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed());
  for (unsigned seed = first; seed < first + kSeeds; ++seed) {
    const test::RandomRun run = test::run_random_case(seed, Memory::kCuda);
    for (const std::string& failure : run.failures) ADD_FAILURE() << failure;
    accepted += run.accepted;
  }
  EXPECT_GT(accepted, 2 * static_cast<int>(kSeeds));
}

}  // namespace
}  // namespace tileglu::gpu
