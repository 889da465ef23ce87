// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.hpp"

#include "core/format.hpp"
#include "io/json_text.hpp"
#include "io/mapped_file.hpp"
#include "io/message.hpp"
#include "io/safetensors_entry.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tileglu::io {
namespace {

using nlohmann::json;
static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr std::string_view kMetadataKey = "__metadata__";

Result<std::string_view> header_text(std::span<const std::byte> bytes, const std::string& file) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) {
    return file_error(file, formatted("is not a safetensors file: expected at least 8 bytes, found {}", bytes.size()));
  }
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeaderBytes) {
    return file_error(file, formatted("is not a safetensors file: header length {} is above the limit of {} bytes",
                                      length, kMaxHeaderBytes));
  }
  if (length > bytes.size() - sizeof length) {
    return file_error(file, formatted("is truncated inside the header: expected {} bytes, found {}",
                                      length + sizeof length, bytes.size()));
  }
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + sizeof length, length);
}

Status read_metadata(const json& value, const std::string& file, Metadata& metadata) {
  if (value.is_null()) return {};
  if (!value.is_object()) return file_error(file, formatted("{} is not an object of strings", kMetadataKey));
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      return file_error(file, formatted("{}: {} is {}, not a string", kMetadataKey, quote(key), value_text(text)));
    }
    metadata.emplace_back(key, text.get<std::string>());
  }
  return {};
}

// Tensors in the order of their bytes cover the data exactly.
Status check_coverage(const std::vector<Entry>& entries, std::uint64_t data_start, std::uint64_t file_size,
                      const std::string& file) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const Entry* a, const Entry* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  const std::uint64_t data_size = file_size - data_start;
  std::uint64_t last_end = 0;
  for (const Entry& entry : entries) last_end = std::max(last_end, entry.end);
  std::uint64_t covered = 0;
  const Entry* previous = nullptr;
  for (const Entry* const entry : order) {
    if (entry->end > data_size) {
      return tensor_error(file, entry->name,
                          formatted("lies past the end of the file, which is truncated: expected {} bytes, "
                                    "found {}",
                                    data_start + last_end, file_size));
    }
    if (entry->begin < covered) {
      return tensor_error(file, entry->name,
                          formatted("data_offsets [{}, {}] overlap tensor {} [{}, {}]", entry->begin, entry->end,
                                    quote(previous->name), previous->begin, previous->end));
    }
    if (entry->begin > covered) {
      return tensor_error(
          file, entry->name,
          formatted("data_offsets [{}, {}] leave a hole of {} bytes before it, which the format forbids", entry->begin,
                    entry->end, entry->begin - covered));
    }
    covered = entry->end;
    previous = entry;
  }
  if (covered == data_size) return {};
  return file_error(file, formatted("has bytes that belong to no tensor: expected {} bytes, found {}",
                                    data_start + covered, file_size));
}

}  // namespace

Result<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes, const std::string& file,
                                          const std::shared_ptr<const void>& owner) {
  const Result<std::string_view> header = header_text(bytes, file);
  if (!header.ok()) return header.status();
  const Result<json> fields = parse_json_object(header.value(), file, "header");
  if (!fields.ok()) return fields.status();

  SafetensorsFile result;
  std::vector<Entry> entries;
  for (const auto& [name, value] : fields.value().items()) {
    if (name == kMetadataKey) {
      TILEGLU_TRY(read_metadata(value, file, result.metadata));
      continue;
    }
    Result<Entry> entry = read_entry(name, value, file);
    if (!entry.ok()) return entry.status();
    entries.push_back(std::move(entry.value()));
  }
  const std::size_t data_start = sizeof(std::uint64_t) + header.value().size();
  TILEGLU_TRY(check_coverage(entries, data_start, bytes.size(), file));

  for (Entry& entry : entries) {
    if (!entry.dtype->dtype) {
      result.others.push_back({.name = std::move(entry.name), .dtype = std::string(entry.dtype->name), .file = file});
      continue;
    }
    const auto data = bytes.subspan(data_start + entry.begin, entry.end - entry.begin);
    result.tensors.push_back({.name = std::move(entry.name),
                              .dtype = *entry.dtype->dtype,
                              .shape = std::move(entry.shape),
                              .data = data.data(),
                              .bytes = data.size(),
                              .owner = owner,
                              .file = file});
  }
  return result;
}

Result<SafetensorsFile> read_safetensors(const std::filesystem::path& path) {
  const Result<MappedFile> mapped = map_file(path);
  if (!mapped.ok()) return mapped.status();
  return parse_safetensors(mapped.value().bytes, display(path), mapped.value().owner);
}

Status unsupported_dtype(const OtherTensor& tensor) {
  return tensor_error(tensor.file, tensor.name,
                      formatted("dtype {} is not supported (supported: BF16, F16, F32)", tensor.dtype),
                      Code::kNotSupported);
}

Result<SafetensorsHeader> make_safetensors_header(const std::vector<TensorSource>& tensors, const Metadata& metadata,
                                                  const std::string& file) {
  SafetensorsHeader header;
  for (const TensorSource& tensor : tensors) header.order.push_back(&tensor);
  std::stable_sort(header.order.begin(), header.order.end(),
                   [](const TensorSource* a, const TensorSource* b) { return size_of(a->dtype) > size_of(b->dtype); });
  json fields = json::object();
  for (const auto& [key, text] : metadata) fields[kMetadataKey][key] = text;
  std::uint64_t offset = 0;
  for (const TensorSource* const tensor : header.order) {
    if (tensor->name == kMetadataKey || fields.contains(tensor->name)) {
      return tensor_error(file, tensor->name, "this name is reserved or already taken");
    }
    const Entry entry{.name = tensor->name,
                      .dtype = &file_dtype(tensor->dtype),
                      .shape = tensor->shape,
                      .begin = offset,
                      .end = offset + tensor->bytes};
    TILEGLU_TRY(check_size(entry, file));
    fields[entry.name] = {
        {"dtype", entry.dtype->name}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
    offset = entry.end;
  }
  try {
    header.bytes = fields.dump();
  } catch (const json::type_error&) {
    return file_error(file, "a tensor name or a metadata text is not UTF-8");
  }
  header.bytes.append((8 - header.bytes.size() % 8) % 8, ' ');  // data starts aligned
  const std::uint64_t length = header.bytes.size();
  header.bytes.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
  return header;
}

}  // namespace tileglu::io
