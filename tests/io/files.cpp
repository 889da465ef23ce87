// SPDX-License-Identifier: Apache-2.0
#include "io/files.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

namespace tileglu::io::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tileglu_io_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  ASSERT_TRUE(stream.good()) << path;
}

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string safetensors_bytes(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += header;
  const std::size_t start = bytes.size();
  bytes.resize(start + data_bytes);
  std::iota(bytes.begin() + static_cast<std::ptrdiff_t>(start), bytes.end(), '\0');
  return bytes;
}

std::string entry(const std::string& dtype, const std::string& shape, std::uint64_t begin, std::uint64_t end) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[)" + std::to_string(begin) + "," +
         std::to_string(end) + "]}";
}

std::vector<std::uint16_t> pattern(std::size_t count, std::uint16_t seed) {
  std::vector<std::uint16_t> values(count);
  std::uint32_t state = seed * 2654435761U + 1U;
  for (std::uint16_t& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<std::uint16_t>(state >> 16);
  }
  return values;
}

void write_matrices(const std::filesystem::path& path, const std::vector<NamedMatrix>& matrices,
                    const Metadata& metadata) {
  std::vector<std::vector<std::uint16_t>> storage;
  std::vector<TensorSource> sources;
  for (const NamedMatrix& matrix : matrices) {
    std::size_t count = 1;
    for (const std::int64_t extent : matrix.shape) count *= static_cast<std::size_t>(extent);
    const std::size_t bytes = count * size_of(matrix.dtype);
    storage.push_back(pattern(bytes / 2, static_cast<std::uint16_t>(storage.size() + 1)));
    sources.push_back({.name = matrix.name,
                       .dtype = matrix.dtype,
                       .shape = matrix.shape,
                       .data = storage.back().data(),
                       .bytes = bytes});
  }
  const Status status = write_tensors(path, sources, metadata);
  ASSERT_TRUE(status.ok()) << status.text();
}

void expect_refused(const Status& status, const std::vector<std::string>& parts, Code code) {
  EXPECT_EQ(status.code(), code) << status.text();
  EXPECT_EQ(status.text().find('\n'), std::string::npos) << status.text();
  for (const std::string& part : parts) {
    EXPECT_NE(status.text().find(part), std::string::npos) << "no '" << part << "' in: " << status.text();
  }
}

}  // namespace tileglu::io::test
