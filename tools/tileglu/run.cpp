// SPDX-License-Identifier: Apache-2.0
// tileglu run: the gated projections of a checkpoint on an input from a file.
#include "arguments.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "environment.hpp"
#include "gate_options.hpp"
#include "json_output.hpp"
#include "layer_run.hpp"
#include "output.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

namespace tileglu::tool {
namespace {

struct RunOptions {
  CommonOptions common;
  GateOptions gate;
  WeightsOptions weights;
  std::string input, input_name, output;
  std::optional<Dtype> output_dtype;
  std::optional<Layout> repack;
  bool convert_input = false, check = false;
  int runs = 5;
};

// The input of each layer: layers.L.x where the file has it, else its one tensor (or the named one) for all.
class Inputs {
 public:
  static Result<Inputs> open(const RunOptions& options) {
    Inputs inputs;
    inputs.path_ = options.input;
    inputs.name_ = options.input_name;
    if (std::filesystem::path(options.input).extension() == ".safetensors" && options.input_name.empty()) {
      Result<io::Checkpoint> file = io::Checkpoint::open(options.input);
      if (!file.ok()) return file.status();
      inputs.file_ = std::move(file.value());
    }
    return inputs;
  }
  Result<io::TensorView> of_layer(int layer) const {
    const std::string name = formatted("layers.{}.x", layer);
    const bool own = file_ && file_->find(name) != nullptr;
    return io::read_tensor(path_, own ? name : name_);
  }

 private:
  std::string path_, name_;
  std::optional<io::Checkpoint> file_;
};

std::string output_name(const RunOptions& options, const LayerResult& result) {
  if (options.weights.layer && !options.weights.all_experts) return "y";
  return result.expert ? formatted("layers.{}.experts.{}.y", result.layer, *result.expert)
                       : formatted("layers.{}.y", result.layer);
}

// What can be refused before anything is computed.
Status check_output(const RunOptions& options, const std::vector<Selected>& selected) {
  if (options.output.empty()) return {};
  const std::filesystem::path path = options.output;
  if (path.extension() != ".npy" && path.extension() != ".safetensors") {
    return bad_argument("--output", options.output, "the name must end in .safetensors or .npy");
  }
  const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return bad_argument("--output", options.output, formatted("{} is not a folder", folder.string()));
  }
  if (path.extension() != ".npy") return {};
  if (selected.size() > 1) {
    return bad_argument("--output", options.output,
                        formatted(".npy holds one array and {} layers were chosen; use .safetensors", selected.size()));
  }
  if (options.output_dtype.value_or(selected.front().weights.gate.dtype) == Dtype::kBf16) {
    return bad_argument("--output", options.output, "numpy has no bf16; add --output-dtype fp32, or use .safetensors");
  }
  return {};
}

Status write_output(const RunOptions& options, const std::vector<LayerResult>& results) {
  if (options.output.empty()) return {};
  std::vector<io::TensorSource> tensors;
  for (const LayerResult& result : results) {
    tensors.push_back({.name = output_name(options, result),
                       .dtype = result.y_dtype,
                       .shape = {result.problem.m, result.problem.n},
                       .data = result.y.data(),
                       .bytes = result.y.size()});
  }
  const Status written = io::write_tensors(options.output, tensors);
  return written.ok() ? written : Status(Code::kInvalidArgument, "--output: " + written.text());
}

Json row_json(const RunOptions& options, const LayerResult& result) {
  const Problem& p = result.problem;
  const auto report = [](const std::optional<reference::ErrorReport>& e) { return e ? to_json(*e) : Json(nullptr); };
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"layer", result.layer},
          {"expert", result.expert ? Json(*result.expert) : Json(nullptr)},
          {"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"dtype", name_of(p.dtype)},
          {"dtype_y", name_of(result.y_dtype)},
          {"dtype_rounded", name_of(p.dtype_y)},
          {"activation", name_of(p.activation)},
          {"rounding", name_of(p.rounding)},
          {"layout", name_of(p.layout)},
          {"backend", result.backend},
          {"kernel", result.kernel},
          {"plan", one_line(result.describe)},
          {"weights_in_place", result.weights_in_place},
          {"repack_us", number(result.repack_us)},
          {"time_us", result.fused_us},
          {"unfused_kernel", result.unfused_kernel.empty() ? Json(nullptr) : Json(result.unfused_kernel)},
          {"unfused_us", number(result.unfused_us)},
          {"unfused_reason", result.unfused_reason},
          {"error", report(result.error)},
          {"unfused_error", report(result.unfused_error)},
          {"unfused_kernel_error", report(result.unfused_kernel_error)},
          {"output", options.output.empty() ? Json(nullptr) : Json(output_name(options, result))},
          {"status", result.pass ? "ok" : "fail"},
          {"reason", result.reason}};
}

