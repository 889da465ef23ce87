// SPDX-License-Identifier: Apache-2.0
// config.json beside a Hugging Face checkpoint.
#pragma once

#include "core/status.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace tileglu::io {

// The activation of the text model as transformers reads it: "hidden_activation", else "hidden_act", at the top or in
// "text_config". None without a config.json or where it says neither; a config.json that is not JSON is refused.
Result<std::optional<std::string>> read_hidden_activation(const std::filesystem::path& folder);

}  // namespace tileglu::io
