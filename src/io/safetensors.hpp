// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes header length (little-endian), a JSON header, the tensors' bytes.
// The reader accepts what the Python package safetensors 0.8 accepts (tensors must cover the data exactly: no overlap,
// no hole, no rest), less: duplicate names, of which that package keeps the last in silence; fields of a tensor other
// than dtype, shape and data_offsets, since an unknown one could change what the bytes mean.
#pragma once

#include "io/checkpoint.hpp"
#include "io/tensor.hpp"

#include <span>

namespace tileglu::io {

struct SafetensorsFile {
  std::vector<TensorView> tensors;  // BF16, F16, F32; sorted by name
  std::vector<OtherTensor> others;  // of the format's other dtypes; sorted by name
  Metadata metadata;                // __metadata__, sorted by key
};

// `file` is the name for messages; `owner` keeps `bytes` alive and goes into every view.
Result<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes, const std::string& file,
                                          const std::shared_ptr<const void>& owner = {});
Result<SafetensorsFile> read_safetensors(const std::filesystem::path& path);

Status unsupported_dtype(const OtherTensor& tensor);  // what a use of it is refused with

// Everything before the tensors' bytes, and the order in which these follow: fp32 first, so that all are aligned.
struct SafetensorsHeader {
  std::string bytes;
  std::vector<const TensorSource*> order;
};
Result<SafetensorsHeader> make_safetensors_header(const std::vector<TensorSource>& tensors, const Metadata& metadata,
                                                  const std::string& file);

}  // namespace tileglu::io
