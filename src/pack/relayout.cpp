// SPDX-License-Identifier: Apache-2.0
// relayout_host: both layouts are asked where row i of each half lies, and the row is copied as bytes.
#include "pack/relayout.hpp"

#include "core/layout.hpp"

#include <cstring>

namespace tileglu {
namespace {

// One half (gate or up) of the weights: its matrix and where its rows are.
struct Half {
  unsigned char* base;
  std::int64_t ld;
  HalfRows rows;
};

Half gate_half(const WeightsView& view, std::int64_t n) {
  return {.base = static_cast<unsigned char*>(view.gate), .ld = view.ld_gate, .rows = gate_rows(view.layout, n)};
}

Half up_half(const WeightsView& view, std::int64_t n) {
  const bool single = is_single_matrix(view.layout);
  return {.base = static_cast<unsigned char*>(single ? view.gate : view.up),
          .ld = single ? view.ld_gate : view.ld_up,
          .rows = up_rows(view.layout, n)};
}

void copy_half(const RelayoutShape& shape, const Half& source, const Half& destination) {
  const auto element = static_cast<std::int64_t>(size_of(shape.dtype));
  for (std::int64_t i = 0; i < shape.n; ++i) {
    std::memcpy(destination.base + destination.rows.row(i) * destination.ld * element,
                source.base + source.rows.row(i) * source.ld * element, static_cast<std::size_t>(shape.k * element));
  }
}

}  // namespace

void relayout_host(const RelayoutShape& shape, const WeightsView& source, const WeightsView& destination) {
  if (shape.n == 0 || shape.k == 0) return;
  copy_half(shape, gate_half(source, shape.n), gate_half(destination, shape.n));
  copy_half(shape, up_half(source, shape.n), up_half(destination, shape.n));
}

#if !TILEGLU_HAVE_CUDA
Status relayout_cuda(const RelayoutShape&, const WeightsView&, const WeightsView&, int, void*) {
  return {Code::kNotAvailable, "copying weights on a GPU: this build has no CUDA"};
}
#endif

}  // namespace tileglu
