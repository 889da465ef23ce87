// SPDX-License-Identifier: Apache-2.0
// The loops of the cpu backend that are not oneDNN's, in one variant per instruction set, chosen at run time.
#pragma once

#include "core/layout.hpp"
#include "core/problem.hpp"

#include <span>

namespace tileglu::cpu {

// `count` weight rows of one half (gate or up), from row `first` of that half on.
struct WeightRows {
  const void* base = nullptr;
  std::int64_t ld = 0;  // elements
  HalfRows half;
  std::int64_t first = 0, count = 0;
};

// sums[i * sums_ld + j] = dot product of row i of A and weight row j.
struct DotTile {
  const float* a = nullptr;  // rows brought into form by Simd::prepare_row
  std::int64_t lda = 0, rows = 0, k = 0;
  WeightRows weights;
  float* sums = nullptr;
  std::int64_t sums_ld = 0;
};

// Biases and addend onto the sums of one half, which are then saved. Tile (0, 0) is element (row, column) of the half.
struct ExtraTile {
  float* sums = nullptr;
  std::int64_t sums_ld = 0, rows = 0, columns = 0;
  std::int64_t row = 0, column = 0;
  const void* bias = nullptr;   // of the half's column 0; each of the three may be missing
  ColumnHalf<const void*> add;  // base null: missing
  ColumnHalf<void*> save;
};

// y = gated(act, gate, up), rounded once or step by step.
struct FinishTile {
  SwigluNumbers swiglu;
  const float *gate = nullptr, *up = nullptr;
  std::int64_t sums_ld = 0;  // row stride of both
  std::int64_t rows = 0, columns = 0;
  void* y = nullptr;
  std::int64_t ldy = 0;  // elements
};

// One instruction set. Arrays are indexed by the enumeration's value minus 1.
struct Simd {
  const char* name;
  bool (*supported)();
  void (*widen_row[3])(const void* source, std::int64_t k, float* destination);
  void (*prepare_row[3])(const void* source, std::int64_t k, float* destination);
  void (*dot[3])(const DotTile& tile);
  void (*extra[3])(const ExtraTile& tile);
  void (*finish[2][7][3])(const FinishTile& tile);  // by rounding, activation, type of y

  static std::size_t index(Rounding rounding) { return static_cast<std::size_t>(rounding) - 1; }
  static std::size_t index(Dtype dtype) { return static_cast<std::size_t>(dtype) - 1; }
  static std::size_t index(Activation activation) { return static_cast<std::size_t>(activation) - 1; }
};

std::span<const Simd* const> all_simd();  // best first; the last one runs anywhere
const Simd& best_simd();                  // the first that this processor supports

}  // namespace tileglu::cpu
