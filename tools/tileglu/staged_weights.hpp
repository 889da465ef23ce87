// SPDX-License-Identifier: Apache-2.0
// Weights of a checkpoint where a kernel can read them: in place in the mapped file if the host computes and they are
// aligned, else copied; uploaded for a GPU; laid out anew on request.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "io/checkpoint.hpp"
#include "pack/relayout.hpp"
#include "runtime/runtime.hpp"

namespace tileglu::tool {

struct Place {
  Memory memory = Memory::kHost;
  int device = 0;
};

class StagedWeights {
 public:
  // `alignment`: what base addresses must at least be multiples of (the larger element size of the problem).
  static Result<StagedWeights> make(const io::GatedWeights& weights, Place place, std::size_t alignment);
  // The same weights in another layout; one matrix, or for kSeparate two in one buffer.
  Result<StagedWeights> relaid(Layout layout) const;

  // Problem fields that the weights decide: dtype, layout, memory, device, alignment, n, k, strides of the weights.
  Problem problem() const;
  const WeightsView& view() const { return view_; }
  bool in_place() const { return in_place_; }
  // All rows, after relaid().
  const runtime::Buffer& buffer() const { return gate_; }

 private:
  io::GatedWeights weights_;
  Place place_;
  WeightsView view_;
  runtime::Buffer gate_, up_;
  bool in_place_ = false;
};

// Largest power of two up to 16 that divides the address.
int alignment_of(const void* address);

}  // namespace tileglu::tool
