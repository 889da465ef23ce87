// SPDX-License-Identifier: Apache-2.0
// tileglu verify: kernels against an fp64 reference, with the unfused path in the same dtype beside them.
#include "arguments.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "environment.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "verify_jobs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace tileglu::tool {
namespace {

// The kernels to verify, and after them the unfused baselines of the same backends.
Result<std::vector<PlanOptions>> make_targets(const VerifyOptions& options, Memory memory) {
  const std::vector<const Backend*> usable = backends_in(memory, options.common.backend);
  const std::string& name = options.common.kernel;
  std::vector<PlanOptions> targets;
  const auto add = [&](PlanOptions target) {
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(std::move(target));
  };
  if (name.empty() && !options.all) {
    add({.backend = options.common.backend, .kernel = {}});
  } else {
    const Result<std::vector<NamedKernel>> named = kernels_named(usable, name.empty() ? "all" : name);
    if (!named.ok()) return named.status();
    for (const NamedKernel& kernel : named.value()) add({.backend = kernel.backend->id, .kernel = kernel.kernel});
  }
  for (const Backend* backend : usable) {
    for (const std::string& kernel : backend->kernels()) {
      if (rounds_early(kernel)) add({.backend = backend->id, .kernel = kernel});
    }
  }
  return targets;
}

Json row_json(const VerifyRow& row) {
  const Problem& p = row.problem;
  const bool measured = row.status == "pass" || row.status == "fail";
  Json json{{"model", row.model.empty() ? Json(nullptr) : Json(row.model)},
            {"m", p.m},
            {"n", p.n},
            {"k", p.k},
            {"lda", p.lda},
            {"ldy", p.ldy},
            {"dtype", name_of(p.dtype)},
            {"activation", name_of(p.activation)},
            {"alpha", p.swiglu.alpha},
            {"limit", std::isinf(p.swiglu.limit) ? Json(nullptr) : Json(p.swiglu.limit)},
            {"up_offset", p.swiglu.up_offset},
            {"rounding", name_of(p.rounding)},
            {"operands", operand_names(p)},
            {"layout", name_of(p.layout)},
            {"layout_requested", name_of(row.requested)},
            {"backend", row.backend},
            {"kernel", row.kernel},
            {"baseline", rounds_early(row.kernel)},
            {"status", row.status},
            {"reason", row.reason}};
  json["error"] = measured ? to_json(row.verdict.error) : Json(nullptr);
  if (measured) {
    json["error"]["outliers"] = row.verdict.outliers;
    json["error"]["guards_intact"] = row.verdict.guards_intact;
  }
  json["unfused"] = measured ? to_json(row.unfused) : Json(nullptr);
  json["rounded_once"] = measured ? to_json(row.rounded) : Json(nullptr);
  return json;
}

std::string gate_text(const Problem& p) {
  const std::string operands = operand_names(p);
  return formatted("{}{}{}{}", name_of(p.activation), p.rounding == Rounding::kUnfused ? " unfused" : "",
                   operands.empty() ? "" : " + ", operands);
}

std::vector<std::string> row_cells(const VerifyRow& row) {
  const Problem& p = row.problem;
  std::vector<std::string> cells{row.backend.empty() ? row.kernel : row.backend + "/" + row.kernel,
                                 formatted("{}x{}x{}", p.m, p.n, p.k), name_of(p.dtype), gate_text(p),
                                 name_of(p.layout)};
  if (row.status == "pass" || row.status == "fail") {
    const reference::ErrorReport& e = row.verdict.error;
    cells.insert(cells.end(),
                 {formatted("{:.3g}", e.relative_frobenius), formatted("{:.3g}", row.unfused.relative_frobenius),
                  formatted("{:.3g}", e.worst_stripe), formatted("{:.4f}", 100 * e.share_over_1_percent),
                  formatted("{:.4g}", e.max_ulp), formatted("{}", e.not_finite + e.unwritten)});
  } else {
    cells.resize(11, "-");
  }
  cells.push_back(row.status);
  return cells;
}

struct VerifyRun {
  std::vector<VerifyRow> rows;
  int passed = 0, failed = 0, skipped = 0;
};

void run_job(const VerifyOptions& options, const VerifyJob& job, const std::vector<PlanOptions>& targets,
             VerifyRun& run) {
  const auto add = [&](VerifyRow row) {
    row.model = job.model;
    (row.status == "pass" ? run.passed : row.status == "skipped" ? run.skipped : run.failed) += 1;
    run.rows.push_back(std::move(row));
  };
  Result<VerifyBase> base = VerifyBase::make(job.problem, {.seed = options.seed, .a_scale = options.a_scale});
  if (!base.ok()) {
    return add(
        {.problem = job.problem, .status = "error", .reason = base.status().text(), .code = base.status().code()});
  }
  for (const VerifyGate& gate : job.gates) {
    for (const Layout layout : job.layouts) {
      for (const PlanOptions& target : targets) {
        const bool chosen = !rounds_early(target.kernel) || targets.size() == 1;
        add(verify_one(base.value(), {.options = target,
                                      .layout = layout,
                                      .gate = gate,
                                      // In a grid each layout is its own line; a kernel that cannot do it skips it.
                                      .any_layout = !options.all,
                                      .fault = chosen ? options.fault : Fault::kNone}));
      }
    }
  }
}

// What was asked for by name and cannot be done is a wrong argument, not a row.
Status refused(const VerifyOptions& options, const VerifyRun& run) {
  if (options.all || options.common.kernel == "all" || run.rows.empty()) return {};
  const VerifyRow& first = run.rows.front();
  switch (first.code) {
    case Code::kInvalidArgument:
    case Code::kNotSupported:
    case Code::kNotAvailable: return {first.code, first.reason};
    default: return {};
  }
}

Result<int> verify(const VerifyOptions& options) {
  const Result<Memory> memory = resolve_memory(options.common);
  if (!memory.ok()) return memory.status();
  const Result<std::vector<VerifyJob>> jobs = make_jobs(options, memory.value());
  if (!jobs.ok()) return jobs.status();
  const Result<std::vector<PlanOptions>> targets = make_targets(options, memory.value());
  if (!targets.ok()) return targets.status();
  VerifyRun run;
  for (const VerifyJob& job : jobs.value()) run_job(options, job, targets.value(), run);
  TILEGLU_TRY(refused(options, run));

  const bool pass = run.failed == 0 && run.passed > 0;
  if (options.common.json) {
    Json document = make_document("verify");
    document["device"] = device_name(memory.value(), options.common.device);
    document["seed"] = options.seed;
    document["status"] = pass ? "pass" : "fail";
    document["summary"] = {{"passed", run.passed}, {"failed", run.failed}, {"skipped", run.skipped}};
    Json rows = Json::array();
    for (const VerifyRow& row : run.rows) rows.push_back(row_json(row));
    document["rows"] = std::move(rows);
    print_document(document);
  } else {
    Table table({{"kernel", true},
                 {"m x n x k", true},
                 {"dtype", true},
                 {"activation", true},
                 {"layout", true},
                 {"error", false},
                 {"unfused", false},
                 {"stripe", false},
                 {"% over 1 %", false},
                 {"ulp", false},
                 {"bad", false},
                 {"verdict", true}});
    std::string failures;
    for (const VerifyRow& row : run.rows) {
      if (row.status == "skipped" && options.all) continue;
      table.add(row_cells(row));
      if (!row.reason.empty()) failures += formatted("  {}: {}: {}\n", row.kernel, row.status, one_line(row.reason));
    }
    print(formatted("{}{}{} passed, {} failed, {} skipped (kernel cannot do the problem)\n", table.text(), failures,
                    run.passed, run.failed, run.skipped));
  }
  if (pass) return kExitOk;
  const auto bad = std::find_if(run.rows.begin(), run.rows.end(),
                                [](const VerifyRow& row) { return row.status == "fail" || row.status == "error"; });
  const std::string reason =
      bad == run.rows.end() ? std::string("nothing could be verified") : formatted("{}: {}", bad->kernel, bad->reason);
  print_error("tileglu verify", formatted("{} failed: {}", run.failed, reason));
  return kExitCheckFailed;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App& command = *app.add_subcommand("verify", "Check kernels against an fp64 reference");
  add_common_options(command, options->common);
  add_shape_options(command, options->shape, 0);
  add_gate_options(command, options->gate);
  add_operand_options(command, options->gate);
  add_layout_option(command, options->layout, "Layout of the weights");
  add_seed_option(command, options->seed);
  add_number(command, "--a-scale", options->a_scale, {.low = 1e-6, .high = 1e6}, "Standard deviation of A");
  command.add_flag("--all", options->all, "Ragged shapes x layouts x activations x dtypes, and operands x roundings");
  add_choice(command, "--inject-fault", options->fault, fault_named, kFaultNames, "Spoil the result")->group("");
  command.callback([options, &action] { action = {"verify", [options] { return verify(*options); }}; });
}

}  // namespace tileglu::tool
