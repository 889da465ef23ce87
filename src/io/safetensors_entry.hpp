// SPDX-License-Identifier: Apache-2.0
// One tensor of a safetensors header: its three fields, read and checked on their own.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tileglu::io {

struct FileDtype {
  std::string_view name;
  unsigned bits;
  std::optional<Dtype> dtype;  // none: kept by name only
};
struct Entry {
  std::string name;
  const FileDtype* dtype = nullptr;
  std::vector<std::int64_t> shape = {};
  std::uint64_t begin = 0, end = 0;  // inside the data that follows the header
};

const FileDtype& file_dtype(Dtype dtype);

// Shape times dtype, without overflow, is what data_offsets hold.
Status check_size(const Entry& entry, const std::string& file);
Result<Entry> read_entry(const std::string& name, const nlohmann::json& value, const std::string& file);
std::string value_text(const nlohmann::json& value);  // for messages

}  // namespace tileglu::io
