// SPDX-License-Identifier: Apache-2.0
// How the cpu backend may be called: again, from several threads at once, inside a parallel region, with another number
// of threads than it was planned with; and what it refuses.
#include "op/op_cases.hpp"
#include "op/op_data.hpp"

#include <omp.h>

#include <atomic>
#include <thread>

namespace tileglu::test {
namespace {

// A plan and its operands on the backend's own interface, for more than one run.
struct Planned {
  Planned(const OpCase& op, const std::string& kernel)
      : data(op, Memory::kHost),
        problem{.dtype = op.dtype,
                .dtype_y = op.result_dtype(),
                .activation = op.activation,
                .layout = op.layout,
                .m = op.m,
                .n = op.n,
                .k = op.k,
                .lda = data.a().ld,
                .ld_gate = data.gate().ld,
                .ld_up = data.up().ld,
                .ldy = data.y().ld},
        plan(std::move(kCpuBackend.plan(problem, {.backend = BackendId::kCpu, .kernel = kernel}).value())) {}

  std::vector<unsigned char> run() { return run_with(data); }
  std::vector<unsigned char> run_with(OpData& mine) const {
    const Operands operands{.a = mine.a().address(),
                            .gate = mine.gate().address(),
                            .up = mine.up().address(),
                            .y = mine.y().address(),
                            .workspace = mine.workspace(plan->workspace_bytes()),
                            .workspace_bytes = plan->workspace_bytes()};
    const Status status = plan->run(operands);
    EXPECT_TRUE(status.ok()) << status.text();
    mine.download();
    EXPECT_TRUE(mine.guards_intact());
    return mine.result();
  }

  OpData data;
  Problem problem;
  std::unique_ptr<Plan> plan;
};

class CpuCalls : public ::testing::TestWithParam<std::tuple<Dtype, std::string>> {
 protected:
  OpCase op_{.dtype = std::get<0>(GetParam()), .m = 37, .n = 700, .k = 130};
  std::string kernel_ = std::get<1>(GetParam());
};

TEST_P(CpuCalls, SameResultRunToRun) {
  Planned planned(op_, kernel_);
  const std::vector<unsigned char> first = planned.run();
  for (int i = 0; i < 20; ++i) ASSERT_EQ(planned.run(), first);
}

TEST_P(CpuCalls, OnePlanFromSeveralThreadsAtOnce) {
  Planned planned(op_, kernel_);
  const std::vector<unsigned char> expected = planned.run();
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      OpData mine(op_, Memory::kHost);
      for (int i = 0; i < 10; ++i) wrong += planned.run_with(mine) == expected ? 0 : 1;
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_P(CpuCalls, AnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (const int at_plan : {1, 2, 5}) {
    omp_set_num_threads(at_plan);
    Planned planned(op_, kernel_);
    std::vector<unsigned char> expected;
    for (const int at_run : {1, 3}) {
      omp_set_num_threads(at_run);
      const std::vector<unsigned char> y = planned.run();
      EXPECT_EQ(omp_get_max_threads(), at_run) << "the caller's setting was changed";
      if (expected.empty()) expected = y;
      EXPECT_EQ(y, expected) << at_plan << " threads at plan, " << at_run << " at run";
    }
  }
  omp_set_num_threads(before);
}

TEST_P(CpuCalls, InsideAParallelRegion) {
  Planned planned(op_, kernel_);
  const std::vector<unsigned char> expected = planned.run();
  std::atomic<int> wrong = 0;
#pragma omp parallel num_threads(2)
  {
    OpData mine(op_, Memory::kHost);
    wrong += planned.run_with(mine) == expected ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, CpuCalls,
                         ::testing::Combine(::testing::ValuesIn(kDtypes),
                                            ::testing::Values("onednn_blocked", "dot_blocked")),
                         [](const auto& instance) {
                           return std::string(name_of(std::get<0>(instance.param))) + "_" + std::get<1>(instance.param);
                         });

TEST(CpuBackend, IsAvailableAndNamesItsKernels) {
  EXPECT_TRUE(kCpuBackend.available().ok()) << kCpuBackend.available().text();
  const auto kernels = kCpuBackend.kernels();
  EXPECT_EQ(std::vector<std::string>(kernels.begin(), kernels.end()),
            (std::vector<std::string>{"onednn_blocked", "dot_blocked", "two_gemms_act_mul"}));
}

TEST(CpuBackend, FewRowsTakeTheDotKernel) {
  for (const std::int64_t m : {1, 16, 17}) {
    const OpCase op{.m = m, .n = 40, .k = 24};
    EXPECT_EQ(run_case(op, {}, Memory::kHost).kernel, m <= 16 ? "dot_blocked" : "onednn_blocked");
  }
}

TEST(CpuBackend, RefusesWhatItDoesNotKnow) {
  const OpCase op{.m = 4, .n = 40, .k = 24};
  const Outcome outcome = run_case(op, {.backend = BackendId::kCpu, .kernel = "interleave"}, Memory::kHost);
  EXPECT_EQ(outcome.status, TILEGLU_INVALID_ARGUMENT);
  EXPECT_NE(outcome.error.find("interleave"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("onednn_blocked"), std::string::npos) << outcome.error;
  EXPECT_TRUE(outcome.untouched);
}

TEST(CpuBackend, RefusesADepthWhoseWorkspaceNobodyCouldHold) {
  const std::int64_t k = std::int64_t{1} << 31;
  const auto plan = kCpuBackend.plan({.m = 1, .n = 1, .k = k, .lda = k, .ld_gate = k, .ld_up = k, .ldy = 1}, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::kNotSupported);
  EXPECT_NE(plan.status().text().find("k=2147483648"), std::string::npos) << plan.status().text();
}

}  // namespace
}  // namespace tileglu::test
