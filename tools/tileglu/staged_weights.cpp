// SPDX-License-Identifier: Apache-2.0
#include "staged_weights.hpp"

#include "core/layout.hpp"
#include "library.hpp"

#include <algorithm>

namespace tileglu::tool {
namespace {

Result<runtime::Buffer> copy_of(const io::TensorView& tensor, Place place) {
  Result<runtime::Buffer> buffer = runtime::Buffer::make(place.memory, place.device, tensor.bytes);
  if (!buffer.ok()) return buffer.status();
  TILEGLU_TRY(buffer.value().upload(tensor.data, tensor.bytes));
  return buffer;
}

}  // namespace

int alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 16U;
  return static_cast<int>(bits & (~bits + 1));
}

Result<StagedWeights> StagedWeights::make(const io::GatedWeights& weights, Place place, std::size_t alignment) {
  StagedWeights staged;
  staged.weights_ = weights;
  staged.place_ = place;
  const bool separate = !is_single_matrix(weights.layout);
  const auto aligned = [&](const io::TensorView& tensor) {
    return static_cast<std::size_t>(alignment_of(tensor.data)) >= alignment;
  };
  staged.in_place_ = place.memory == Memory::kHost && aligned(weights.gate) && (!separate || aligned(weights.up));
  staged.view_ = {.layout = weights.layout, .ld_gate = weights.k, .ld_up = separate ? weights.k : 0};
  if (staged.in_place_) {
    // The library reads weights through pointers that are not const, as one struct serves source and destination.
    staged.view_.gate = const_cast<void*>(weights.gate.data);
    if (separate) staged.view_.up = const_cast<void*>(weights.up.data);
    return staged;
  }
  Result<runtime::Buffer> gate = copy_of(weights.gate, place);
  if (!gate.ok()) return gate.status();
  staged.gate_ = gate.value();
  staged.view_.gate = staged.gate_.data();
  if (!separate) return staged;
  Result<runtime::Buffer> up = copy_of(weights.up, place);
  if (!up.ok()) return up.status();
  staged.up_ = up.value();
  staged.view_.up = staged.up_.data();
  return staged;
}

Result<StagedWeights> StagedWeights::relaid(Layout layout) const {
  StagedWeights staged = *this;
  const std::size_t half = static_cast<std::size_t>(weights_.n * weights_.k) * size_of(weights_.gate.dtype);
  Result<runtime::Buffer> buffer = runtime::Buffer::make(place_.memory, place_.device, 2 * half);
  if (!buffer.ok()) return buffer.status();
  staged.gate_ = buffer.value();
  staged.up_ = {};
  staged.in_place_ = false;
  staged.view_ = {.layout = layout, .gate = staged.gate_.data(), .ld_gate = weights_.k};
  if (!is_single_matrix(layout)) {
    staged.view_.up = static_cast<std::byte*>(staged.gate_.data()) + half;
    staged.view_.ld_up = weights_.k;
  }
  Result<runtime::Stream> stream = runtime::Stream::make(place_.memory, place_.device);
  if (!stream.ok()) return stream.status();
  TILEGLU_TRY(relayout(problem(), view_, staged.view_, stream.value().handle()));
  TILEGLU_TRY(stream.value().synchronize());
  return staged;
}

Problem StagedWeights::problem() const {
  const int up = view_.up != nullptr ? alignment_of(view_.up) : 16;
  return {.dtype = weights_.gate.dtype,
          .dtype_y = weights_.gate.dtype,
          .layout = view_.layout,
          .memory = place_.memory,
          .device = place_.device,
          .alignment = std::min(alignment_of(view_.gate), up),
          .n = weights_.n,
          .k = weights_.k,
          .lda = weights_.k,
          .ld_gate = view_.ld_gate,
          .ld_up = view_.ld_up,
          .ldy = weights_.n};
}

}  // namespace tileglu::tool
