// SPDX-License-Identifier: Apache-2.0
#include "io/tensor.hpp"

#include "core/format.hpp"
#include "io/atomic_file.hpp"
#include "io/message.hpp"
#include "io/npy.hpp"
#include "io/safetensors.hpp"

#include <algorithm>

namespace tileglu::io {
namespace {

constexpr std::size_t kNamesInMessage = 8;

std::span<const std::byte> as_bytes(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

Status wrong_extension(const std::filesystem::path& path) {
  return file_error(display(path),
                    formatted("extension {} is not .safetensors or .npy", quote(path.extension().native())));
}

// The tensor called `name`, or the only one.
Result<TensorView> choose(const SafetensorsFile& contents, const std::string& file, const std::string& name) {
  std::vector<std::string> names;
  for (const TensorView& tensor : contents.tensors) {
    if (tensor.name == name) return tensor;
    names.push_back(quote(tensor.name));
  }
  for (const OtherTensor& tensor : contents.others) {
    if (tensor.name == name || (name.empty() && contents.others.size() == 1 && names.empty())) {
      return unsupported_dtype(tensor);
    }
    names.push_back(quote(tensor.name));
  }
  if (name.empty() && names.size() == 1) return contents.tensors.front();
  const std::size_t count = names.size();
  const std::size_t shown = std::min(count, kNamesInMessage);
  const std::string list = formatted("{}{}", joined(std::span(names).first(shown)), count > shown ? ", ..." : "");
  if (name.empty()) return file_error(file, formatted("holds {} tensors ({}); one has to be named", count, list));
  return file_error(file, formatted("has no tensor {}; it holds {}: {}", quote(name), count, list));
}

Result<TensorView> read_any_rank(const std::filesystem::path& path, const std::string& name) {
  if (path.extension() == ".npy") {
    if (name.empty()) return read_npy(path);
    return file_error(display(path), formatted("has no tensor {}: a .npy file holds one, without a name", quote(name)));
  }
  if (path.extension() != ".safetensors") return wrong_extension(path);
  const Result<SafetensorsFile> contents = read_safetensors(path);
  if (!contents.ok()) return contents.status();
  return choose(contents.value(), display(path), name);
}

}  // namespace

Result<TensorView> read_tensor(const std::filesystem::path& path, const std::string& name) {
  Result<TensorView> tensor = read_any_rank(path, name);
  if (!tensor.ok()) return tensor;
  std::vector<std::int64_t>& shape = tensor.value().shape;
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  if (shape.size() != 2) {
    return tensor_error(tensor.value().file, tensor.value().name,
                        formatted("shape {} has {} dimensions, expected 2", shape_text(shape), shape.size()));
  }
  return tensor;
}

Status write_tensors(const std::filesystem::path& path, const std::vector<TensorSource>& tensors,
                     const Metadata& metadata) {
  const std::string file = display(path);
  if (path.extension() == ".npy") {
    if (tensors.size() != 1) {
      return file_error(file, formatted("a .npy file holds one tensor, not {}; write .safetensors", tensors.size()));
    }
    const Result<std::string> header = make_npy_header(tensors[0], file);
    if (!header.ok()) return header.status();
    return write_atomically(
        path, {as_bytes(header.value().data(), header.value().size()), as_bytes(tensors[0].data, tensors[0].bytes)});
  }
  if (path.extension() != ".safetensors") return wrong_extension(path);
  const Result<SafetensorsHeader> header = make_safetensors_header(tensors, metadata, file);
  if (!header.ok()) return header.status();
  std::vector<std::span<const std::byte>> parts = {as_bytes(header.value().bytes.data(), header.value().bytes.size())};
  for (const TensorSource* const tensor : header.value().order) parts.push_back(as_bytes(tensor->data, tensor->bytes));
  return write_atomically(path, parts);
}

Status write_text(const std::filesystem::path& path, const std::string& text) {
  return write_atomically(path, {as_bytes(text.data(), text.size())});
}

}  // namespace tileglu::io
