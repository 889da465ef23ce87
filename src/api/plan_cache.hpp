// SPDX-License-Identifier: Apache-2.0
// Plans by problem and options, for tileglu_run. A hit takes a shared lock and copies a pointer: no allocation.
#pragma once

#include "backends/backend.hpp"
#include "core/validate.hpp"

#include <shared_mutex>
#include <unordered_map>

namespace tileglu {

// A plan, the problem it is for, and its description.
struct PlannedProblem {
  Problem problem;
  std::shared_ptr<const Plan> plan;
  std::string description;
};
Result<PlannedProblem> plan_problem(const Problem& problem, const PlanOptions& options);

class PlanCache {
 public:
  // The cached plan, or a new one. A refusal is not cached: what is missing may appear.
  Result<std::shared_ptr<const PlannedProblem>> get(const Problem& problem, const OptionsView& options);
  std::size_t size() const;

  // When full the cache starts anew; callers that still hold a plan keep it.
  static constexpr std::size_t kMaxPlans = 65536;

 private:
  struct Key {
    Problem problem;
    PlanOptions options;
  };
  struct KeyView {
    const Problem& problem;
    const OptionsView& options;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Key& key) const;
    std::size_t operator()(const KeyView& key) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& x, const Key& y) const { return x.problem == y.problem && x.options == y.options; }
    bool operator()(const KeyView& x, const Key& y) const {
      const OptionsView& options = x.options;
      return x.problem == y.problem && options.backend == y.options.backend && options.kernel == y.options.kernel &&
             options.prefetch_weights == y.options.prefetch_weights &&
             options.batch_invariant == y.options.batch_invariant;
    }
    bool operator()(const Key& x, const KeyView& y) const { return (*this)(y, x); }
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const PlannedProblem>, Hash, Equal> plans_;
};

}  // namespace tileglu
