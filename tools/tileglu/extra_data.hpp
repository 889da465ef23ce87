// SPDX-License-Identifier: Apache-2.0
// Biases and addend of random normal data and room for the pre-activations, for one problem.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "reference/reference.hpp"
#include "runtime/runtime.hpp"

namespace tileglu::tool {

class ExtraData {
 public:
  static Result<ExtraData> make(const Problem& problem, std::uint64_t seed);
  // Adds the pointers that the problem has.
  void give(Operands& operands) const;
  Status poison() const;  // the pre-activations
  // What a run saved, if the problem has it.
  Result<reference::Preactivations> saved() const;

 private:
  std::size_t pair_bytes(Layout layout, std::int64_t ld) const;

  Problem problem_;
  runtime::Buffer bias_, add_, pre_;  // of gate, then of up where those are two
};

}  // namespace tileglu::tool
