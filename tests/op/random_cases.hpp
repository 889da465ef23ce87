// SPDX-License-Identifier: Apache-2.0
// Random problems: whatever a caller may ask, drawn from a seed, and run on every backend and kernel that can.
#pragma once

#include "op/op_case.hpp"

namespace tileglu::test {

// Any sizes (with a taste for edges of vectors and tiles), types, layouts, strides, bases, operands and roundings.
OpCase random_case(unsigned seed);

struct RandomRun {
  int accepted = 0, refused = 0;      // kernels
  std::vector<std::string> failures;  // what is wrong, with the seed
};
// The case on the backends of this memory: the planner's choice, which must not refuse, and every kernel by name that
// rounds as the problem says.
RandomRun run_random_case(unsigned seed, Memory memory);

}  // namespace tileglu::test
