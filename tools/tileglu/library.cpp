// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include "core/c_fields.hpp"

namespace tileglu::tool {
namespace {

Status from_c(tileglu_status status) {
  if (status == TILEGLU_OK) return {};
  return {static_cast<Code>(status), tileglu_last_error()};
}

tileglu_problem to_c(const Problem& problem) {
  tileglu_problem c = TILEGLU_PROBLEM_INIT;
  c.dtype = static_cast<int>(problem.dtype);
  c.dtype_y = static_cast<int>(problem.dtype_y);
  c.layout = static_cast<int>(problem.layout);
  c.memory = static_cast<int>(problem.memory);
  c.device = problem.device;
  c.alignment = problem.alignment;
  c.m = problem.m;
  c.n = problem.n;
  c.k = problem.k;
  c.lda = problem.lda;
  c.ld_gate = problem.ld_gate;
  c.ld_up = problem.layout == Layout::kSeparate ? problem.ld_up : 0;
  c.ldy = problem.ldy;
  put_gate_fields(problem, c);
  return c;
}

tileglu_options to_c(const PlanOptions& options) {
  tileglu_options c = TILEGLU_OPTIONS_INIT;
  c.backend = static_cast<int>(options.backend);
  c.kernel = options.kernel.c_str();
  if (options.prefetch_weights) c.flags |= TILEGLU_PREFETCH_WEIGHTS;
  if (options.batch_invariant) c.flags |= TILEGLU_BATCH_INVARIANT;
  return c;
}

tileglu_weights to_c(const WeightsView& view) {
  tileglu_weights c = TILEGLU_WEIGHTS_INIT;
  c.layout = static_cast<int>(view.layout);
  c.gate = view.gate;
  c.up = view.up;
  c.ld_gate = view.ld_gate;
  c.ld_up = view.layout == Layout::kSeparate ? view.ld_up : 0;
  return c;
}

}  // namespace

Result<Call> Call::plan(const Problem& problem, const PlanOptions& options) {
  const tileglu_problem c_problem = to_c(problem);
  const tileglu_options c_options = to_c(options);
  tileglu_plan* plan = nullptr;
  TILEGLU_TRY(from_c(tileglu_plan_create(&c_problem, &c_options, &plan)));
  Call call;
  call.plan_.reset(plan, tileglu_plan_destroy);
  if (const std::size_t bytes = tileglu_plan_workspace(plan); bytes > 0) {
    Result<runtime::Buffer> workspace = runtime::Buffer::make(problem.memory, problem.device, bytes);
    if (!workspace.ok()) return workspace.status();
    call.workspace_ = workspace.value();
  }
  return call;
}

Status Call::run(const Operands& operands) const {
  tileglu_args args = TILEGLU_ARGS_INIT;
  put_operands(operands, args);
  args.workspace = workspace_.data();
  args.workspace_bytes = workspace_.size();
  return from_c(tileglu_plan_run(plan_.get(), &args));
}

Status can_implement(const Problem& problem, const PlanOptions& options) {
  const tileglu_problem c_problem = to_c(problem);
  const tileglu_options c_options = to_c(options);
  return from_c(tileglu_can_implement(&c_problem, &c_options, nullptr, 0));
}

Status relayout(const Problem& problem, const WeightsView& source, const WeightsView& destination, void* stream) {
  const tileglu_problem c_problem = to_c(problem);
  const tileglu_weights c_source = to_c(source);
  const tileglu_weights c_destination = to_c(destination);
  return from_c(tileglu_relayout(&c_problem, &c_source, &c_destination, stream));
}

Result<Layout> layout_for(Problem problem, const PlanOptions& options, const std::vector<Layout>& candidates) {
  Status first;
  for (const Layout layout : candidates) {
    problem.layout = layout;
    problem.ld_up = layout == Layout::kSeparate ? problem.ld_gate : 0;
    Status status = can_implement(problem, options);
    if (status.ok()) return layout;
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace tileglu::tool
