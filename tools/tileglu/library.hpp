// SPDX-License-Identifier: Apache-2.0
// The C ABI as the tool uses it: a plan with its workspace, and relayouts. The tool computes through the same door as
// everybody else, so that its checks cover the argument checks too.
#pragma once

#include "backends/backend.hpp"
#include "core/problem.hpp"
#include "core/status.hpp"
#include "pack/relayout.hpp"
#include "runtime/runtime.hpp"

#include <memory>
#include <string>

namespace tileglu::tool {

class Call {
 public:
  // Plans and allocates the workspace.
  static Result<Call> plan(const Problem& problem, const PlanOptions& options);
  // operands.workspace is ignored.
  Status run(const Operands& operands) const;

  std::string backend() const { return tileglu_plan_backend(plan_.get()); }
  std::string kernel() const { return tileglu_plan_kernel(plan_.get()); }
  std::string describe() const { return tileglu_plan_describe(plan_.get()); }

 private:
  std::shared_ptr<tileglu_plan> plan_;
  runtime::Buffer workspace_;
};

// OK, or why tileglu_plan_create would refuse.
Status can_implement(const Problem& problem, const PlanOptions& options);
// Contiguous strides, dtype_y = dtype and no options are assumed of `shape` where its fields are 0.
Status relayout(const Problem& problem, const WeightsView& source, const WeightsView& destination, void* stream);

// The first of `candidates` that the problem can be planned with, tried in order; kNotSupported and the reason of the
// first if there is none.
Result<Layout> layout_for(Problem problem, const PlanOptions& options, const std::vector<Layout>& candidates);

}  // namespace tileglu::tool
