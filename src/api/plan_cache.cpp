// SPDX-License-Identifier: Apache-2.0
#include "api/plan_cache.hpp"

#include "core/format.hpp"

#include <bit>
#include <mutex>

namespace tileglu {
namespace {

// The finaliser of splitmix64 over a running state.
std::uint64_t mix(std::uint64_t state, std::uint64_t value) {
  state = (state ^ value) + 0x9E3779B97F4A7C15U;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31);
}

template <class Options>
std::size_t hash_of(const Problem& p, const Options& options) {
  const auto small = [](auto value) { return static_cast<std::uint64_t>(value) & 0xFFU; };
  std::uint64_t state = small(p.dtype) | small(p.dtype_y) << 8 | small(p.activation) << 16 | small(p.layout) << 24 |
                        small(p.memory) << 32 | small(options.backend) << 40 | small(options.prefetch_weights) << 48 |
                        small(options.batch_invariant) << 56;
  state = mix(state, static_cast<std::uint64_t>(p.device) << 32 | static_cast<std::uint32_t>(p.alignment));
  for (const std::int64_t value : {p.m, p.n, p.k, p.lda, p.ld_gate, p.ld_up, p.ldy, p.ld_add, p.ld_pre}) {
    state = mix(state, static_cast<std::uint64_t>(value));
  }
  const auto bits = [](float value) { return std::uint64_t{std::bit_cast<std::uint32_t>(value)}; };
  state = mix(state, bits(p.swiglu.alpha) << 32 | bits(p.swiglu.limit));
  state = mix(state, bits(p.swiglu.up_offset) << 32 | small(p.rounding) | small(p.layout_add) << 4 |
                         small(p.layout_pre) << 8 | small(p.extra.bias_gate) << 12 | small(p.extra.bias_up) << 13 |
                         small(p.extra.addend) << 14 | small(p.extra.preactivations) << 15);
  return mix(state, std::hash<std::string_view>()(options.kernel));
}

std::string describe(const PlanWithReasons& planned) {
  const Plan& plan = *planned.plan;
  std::string text =
      formatted("backend {}, kernel {}, workspace {} bytes", plan.backend(), plan.kernel(), plan.workspace_bytes());
  if (planned.passed_over.empty()) return text;
  text += "\npassed over:\n" + planned.passed_over;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<PlannedProblem> plan_problem(const Problem& problem, const PlanOptions& options) {
  Result<PlanWithReasons> planned = make_plan(problem, options);
  if (!planned.ok()) return planned.status();
  std::string description = describe(planned.value());
  return PlannedProblem{
      .problem = problem, .plan = std::move(planned.value().plan), .description = std::move(description)};
}

std::size_t PlanCache::Hash::operator()(const Key& key) const {
  return hash_of(key.problem, key.options);
}
std::size_t PlanCache::Hash::operator()(const KeyView& key) const {
  return hash_of(key.problem, key.options);
}

Result<std::shared_ptr<const PlannedProblem>> PlanCache::get(const Problem& problem, const OptionsView& options) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = plans_.find(KeyView{problem, options}); found != plans_.end()) return found->second;
  }
  // Planned outside the lock; should two threads plan the same, the first to arrive is kept.
  Key key{problem, options.copy()};
  Result<PlannedProblem> planned = plan_problem(problem, key.options);
  if (!planned.ok()) return planned.status();
  auto entry = std::make_shared<const PlannedProblem>(std::move(planned.value()));
  const std::unique_lock lock(mutex_);
  if (plans_.size() >= kMaxPlans) plans_.clear();
  return plans_.try_emplace(std::move(key), std::move(entry)).first->second;
}

std::size_t PlanCache::size() const {
  const std::shared_lock lock(mutex_);
  return plans_.size();
}

}  // namespace tileglu
