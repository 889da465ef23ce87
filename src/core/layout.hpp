// SPDX-License-Identifier: Apache-2.0
// Where gate row i and up row i lie, for each layout. The one place that knows; host and device share it.
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

}  // namespace tileglu
