// SPDX-License-Identifier: Apache-2.0
// TMA descriptors, encoded through the driver's entry points (nothing links against libcuda). Plans encode them without
// addresses; a launch only sets those.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <cuda.h>

#include <cstdint>

namespace tileglu::sm90 {

// A row-major matrix of 16-bit elements, seen through boxes of box_rows x box_columns.
struct MatrixView {
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  // elements, a multiple of 8
  int box_rows = 0;
  int box_columns = 0;  // 64, 32 or 16: rows of 128, 64 or 32 bytes, swizzled accordingly; else not swizzled
};

// A row-major matrix of 16-bit elements, seen through slices of `slice_columns` columns (a multiple of 8) that begin at
// any multiple of 8.
struct SlicesView {
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  // elements, a multiple of 8
  int slice_columns = 0;
};

// Gate or up rows of length k inside the weights: row i at base + (i / 8) * group_stride + (i % 8) * row_stride. That
// one form covers every layout (n is a multiple of 8), so that kernels need not know it.
struct HalfView {
  const void* base = nullptr;
  std::int64_t n = 0, k = 0;
  std::int64_t row_stride = 0, group_stride = 0;  // elements
};
HalfView gate_half(const Problem& problem, const Operands& operands);
HalfView up_half(const Problem& problem, const Operands& operands);

Status encode(const MatrixView& view, CUtensorMap& map);
// Boxes of 64 columns and `rows` rows. Coordinates: (column of the slice, its first column / 8, row); what lies beyond
// the slice's last column is neither read nor written.
Status encode(const SlicesView& view, int rows, CUtensorMap& map);
// Boxes of 64 columns of k and `rows` rows (a multiple of 8). Coordinates: grouped (k, 0, row / 8), else (k, row, 0),
// for rows at equal distances.
Status encode_half(const HalfView& half, int rows, bool grouped, CUtensorMap& map);
// 16-byte aligned.
Status set_base(CUtensorMap& map, const void* base);

}  // namespace tileglu::sm90
