// SPDX-License-Identifier: Apache-2.0
// Reads a size-versioned struct of the C ABI: a shorter one from an older caller gets zeros for the fields it does not
// have, a longer one from a newer caller is taken only if the fields unknown here are zero.
#pragma once

#include "core/format.hpp"
#include "core/status.hpp"

#include <cstddef>
#include <cstring>

namespace tileglu {

// Lengths in 0.1.0.
inline constexpr std::size_t kProblemV1 = offsetof(tileglu_problem, ldy) + sizeof(std::int64_t);
inline constexpr std::size_t kOptionsV1 = offsetof(tileglu_options, kernel) + sizeof(const char*);
inline constexpr std::size_t kArgsV1 = offsetof(tileglu_args, stream) + sizeof(void*);
inline constexpr std::size_t kWeightsV1 = offsetof(tileglu_weights, ld_up) + sizeof(std::int64_t);
// No version will be longer. It bounds how far a wrong struct_size lets us read.
inline constexpr std::uint32_t kMaxStructBytes = 512;

// first_version_bytes: length of the struct in the first release that had it.
template <class Struct>
Result<Struct> read_struct(const Struct* source, const char* name, std::size_t first_version_bytes) {
  if (source == nullptr) return Status(Code::kInvalidArgument, formatted("{} is NULL", name));
  const std::uint32_t size = source->struct_size;
  if (size < first_version_bytes || size > kMaxStructBytes) {
    return Status(Code::kInvalidArgument, formatted("{}.struct_size={} is outside {}..{} (set by the INIT macro)", name,
                                                    size, first_version_bytes, kMaxStructBytes));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(source);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) {
      return Status(Code::kNotSupported,
                    formatted("{}.struct_size={}: byte {} is {}, in a field that this version ({} bytes) does not "
                              "have and takes only as 0",
                              name, size, i, bytes[i], sizeof(Struct)));
    }
  }
  Struct copy{};
  std::memcpy(&copy, source, size < sizeof(Struct) ? size : sizeof(Struct));
  return copy;
}

}  // namespace tileglu
