// SPDX-License-Identifier: Apache-2.0
// The walk over the backends. Which of them can run here differs from machine to machine; the rules do not.
#include "backends/backend.hpp"
#include "core/float16.hpp"
#include "plan/sm90_configs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tileglu {
namespace {

Problem problem(Memory memory) {
  return {.memory = memory, .m = 4, .n = 64, .k = 128, .lda = 128, .ld_gate = 128, .ld_up = 128, .ldy = 64};
}

TEST(Registry, ListsAllBackendsBestFirst) {
  ASSERT_EQ(backends().size(), 3U);
  EXPECT_STREQ(backends()[0]->name, "sm90");
  EXPECT_STREQ(backends()[1]->name, "cublas");
  EXPECT_STREQ(backends()[2]->name, "cpu");
  for (const Backend* backend : backends()) EXPECT_EQ(find_backend(backend->id), backend);
  EXPECT_EQ(find_backend(BackendId::kAuto), nullptr);
}

TEST(Registry, ABackendThatIsMissingSaysWhy) {
  for (const Backend* backend : backends()) {
    const Status status = backend->available();
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), Code::kNotAvailable);
    EXPECT_GT(status.text().size(), 10U) << backend->name;
  }
#if !TILEGLU_HAVE_CUDA
  EXPECT_NE(kSm90Backend.available().text().find("this build has no CUDA"), std::string::npos);
  EXPECT_NE(kCublasBackend.available().text().find("this build has no CUDA"), std::string::npos);
#endif
}

TEST(Registry, KernelNamesOfSm90AreThoseOfTheTable) {
  const auto names = kSm90Backend.kernels();
  ASSERT_EQ(names.size(), kSm90Configs.size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], config_name(kSm90Configs[i]));
}

// No tokens: a success that launches nothing, whatever this machine has (field case C01).
TEST(Registry, EmptyProblemsAreAlwaysPlanned) {
  for (const Memory memory : {Memory::kHost, Memory::kCuda}) {
    for (const bool no_rows : {true, false}) {
      Problem p = problem(memory);
      (no_rows ? p.m : p.n) = 0;
      const Result<PlanWithReasons> result = make_plan(p, {.backend = BackendId::kSm90, .kernel = {}});
      ASSERT_TRUE(result.ok()) << result.status().text();
      EXPECT_EQ(result.value().plan->backend(), "none");
      EXPECT_EQ(result.value().plan->workspace_bytes(), 0U);
      EXPECT_TRUE(result.value().plan->run({}).ok());
    }
  }
}

// Field case C03.
TEST(Registry, EmptySumsFillYWithZerosAndNothingElse) {
  Problem p = problem(Memory::kHost);
  p.k = 0, p.ldy = 70;
  const Result<PlanWithReasons> result = make_plan(p, {});
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ(result.value().plan->backend(), "none");
  EXPECT_EQ(result.value().plan->kernel(), "zero_fill");
  std::vector<std::uint16_t> y(static_cast<std::size_t>(p.m * p.ldy), 0x7E7E);
  ASSERT_TRUE(result.value().plan->run({.y = y.data()}).ok());
  for (std::int64_t i = 0; i < p.m * p.ldy; ++i) {
    ASSERT_EQ(y[static_cast<std::size_t>(i)], i % p.ldy < p.n ? 0 : 0x7E7E) << i;
  }
}

TEST(Registry, MemoryDecidesWhoIsAsked) {
  const Result<PlanWithReasons> on_host = make_plan(problem(Memory::kHost), {});
  if (on_host.ok()) {
    EXPECT_EQ(on_host.value().plan->backend(), "cpu");
    EXPECT_EQ(on_host.value().passed_over, "") << "sm90 and cublas are not asked";
  } else {
    EXPECT_EQ(on_host.status().code(), Code::kNotAvailable);
    EXPECT_TRUE(on_host.status().text().starts_with("cpu: ")) << on_host.status().text();
  }
  const Result<PlanWithReasons> on_gpu = make_plan(problem(Memory::kCuda), {});
  if (on_gpu.ok()) {
    EXPECT_NE(on_gpu.value().plan->backend(), "cpu");
  } else {
    EXPECT_TRUE(on_gpu.status().text().starts_with("sm90: ")) << on_gpu.status().text();
    EXPECT_NE(on_gpu.status().text().find("; cublas: "), std::string::npos) << on_gpu.status().text();
  }
}

TEST(Registry, ANamedBackendIsTakenOrRefused) {
  for (const BackendId id : {BackendId::kSm90, BackendId::kCublas}) {
    const Result<PlanWithReasons> result = make_plan(problem(Memory::kHost), {.backend = id, .kernel = {}});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Code::kNotSupported);
    EXPECT_NE(result.status().text().find("cannot use operands in memory=host"), std::string::npos);
  }
  const Result<PlanWithReasons> result = make_plan(problem(Memory::kCuda), {.backend = BackendId::kCpu, .kernel = {}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().text(), "backend=cpu cannot use operands in memory=cuda");
}

TEST(Registry, AnUnknownKernelIsAnErrorThatListsTheKnownOnes) {
  const Result<PlanWithReasons> any =
      make_plan(problem(Memory::kCuda), {.backend = BackendId::kAuto, .kernel = "fast"});
  ASSERT_FALSE(any.ok());
  EXPECT_EQ(any.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(any.status().text().starts_with("kernel=fast is not known to backend=auto; known: "));
  for (const KernelConfig& config : kSm90Configs) {
    EXPECT_NE(any.status().text().find(config_name(config)), std::string::npos) << any.status().text();
  }
  const PlanOptions wrong_backend{.backend = BackendId::kSm90, .kernel = "interleave_1x1"};
  EXPECT_EQ(make_plan(problem(Memory::kCuda), wrong_backend).status().code(), Code::kInvalidArgument);
}

TEST(Registry, AKernelNameFindsItsBackend) {
  for (const std::string& kernel : {std::string("paired"), std::string("interleave"), config_name(kSm90Configs[0])}) {
    Problem p = problem(Memory::kCuda);
    p.dtype = Dtype::kFp32;
    const Result<PlanWithReasons> result = make_plan(p, {.backend = {}, .kernel = kernel});
    ASSERT_FALSE(result.ok()) << "no sm90 kernel takes fp32, and cublas must not step in";
    EXPECT_TRUE(result.status().text().starts_with("sm90: ")) << result.status().text();
    EXPECT_EQ(result.status().text().find("cublas"), std::string::npos) << result.status().text();
    const Result<PlanWithReasons> on_host = make_plan(problem(Memory::kHost), {.backend = {}, .kernel = kernel});
    ASSERT_FALSE(on_host.ok());
    EXPECT_EQ(on_host.status().code(), Code::kNotSupported);
    EXPECT_NE(on_host.status().text().find("memory=host"), std::string::npos) << on_host.status().text();
  }
}

}  // namespace
}  // namespace tileglu
