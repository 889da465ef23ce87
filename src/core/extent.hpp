// SPDX-License-Identifier: Apache-2.0
// Bytes that a strided matrix spans, and whether two spans meet.
#pragma once

#include <cstdint>
#include <optional>

namespace tileglu {

// No matrix is larger: the user half of a 64-bit address space. It leaves room for a backend to multiply by up to 64.
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 56;

// From the first to one past the last byte of a row-major matrix; empty if that is more than kMaxBytes.
inline std::optional<std::int64_t> extent_bytes(std::int64_t rows, std::int64_t columns, std::int64_t ld,
                                                std::int64_t element_bytes) {
  if (rows == 0 || columns == 0) return 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(rows - 1, ld, &elements) || __builtin_add_overflow(elements, columns, &elements) ||
      __builtin_mul_overflow(elements, element_bytes, &bytes) || bytes > kMaxBytes) {
    return std::nullopt;
  }
  return bytes;
}

struct ByteRange {
  const void* first = nullptr;
  std::int64_t bytes = 0;
};

// Written without sums, which could wrap around.
inline bool overlap(const ByteRange& x, const ByteRange& y) {
  const auto a = reinterpret_cast<std::uintptr_t>(x.first);
  const auto b = reinterpret_cast<std::uintptr_t>(y.first);
  if (x.bytes == 0 || y.bytes == 0) return false;
  return a < b ? b - a < static_cast<std::uintptr_t>(x.bytes) : a - b < static_cast<std::uintptr_t>(y.bytes);
}

}  // namespace tileglu
