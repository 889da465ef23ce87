// SPDX-License-Identifier: Apache-2.0
// One layer's weights copied into another layout, whole or one slice; what pack and unpack are made of.
#pragma once

#include "options.hpp"
#include "selection.hpp"
#include "staged_weights.hpp"

#include <optional>
#include <vector>

namespace tileglu::tool {

// The rows [rank * n / size, (rank + 1) * n / size) of gate, and the same of up.
struct Slice {
  int rank = 0, size = 1;
};

struct PackedLayer {
  int layer = 0;
  std::optional<int> expert = {};
  Dtype dtype = Dtype::kBf16;
  Layout from = Layout::kSeparate;
  std::int64_t n = 0, k = 0;          // of the slice
  std::vector<std::byte> bytes = {};  // 2n rows; gate then up for kSeparate
};

// The host, unless --backend names a GPU's.
Result<Place> packing_place(const CommonOptions& options);
Result<PackedLayer> lay_out(const Selected& selected, Slice slice, Layout layout, Place place);

}  // namespace tileglu::tool
