// SPDX-License-Identifier: Apache-2.0
// Random normal matrices, the same whatever the number of threads, and exact or rounded conversions between dtypes.
#pragma once

#include "core/problem.hpp"

#include <functional>

namespace tileglu::tool {

// Calls body(begin, end) on parts of [0, count) from as many threads as there are cores.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body);

struct NormalMatrix {
  Dtype dtype = Dtype::kBf16;
  std::int64_t rows = 0, columns = 0;
  std::int64_t ld = 0;  // elements
  double scale = 1, shift = 0;
  std::uint64_t seed = 0;
};
// Element (i, j) is N(0,1) * scale + shift, rounded once; what lies between the rows is left as it is.
void fill_normal(const NormalMatrix& matrix, void* data);

// Whether every value of `from` is one of `to`.
bool widens(Dtype from, Dtype to);
void convert(Dtype from, const void* source, Dtype to, void* destination, std::int64_t count);

// From stored values to double, and one rounding back.
double load(Dtype dtype, const void* data, std::int64_t index);
void store(Dtype dtype, void* data, std::int64_t index, double value);

}  // namespace tileglu::tool
