// SPDX-License-Identifier: Apache-2.0
// The ordered list of backends and the walk over it: where the operands lie decides who is asked, and whoever declines
// says why.
#include "backends/backend.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "runtime/runtime.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tileglu {
namespace {

// m = 0 or n = 0: nothing to compute, nothing to launch.
class EmptyPlan final : public Plan {
 public:
  EmptyPlan() : Plan("none", "empty", 0) {}
  Status run(const Operands&) const noexcept override { return {}; }
};

// k = 0 and nothing is added: gate and up are 0, and so is y for every activation.
class ZeroFillPlan final : public Plan {
 public:
  explicit ZeroFillPlan(const Problem& problem) : Plan("none", "zero_fill", 0), problem_(problem) {}
  Status run(const Operands& operands) const noexcept override {
    return runtime::fill_zero_rows(problem_, operands.y, operands.stream);
  }

 private:
  Problem problem_;
};

Result<PlanWithReasons> plan_zero_fill(const Problem& problem) {
  if (problem.memory == Memory::kCuda) {
    TILEGLU_TRY(runtime::cuda_status());
    if (problem.device >= runtime::device_count()) {
      return Status(Code::kNotAvailable,
                    formatted("device={} of {} CUDA devices", problem.device, runtime::device_count()));
    }
  }
  return PlanWithReasons{.plan = std::make_shared<ZeroFillPlan>(problem), .passed_over = {}};
}

// A family is what stands before the first digit of a configuration's name: "interleave" of "interleave_128x128_...".
bool knows(const Backend& backend, std::string_view kernel) {
  for (const std::string& name : backend.kernels()) {
    if (name == kernel) return true;
    const bool family = name.size() > kernel.size() + 1 && name.starts_with(kernel) && name[kernel.size()] == '_' &&
                        name[kernel.size() + 1] >= '0' && name[kernel.size() + 1] <= '9';
    if (family) return true;
  }
  return false;
}

bool is_known(const Backend* named, std::string_view kernel) {
  // A backend that lists nothing is not in this build; it is left to say so itself.
  if (named != nullptr) return named->kernels().empty() || knows(*named, kernel);
  return std::ranges::any_of(backends(), [&](const Backend* backend) { return knows(*backend, kernel); });
}

Status unknown_kernel(const PlanOptions& options) {
  std::string names;
  for (const Backend* backend : backends()) {
    if (options.backend != BackendId::kAuto && options.backend != backend->id) continue;
    for (const std::string& name : backend->kernels()) names += (names.empty() ? "" : ", ") + name;
  }
  return {Code::kInvalidArgument, formatted("kernel={} is not known to backend={}; known: {}", options.kernel,
                                            name_of(options.backend), names.empty() ? "none in this build" : names)};
}

bool fits(const Backend& backend, Memory memory) {
  return (backend.id == BackendId::kCpu) == (memory == Memory::kHost);
}

Result<std::unique_ptr<Plan>> ask(const Backend& backend, const Problem& problem, const PlanOptions& options) {
  TILEGLU_TRY(backend.available());
  if (options.batch_invariant && backend.id != BackendId::kSm90) {
    return Status(Code::kNotSupported, "flag TILEGLU_BATCH_INVARIANT: its libraries choose their kernels by m");
  }
  return backend.plan(problem, options);
}

Result<PlanWithReasons> plan_with(const Backend& backend, const Problem& problem, const PlanOptions& options) {
  if (!fits(backend, problem.memory)) {
    return Status(Code::kNotSupported,
                  formatted("backend={} cannot use operands in memory={}", backend.name, name_of(problem.memory)));
  }
  Result<std::unique_ptr<Plan>> plan = ask(backend, problem, options);
  if (!plan.ok()) {
    return Status(plan.status().code(), formatted("backend={}: {}", backend.name, plan.status().text()));
  }
  return PlanWithReasons{.plan = std::move(plan.value()), .passed_over = {}};
}

Result<PlanWithReasons> plan_with_first(const Problem& problem, const PlanOptions& options) {
  std::string declined;  // one line per backend
  std::string sentence;  // the same for the error text
  Code code = Code::kNotSupported;
  for (const Backend* backend : backends()) {
    if (!fits(*backend, problem.memory)) continue;
    if (!options.kernel.empty() && !knows(*backend, options.kernel)) continue;
    Result<std::unique_ptr<Plan>> plan = ask(*backend, problem, options);
    if (plan.ok()) return PlanWithReasons{.plan = std::move(plan.value()), .passed_over = std::move(declined)};
    const Status& why = plan.status();
    // Only a refusal passes the question on; a failing driver or full memory is not hidden behind a slower path.
    if (why.code() != Code::kNotSupported && why.code() != Code::kNotAvailable) return why;
    code = why.code();  // of the last, the one that takes most problems
    declined += formatted("{}: {}\n", backend->name, why.text());
    sentence += formatted("{}{}: {}", sentence.empty() ? "" : "; ", backend->name, why.text());
  }
  if (sentence.empty()) {
    sentence = formatted("kernel={} belongs to a backend that cannot use operands in memory={}", options.kernel,
                         name_of(problem.memory));
  }
  return Status(code, sentence);
}

}  // namespace

std::span<const Backend* const> backends() {
  static constexpr std::array<const Backend*, 3> kBackends{&kSm90Backend, &kCublasBackend, &kCpuBackend};
  return kBackends;
}

const Backend* find_backend(BackendId id) {
  for (const Backend* backend : backends()) {
    if (backend->id == id) return backend;
  }
  return nullptr;
}

Result<PlanWithReasons> make_plan(const Problem& problem, const PlanOptions& options) {
  if (problem.m == 0 || problem.n == 0) {
    return PlanWithReasons{.plan = std::make_shared<EmptyPlan>(), .passed_over = {}};
  }
  if (problem.k == 0 && !problem.extra.any()) return plan_zero_fill(problem);
  const Backend* named = find_backend(options.backend);
  if (!options.kernel.empty() && !is_known(named, options.kernel)) return unknown_kernel(options);
  return named != nullptr ? plan_with(*named, problem, options) : plan_with_first(problem, options);
}

}  // namespace tileglu
