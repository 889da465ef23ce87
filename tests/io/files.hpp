// SPDX-License-Identifier: Apache-2.0
// What the tests of src/io share: folders that vanish, files byte by byte, and the shape of a refusal.
#pragma once

#include "io/tensor.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tileglu::io::test {

class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  std::vector<std::string> names() const;  // sorted

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& bytes);
std::string read_file(const std::filesystem::path& path);

// Header length, header, then `data_bytes` bytes 0, 1, 2, ...
std::string safetensors_bytes(const std::string& header, std::size_t data_bytes);
// {"dtype":...,"shape":...,"data_offsets":[begin,end]}
std::string entry(const std::string& dtype, const std::string& shape, std::uint64_t begin, std::uint64_t end);

// Deterministic bits, different for every seed.
std::vector<std::uint16_t> pattern(std::size_t count, std::uint16_t seed);

struct NamedMatrix {
  std::string name;
  std::vector<std::int64_t> shape = {4, 6};
  Dtype dtype = Dtype::kBf16;
};
// Writes matrices filled with pattern(); seeds count from 1.
void write_matrices(const std::filesystem::path& path, const std::vector<NamedMatrix>& matrices,
                    const Metadata& metadata = {});

inline std::span<const std::byte> as_span(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

template <class T>
std::vector<T> elements(const TensorView& tensor) {
  std::vector<T> values(tensor.bytes / sizeof(T));
  std::memcpy(values.data(), tensor.data, tensor.bytes);
  return values;
}

// A refusal is one line that holds every one of `parts`.
void expect_refused(const Status& status, const std::vector<std::string>& parts, Code code = Code::kInvalidArgument);

}  // namespace tileglu::io::test
