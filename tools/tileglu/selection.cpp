// SPDX-License-Identifier: Apache-2.0
#include "selection.hpp"

#include "arguments.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "io/gated_names.hpp"
#include "output.hpp"

#include <set>

namespace tileglu::tool {
namespace {

constexpr IntegerRange kNumbers{.low = 0, .high = 99999};

void add_number_or_all(CLI::App& command, const std::string& name, const std::string& help,
                       const std::function<void(std::optional<int>)>& set) {
  const auto parse = [name, set](const std::string& text) {
    if (text == "all") return set({});
    set(static_cast<int>(parse_integer(name, text, kNumbers)));
  };
  command.add_option_function<std::string>(name, parse, help)->type_name("N|all");
}

}  // namespace

void add_weights_options(CLI::App& command, WeightsOptions& options) {
  command.add_option("--weights", options.path, "A .safetensors file, an index.json, or a folder with either")
      ->type_name("PATH")
      ->required();
  add_number_or_all(command, "--layer", "Layer, counted from 0, or all", [&options](std::optional<int> layer) {
    options.layer = layer;
    options.layer_given = true;
  });
  add_number_or_all(command, "--expert", "Expert of a mixture, counted from 0, or all",
                    [&options](std::optional<int> expert) {
                      options.expert = expert;
                      options.all_experts = !expert;
                    });
}

Result<std::vector<Selected>> select_weights(const io::Checkpoint& checkpoint, const WeightsOptions& options) {
  if (!options.layer_given) return Status(Code::kInvalidArgument, "--layer is required: a number or all");
  std::set<std::pair<int, int>> wanted;  // layer and expert, -1 for none
  if (options.layer && !options.all_experts) {
    wanted.emplace(*options.layer, options.expert.value_or(-1));
  } else {
    for (const io::Candidate& candidate : io::all_candidates(checkpoint)) {
      if (options.layer && candidate.layer != *options.layer) continue;
      if (options.all_experts && candidate.expert < 0) continue;
      wanted.emplace(candidate.layer, options.all_experts ? candidate.expert : options.expert.value_or(-1));
    }
  }
  if (wanted.empty()) {
    return Status(Code::kInvalidArgument, formatted("--weights={}: no gated projection is among its {} tensors",
                                                    checkpoint.file(), checkpoint.tensors().size()));
  }
  std::vector<Selected> selected;
  for (const auto& [layer, expert_number] : wanted) {
    const std::optional<int> expert = expert_number < 0 ? std::nullopt : std::optional(expert_number);
    Result<io::GatedWeights> weights = io::find_gated_weights(checkpoint, layer, expert);
    if (!weights.ok()) return weights.status();
    selected.push_back({.layer = layer, .expert = expert, .weights = std::move(weights.value())});
  }
  return selected;
}

Result<ActivationSource> resolve_activation(std::optional<Activation> given, const io::Checkpoint& checkpoint) {
  if (given) return ActivationSource{.activation = *given, .source = "--activation"};
  const std::optional<std::string>& named = checkpoint.hidden_activation();
  if (!named) return ActivationSource{.activation = Activation::kSilu, .source = "default"};
  const Result<Activation> activation = io::activation_from_config(*named);
  if (!activation.ok()) {
    return Status(Code::kInvalidArgument, activation.status().text() + "; name one with --activation");
  }
  return ActivationSource{.activation = activation.value(), .source = "checkpoint"};
}

Status check_dtype(const Selected& selected, std::optional<Dtype> wanted) {
  if (!wanted || *wanted == selected.weights.gate.dtype) return {};
  return bad_argument(
      "--dtype", name_of(*wanted),
      formatted("the weights of layer {} are {}", selected.layer, name_of(selected.weights.gate.dtype)));
}

}  // namespace tileglu::tool
