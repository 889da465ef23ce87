// SPDX-License-Identifier: Apache-2.0
// tileglu bench: contenders against each other on the same data, in the same minute.
#include "arguments.hpp"
#include "bench_report.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "io/tensor.hpp"
#include "output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace tileglu::tool {
namespace {

enum class GraphUse { kAuto, kOn, kOff };

struct BenchOptions {
  CommonOptions common;
  GateOptions gate;
  ShapeOptions shape;
  std::optional<Layout> layout;
  std::uint64_t seed = 1;
  std::vector<std::string> contenders;
  std::string output, inject;
  bool warm = false, no_ceilings = false;
  GraphUse graph = GraphUse::kAuto;
  int samples = 20;
  double min_time_s = 0.3, warmup_s = 0.3;
  std::optional<double> peak_tflops, peak_gbps;
};

std::optional<GraphUse> graph_use_named(std::string_view name) {
  if (name == "auto") return GraphUse::kAuto;
  if (name == "on" || name.empty()) return GraphUse::kOn;  // empty: the option without a value
  if (name == "off") return GraphUse::kOff;
  return {};
}

std::optional<bool> warm_named(std::string_view name) {
  if (name == "cold") return false;
  if (name == "warm") return true;
  return {};
}

Result<BenchSettings> make_settings(const BenchOptions& options, Memory memory) {
  BenchSettings settings{.memory = memory,
                         .device = options.common.device,
                         .dtype = options.common.dtype.value_or(Dtype::kBf16),
                         .gate = options.gate,
                         .seed = options.seed,
                         .cold = !options.warm,
                         .samples = options.samples,
                         .min_time_s = options.min_time_s,
                         .warmup_s = options.warmup_s};
  settings.dtype_y = settings.dtype;
  settings.peak = device_peak(memory, settings.device, settings.dtype);
  if (options.peak_tflops) settings.peak.tflops = options.peak_tflops;
  if (options.peak_gbps) settings.peak.gbps = options.peak_gbps;
  if (options.graph == GraphUse::kOn && memory == Memory::kHost) {
    return bad_argument("--cuda-graph", "on", "needs a GPU; the operands are in host memory");
  }
  if (options.inject.starts_with("wrong:")) settings.wrong_contender = options.inject.substr(6);
  if (options.inject.starts_with("error:")) settings.error_contender = options.inject.substr(6);
  if (!options.inject.empty() && settings.wrong_contender.empty() && settings.error_contender.empty()) {
    return bad_argument("--inject-fault", options.inject, "must be wrong:CONTENDER or error:CONTENDER");
  }
  return settings;
}

// A result of an earlier run must not be taken for one of a run that died: it goes before the first measurement. And
// whether a file can be made there is better known now than after an hour.
Status prepare_output(const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::filesystem::path folder = parent.empty() ? "." : parent;
  if (!std::filesystem::is_directory(folder, error)) {
    return bad_argument("--output", path, formatted("{} is not a folder", folder.string()));
  }
  if (access(folder.c_str(), W_OK) != 0) {
    return bad_argument("--output", path, formatted("cannot write to {}: {}", folder.string(), std::strerror(errno)));
  }
  const auto type = std::filesystem::symlink_status(path, error).type();
  if (type == std::filesystem::file_type::directory) return bad_argument("--output", path, "is a folder");
  if (type == std::filesystem::file_type::regular) std::filesystem::remove(path, error);
  return {};
}

bool wants_graph(const BenchOptions& options, Memory memory, const Shape& shape) {
  if (options.graph != GraphUse::kAuto) return options.graph == GraphUse::kOn;
  return memory == Memory::kCuda && needs_graph(shape);
}

Result<int> finish(const BenchOptions& options, const BenchRun& run) {
  const Json document = bench_document(run);
  if (!options.output.empty()) {
    const Status written = io::write_text(options.output, to_text(document));
    if (!written.ok()) return Status(Code::kInvalidArgument, "--output: " + written.text());
  }
  const BenchSummary summary = summarise(run.shapes);
  if (options.common.json) {
    print_document(document);
  } else {
    print(formatted("\n{} ok, {} failed, {} skipped\n", summary.ok, summary.failed, summary.skipped));
  }
  if (summary.failed == 0) return kExitOk;
  print_error("tileglu bench", formatted("{} of {} rows failed, first {}", summary.failed,
                                         summary.ok + summary.failed + summary.skipped, summary.first_failure));
  return kExitCheckFailed;
}

// The shape could not be set up: its rows say so, the other shapes go on.
ShapeResult failed_shape(const Shape& shape, const std::vector<Contender>& contenders, const Status& status) {
  ShapeResult result{.shape = shape};
  for (const Contender& contender : contenders) {
    result.rows.push_back({.contender = contender, .status = "error", .reason = status.text()});
  }
  return result;
}

Result<int> bench(const BenchOptions& options) {
  const Result<std::vector<Shape>> shapes = resolve_shapes(options.shape, {512});
  if (!shapes.ok()) return shapes.status();
  const Result<Memory> memory = resolve_memory(options.common);
  if (!memory.ok()) return memory.status();
  const Result<BenchSettings> settings = make_settings(options, memory.value());
  if (!settings.ok()) return settings.status();
  const Result<std::vector<Contender>> contenders = resolve_contenders(
      {.names = options.contenders, .common = options.common, .layout = options.layout, .memory = memory.value()});
  if (!contenders.ok()) return contenders.status();
  for (const Shape& shape : shapes.value()) {
    const Problem asked{.activation = options.common.activation.value_or(shape.activation)};
    TILEGLU_TRY(with_gate(options.gate, asked).status());
  }
  TILEGLU_TRY(prepare_output(options.output));

  BenchRun run{.settings = settings.value()};
  run.sensors_at_start = sensor_reading(memory.value(), options.common.device);
  const bool text = !options.common.json;
  if (text) print(formatted("{}\n{}\n", device_name(memory.value(), options.common.device), method_text(run.settings)));
  if (memory.value() == Memory::kCuda && !options.no_ceilings) {
    const Result<Ceilings> ceilings = measure_ceilings(options.common.device);
    if (ceilings.ok()) run.ceilings = ceilings.value();
    if (text) print(ceilings.ok() ? ceilings_text(run) : "ceilings: " + one_line(ceilings.status().text()) + "\n");
  }
  for (const Shape& shape : shapes.value()) {
    run.settings.cuda_graph = wants_graph(options, memory.value(), shape);
    Result<ShapeResult> result =
        bench_shape(shape, options.common.activation.value_or(shape.activation), contenders.value(), run.settings);
    if (!result.ok()) result = failed_shape(shape, contenders.value(), result.status());
    run.shapes.push_back(std::move(result.value()));
    if (text) print(shape_text(run.shapes.back()));
  }
  return finish(options, run);
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& command = *app.add_subcommand("bench", "Time kernels and baselines against each other");
  add_common_options(command, options->common);
  add_gate_options(command, options->gate);
  add_operand_options(command, options->gate);
  add_shape_options(command, options->shape, 1);
  add_layout_option(command, options->layout, "Layout of the weights for all contenders (default: each one's own)");
  add_seed_option(command, options->seed);
  add_text_list(
      command, "--contenders", options->contenders,
      "Who takes part: tileglu, a kernel or family (either may end in +invariant, then in +prefetch: its flags), "
      "cublas_gemm_only, cublas_merged, cublas_two_gemms");
  command.add_option("--output", options->output, "Write the JSON document to this file")->type_name("FILE");
  add_choice(command, "--l2", options->warm, warm_named, "cold, warm", "Rotate buffers past the cache, or not");
  add_choice(command, "--cuda-graph", options->graph, graph_use_named, "auto, on, off",
             "Time launches of a CUDA graph; auto: up to m = 128, and for calls of less than about 50 us")
      ->expected(0, 1);
  add_integer(command, "--samples", options->samples, {.low = 1, .high = 2000}, "Samples of each contender, at least");
  const NumberRange seconds{.low = 0, .high = 3600};
  add_number(command, "--min-time", options->min_time_s, seconds,
             "Seconds of each contender's samples together, at least");
  add_number(command, "--warmup", options->warmup_s, seconds, "Seconds of warm-up before the samples of a shape");
  command.add_flag("--no-ceilings", options->no_ceilings, "Do not measure memory bandwidth and the square GEMM");
  const NumberRange peaks{.low = 1e-9, .high = 1e9};
  add_number(command, "--peak-tflops", options->peak_tflops, peaks, "Flag rates above this (default: the device's)");
  add_number(command, "--peak-gbps", options->peak_gbps, peaks, "Flag rates above this (default: the device's)");
  command.add_option("--inject-fault", options->inject)->group("");
  command.callback([options, &action] { action = {"bench", [options] { return bench(*options); }}; });
}

}  // namespace tileglu::tool
