// SPDX-License-Identifier: Apache-2.0
#include "bench_file.hpp"

#include "core/format.hpp"
#include "core/names.hpp"
#include "io/json_text.hpp"
#include "io/mapped_file.hpp"
#include "json_output.hpp"

namespace tileglu::tool {
namespace {

using nlohmann::json;

Status refusal(const std::filesystem::path& path, const std::string& rule) {
  return {Code::kInvalidArgument, formatted("--bench={}: {}", path.string(), rule)};
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> number_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return {};
  return found->get<double>();
}

std::int64_t size_of_row(const json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number_unsigned() ? found->get<std::int64_t>() : 0;
}

// The row, or what is wrong with it. A row without a time has median_us 0.
Result<MeasuredRow> parse_row(const json& row) {
  if (!row.is_object()) return Status(Code::kInvalidArgument, "is no object");
  MeasuredRow parsed;
  parsed.shape.model = text_of(row, "model");
  parsed.shape.m = size_of_row(row, "m");
  parsed.shape.n = size_of_row(row, "n");
  parsed.shape.k = size_of_row(row, "k");
  parsed.contender = text_of(row, "contender");
  parsed.config = text_of(row, "config");
  parsed.launch = text_of(row, "launch");
  if (parsed.shape.m < 1 || parsed.shape.n < 1 || parsed.shape.k < 1) {
    return Status(Code::kInvalidArgument, "has no m, n and k of at least 1");
  }
  if (parsed.contender.empty()) return Status(Code::kInvalidArgument, "has no contender");
  const std::optional<Dtype> dtype = dtype_named(text_of(row, "dtype"));
  if (!dtype) return Status(Code::kInvalidArgument, formatted("has dtype '{}'", text_of(row, "dtype")));
  parsed.dtype = *dtype;
  parsed.median_us = text_of(row, "status") == "ok" ? number_of(row, "median_us").value_or(0) : 0;
  return parsed;
}

}  // namespace

Result<BenchFile> read_bench_file(const std::filesystem::path& path) {
  const Result<io::MappedFile> file = io::map_file(path);
  if (!file.ok()) return refusal(path, file.status().text());
  const Result<json> parsed = io::parse_json_object(file.value().text(), path.string(), "file");
  if (!parsed.ok()) return refusal(path, parsed.status().text());
  const json& document = parsed.value();
  if (number_of(document, "schema_version") != kSchemaVersion) {
    return refusal(path, formatted("schema_version must be {}", kSchemaVersion));
  }
  if (!document.contains("rows") || !document["rows"].is_array()) return refusal(path, "it has no rows");
  BenchFile found;
  found.device = text_of(document, "device");
  if (document.contains("ceilings")) {
    found.gemm_tflops = number_of(document["ceilings"], "gemm_tflops");
    found.read_gbps = number_of(document["ceilings"], "read_gbps");
  }
  std::size_t index = 0;
  for (const json& row : document["rows"]) {
    Result<MeasuredRow> measured = parse_row(row);
    if (!measured.ok()) return refusal(path, formatted("row {} {}", index, measured.status().text()));
    if (measured.value().median_us > 0) found.rows.push_back(std::move(measured.value()));
    ++index;
  }
  return found;
}

}  // namespace tileglu::tool
