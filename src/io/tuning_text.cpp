// SPDX-License-Identifier: Apache-2.0
#include "io/tuning_text.hpp"

#include "core/format.hpp"
#include "core/names.hpp"
#include "io/json_text.hpp"
#include "io/message.hpp"

#include <cmath>
#include <limits>

namespace tileglu::io {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::int64_t kMaxSize = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxText = 256;
constexpr double kMaxMicroseconds = 1e12;
constexpr std::size_t kRowFields = 11;

// Reads the fields of one object; keeps the first fault.
class Fields {
 public:
  Fields(const json& object, const std::string& where) : object_(object), where_(where) {}

  std::string text(const char* name) {
    const json* value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail<std::string>(name, "is not a string");
    auto text = value->get<std::string>();
    if (text.empty() || text.size() > kMaxText) {
      return fail<std::string>(name, formatted("is not of 1 to {} bytes", kMaxText));
    }
    return text;
  }

  std::int64_t integer(const char* name) {
    const json* value = find(name);
    if (value == nullptr) return 0;
    if (!value->is_number_integer()) return fail<std::int64_t>(name, "is not an integer");
    const bool huge = value->is_number_unsigned() && value->get<std::uint64_t>() > kMaxSize;
    const std::int64_t number = huge ? 0 : value->get<std::int64_t>();
    if (number < 1 || number > kMaxSize) return fail<std::int64_t>(name, formatted("is not from 1 to {}", kMaxSize));
    return number;
  }

  double microseconds(const char* name) {
    const json* value = find(name);
    if (value == nullptr) return 0;
    if (!value->is_number()) return fail<double>(name, "is not a number");
    const auto number = value->get<double>();
    if (!(number > 0 && number < kMaxMicroseconds)) return fail<double>(name, "is not a time in microseconds");
    return number;
  }

  template <class Enum, class Named>
  Enum choice(const char* name, Named named) {
    const std::string word = text(name);
    if (!status_.ok()) return {};
    const std::optional<Enum> value = named(word);
    return value ? *value : fail<Enum>(name, formatted("is {}, which is not known", quote(word)));
  }

  // After all fields were read.
  Status status(std::size_t expected_fields) {
    if (status_.ok() && object_.size() != expected_fields) {
      return file_error(where_, formatted("has {} fields, not {}", object_.size(), expected_fields));
    }
    return status_;
  }

 private:
  const json* find(const char* name) {
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    status_ = file_error(where_, formatted("lacks {}", name));
    return nullptr;
  }
  template <class T>
  T fail(const char* name, const std::string& what) {
    if (status_.ok()) status_ = file_error(where_, formatted("{} {}", name, what));
    return {};
  }

  const json& object_;
  const std::string& where_;
  Status status_;
};

Status add_row(const json& row, const std::string& where, TuningTable& table) {
  if (!row.is_object()) return file_error(where, "is not an object");
  Fields fields(row, where);
  const std::int64_t m = fields.integer("m");
  TuningKey key{.device = fields.text("device"),
                .sm_count = static_cast<int>(fields.integer("sm_count")),
                .version = fields.text("version"),
                .dtype = fields.choice<Dtype>("dtype", dtype_named),
                .activation = fields.choice<Activation>("activation", activation_named),
                .layout = fields.choice<Layout>("layout", layout_named),
                .n = fields.integer("n"),
                .k = fields.integer("k"),
                .m_bucket = m_bucket(m)};
  TunedKernel tuned{.kernel = fields.text("kernel"), .m = m, .median_us = fields.microseconds("median_us")};
  TILEGLU_TRY(fields.status(kRowFields));
  const auto [place, added] = table.try_emplace(std::move(key), tuned);
  if (!added && tuned.m > place->second.m) place->second = std::move(tuned);
  return {};
}

}  // namespace

Result<TuningTable> parse_tuning(std::string_view text, const std::string& file) {
  const Result<json> parsed = parse_json_object(text, file, "tuning table");
  if (!parsed.ok()) return parsed.status();
  const json& document = parsed.value();
  const auto schema = document.find("schema_version");
  if (schema == document.end() || !schema->is_number_integer() || *schema != kTuningSchema) {
    return file_error(
        file, formatted("schema_version is {}, not {}",
                        schema == document.end() ? "missing" : printable(schema->dump(-1, ' ', true)), kTuningSchema));
  }
  for (const auto& [name, value] : document.items()) {
    if (name != "schema_version" && name != "about" && name != "rows") {
      return file_error(file, formatted("has the unknown field {}", quote(name)));
    }
  }
  const auto about = document.find("about");
  if (about != document.end() && !about->is_string()) return file_error(file, "about is not a string");
  const auto rows = document.find("rows");
  if (rows == document.end() || !rows->is_array()) return file_error(file, "rows is not a list");
  TuningTable table;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    TILEGLU_TRY(add_row((*rows)[i], formatted("{}: row {}", file, i), table));
  }
  return table;
}

std::string tuning_text(const TuningTable& table, std::string_view about) {
  const auto dump = [](const ordered_json& value) {
    return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  std::string text = formatted(R"({{"schema_version": {}, "about": {}, "rows": [)", kTuningSchema,
                               dump(ordered_json(std::string(about))));
  const char* separator = "\n";
  for (const auto& [key, tuned] : table) {
    text += separator + dump({{"device", key.device},
                              {"sm_count", key.sm_count},
                              {"version", key.version},
                              {"dtype", name_of(key.dtype)},
                              {"activation", name_of(key.activation)},
                              {"layout", name_of(key.layout)},
                              {"n", key.n},
                              {"k", key.k},
                              {"m", tuned.m},
                              {"kernel", tuned.kernel},
                              {"median_us", tuned.median_us}});
    separator = ",\n";
  }
  return text + "\n]}\n";
}

}  // namespace tileglu::io
