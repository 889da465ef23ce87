// SPDX-License-Identifier: Apache-2.0
// JSON from untrusted files (safetensors headers, index and config files): a parse that cannot be made to recurse, to
// use memory out of proportion, or to hide a value behind a duplicate key.
#pragma once

#include "core/status.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace tileglu::io {

// Always an object. Refuses duplicate keys, nesting and value counts above the limits in json_text.cpp, and NUL bytes
// (which nlohmann-json takes for the end of the text). `what` names the text in messages: "header", "file".
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& file, const char* what);

}  // namespace tileglu::io
