// SPDX-License-Identifier: Apache-2.0
#include "op/op_case.hpp"

#include "core/c_fields.hpp"
#include "core/format.hpp"
#include "op/op_data.hpp"
#include "op/ulp_bounds.hpp"
#include "op/unfused_steps.hpp"

#include <cmath>
#include <cstring>
#include <memory>

namespace tileglu::test {
namespace {

using reference::ErrorReport;

Problem checked_problem(const OpCase& op, const OpData& data, Memory memory) {
  return {.dtype = op.dtype,
          .dtype_y = op.result_dtype(),
          .activation = op.activation,
          .layout = op.layout,
          .memory = memory,
          .m = op.m,
          .n = op.n,
          .k = op.k,
          .lda = data.a().ld,
          .ld_gate = data.gate().ld,
          .ld_up = data.up().ld,
          .ldy = data.y().ld,
          .swiglu = op.swiglu,
          .rounding = op.rounding,
          .extra = op.extra,
          .layout_add = op.layout_add,
          .layout_pre = op.layout_pre,
          .ld_add = data.ld_add(),
          .ld_pre = data.ld_pre()};
}

tileglu_problem c_problem(const OpCase& op, const OpData& data, Memory memory) {
  tileglu_problem p = TILEGLU_PROBLEM_INIT;
  p.dtype = static_cast<int>(op.dtype);
  p.dtype_y = static_cast<int>(op.result_dtype());
  put_gate_fields(checked_problem(op, data, memory), p);
  p.layout = static_cast<int>(op.layout);
  p.memory = static_cast<int>(memory);
  p.alignment = data.alignment();
  p.m = op.m;
  p.n = op.n;
  p.k = op.k;
  const auto stated = [](std::int64_t ld, std::int64_t true_ld) { return ld != 0 ? ld : true_ld; };
  p.lda = stated(op.stated_ld.a, data.a().ld);
  p.ld_gate = stated(op.stated_ld.gate, data.gate().ld);
  p.ld_up = is_single_matrix(op.layout) ? 0 : stated(op.stated_ld.up, data.up().ld);
  p.ldy = stated(op.stated_ld.y, data.y().ld);
  return p;
}

struct Call {
  tileglu_plan* plan = nullptr;
  ~Call() { tileglu_plan_destroy(plan); }
};

// plan -> workspace -> run, as a user does it; the first refusal ends it.
void call(const OpCase& op, const PlanOptions& plan_options, Memory memory, OpData& data, Outcome& outcome) {
  const tileglu_problem problem = c_problem(op, data, memory);
  tileglu_options options = TILEGLU_OPTIONS_INIT;
  options.backend = static_cast<int>(plan_options.backend);
  options.kernel = plan_options.kernel.c_str();
  Call call;
  outcome.status = tileglu_plan_create(&problem, &options, &call.plan);
  if (outcome.status == TILEGLU_OK) {
    outcome.backend = tileglu_plan_backend(call.plan);
    outcome.kernel = tileglu_plan_kernel(call.plan);
    tileglu_args args = TILEGLU_ARGS_INIT;
    put_operands(data.operands(), args);
    args.workspace_bytes = tileglu_plan_workspace(call.plan);
    args.workspace = data.workspace(args.workspace_bytes);
    outcome.status = tileglu_plan_run(call.plan, &args);
  }
  if (outcome.status != TILEGLU_OK) outcome.error = tileglu_last_error();
}

// Gate and up must not be exchangeable in the data, or a kernel that exchanges them would pass.
void expect_asymmetric(const OpCase& op, const Problem& problem, const Baselines& baselines) {
  if (op.activation == Activation::kIdentity || op.k * op.n < 4 || op.m * op.n < 16 || !op.gate.empty()) return;
  const std::vector<double> exchanged = reference::exact(problem, {.gate = baselines.pre.up, .up = baselines.pre.gate});
  EXPECT_FALSE(judge(op, baselines, encode(op.result_dtype(), exchanged))) << describe(op);
}

Baselines make_baselines(const OpCase& op, const OpData& data, Memory memory) {
  const Problem problem = checked_problem(op, data, memory);
  Result<reference::Preactivations> pre = reference::preactivations(problem, data.operands());
  if (!pre.ok()) throw std::runtime_error(pre.status().text());
  Baselines baselines{.pre = std::move(pre.value()), .exact = {}, .unfused = {}, .rounded = {}};
  baselines.exact = reference::exact(problem, baselines.pre);
  const auto report = [&](const std::vector<double>& y) {
    return reference::compare(op.result_dtype(), op.m, op.n, y, baselines.exact);
  };
  baselines.unfused = report(reference::unfused(problem, baselines.pre));
  baselines.rounded = report(reference::rounded(op.result_dtype(), baselines.exact));
  expect_asymmetric(op, problem, baselines);
  return baselines;
}

// A stripe of fp32 results may lie all in the tail of an activation, where that is as far off as its table says.
double activation_allowance(const OpCase& op) {
  double ulps = 0;
  for (const UlpBound& bound : kUlpBounds) {
    if (bound.activation == op.activation) ulps = std::max(ulps, bound.gpu_fp32);
  }
  return op.result_dtype() == Dtype::kFp32 ? ulps * 0x1p-23 : 0;
}

// What fp32 accumulation of k products and an activation of a few ulp may add to a relative error. The worst case grows
// with k; a sum of random signs in fp32 stays near sqrt(k), which is what a 16-bit result, far coarser, is held to.
double accumulation_allowance(const OpCase& op) {
  const double k = static_cast<double>(op.k) + 8;
  return (op.result_dtype() == Dtype::kFp32 ? k : 4 * std::sqrt(k)) * 0x1p-24;
}

// The saved pre-activations are the exact ones rounded once, but for what fp32 accumulation adds.
::testing::AssertionResult judge_saved(const OpCase& op, const Outcome& outcome, bool is_up) {
  const std::vector<double>& exact = is_up ? outcome.baselines.pre.up : outcome.baselines.pre.gate;
  const reference::ErrorReport mine =
      reference::compare(op.dtype, op.m, op.n, decode(op.dtype, is_up ? outcome.pre_up : outcome.pre_gate), exact);
  const reference::ErrorReport best =
      reference::compare(op.dtype, op.m, op.n, reference::rounded(op.dtype, exact), exact);
  const double limit = 1.01 * best.relative_frobenius + accumulation_allowance(op);
  if (mine.relative_frobenius <= limit && mine.not_finite == 0 && mine.unwritten == 0) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << formatted(
             "{}: saved {}: relative error {:.3g} (limit {:.3g}), not finite {}, "
             "unwritten {}",
             describe(op), is_up ? "up" : "gate", mine.relative_frobenius, limit, mine.not_finite, mine.unwritten);
}

::testing::AssertionResult judge_result(const OpCase& op, const Outcome& outcome) {
  const bool steps_known = op.extra.preactivations && op.rounding == Rounding::kUnfused &&
                           op.result_dtype() == op.dtype && op.dtype != Dtype::kFp32;
  return steps_known ? judge_steps(op, outcome) : judge(op, outcome.baselines, outcome.y);
}

}  // namespace

std::string describe(const OpCase& op) {
  return formatted(
      "m={} n={} k={} {}->{} {} {} pad={},{},{},{} misalign={},{},{},{} scale={} seed={} rounding={} "
      "operands={}{}{}{} columns={},{} pad={},{} misalign={}",
      op.m, op.n, op.k, name_of(op.dtype), name_of(op.result_dtype()), name_of(op.activation), name_of(op.layout),
      op.pad.a, op.pad.gate, op.pad.up, op.pad.y, op.misalign.a, op.misalign.gate, op.misalign.up, op.misalign.y,
      op.input_scale, op.seed, name_of(op.rounding), int{op.extra.bias_gate}, int{op.extra.bias_up},
      int{op.extra.addend}, int{op.extra.preactivations}, name_of(op.layout_add), name_of(op.layout_pre), op.pad_add,
      op.pad_pre, op.misalign_extra);
}

void PrintTo(const OpCase& op, std::ostream* stream) {
  *stream << describe(op);
}

Outcome run_case(const OpCase& op, const PlanOptions& options, Memory memory, const Baselines* known) {
  OpData data(op, memory);
  Outcome outcome;
  call(op, options, memory, data, outcome);
  data.download();
  outcome.y = data.result();
  outcome.pre_gate = data.saved(false);
  outcome.pre_up = data.saved(true);
  outcome.untouched = data.result_untouched();
  outcome.guards_intact = data.guards_intact();
  if (outcome.status == TILEGLU_OK) outcome.baselines = known != nullptr ? *known : make_baselines(op, data, memory);
  return outcome;
}

std::vector<double> values(const OpCase& op, const Outcome& outcome) {
  return decode(op.result_dtype(), outcome.y);
}

::testing::AssertionResult judge(const OpCase& op, const Baselines& baselines, const std::vector<unsigned char>& y) {
  const ErrorReport mine = reference::compare(op.result_dtype(), op.m, op.n, y.data(), op.n, baselines.exact);
  const double allowance = accumulation_allowance(op);
  // The unfused policy is the unfused path itself, but for sums that fall on the other side of a tie.
  const double slack = op.rounding == Rounding::kUnfused ? 1.15 : 1;
  const double frobenius =
      slack * std::max(baselines.unfused.relative_frobenius, baselines.rounded.relative_frobenius) + allowance;
  const double stripe = slack * std::max(baselines.unfused.worst_stripe, baselines.rounded.worst_stripe) + allowance +
                        activation_allowance(op);
  const bool good = mine.relative_frobenius <= frobenius && mine.worst_stripe <= stripe && mine.not_finite == 0 &&
                    mine.unwritten == 0;
  if (good) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << formatted(
             "{}: relative Frobenius error {:.3g} (limit {:.3g}), worst stripe {:.3g} (limit {:.3g}), not finite {}, "
             "unwritten {}",
             describe(op), mine.relative_frobenius, frobenius, mine.worst_stripe, stripe, mine.not_finite,
             mine.unwritten);
}

::testing::AssertionResult accepted(const OpCase& op, const Outcome& outcome, bool may_refuse) {
  if (!outcome.guards_intact) return ::testing::AssertionFailure() << describe(op) << ": wrote outside of Y";
  if (outcome.status == TILEGLU_OK) {
    ::testing::AssertionResult result = judge_result(op, outcome);
    for (const bool is_up : {false, true}) {
      if (result && op.extra.preactivations) result = judge_saved(op, outcome, is_up);
    }
    return result;
  }
  if (may_refuse && outcome.status == TILEGLU_NOT_SUPPORTED && !outcome.error.empty() && outcome.untouched) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << describe(op) << ": " << tileglu_status_name(outcome.status) << ", "
                                       << outcome.error << (outcome.untouched ? "" : ", Y was touched");
}

}  // namespace tileglu::test
