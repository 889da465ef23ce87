// SPDX-License-Identifier: Apache-2.0
// The seam between the library and what computes: an ordered list of backends, each saying why not.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <memory>
#include <span>
#include <string>

namespace tileglu {

struct PlanOptions {
  BackendId backend = BackendId::kAuto;
  std::string kernel;             // empty: the planner's choice; else a family or one configuration
  bool prefetch_weights = false;  // TILEGLU_PREFETCH_WEIGHTS
  bool batch_invariant = false;   // TILEGLU_BATCH_INVARIANT

  bool operator==(const PlanOptions&) const = default;
};

// An immutable decision how to run one problem. run() is called with operands that api/ has checked against the problem
// (not null, aligned, workspace large enough); it obeys the rules of the call in tileglu.h.
class Plan {
 public:
  Plan(std::string backend, std::string kernel, std::size_t workspace_bytes)
      : backend_(std::move(backend)), kernel_(std::move(kernel)), workspace_bytes_(workspace_bytes) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  virtual ~Plan() = default;

  virtual Status run(const Operands& operands) const noexcept = 0;

  const std::string& backend() const { return backend_; }
  const std::string& kernel() const { return kernel_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::string backend_, kernel_;
  std::size_t workspace_bytes_;
};

struct Backend {
  BackendId id;
  const char* name;
  // OK, or kNotAvailable with the reason why this machine cannot run it at all.
  Status (*available)();
  // The configurations that PlanOptions::kernel accepts.
  std::span<const std::string> (*kernels)();
  // A plan, or the reason why not: kNotSupported, kNotAvailable, or kInvalidArgument for an unknown kernel name.
  // n, m >= 1; k >= 1 or the problem has extra operands; memory already fits the backend.
  Result<std::unique_ptr<Plan>> (*plan)(const Problem& problem, const PlanOptions& options);
};

// sm90, cublas, cpu: best first. All are listed in every build; one that was not built says so in available().
std::span<const Backend* const> backends();
const Backend* find_backend(BackendId id);

struct PlanWithReasons {
  std::shared_ptr<const Plan> plan;
  std::string passed_over;  // one line per backend that was asked before and why it declined
};
Result<PlanWithReasons> make_plan(const Problem& problem, const PlanOptions& options);

// Defined by each backend, or by backends/missing.cpp for one that this build leaves out.
extern const Backend kSm90Backend, kCublasBackend, kCpuBackend;

}  // namespace tileglu
