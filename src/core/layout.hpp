// SPDX-License-Identifier: Apache-2.0
// Where gate row i and up row i lie, for each layout, and likewise the columns of matrices [m,2n]. The one place that
// knows; host and device share it.
#pragma once

#include "core/problem.hpp"

#if defined(__CUDACC__)
#define TILEGLU_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TILEGLU_HOST_DEVICE inline
#endif

namespace tileglu {

// Rows of one half inside its matrix: row i of the half is matrix row  first + (i / group) * pitch + i % group.
// With group = 1 the half is itself a strided matrix (stride pitch * ld); only INTERLEAVED_8 has group > 1.
struct HalfRows {
  std::int64_t first = 0;
  std::int64_t pitch = 1;
  std::int64_t group = 1;

  TILEGLU_HOST_DEVICE std::int64_t row(std::int64_t i) const { return first + (i / group) * pitch + i % group; }
};

inline HalfRows gate_rows(Layout layout, std::int64_t n) {
  switch (layout) {
    case Layout::kSeparate:
    case Layout::kGateUp: return {};
    case Layout::kUpGate: return {.first = n};
    case Layout::kInterleaved1: return {.first = 0, .pitch = 2};
    case Layout::kInterleaved8: return {.first = 0, .pitch = 16, .group = 8};
  }
  return {};
}

inline HalfRows up_rows(Layout layout, std::int64_t n) {
  switch (layout) {
    case Layout::kSeparate:
    case Layout::kUpGate: return {};
    case Layout::kGateUp: return {.first = n};
    case Layout::kInterleaved1: return {.first = 1, .pitch = 2};
    case Layout::kInterleaved8: return {.first = 8, .pitch = 16, .group = 8};
  }
  return {};
}

// One matrix of 2n rows (base gate, stride ld_gate) instead of two of n rows.
constexpr bool is_single_matrix(Layout layout) {
  return layout != Layout::kSeparate;
}

// Gate or up of a matrix [m,2n] (or of two [m,n]), whose columns lie as weight rows do: element (row, column) is
// row * ld + columns.row(column) elements from the base.
template <class Pointer>
struct ColumnHalf {
  Pointer base = nullptr;
  std::int64_t ld = 0;
  HalfRows columns;

  TILEGLU_HOST_DEVICE std::int64_t index(std::int64_t row, std::int64_t column) const {
    return row * ld + columns.row(column);
  }
};

template <class Pointer>
ColumnHalf<Pointer> column_half(Layout layout, std::int64_t n, std::int64_t ld, Pointer gate, Pointer up, bool is_up) {
  return {.base = is_up && !is_single_matrix(layout) ? up : gate,
          .ld = ld,
          .columns = is_up ? up_rows(layout, n) : gate_rows(layout, n)};
}
inline ColumnHalf<const void*> add_half(const Problem& p, const Operands& operands, bool is_up) {
  return column_half(p.layout_add, p.n, p.ld_add, operands.add_gate, operands.add_up, is_up);
}
inline ColumnHalf<void*> pre_half(const Problem& p, const Operands& operands, bool is_up) {
  return column_half(p.layout_pre, p.n, p.ld_pre, operands.pre_gate, operands.pre_up, is_up);
}

}  // namespace tileglu