std::string results_text(const RunOptions& options, const std::vector<LayerResult>& results) {
  Table table({{"layer", false},
               {"m", false},
               {"n", false},
               {"k", false},
               {"kernel", true},
               {"fused us", false},
               {"unfused us", false},
               {"speed-up", false},
               {"error", false},
               {"unfused", false},
               {"verdict", true}});
  double fused = 0, unfused = 0;
  const auto cell = [](const auto& value, const char* format) {
    return value ? formatted(fmt::runtime(format), *value) : std::string("-");
  };
  for (const LayerResult& r : results) {
    const auto relative = [](const std::optional<reference::ErrorReport>& e) {
      return e ? std::optional(e->relative_frobenius) : std::nullopt;
    };
    std::optional<double> speedup;
    if (r.unfused_us) speedup = *r.unfused_us / r.fused_us;
    fused += r.fused_us;
    unfused += r.unfused_us.value_or(0);
    table.add({r.expert ? formatted("{}.{}", r.layer, *r.expert) : formatted("{}", r.layer),
               formatted("{}", r.problem.m), formatted("{}", r.problem.n), formatted("{}", r.problem.k),
               r.backend + "/" + r.kernel, formatted("{:.0f}", r.fused_us), cell(r.unfused_us, "{:.0f}"),
               cell(speedup, "{:.2f}"), cell(relative(r.error), "{:.3g}"), cell(relative(r.unfused_error), "{:.3g}"),
               !options.check ? "not checked"
               : r.pass       ? "ok"
                              : "FAIL"});
  }
  std::string text = table.text();
  if (results.size() > 1 && unfused > 0) {
    text += formatted("sum of {} layers: fused {:.1f} ms, unfused {:.1f} ms ({:.2f}x)\n", results.size(), fused * 1e-3,
                      unfused * 1e-3, unfused / fused);
  }
  return text;
}

std::string notes_text(const LayerResult& first, const ActivationSource& activation) {
  std::string text =
      formatted("activation {} (from {}), weights {}{}", name_of(activation.activation), activation.source,
                name_of(first.problem.dtype), first.weights_in_place ? " used in place" : "");
  if (first.repack_us)
    text += formatted(", laid out as {} in {:.0f} us", name_of(first.problem.layout), *first.repack_us);
  if (first.y_dtype != first.problem.dtype_y) {
    text += formatted(", Y rounded to {} and stored as {}", name_of(first.problem.dtype_y), name_of(first.y_dtype));
  }
  text += "\n";
  if (first.unfused_us) {
    text += formatted("unfused: {} on the same device; errors are relative, against fp64\n", first.unfused_kernel);
  } else if (!first.unfused_reason.empty()) {
    text += formatted("unfused: not timed: {}\n", one_line(first.unfused_reason));
  }
  return text;
}

Result<std::vector<LayerResult>> run_layers(const RunOptions& options, const std::vector<Selected>& selected,
                                            const LayerRequest& request) {
  const Result<Inputs> inputs = Inputs::open(options);
  if (!inputs.ok()) return Status(inputs.status().code(), "--input: " + inputs.status().text());
  std::vector<LayerResult> results;
  for (const Selected& layer : selected) {
    const Result<io::TensorView> x = inputs.value().of_layer(layer.layer);
    if (!x.ok()) return Status(x.status().code(), "--input: " + x.status().text());
    Result<LayerResult> result = run_layer(layer, x.value(), request);
    if (!result.ok()) return result.status();
    results.push_back(std::move(result.value()));
  }
  return results;
}

