// SPDX-License-Identifier: Apache-2.0
// Fuzz harness: the same bytes go to every reader of untrusted files. Whatever a reader accepts must lie inside the
// bytes and survive being written again; whatever it refuses, it must refuse in one line.
#include "io/npy.hpp"
#include "io/safetensors.hpp"
#include "io/shard_index.hpp"
#include "io/tuning_text.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace tileglu::io {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void check_refusal(const Status& status) {
  require(!status.text().empty() && status.text().size() < 2000, "a refusal is short");
  require(status.text().find('\n') == std::string::npos, "a refusal is one line");
  require(status.text().find('\0') == std::string::npos, "a refusal is text");
}

void check_view(const TensorView& tensor, std::span<const std::byte> bytes) {
  const auto* const data = static_cast<const std::byte*>(tensor.data);
  require(data >= bytes.data() && data <= bytes.data() + bytes.size(), "a view begins inside the file");
  require(tensor.bytes <= static_cast<std::size_t>(bytes.data() + bytes.size() - data), "a view ends inside the file");
  unsigned __int128 size = size_of(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) {
    require(extent >= 0, "no extent is negative");
    size = size > (unsigned __int128){1} << 64U && extent > 0 ? size : size * static_cast<std::uint64_t>(extent);
  }
  require(size == tensor.bytes, "shape times dtype is the size");
  volatile std::uint8_t sum = 0;  // so that AddressSanitizer sees every byte of it being read
  for (std::size_t i = 0; i < tensor.bytes; ++i) sum = static_cast<std::uint8_t>(sum + std::to_integer<int>(data[i]));
}

std::string rewrite(const SafetensorsFile& file) {
  std::vector<TensorSource> sources;
  for (const TensorView& tensor : file.tensors) {
    sources.push_back({.name = tensor.name,
                       .dtype = tensor.dtype,
                       .shape = tensor.shape,
                       .data = tensor.data,
                       .bytes = tensor.bytes});
  }
  const auto header = make_safetensors_header(sources, file.metadata, "again");
  require(header.ok(), "what was read can be written");
  std::string bytes = header.value().bytes;
  for (const TensorSource* const source : header.value().order) {
    bytes.append(static_cast<const char*>(source->data), source->bytes);
  }
  return bytes;
}

bool same(const TensorView& a, const TensorView& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes &&
         (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}

void check_safetensors(std::span<const std::byte> bytes) {
  const auto file = parse_safetensors(bytes, "fuzz.safetensors");
  if (!file.ok()) return check_refusal(file.status());
  for (const TensorView& tensor : file.value().tensors) check_view(tensor, bytes);
  require(!parse_safetensors(bytes.first(bytes.size() - 1), "cut").ok(), "a file cut by a byte is refused");
  const std::string again = rewrite(file.value());
  const auto copy = parse_safetensors({reinterpret_cast<const std::byte*>(again.data()), again.size()}, "again");
  require(copy.ok(), "what was written can be read");
  require(copy.value().metadata == file.value().metadata, "metadata survives");
  require(copy.value().tensors.size() == file.value().tensors.size(), "all tensors survive");
  for (std::size_t i = 0; i < copy.value().tensors.size(); ++i) {
    require(same(copy.value().tensors[i], file.value().tensors[i]), "tensors survive bit for bit");
  }
}

// Random changes rarely keep the length right; this takes text up to the last brace for the header.
void check_as_header(std::string_view text) {
  const std::uint64_t length = text.rfind('}') + 1;  // 0 if there is none
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += text;
  bytes.shrink_to_fit();
  check_safetensors({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
}

void check_npy(std::span<const std::byte> bytes) {
  const auto tensor = parse_npy(bytes, "fuzz.npy");
  if (!tensor.ok()) return check_refusal(tensor.status());
  check_view(tensor.value(), bytes);
}

void check_index(std::string_view text) {
  const auto shards = parse_shard_index(text, "fuzz.index.json");
  if (!shards.ok()) return check_refusal(shards.status());
  for (const auto& [tensor, shard] : shards.value()) {
    require(!shard.empty() && shard[0] != '/' && ("/" + shard + "/").find("/../") == std::string::npos,
            "a shard is below the folder");
  }
}

void check_tuning(std::string_view text) {
  const auto table = parse_tuning(text, "fuzz.json");
  if (!table.ok()) return check_refusal(table.status());
  const auto again = parse_tuning(tuning_text(table.value(), "again"), "again");
  require(again.ok() && again.value() == table.value(), "a tuning table survives being written again");
}

}  // namespace
}  // namespace tileglu::io

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tileglu::io::check_safetensors(bytes);
  tileglu::io::check_as_header(text);
  tileglu::io::check_npy(bytes);
  tileglu::io::check_index(text);
  tileglu::io::check_tuning(text);
  return 0;
}
