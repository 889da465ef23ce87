// SPDX-License-Identifier: Apache-2.0
// The JSON documents that --json prints and bench writes.
#pragma once

#include "core/status.hpp"
#include "reference/metrics.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace tileglu::tool {

using Json = nlohmann::ordered_json;

inline constexpr int kSchemaVersion = 1;

// {"schema_version": 1, "command": ..., "version": ..., "commit": ...}
Json make_document(const std::string& command);
// As text that is valid JSON whatever the strings hold; NaN and infinity become null.
std::string to_text(const Json& document);
void print_document(const Json& document);

Json to_json(const reference::ErrorReport& report);

}  // namespace tileglu::tool
