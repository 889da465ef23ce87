// SPDX-License-Identifier: Apache-2.0
#include "verify_case.hpp"

#include "library.hpp"

namespace tileglu::tool {
namespace {

// What the row still lacks once a kernel is planned: run into a poisoned output, fetch it, compare.
Status run_and_judge(VerifyBase& base, const VerifyTarget& target, const Call& call, VerifyRow& row) {
  const Problem& problem = row.problem;
  Result<GuardedOutput> output = GuardedOutput::make(problem);
  TILEGLU_TRY(output.status());
  TILEGLU_TRY(output.value().poison());
  Result<runtime::Stream> stream = runtime::Stream::make(problem.memory, problem.device);
  TILEGLU_TRY(stream.status());
  TILEGLU_TRY(base.data().extra(0).poison());
  Operands operands = base.data().operands(problem.layout, 0);
  operands.y = output.value().y();
  operands.stream = stream.value().handle();
  TILEGLU_TRY(call.run(operands));
  TILEGLU_TRY(stream.value().synchronize());
  TILEGLU_TRY(output.value().download());
  inject(target.fault, problem, base.preactivations(), output.value().host_y());
  const Yardstick& yardstick = base.yardstick(target.gate);
  row.unfused = yardstick.unfused;
  row.rounded = yardstick.rounded;
  row.verdict =
      judge(problem, yardstick,
            {.kernel = row.kernel, .y = output.value().host_y(), .guards_intact = output.value().guards_intact()});
  row.reason = row.verdict.reason;
  if (row.reason.empty() && problem.extra.preactivations) {
    const Result<reference::Preactivations> saved = base.data().extra(0).saved();
    TILEGLU_TRY(saved.status());
    row.reason = saved_reason(problem, saved.value(), base.preactivations(), yardstick.noise);
  }
  if (!row.reason.empty()) row.status = "fail";
  return {};
}

std::vector<Layout> layouts_to_try(Layout requested, bool any) {
  std::vector<Layout> layouts{requested};
  if (!any) return layouts;
  for (const Layout layout : {Layout::kSeparate, Layout::kGateUp, Layout::kInterleaved8, Layout::kInterleaved1}) {
    if (layout != requested) layouts.push_back(layout);
  }
  return layouts;
}

}  // namespace

Result<VerifyBase> VerifyBase::make(const Problem& problem, const SyntheticOptions& options) {
  VerifyBase base;
  const double reference_bytes = 8.0 * 6 * static_cast<double>(problem.m) * static_cast<double>(problem.n);
  TILEGLU_TRY(check_host_memory(static_cast<std::size_t>(reference_bytes), "fp64 references"));
  Result<SyntheticData> data = SyntheticData::make(problem, options);
  if (!data.ok()) return data.status();
  base.data_ = std::move(data.value());
  Result<reference::Preactivations> preactivations =
      reference::preactivations(base.data_.problem(Layout::kSeparate), base.data_.operands(Layout::kSeparate, 0));
  if (!preactivations.ok()) return preactivations.status();
  base.preactivations_ = std::move(preactivations.value());
  return base;
}

const Yardstick& VerifyBase::yardstick(const VerifyGate& gate) {
  if (gate_ != gate) {
    yardstick_ = make_yardstick(problem(Layout::kSeparate, gate), preactivations_);
    gate_ = gate;
  }
  return yardstick_;
}

Problem VerifyBase::problem(Layout layout, const VerifyGate& gate) const {
  Problem problem = data_.problem(layout);
  problem.activation = gate.activation;
  problem.swiglu = gate.swiglu;
  problem.rounding = gate.rounding;
  return problem;
}

VerifyRow verify_one(VerifyBase& base, const VerifyTarget& target) {
  VerifyRow row{
      .problem = base.problem(target.layout, target.gate), .requested = target.layout, .kernel = target.options.kernel};
  const auto stop = [&](const char* how, const Status& status) {
    row.status = how;
    row.reason = status.text();
    row.code = status.code();
    return row;
  };
  const Result<Layout> layout =
      layout_for(row.problem, target.options, layouts_to_try(target.layout, target.any_layout));
  if (!layout.ok()) return stop(layout.status().code() == Code::kNotSupported ? "skipped" : "error", layout.status());
  row.problem = base.problem(layout.value(), target.gate);
  if (const Status laid_out = base.data().add_layout(layout.value()); !laid_out.ok()) return stop("error", laid_out);
  const Result<Call> call = Call::plan(row.problem, target.options);
  if (!call.ok()) return stop("error", call.status());
  row.backend = call.value().backend();
  row.kernel = call.value().kernel();
  if (const Status judged = run_and_judge(base, target, call.value(), row); !judged.ok()) return stop("error", judged);
  return row;
}

}  // namespace tileglu::tool
