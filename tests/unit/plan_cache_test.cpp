// SPDX-License-Identifier: Apache-2.0
#include "api/plan_cache.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tileglu {
namespace {

// Host memory with k = 0 can be planned on every machine.
Problem problem(std::int64_t m) {
  return {.m = m, .n = 64, .k = 0, .lda = 1, .ld_gate = 1, .ld_up = 1, .ldy = 64};
}

std::shared_ptr<const PlannedProblem> get(PlanCache& cache, const Problem& p, const OptionsView& options = {}) {
  const auto result = cache.get(p, options);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.value();
}

TEST(PlanCache, GivesTheSamePlanAgain) {
  PlanCache cache;
  const auto first = get(cache, problem(1));
  EXPECT_EQ(get(cache, problem(1)), first);
  EXPECT_EQ(first->problem, problem(1));
  EXPECT_EQ(cache.size(), 1U);
}

TEST(PlanCache, EveryFieldOfProblemAndOptionsIsPartOfTheKey) {
  PlanCache cache;
  const Problem base = problem(1);
  std::vector<Problem> others(25, base);
  others[0].dtype = Dtype::kFp16;
  others[1].dtype_y = Dtype::kFp16;
  others[2].activation = Activation::kRelu;
  others[3].layout = Layout::kGateUp;
  others[4].memory = Memory::kHost, others[4].m = 3;
  others[5].device = 1;
  others[6].alignment = 32;
  others[7].m = 2;
  others[8].n = 63;
  others[9].ld_up = 9;
  others[10].lda = 9;
  others[11].ld_gate = 9;
  others[12].ldy = 65;
  others[13].m = 0, others[13].k = 7;
  others[14].swiglu.alpha = 1.5F;
  others[15].swiglu.limit = 7;
  others[16].swiglu.up_offset = 1;
  others[17].rounding = Rounding::kUnfused;
  others[18].layout_add = Layout::kSeparate;
  others[19].layout_pre = Layout::kSeparate;
  others[20].ld_add = 9;
  others[21].ld_pre = 9;
  others[22].m = 0, others[22].extra.bias_gate = true;
  others[23].m = 0, others[23].extra.addend = true;
  others[24].m = 0, others[24].extra.preactivations = true;
  const auto plan = get(cache, base);
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(get(cache, others[i]), plan) << i;
    EXPECT_EQ(get(cache, others[i])->problem, others[i]) << i;
    EXPECT_EQ(cache.size(), i + 2) << i;
  }
  EXPECT_NE(get(cache, base, {.backend = BackendId::kCpu, .kernel = {}}), plan);
  EXPECT_NE(get(cache, base, {.backend = {}, .kernel = "some_kernel"}), plan);
  EXPECT_NE(get(cache, base, {.backend = {}, .kernel = {}, .prefetch_weights = true}), plan);
  EXPECT_NE(get(cache, base, {.backend = {}, .kernel = {}, .batch_invariant = true}), plan);
  EXPECT_EQ(cache.size(), others.size() + 5);
}

TEST(PlanCache, KeepsACopyOfTheKernelName) {
  PlanCache cache;
  std::string name = "a_name_that_is_too_long_for_a_small_string";
  const auto plan = get(cache, problem(1), {.backend = {}, .kernel = name});
  const std::string same = name;
  name.assign(name.size(), 'x');
  EXPECT_EQ(get(cache, problem(1), {.backend = {}, .kernel = same}), plan);
}

TEST(PlanCache, DoesNotKeepRefusals) {
  PlanCache cache;
  Problem p = problem(1);
  p.k = 64, p.lda = p.ld_gate = p.ld_up = 64;
  EXPECT_FALSE(cache.get(p, {.backend = BackendId::kSm90, .kernel = {}}).ok());
  EXPECT_EQ(cache.size(), 0U);
}

TEST(PlanCache, StartsAnewWhenFullAndLeavesPlansToTheirHolders) {
  PlanCache cache;
  const auto held = get(cache, problem(1));
  for (std::size_t m = 2; m <= PlanCache::kMaxPlans; ++m) get(cache, problem(static_cast<std::int64_t>(m)));
  EXPECT_EQ(cache.size(), PlanCache::kMaxPlans);
  get(cache, problem(PlanCache::kMaxPlans + 1));
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(held->problem, problem(1));
  EXPECT_NE(get(cache, problem(1)), held);
}

TEST(PlanDescription, NamesBackendKernelAndWorkspace) {
  PlanCache cache;
  EXPECT_EQ(get(cache, problem(1))->description, "backend none, kernel zero_fill, workspace 0 bytes");
}

}  // namespace
}  // namespace tileglu
