// SPDX-License-Identifier: Apache-2.0
// numpy's .npy format, versions 1.0, 2.0 and 3.0: little-endian arrays in C order of dtype <f4, <f2, and bf16. numpy
// has no bf16: np.save of an ml_dtypes.bfloat16 array writes the dtype as '<V2' (2 raw bytes), and '|V2' once np.load
// has read that back. Both are taken for bf16; nothing else of two raw bytes is worth guessing here.
#pragma once

#include "io/tensor.hpp"

#include <span>

namespace tileglu::io {

// The data must fill the file: a rest (a second array, say) is refused. Any rank up to 16; the tensor has no name.
Result<TensorView> parse_npy(std::span<const std::byte> bytes, const std::string& file,
                             const std::shared_ptr<const void>& owner = {});
Result<TensorView> read_npy(const std::filesystem::path& path);

// Everything before the data: version 1.0. Refuses bf16.
Result<std::string> make_npy_header(const TensorSource& tensor, const std::string& file);

}  // namespace tileglu::io
