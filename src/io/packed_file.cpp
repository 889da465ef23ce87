// SPDX-License-Identifier: Apache-2.0
#include "io/packed_file.hpp"

#include "core/format.hpp"
#include "core/layout.hpp"
#include "core/names.hpp"
#include "io/message.hpp"

#include <algorithm>
#include <charconv>

namespace tileglu::io {
namespace {

constexpr const char* kFormatKey = "tileglu_format";
constexpr const char* kFormatVersion = "1";
constexpr const char* kLayoutKey = "tileglu_layout";
constexpr const char* kRankKey = "tileglu_tp_rank";
constexpr const char* kSizeKey = "tileglu_tp_size";
constexpr const char* kHiddenActKey = "tileglu_hidden_act";

const std::string* find(const Metadata& metadata, std::string_view key) {
  const auto found =
      std::find_if(metadata.begin(), metadata.end(), [&](const auto& pair) { return pair.first == key; });
  return found == metadata.end() ? nullptr : &found->second;
}

Status wrong_value(const std::string& file, const char* key, const std::string& value, const std::string& rule) {
  return file_error(file, formatted("metadata {}={} {}", key, quote(value), rule));
}

Status read_number(const Metadata& metadata, const char* key, const std::string& file, int& number) {
  const std::string* const text = find(metadata, key);
  if (text == nullptr) return {};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error == std::errc() && end == text->data() + text->size()) return {};
  return wrong_value(file, key, *text, "is not an integer");
}

}  // namespace

std::string packed_tensor_name(int layer, std::optional<int> expert) {
  return expert ? formatted("layers.{}.experts.{}.gate_up", layer, *expert) : formatted("layers.{}.gate_up", layer);
}

Metadata make_packed_metadata(const PackedInfo& info) {
  Metadata metadata = {{kFormatKey, kFormatVersion},
                       {kLayoutKey, name_of(info.layout)},
                       {kRankKey, std::to_string(info.tp_rank)},
                       {kSizeKey, std::to_string(info.tp_size)}};
  if (info.hidden_act) metadata.emplace_back(kHiddenActKey, *info.hidden_act);
  return metadata;
}

Result<std::optional<PackedInfo>> read_packed_metadata(const Metadata& metadata, const std::string& file) {
  const std::string* const format = find(metadata, kFormatKey);
  if (format == nullptr) return std::optional<PackedInfo>();
  if (*format != kFormatVersion) {
    return wrong_value(file, kFormatKey, *format, formatted("is not {}, the one known", quote(kFormatVersion)));
  }
  const std::string* const layout_text = find(metadata, kLayoutKey);
  if (layout_text == nullptr) return file_error(file, formatted("metadata has {} but no {}", kFormatKey, kLayoutKey));
  const std::optional<Layout> layout = layout_named(*layout_text);
  if (!layout || !is_single_matrix(*layout)) {
    return wrong_value(file, kLayoutKey, *layout_text, "is not a layout of one matrix");
  }
  PackedInfo info{.layout = *layout};
  TILEGLU_TRY(read_number(metadata, kRankKey, file, info.tp_rank));
  TILEGLU_TRY(read_number(metadata, kSizeKey, file, info.tp_size));
  if (info.tp_rank < 0 || info.tp_rank >= info.tp_size) {
    return wrong_value(file, kRankKey, std::to_string(info.tp_rank),
                       formatted("is not from 0 to {}={} less 1", kSizeKey, info.tp_size));
  }
  if (const std::string* const act = find(metadata, kHiddenActKey)) info.hidden_act = *act;
  return std::optional(info);
}

}  // namespace tileglu::io
