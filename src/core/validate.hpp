// SPDX-License-Identifier: Apache-2.0
// From the C structs to plain values, checked once. Every message names the field, its value and the rule.
#pragma once

#include "backends/backend.hpp"
#include "core/problem.hpp"
#include "core/status.hpp"
#include "pack/relayout.hpp"

#include <string_view>

namespace tileglu {

// Fills defaults (strides, dtype_y, alignment) and normalises strides that mean nothing (a matrix of at most one row).
Result<Problem> validate_problem(const tileglu_problem* problem);

// PlanOptions without a copy of the kernel name, which lies in the caller's memory: a lookup allocates nothing.
struct OptionsView {
  BackendId backend = BackendId::kAuto;
  std::string_view kernel;
  bool prefetch_weights = false, batch_invariant = false;

  PlanOptions copy() const {
    return {.backend = backend,
            .kernel = std::string(kernel),
            .prefetch_weights = prefetch_weights,
            .batch_invariant = batch_invariant};
  }
};
Result<OptionsView> view_options(const tileglu_options* options);      // nullptr: defaults
Result<PlanOptions> validate_options(const tileglu_options* options);  // the same, with a copy

// Operands against the problem they were planned for: null, alignment, overlap of y with an input, workspace.
Result<Operands> validate_args(const tileglu_args* args, const Problem& problem, std::size_t workspace_bytes);

// A relayout reads dtype, memory, device, n and k of the problem and nothing else.
struct RelayoutCall {
  RelayoutShape shape;
  WeightsView source, destination;
  Memory memory = Memory::kHost;
  int device = 0;
};
Result<RelayoutCall> validate_relayout(const tileglu_problem* problem, const tileglu_weights* source,
                                       const tileglu_weights* destination);

}  // namespace tileglu
