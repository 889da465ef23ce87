// SPDX-License-Identifier: Apache-2.0
#include "packing.hpp"

#include "core/format.hpp"
#include "core/layout.hpp"
#include "models.hpp"
#include "output.hpp"

namespace tileglu::tool {
namespace {

// Gate and up rows of a slice as weights of their own. A slice of one matrix is taken after its halves were separated.
io::GatedWeights slice_of(const WeightsView& separate, const io::GatedWeights& whole, Slice slice, std::int64_t n) {
  const std::size_t bytes = static_cast<std::size_t>(n * whole.k) * size_of(whole.gate.dtype);
  const auto part = [&](const void* half) {
    io::TensorView view = whole.gate;
    view.shape = {n, whole.k};
    view.data = static_cast<const std::byte*>(half) + static_cast<std::size_t>(slice.rank) * bytes;
    view.bytes = bytes;
    return view;
  };
  return {.layout = Layout::kSeparate, .gate = part(separate.gate), .up = part(separate.up), .n = n, .k = whole.k};
}

}  // namespace

Result<Place> packing_place(const CommonOptions& options) {
  if (options.backend == BackendId::kAuto || options.backend == BackendId::kCpu) return Place{};
  const Result<Memory> memory = resolve_memory(options);
  if (!memory.ok()) return memory.status();
  return Place{.memory = memory.value(), .device = options.device};
}

Result<PackedLayer> lay_out(const Selected& selected, Slice slice, Layout layout, Place place) {
  const io::GatedWeights& whole = selected.weights;
  const Result<std::int64_t> n = shard_width(whole.n, slice.size);
  if (!n.ok()) return n.status();
  if (layout == Layout::kInterleaved8 && n.value() % 8 != 0) {
    return bad_argument("--layout", "interleaved_8",
                        formatted("n={} of layer {} must be a multiple of 8", n.value(), selected.layer));
  }
  PackedLayer packed{.layer = selected.layer,
                     .expert = selected.expert,
                     .dtype = whole.gate.dtype,
                     .from = whole.layout,
                     .n = n.value(),
                     .k = whole.k};
  const std::size_t alignment = size_of(packed.dtype);
  // Slices are cut on the host, before anything goes to a GPU.
  Result<StagedWeights> source = StagedWeights::make(whole, slice.size > 1 ? Place{} : place, alignment);
  if (!source.ok()) return source.status();
  StagedWeights separate = source.value();  // keeps the halves alive while their slice is copied
  if (slice.size > 1) {
    if (is_single_matrix(whole.layout)) {
      Result<StagedWeights> halves = source.value().relaid(Layout::kSeparate);
      if (!halves.ok()) return halves.status();
      separate = std::move(halves.value());
    }
    source = StagedWeights::make(slice_of(separate.view(), whole, slice, packed.n), place, alignment);
    if (!source.ok()) return source.status();
  }
  const Result<StagedWeights> relaid = source.value().relaid(layout);
  if (!relaid.ok()) return relaid.status();
  packed.bytes.resize(relaid.value().buffer().size());
  TILEGLU_TRY(relaid.value().buffer().download(packed.bytes.data(), packed.bytes.size()));
  return packed;
}

}  // namespace tileglu::tool