Result<int> run(const RunOptions& options) {
  if (options.common.kernel == "all") return bad_argument("--kernel", "all", "run computes with one kernel");
  const Result<Memory> memory = resolve_memory(options.common);
  if (!memory.ok()) return memory.status();
  const Result<io::Checkpoint> checkpoint = io::Checkpoint::open(options.weights.path);
  if (!checkpoint.ok()) return Status(checkpoint.status().code(), "--weights: " + checkpoint.status().text());
  const Result<std::vector<Selected>> selected = select_weights(checkpoint.value(), options.weights);
  if (!selected.ok()) return selected.status();
  for (const Selected& layer : selected.value()) TILEGLU_TRY(check_dtype(layer, options.common.dtype));
  const Result<ActivationSource> activation = resolve_activation(options.common.activation, checkpoint.value());
  if (!activation.ok()) return activation.status();
  const Result<Problem> gate = with_gate(options.gate, {.activation = activation.value().activation});
  if (!gate.ok()) return gate.status();
  TILEGLU_TRY(check_output(options, selected.value()));

  const LayerRequest request{.place = {.memory = memory.value(), .device = options.common.device},
                             .options = {.backend = options.common.backend, .kernel = options.common.kernel},
                             .activation = activation.value().activation,
                             .swiglu = gate.value().swiglu,
                             .rounding = gate.value().rounding,
                             .dtype_y = options.output_dtype,
                             .repack = options.repack,
                             .convert_input = options.convert_input,
                             .check = options.check,
                             .runs = options.runs};
  const Result<std::vector<LayerResult>> results = run_layers(options, selected.value(), request);
  if (!results.ok()) return results.status();
  const auto failed = std::find_if(results.value().begin(), results.value().end(),
                                   [](const LayerResult& result) { return !result.pass; });
  const bool pass = failed == results.value().end();
  if (pass) TILEGLU_TRY(write_output(options, results.value()));  // a result that failed its check is not handed out

  if (options.common.json) {
    Json document = make_document("run");
    document["device"] = device_name(memory.value(), options.common.device);
    document["weights"] = checkpoint.value().file();
    document["activation_source"] = activation.value().source;
    document["output"] = options.output.empty() || !pass ? Json(nullptr) : Json(options.output);
    document["status"] = pass ? "ok" : "fail";
    Json rows = Json::array();
    for (const LayerResult& result : results.value()) rows.push_back(row_json(options, result));
    document["rows"] = std::move(rows);
    print_document(document);
  } else {
    print(results_text(options, results.value()) + notes_text(results.value().front(), activation.value()));
  }
  if (pass) return kExitOk;
  print_error("tileglu run",
              formatted("layer {} failed its check, nothing written: {}", failed->layer, failed->reason));
  return kExitCheckFailed;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "Compute gated projections of a checkpoint on an input file");
  add_common_options(command, options->common);
  add_gate_options(command, options->gate);
  add_weights_options(command, options->weights);
  command.add_option("--input", options->input, "A [m,k]: .safetensors or .npy; layers.L.x is taken for layer L")
      ->type_name("FILE")
      ->required();
  command.add_option("--input-name", options->input_name, "Tensor of the input file, if it has several")
      ->type_name("NAME");
  command.add_option("--output", options->output, "Y [m,n]: .safetensors or .npy")->type_name("FILE");
  add_choice(command, "--output-dtype", options->output_dtype, dtype_named, "bf16, fp16, fp32",
             "Type of Y (default: the weights')");
  add_choice(command, "--repack", options->repack, layout_named,
             "separate, gate_up, up_gate, interleaved_1, interleaved_8", "Lay the weights out anew before the run");
  command.add_flag("--convert-input", options->convert_input, "Allow a conversion of the input that rounds");
  command.add_flag("--check", options->check, "Compare with fp64, and time beside the unfused path");
  add_integer(command, "--runs", options->runs, {.low = 1, .high = 1000}, "Timed runs of a check");
  command.callback([options, &action] { action = {"run", [options] { return run(*options); }}; });
}

}  // namespace tileglu::tool
