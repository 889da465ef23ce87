// SPDX-License-Identifier: Apache-2.0
// tileglu tune: measures which kernel is the fastest and keeps it where the planner looks.
#include "arguments.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "environment.hpp"
#include "io/tuning_cache.hpp"
#include "output.hpp"
#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"
#include "progress.hpp"
#include "tune_bench.hpp"
#include "tune_report.hpp"

#include <csignal>
#include <filesystem>
#include <memory>

namespace tileglu::tool {
namespace {

struct TuneOptions {
  CommonOptions common;
  ShapeOptions shape;
  std::optional<Layout> layout;
  std::uint64_t seed = 1;
  double budget_s = 0;
  bool again = false, dry_run = false;
  std::string output, inject;
};

const std::vector<std::int64_t> kDefaultM{1, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};

// What can be refused on any machine.
Status check_arguments(const TuneOptions& options) {
  const BackendId backend = options.common.backend;
  if (backend != BackendId::kAuto && backend != BackendId::kSm90) {
    return bad_argument("--backend", name_of(backend), "only sm90 has kernels to choose from");
  }
  if (!options.inject.empty() && !options.inject.starts_with("wrong:")) {
    return bad_argument("--inject-fault", options.inject, "must be wrong:KERNEL");
  }
  if (options.common.kernel.empty()) return {};
  return kernels_named({find_backend(BackendId::kSm90)}, options.common.kernel).status();
}

Result<std::filesystem::path> file_of(const TuneOptions& options) {
  if (!options.output.empty()) return std::filesystem::path(options.output);
  const std::filesystem::path path = io::tuning_cache_path();
  if (!path.empty()) return path;
  return Status(Code::kInvalidArgument, "no folder for the cache: set TILEGLU_CACHE_DIR or HOME, or give --output");
}

// A folder of the cache is made, one that the user names has to be there. Writes the file once, so that a file that
// cannot be written is known before an hour of measurements and not after.
Status open_file(const TuneOptions& options, const std::filesystem::path& path) {
  std::error_code error;
  if (options.output.empty()) std::filesystem::create_directories(path.parent_path(), error);
  const Status status = io::add_tuning(path, {});
  if (status.ok() || options.output.empty()) return status;
  return bad_argument("--output", options.output, status.text());
}

TuneProblem make_problem(const TuneOptions& options, const Shape& shape, const DeviceSpec& device) {
  const Dtype dtype = options.common.dtype.value_or(Dtype::kBf16);
  TuneProblem problem{.shape = shape};
  problem.problem = contiguous({.dtype = dtype,
                                .dtype_y = dtype,
                                .activation = options.common.activation.value_or(shape.activation),
                                .layout = options.layout.value_or(Layout::kSeparate),
                                .memory = Memory::kCuda,
                                .device = options.common.device},
                               shape);
  problem.key = tuning_key(problem.problem, device);
  const std::string& kernel = options.common.kernel;
  for (const Candidate& candidate : candidates(problem.problem, device, kernel == "all" ? "" : kernel)) {
    if (candidate.legal.ok()) {
      const KernelConfig& config = kSm90Configs[static_cast<std::size_t>(candidate.row)];
      problem.candidates.push_back({.kernel = config_name(config), .predicted_us = candidate.predicted_us});
    } else if (problem.reason.empty()) {
      problem.reason = candidate.legal.text();
    }
  }
  if (problem.candidates.empty()) {
    problem.status = "refused";
  } else {
    problem.reason.clear();
  }
  return problem;
}

Result<std::vector<TuneProblem>> make_problems(const TuneOptions& options, const std::vector<Shape>& shapes) {
  const Result<DeviceSpec> device = runtime::device_spec(options.common.device);
  if (!device.ok()) return device.status();
  std::vector<TuneProblem> problems;
  bool any = false;
  for (const Shape& shape : shapes) {
    problems.push_back(make_problem(options, shape, device.value()));
    any = any || !problems.back().candidates.empty();
  }
  if (!any) return Status(Code::kNotSupported, problems.front().reason);
  return problems;
}

Result<TuneEnd> tune_problems(const TuneOptions& options, const std::filesystem::path& path,
                              std::vector<TuneProblem>& problems) {
  KernelBench bench(
      {.seed = options.seed, .wrong_kernel = options.inject.empty() ? std::string() : options.inject.substr(6)});
  ProgressDisplay display("tileglu tune");
  const StopRequest stop;
  return tune_all(problems, bench,
                  {.budget_s = options.budget_s,
                   .stop = [] { return StopRequest::signal() != 0; },
                   .keep = [&](const TuningTable& rows) { return io::add_tuning(path, rows); },
                   .progress = [&](const Progress& progress) { display.show(progress); }});
}

const char* name_of(TuneEnd end) {
  switch (end) {
    case TuneEnd::kDone: return "done";
    case TuneEnd::kStopped: return "stopped";
    case TuneEnd::kBudgetSpent: return "budget_spent";
  }
  return "?";
}

void print_report(const TuneOptions& options, const std::string& file, const std::vector<TuneProblem>& problems,
                  const char* end) {
  const TuneSummary summary = summarise(problems);
  if (options.common.json) {
    Json document = make_document("tune");
    document["device"] = device_name(Memory::kCuda, options.common.device);
    document["file"] = file;
    document["end"] = end;
    document["summary"] = {{"tuned", summary.tuned},
                           {"known", summary.known},
                           {"duplicate", summary.duplicate},
                           {"refused", summary.refused},
                           {"failed", summary.failed},
                           {"not_reached", summary.not_reached},
                           {"failed_candidates", summary.failed_candidates}};
    document["rows"] = tune_rows(problems);
    return print_document(document);
  }
  print(formatted("{}{} tuned, {} known already, {} refused, {} failed, {} not reached; {}\n", tune_table(problems),
                  summary.tuned, summary.known, summary.refused, summary.failed, summary.not_reached, file));
}

int finish(const TuneOptions& options, const std::string& file, const std::vector<TuneProblem>& problems, TuneEnd end) {
  print_report(options, file, problems, name_of(end));
  const TuneSummary summary = summarise(problems);
  if (end != TuneEnd::kDone) {
    const bool stopped = end == TuneEnd::kStopped;
    const std::string why = stopped
                                ? formatted("stopped by {}", StopRequest::signal() == SIGTERM ? "SIGTERM" : "SIGINT")
                                : formatted("--budget={} is spent", options.budget_s);
    print_error("tileglu tune", formatted("{}: {} tuned and kept in {}, {} not reached; the same command goes on there",
                                          why, summary.tuned, file, summary.not_reached));
    if (stopped) return kExitCheckFailed;
  }
  if (summary.first_failure.empty()) return kExitOk;
  print_error("tileglu tune", formatted("{} problems and {} kernels failed, first {}", summary.failed,
                                        summary.failed_candidates, summary.first_failure));
  return kExitCheckFailed;
}

Result<int> tune(const TuneOptions& options) {
  const Result<std::vector<Shape>> shapes = resolve_shapes(options.shape, kDefaultM);
  if (!shapes.ok()) return shapes.status();
  TILEGLU_TRY(check_arguments(options));
  const Result<std::filesystem::path> path = file_of(options);
  if (!path.ok()) return path.status();
  CommonOptions on_gpu = options.common;
  on_gpu.backend = BackendId::kSm90;
  if (const Result<Memory> memory = resolve_memory(on_gpu); !memory.ok()) return memory.status();
  Result<std::vector<TuneProblem>> problems = make_problems(options, shapes.value());
  if (!problems.ok()) return problems.status();
  const std::string file = path.value().string();
  if (!options.dry_run) TILEGLU_TRY(open_file(options, path.value()));
  const Result<TuningTable> known = options.again ? TuningTable() : io::read_tuning(path.value());
  mark_known(problems.value(), known.ok() ? known.value() : TuningTable());
  if (options.dry_run) {
    print_report(options, file, problems.value(), "dry_run");
    return kExitOk;
  }
  const Result<TuneEnd> end = tune_problems(options, path.value(), problems.value());
  if (!end.ok()) return end.status();
  return finish(options, file, problems.value(), end.value());
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App& command = *app.add_subcommand("tune", "Measure the fastest kernel of each shape for the planner to take");
  add_common_options(command, options->common);
  add_shape_options(command, options->shape, 1);
  add_layout_option(command, options->layout, "Layout of the weights (default: separate)");
  add_seed_option(command, options->seed);
  add_number(command, "--budget", options->budget_s, {.low = 1, .high = 1e6},
             "Begin no further shape after this many seconds");
  command.add_flag("--again", options->again, "Tune shapes that the file has already, too");
  command.add_flag("--dry-run", options->dry_run, "Only list what would be tuned; with --json also the kernels");
  command.add_option("--output", options->output, "Keep the results in this file (default: the user's cache)")
      ->type_name("FILE");
  command.add_option("--inject-fault", options->inject)->group("");
  command.callback([options, &action] { action = {"tune", [options] { return tune(*options); }}; });
}

}  // namespace tileglu::tool
