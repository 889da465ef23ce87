// SPDX-License-Identifier: Apache-2.0
// The rules that a problem and a relayout share. Used by validate*.cpp only.
#pragma once

#include "core/extent.hpp"
#include "core/format.hpp"
#include "core/layout.hpp"
#include "core/names.hpp"
#include "core/status.hpp"

#include <algorithm>

namespace tileglu::checks {

template <class... Values>
Status invalid(fmt::format_string<Values...> text, Values&&... values) {
  return {Code::kInvalidArgument, formatted(text, std::forward<Values>(values)...)};
}

// Enumerations of the C ABI are dense; `last` is the highest value of this version.
template <class Enum>
Status in_range(const char* field, int value, Enum first, Enum last) {
  if (value >= static_cast<int>(first) && value <= static_cast<int>(last)) return {};
  std::string names;
  for (int v = static_cast<int>(first); v <= static_cast<int>(last); ++v) {
    names += formatted("{}{} {}", names.empty() ? "" : ", ", v, name_of(static_cast<Enum>(v)));
  }
  return invalid("{}={} is none of {}", field, value, names);
}

inline Status size_in_range(const char* field, std::int64_t value) {
  if (value >= 0 && value <= kMaxBytes) return {};
  return invalid("{}={} is outside 0..2^56", field, value);
}

struct Matrix {
  const char* name;
  const char* stride_name;
  const char* column_name;
  std::int64_t rows, columns;
  std::int64_t element_bytes;
};

// Fills `ld` if it is 0 or, with at most one row, means nothing; then checks it and the length in bytes.
inline Status resolve_stride(const Matrix& matrix, std::int64_t& ld) {
  if (matrix.rows <= 1 || ld == 0) ld = std::max<std::int64_t>(matrix.columns, 1);
  if (ld < matrix.columns || ld < 1) {
    return invalid("{}={} is below {}={} (row strides are in elements and at least the row length)", matrix.stride_name,
                   ld, matrix.column_name, matrix.columns);
  }
  if (!extent_bytes(matrix.rows, matrix.columns, ld, matrix.element_bytes)) {
    return invalid("{}: {} rows of {}={} elements with stride {}={} are more than 2^56 bytes", matrix.name, matrix.rows,
                   matrix.column_name, matrix.columns, matrix.stride_name, ld);
  }
  return {};
}

struct WeightShape {
  Layout layout;
  std::int64_t n, k;
  std::int64_t element_bytes;

  std::int64_t gate_matrix_rows() const { return is_single_matrix(layout) ? 2 * n : n; }
};

// `prefix` is put before the field names ("source.").
inline Status resolve_weight_strides(const WeightShape& shape, const std::string& prefix, std::int64_t& ld_gate,
                                     std::int64_t& ld_up) {
  const std::string gate = prefix + "gate", gate_stride = prefix + "ld_gate";
  const std::string up = prefix + "up", up_stride = prefix + "ld_up";
  if (shape.layout == Layout::kInterleaved8 && shape.n % 8 != 0) {
    return invalid("n={} is not a multiple of 8, which layout interleaved_8 needs", shape.n);
  }
  TILEGLU_TRY(resolve_stride(
      {gate.c_str(), gate_stride.c_str(), "k", shape.gate_matrix_rows(), shape.k, shape.element_bytes}, ld_gate));
  if (is_single_matrix(shape.layout)) {
    if (ld_up == 0) return {};
    return invalid("{}={} must be 0 in layout {} (one matrix with stride ld_gate)", up_stride, ld_up,
                   name_of(shape.layout));
  }
  return resolve_stride({up.c_str(), up_stride.c_str(), "k", shape.n, shape.k, shape.element_bytes}, ld_up);
}

inline Status aligned(const char* name, const void* pointer, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % alignment == 0) return {};
  return invalid("{}={:#x} is not a multiple of {} bytes", name, address, alignment);
}

}  // namespace tileglu::checks
