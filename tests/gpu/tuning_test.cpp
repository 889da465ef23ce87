// SPDX-License-Identifier: Apache-2.0
// tune from the measurement to the planner, on one small shape.
#include "inputs.hpp"
#include "io/files.hpp"
#include "io/tuning_cache.hpp"
#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"
#include "tileglu/tune_bench.hpp"

#include <gtest/gtest.h>

namespace tileglu::gpu {
namespace {

const Problem kSmall{.layout = Layout::kGateUp,
                     .memory = Memory::kCuda,
                     .m = 192,
                     .n = 512,
                     .k = 256,
                     .lda = 256,
                     .ld_gate = 256,
                     .ldy = 512};

std::string chosen(const DeviceSpec& device) {
  return config_name(kSm90Configs[static_cast<std::size_t>(require(choose(kSmall, device)).row)]);
}

DeviceSpec with_table(DeviceSpec device, TuningTable user) {
  device.tuning = std::make_shared<const Tuning>(Tuning{.user = std::move(user), .shipped = {}});
  return device;
}

TEST(Tuning, ThePlannerTakesTheWinner) {
  const DeviceSpec device = require(runtime::device_spec(0));
  std::vector<tool::TuneProblem> problems(1);
  tool::TuneProblem& problem = problems.front();
  problem.shape = {.m = kSmall.m, .n = kSmall.n, .k = kSmall.k};
  problem.problem = kSmall;
  problem.key = tuning_key(kSmall, device);
  for (const Candidate& candidate : candidates(kSmall, device)) {
    if (!candidate.legal.ok()) continue;
    const KernelConfig& config = kSm90Configs[static_cast<std::size_t>(candidate.row)];
    problem.candidates.push_back({.kernel = config_name(config), .predicted_us = candidate.predicted_us});
  }
  if (problem.candidates.empty()) GTEST_SKIP() << require(runtime::device_spec(0)).name << " is not a Hopper GPU";

  const io::test::TemporaryFolder folder;
  const auto file = folder / "tuning.json";
  tool::KernelBench bench({});
  const auto end = require(tool::tune_all(
      problems, bench,
      {.stop = [] { return false; }, .keep = [&](const TuningTable& rows) { return io::add_tuning(file, rows); }}));
  EXPECT_EQ(end, tool::TuneEnd::kDone);
  ASSERT_EQ(problem.status, "tuned") << problem.reason;
  for (const tool::TuneCandidate& candidate : problem.candidates) {
    EXPECT_EQ(candidate.status, "ok") << candidate.kernel << ": " << candidate.reason;
  }
  EXPECT_EQ(chosen(with_table(device, require(io::read_tuning(file)))), problem.kernel);

  // The table decides, whatever it names.
  for (const tool::TuneCandidate& candidate : problem.candidates) {
    const TunedKernel tuned{.kernel = candidate.kernel, .m = kSmall.m, .median_us = 1};
    EXPECT_EQ(chosen(with_table(device, {{problem.key, tuned}})), candidate.kernel);
  }
}

TEST(Tuning, AWrongKernelIsCaught) {
  const DeviceSpec device = require(runtime::device_spec(0));
  const std::vector<Candidate> list = candidates(kSmall, device);
  if (!list.front().legal.ok()) GTEST_SKIP() << list.front().legal.text();
  const std::string kernel = config_name(kSm90Configs[static_cast<std::size_t>(list.front().row)]);
  tool::KernelBench right({}), spoiled({.wrong_kernel = kernel});
  require(right.begin(kSmall));
  require(right.verify(kernel));
  require(spoiled.begin(kSmall));
  EXPECT_FALSE(spoiled.verify(kernel).ok());
}

}  // namespace
}  // namespace tileglu::gpu
