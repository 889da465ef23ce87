// SPDX-License-Identifier: Apache-2.0
#include "io/shard_index.hpp"

#include "core/format.hpp"
#include "io/json_text.hpp"
#include "io/message.hpp"

#include <algorithm>
#include <filesystem>

namespace tileglu::io {
namespace {

constexpr const char* kWeightMap = "weight_map";

bool is_safe(const std::string& shard) {
  const std::filesystem::path path(shard);
  return !shard.empty() && shard.find('\0') == std::string::npos && path.is_relative() && path.has_filename() &&
         std::none_of(path.begin(), path.end(), [](const std::filesystem::path& part) { return part == ".."; });
}

}  // namespace

Result<std::map<std::string, std::string>> parse_shard_index(std::string_view text, const std::string& file) {
  const Result<nlohmann::json> index = parse_json_object(text, file, "file");
  if (!index.ok()) return index.status();
  const auto weight_map = index.value().find(kWeightMap);
  if (weight_map == index.value().end() || !weight_map->is_object()) {
    return file_error(file, formatted("has no object {}", quote(kWeightMap)));
  }
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string()) return tensor_error(file, tensor, "its shard is not a string");
    const auto& name = shard.get_ref<const std::string&>();
    if (!is_safe(name)) {
      return tensor_error(file, tensor, formatted("its shard {} is not a file below this folder", quote(name)));
    }
    shards.emplace(tensor, name);
  }
  if (shards.empty()) return file_error(file, formatted("{} is empty", quote(kWeightMap)));
  return shards;
}

}  // namespace tileglu::io
