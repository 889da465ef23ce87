// SPDX-License-Identifier: Apache-2.0
// tileglu verify: kernels against an fp64 reference, with the unfused path in the same dtype beside them.
#include "arguments.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "environment.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "verify_case.hpp"

#include <algorithm>
#include <memory>

namespace tileglu::tool {
namespace {

struct VerifyOptions {
  CommonOptions common;
  ShapeOptions shape;
  std::optional<Layout> layout;
  std::uint64_t seed = 1;
  double a_scale = 1;
  bool all = false;
  Fault fault = Fault::kNone;
};

// One line of the plan: data, and what is run on it.
struct VerifyJob {
  std::string model = {};
  Problem problem = {};  // shape, dtype, strides
  std::vector<Layout> layouts = {};
  std::vector<Activation> activations = {};
};

constexpr Layout kLayouts[] = {Layout::kSeparate, Layout::kGateUp, Layout::kUpGate, Layout::kInterleaved1,
                               Layout::kInterleaved8};
constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf,
                                       Activation::kRelu, Activation::kSigmoid,  Activation::kIdentity};
constexpr Dtype kDtypes[] = {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32};

// Nothing, one row, around tiles of 64 and 128, widths that no vector divides, strides longer than rows.
struct GridShape {
  std::int64_t m, n, k, padding;
};
constexpr GridShape kGrid[] = {
    {.m = 0, .n = 64, .k = 64, .padding = 0},     {.m = 5, .n = 24, .k = 0, .padding = 0},
    {.m = 1, .n = 1, .k = 1, .padding = 0},       {.m = 1, .n = 256, .k = 512, .padding = 0},
    {.m = 7, .n = 24, .k = 40, .padding = 8},     {.m = 63, .n = 130, .k = 65, .padding = 3},
    {.m = 127, .n = 120, .k = 72, .padding = 0},  {.m = 128, .n = 256, .k = 128, .padding = 0},
    {.m = 129, .n = 264, .k = 136, .padding = 8}, {.m = 300, .n = 712, .k = 640, .padding = 0}};

Problem make_problem(const VerifyOptions& options, Memory memory, const GridShape& shape, Dtype dtype) {
  return {.dtype = dtype,
          .dtype_y = dtype,
          .memory = memory,
          .device = options.common.device,
          .m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .lda = shape.k + shape.padding,
          .ld_gate = shape.k + shape.padding,
          .ld_up = shape.k + shape.padding,
          .ldy = shape.n + shape.padding};
}

Result<std::vector<VerifyJob>> make_jobs(const VerifyOptions& options, Memory memory) {
  std::vector<VerifyJob> jobs;
  const CommonOptions& common = options.common;
  const auto dtypes = common.dtype ? std::vector{*common.dtype} : std::vector(std::begin(kDtypes), std::end(kDtypes));
  if (options.all) {
    if (options.shape.given()) return Status(Code::kInvalidArgument, "--all brings its own shapes; leave out others");
    for (const GridShape& shape : kGrid) {
      for (const Dtype dtype : dtypes) {
        VerifyJob job{.problem = make_problem(options, memory, shape, dtype)};
        job.layouts =
            options.layout ? std::vector{*options.layout} : std::vector(std::begin(kLayouts), std::end(kLayouts));
        if (shape.n % 8 != 0) std::erase(job.layouts, Layout::kInterleaved8);
        job.activations = common.activation ? std::vector{*common.activation}
                                            : std::vector(std::begin(kActivations), std::end(kActivations));
        jobs.push_back(std::move(job));
      }
    }
    return jobs;
  }
  const Result<std::vector<Shape>> shapes = resolve_shapes(options.shape, {64});
  if (!shapes.ok()) return shapes.status();
  for (const Shape& shape : shapes.value()) {
    const GridShape sizes{.m = shape.m, .n = shape.n, .k = shape.k, .padding = 0};
    jobs.push_back({.model = shape.model,
                    .problem = make_problem(options, memory, sizes, common.dtype.value_or(Dtype::kBf16)),
                    .layouts = {options.layout.value_or(Layout::kSeparate)},
                    .activations = {common.activation.value_or(shape.activation)}});
  }
  return jobs;
}

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

std::vector<std::string> row_cells(const VerifyRow& row) {
  const Problem& p = row.problem;
  std::vector<std::string> cells{row.backend.empty() ? row.kernel : row.backend + "/" + row.kernel,
                                 formatted("{}x{}x{}", p.m, p.n, p.k), name_of(p.dtype), name_of(p.activation),
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
  for (const Activation activation : job.activations) {
    for (const Layout layout : job.layouts) {
      for (const PlanOptions& target : targets) {
        const bool chosen = !rounds_early(target.kernel) || targets.size() == 1;
        add(verify_one(base.value(), {.options = target,
                                      .layout = layout,
                                      .activation = activation,
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
  add_layout_option(command, options->layout, "Layout of the weights");
  add_seed_option(command, options->seed);
  add_number(command, "--a-scale", options->a_scale, {.low = 1e-6, .high = 1e6}, "Standard deviation of A");
  command.add_flag("--all", options->all, "Ragged shapes x layouts x activations x dtypes");
  add_choice(command, "--inject-fault", options->fault, fault_named, kFaultNames, "Spoil the result")->group("");
  command.callback([options, &action] { action = {"verify", [options] { return verify(*options); }}; });
}

}  // namespace tileglu::tool
