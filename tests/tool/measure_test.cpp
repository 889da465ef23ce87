// SPDX-License-Identifier: Apache-2.0
// The order in which contenders are timed.
#include "tileglu/measure.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tileglu::tool {
namespace {

TEST(Measure, NobodyAlwaysFollowsTheSameContender) {
  constexpr int kContestants = 4, kSamples = 30;
  std::vector<int> calls;
  std::vector<Contestant> contestants;
  for (int i = 0; i < kContestants; ++i) {
    contestants.push_back([&calls, i](const runtime::Stream&, int) {
      calls.push_back(i);
      return Status();
    });
  }
  const Result<std::vector<Measurement>> measured = measure(contestants, {.samples = kSamples});
  ASSERT_TRUE(measured.ok()) << measured.status().text();
  for (const Measurement& measurement : measured.value()) EXPECT_EQ(measurement.samples_us.size(), kSamples);

  // The samples come last, a call each; every round has each contender once.
  ASSERT_GE(calls.size(), kContestants * kSamples);
  calls.erase(calls.begin(), calls.end() - kContestants * kSamples);
  std::vector<std::set<int>> before(kContestants);
  for (std::size_t at = 0; at < calls.size(); at += kContestants) {
    EXPECT_EQ(std::set(&calls[at], &calls[at] + kContestants).size(), kContestants);
    for (std::size_t i = at + 1; i < at + kContestants; ++i)
      before[static_cast<std::size_t>(calls[i])].insert(calls[i - 1]);
  }
  for (const std::set<int>& others : before) EXPECT_EQ(others.size(), kContestants - 1);
}

}  // namespace
}  // namespace tileglu::tool
