// SPDX-License-Identifier: Apache-2.0
// Which gated projections of a checkpoint a command works on: --layer N|all, --expert N|all.
#pragma once

#include "core/status.hpp"
#include "io/checkpoint.hpp"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tileglu::tool {

struct WeightsOptions {
  std::string path;
  std::optional<int> layer;  // none: all
  bool layer_given = false;
  std::optional<int> expert;
  bool all_experts = false;
};
// --weights, --layer, --expert.
void add_weights_options(CLI::App& command, WeightsOptions& options);

struct Selected {
  int layer = 0;
  std::optional<int> expert;
  io::GatedWeights weights;
};
// In ascending order, at least one. A layer whose weights are broken is refused, never left out of "all".
Result<std::vector<Selected>> select_weights(const io::Checkpoint& checkpoint, const WeightsOptions& options);

// The activation of a checkpoint, and where it was found.
struct ActivationSource {
  Activation activation = Activation::kSilu;
  std::string source;  // "--activation", "checkpoint" or "default"
};
Result<ActivationSource> resolve_activation(std::optional<Activation> given, const io::Checkpoint& checkpoint);

// Refuses weights of another dtype than --dtype asks for.
Status check_dtype(const Selected& selected, std::optional<Dtype> wanted);

}  // namespace tileglu::tool
