// SPDX-License-Identifier: Apache-2.0
// The steps of TILEGLU_ROUND_UNFUSED, written apart from core/activation.hpp: from saved pre-activations to the very
// bits of Y.
#pragma once

#include "op/op_case.hpp"

namespace tileglu::test {

// Every element of Y is what the steps make of the saved gate and up, bit for bit. Where a step's exact result lies so
// near a tie that a few ulp of fp32 decide, both neighbours are right; such elements may be few.
::testing::AssertionResult judge_steps(const OpCase& op, const Outcome& outcome);

}  // namespace tileglu::test
