// SPDX-License-Identifier: Apache-2.0
// Tensors read from and written to files.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tileglu::io {

// A tensor inside a memory-mapped file; `owner` keeps the mapping alive.
struct TensorView {
  std::string name;
  Dtype dtype = Dtype::kBf16;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;  // row-major, no padding; may be misaligned for its dtype, copy before computing
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner;
  std::string file;  // where it lies, for messages
};

// A tensor to be written.
struct TensorSource {
  std::string name;
  Dtype dtype = Dtype::kBf16;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
  std::size_t bytes = 0;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Reads one 2-D tensor: the only tensor of a .safetensors file (or the one called `name`), or a .npy file
// (<f4, <f2, or bf16 as numpy's ml_dtypes writes it). A 1-D tensor [k] is taken for one row [1, k].
Result<TensorView> read_tensor(const std::filesystem::path& path, const std::string& name = {});

// Writes to a temporary name in the same folder, flushes, then renames: a failure leaves no file, and an old file as it
// was. The extension decides the format: .safetensors, or .npy for exactly one tensor (bf16 is refused there: numpy has
// no such type; names and metadata are not kept).
Status write_tensors(const std::filesystem::path& path, const std::vector<TensorSource>& tensors,
                     const Metadata& metadata = {});
Status write_text(const std::filesystem::path& path, const std::string& text);  // same guarantee, any extension

}  // namespace tileglu::io
