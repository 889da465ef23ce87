// SPDX-License-Identifier: Apache-2.0
// TMA descriptors, encoded through the driver entry point (nothing links against libcuda).
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <cuda.h>

#include <cstdint>

namespace tileglu::sm90 {

// A row-major matrix of 16-bit elements, seen through boxes of box_rows x box_columns.
struct MatrixView {
  const void* base = nullptr;  // 16-byte aligned
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  // elements, a multiple of 8
  int box_rows = 0;
  int box_columns = 0;  // 64, 32 or 16: rows of 128, 64 or 32 bytes, swizzled accordingly
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

// Finds the driver's encoder once per process; call it before encode() (at plan time).
Status load_encoder();
Status encode(const MatrixView& view, CUtensorMap& map);
// Boxes of 64 columns of k and `rows` rows (a multiple of 8); coordinates (k, 0, row / 8).
Status encode_half(const HalfView& half, int rows, CUtensorMap& map);

}  // namespace tileglu::sm90
