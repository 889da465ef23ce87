// SPDX-License-Identifier: Apache-2.0
// Copies weight rows between layouts, bit for bit; packing and unpacking are the same operation.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

namespace tileglu {

struct WeightsView {
  Layout layout = Layout::kSeparate;
  void* gate = nullptr;  // the single matrix in every layout but kSeparate
  void* up = nullptr;
  std::int64_t ld_gate = 0, ld_up = 0;  // elements, never 0
};

struct RelayoutShape {
  Dtype dtype = Dtype::kBf16;
  std::int64_t n = 0, k = 0;
};

void relayout_host(const RelayoutShape& shape, const WeightsView& source, const WeightsView& destination);
// Enqueues one kernel on `stream` of `device`; kNotAvailable in builds without CUDA.
Status relayout_cuda(const RelayoutShape& shape, const WeightsView& source, const WeightsView& destination, int device,
                     void* stream);

}  // namespace tileglu
