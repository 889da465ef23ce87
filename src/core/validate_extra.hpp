// SPDX-License-Identifier: Apache-2.0
// The parts of a problem that tell how the gate is computed (numbers of swiglu, rounding) and what a run reads and
// writes besides A, the weights and Y. Used by validate.cpp only.
#pragma once

#include "core/extent.hpp"
#include "core/problem.hpp"
#include "core/status.hpp"

#include <array>

namespace tileglu::checks {

// Fills swiglu, rounding, extra and the layouts and strides of addend and pre-activations. Wants m, n and dtype.
Status read_extra(const tileglu_problem& c, Problem& p);

// The pointers are given where, and only where, the problem has the operand.
Status extra_pointers_belong(const tileglu_args& args, const Problem& p);

struct NamedRange {
  const char* name = "";
  ByteRange range;  // of no bytes if the problem does not have the operand
};
std::array<NamedRange, 4> extra_inputs(const tileglu_args& args, const Problem& p);
std::array<NamedRange, 2> extra_outputs(const tileglu_args& args, const Problem& p);

}  // namespace tileglu::checks
