// SPDX-License-Identifier: Apache-2.0
// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include "core/status.hpp"

#include <map>
#include <string>
#include <string_view>

namespace tileglu::io {

// Tensor name to shard, from "weight_map". A shard is a relative path below the index file's folder: an absolute one,
// or one with "..", is refused, so that an index cannot make this library open files elsewhere.
Result<std::map<std::string, std::string>> parse_shard_index(std::string_view text, const std::string& file);

}  // namespace tileglu::io
