// SPDX-License-Identifier: Apache-2.0
// Random problems in CUDA memory, on every kernel that can run them. tileglu_random_cases --memory cuda for more.
#include "op/random_cases.hpp"

namespace tileglu::gpu {
namespace {

TEST(RandomCases, OnEveryKernel) {
  constexpr unsigned kSeeds = 200;
  int accepted = 0;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const test::RandomRun run = test::run_random_case(seed, Memory::kCuda);
    for (const std::string& failure : run.failures) ADD_FAILURE() << failure;
    accepted += run.accepted;
  }
  EXPECT_GT(accepted, 2 * static_cast<int>(kSeeds));
}

}  // namespace
}  // namespace tileglu::gpu
