// SPDX-License-Identifier: Apache-2.0
// Shapes of the gated projection in well-known models.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <span>
#include <string_view>

namespace tileglu::tool {

struct Model {
  std::string_view name;
  std::int64_t k = 0;  // hidden size
  std::int64_t n = 0;  // intermediate size; of one expert in mixtures
  Activation activation = Activation::kSilu;
  Layout layout = Layout::kSeparate;  // as its checkpoints store the weights
};

std::span<const Model> models();
// By name, letter case ignored; kInvalidArgument for an unknown one.
Result<Model> find_model(std::string_view name);
// n of one of tp ranks; refuses a width that does not divide and names both numbers.
Result<std::int64_t> shard_width(std::int64_t n, int tp);

}  // namespace tileglu::tool
