// SPDX-License-Identifier: Apache-2.0
// From the C structs to plain values, checked once. Every message names the field, its value and the rule.
#pragma once

#include "backends/backend.hpp"
#include "core/problem.hpp"
#include "core/status.hpp"

namespace tileglu {

// Fills defaults (strides, dtype_y, alignment) and normalises strides that mean nothing (a matrix of at most one row).
Result<Problem> validate_problem(const tileglu_problem* problem);
Result<PlanOptions> validate_options(const tileglu_options* options);  // nullptr: defaults
// Operands against the problem they were planned for: null, alignment, overlap of y with an input, workspace.
Result<Operands> validate_args(const tileglu_args* args, const Problem& problem, std::size_t workspace_bytes);

}  // namespace tileglu
