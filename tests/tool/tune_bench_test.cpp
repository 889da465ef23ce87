// SPDX-License-Identifier: Apache-2.0
// The bench that tune uses on a GPU, here over the kernels of the cpu backend: the same verification and the same
// timing.
#include "tileglu/tune_bench.hpp"

#include <gtest/gtest.h>

namespace tileglu::tool {
namespace {

class CpuBench : public testing::Test {
 protected:
  void SetUp() override {
    const Backend& cpu = *find_backend(BackendId::kCpu);
    if (!cpu.available().ok()) GTEST_SKIP() << cpu.available().text();
    for (const std::string& kernel : cpu.kernels()) {
      if (!rounds_early(kernel)) kernels.push_back(kernel);
    }
    ASSERT_FALSE(kernels.empty());
  }
  static Problem problem(Layout layout) {
    return {.layout = layout, .m = 33, .n = 96, .k = 64, .lda = 64, .ld_gate = 64, .ld_up = 64, .ldy = 96};
  }
  std::vector<std::string> kernels;
};

TEST_F(CpuBench, PassesRightKernelsAndTimesThem) {
  for (const Layout layout : {Layout::kSeparate, Layout::kGateUp, Layout::kInterleaved8}) {
    KernelBench bench({.backend = BackendId::kCpu});
    ASSERT_TRUE(bench.begin(problem(layout)).ok());
    for (const std::string& kernel : kernels) {
      const Status status = bench.verify(kernel);
      EXPECT_TRUE(status.ok()) << kernel << ": " << status.text();
    }
    const auto measured = bench.race(kernels, false);
    ASSERT_TRUE(measured.ok()) << measured.status().text();
    ASSERT_EQ(measured.value().size(), kernels.size());
    for (const Measurement& measurement : measured.value()) EXPECT_GT(summarise(measurement.samples_us).median, 0);
  }
}

TEST_F(CpuBench, CatchesAWrongResult) {
  KernelBench bench({.backend = BackendId::kCpu, .wrong_kernel = kernels.front()});
  ASSERT_TRUE(bench.begin(problem(Layout::kSeparate)).ok());
  EXPECT_FALSE(bench.verify(kernels.front()).ok());
  EXPECT_TRUE(kernels.size() < 2 || bench.verify(kernels.back()).ok());
}

TEST_F(CpuBench, RefusesAnUnknownKernel) {
  KernelBench bench({.backend = BackendId::kCpu});
  ASSERT_TRUE(bench.begin(problem(Layout::kSeparate)).ok());
  EXPECT_EQ(bench.verify("warp_drive").code(), Code::kInvalidArgument);
  EXPECT_EQ(bench.race({"warp_drive"}, false).status().code(), Code::kInvalidArgument);
}

TEST_F(CpuBench, WholeLoop) {
  std::vector<TuneProblem> problems(1);
  problems[0].problem = problem(Layout::kSeparate);
  problems[0].shape = {.m = 33, .n = 96, .k = 64};
  for (const std::string& kernel : kernels) problems[0].candidates.push_back({.kernel = kernel});
  KernelBench bench({.backend = BackendId::kCpu, .wrong_kernel = kernels.size() > 1 ? kernels.front() : ""});
  TuningTable kept;
  const Result<TuneEnd> end = tune_all(problems, bench,
                                       {.stop = [] { return false; },
                                        .keep =
                                            [&](const TuningTable& rows) {
                                              kept = rows;
                                              return Status();
                                            }});
  ASSERT_TRUE(end.ok());
  ASSERT_EQ(kept.size(), 1U) << problems[0].reason;
  EXPECT_EQ(kept.begin()->second.kernel, problems[0].kernel);
  EXPECT_TRUE(kernels.size() == 1 || problems[0].kernel != kernels.front());
}

}  // namespace
}  // namespace tileglu::tool
