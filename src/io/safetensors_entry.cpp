// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors_entry.hpp"

#include "core/format.hpp"
#include "io/message.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace tileglu::io {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxRank = 16;
constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();  // sums of two fit in 64 bits

constexpr std::array kFileDtypes = {
    FileDtype{"BF16", 16, Dtype::kBf16},
    FileDtype{"F16", 16, Dtype::kFp16},
    FileDtype{"F32", 32, Dtype::kFp32},
    FileDtype{"F64", 64, {}},
    FileDtype{"F8_E4M3", 8, {}},
    FileDtype{"F8_E5M2", 8, {}},
    FileDtype{"F8_E8M0", 8, {}},
    FileDtype{"F8_E4M3FNUZ", 8, {}},
    FileDtype{"F8_E5M2FNUZ", 8, {}},
    FileDtype{"F6_E2M3", 6, {}},
    FileDtype{"F6_E3M2", 6, {}},
    FileDtype{"F4", 4, {}},
    FileDtype{"BOOL", 8, {}},
    FileDtype{"U8", 8, {}},
    FileDtype{"I8", 8, {}},
    FileDtype{"U16", 16, {}},
    FileDtype{"I16", 16, {}},
    FileDtype{"U32", 32, {}},
    FileDtype{"I32", 32, {}},
    FileDtype{"U64", 64, {}},
    FileDtype{"I64", 64, {}},
    FileDtype{"C64", 64, {}},
};

bool is_integer(const json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= kMaxInteger;
}

Status read_dtype(const json& value, const std::string& file, Entry& entry) {
  if (value.is_string()) {
    const auto& name = value.get_ref<const std::string&>();
    const auto* const found = std::find_if(kFileDtypes.begin(), kFileDtypes.end(),
                                           [&](const FileDtype& known) { return known.name == name; });
    if (found != kFileDtypes.end()) {
      entry.dtype = found;
      return {};
    }
  }
  std::string known;
  for (const FileDtype& dtype : kFileDtypes) known.append(known.empty() ? "" : " ").append(dtype.name);
  return tensor_error(file, entry.name, formatted("dtype {} is unknown (known: {})", value_text(value), known));
}

Status read_shape(const json& value, const std::string& file, Entry& entry) {
  if (!value.is_array()) return tensor_error(file, entry.name, formatted("shape {} is not a list", value_text(value)));
  if (value.size() > kMaxRank) {
    return tensor_error(file, entry.name, formatted("shape has {} dimensions, limit {}", value.size(), kMaxRank));
  }
  for (const json& extent : value) {
    if (!is_integer(extent)) {
      return tensor_error(
          file, entry.name,
          formatted("shape {}: {} is not an integer from 0 to 2^63-1", value_text(value), value_text(extent)));
    }
    entry.shape.push_back(extent.get<std::int64_t>());
  }
  return {};
}

Status read_offsets(const json& value, const std::string& file, Entry& entry) {
  if (!value.is_array() || value.size() != 2 || !is_integer(value[0]) || !is_integer(value[1])) {
    return tensor_error(file, entry.name,
                        formatted("data_offsets {} are not two integers from 0 to 2^63-1", value_text(value)));
  }
  entry.begin = value[0].get<std::uint64_t>();
  entry.end = value[1].get<std::uint64_t>();
  if (entry.begin > entry.end) {
    return tensor_error(file, entry.name, formatted("data_offsets {}: begin is above end", value_text(value)));
  }
  return {};
}

}  // namespace

const FileDtype& file_dtype(Dtype dtype) {
  return *std::find_if(kFileDtypes.begin(), kFileDtypes.end(),
                       [&](const FileDtype& known) { return known.dtype == dtype; });
}

std::string value_text(const json& value) {
  return printable(value.dump(), 60);
}

Status check_size(const Entry& entry, const std::string& file) {
  std::uint64_t bits = entry.dtype->bits;
  bool overflow = false;
  for (const std::int64_t extent : entry.shape) {
    overflow = overflow || __builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits);
  }
  const std::string what = formatted("dtype {} and shape {}", entry.dtype->name, shape_text(entry.shape));
  if (overflow) return tensor_error(file, entry.name, what + " need more than 2^64 bits");
  if (bits % 8 != 0) return tensor_error(file, entry.name, what + " do not fill whole bytes");
  if (bits / 8 != entry.end - entry.begin) {
    return tensor_error(file, entry.name,
                        formatted("{} need {} bytes, data_offsets [{}, {}] hold {}", what, bits / 8, entry.begin,
                                  entry.end, entry.end - entry.begin));
  }
  return {};
}

Result<Entry> read_entry(const std::string& name, const json& value, const std::string& file) {
  Entry entry{.name = name};
  if (!value.is_object()) return tensor_error(file, name, formatted("{} is not an object", value_text(value)));
  for (const char* const field : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(field)) return tensor_error(file, name, formatted("has no {}", field));
  }
  for (const auto& [field, content] : value.items()) {
    if (field == "dtype") {
      TILEGLU_TRY(read_dtype(content, file, entry));
    } else if (field == "shape") {
      TILEGLU_TRY(read_shape(content, file, entry));
    } else if (field == "data_offsets") {
      TILEGLU_TRY(read_offsets(content, file, entry));
    } else {
      return tensor_error(file, name, formatted("has the unknown field {}", quote(field)));
    }
  }
  TILEGLU_TRY(check_size(entry, file));
  return entry;
}

}  // namespace tileglu::io
