// SPDX-License-Identifier: Apache-2.0
// The slow fp64 reference, apart from all backends: preactivations by plain fp64 sums of the stored input values,
// biases and addend included, from which the exact result and the result of the unfused path are derived.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <vector>

namespace tileglu::reference {

// Gate and up before the activation, fp64, row-major [m,n] without padding, on the host.
struct Preactivations {
  std::vector<double> gate, up;
};

// Operands lie where problem.memory says: host operands are summed on the CPU (in parallel over rows), CUDA operands by
// a naive fp64 kernel, so that large problems can be checked too.
Result<Preactivations> preactivations(const Problem& problem, const Operands& operands);

// gated(act, gate, up) in fp64, unrounded. Of the problem, only the activation and its numbers are read.
std::vector<double> exact(const Problem& problem, const Preactivations& pre);
// What frameworks do, each step rounded to problem.dtype_y (TILEGLU_ROUND_UNFUSED). Returned widened.
std::vector<double> unfused(const Problem& problem, const Preactivations& pre);
// The exact result rounded once to dtype_y: the best any implementation can do. Returned widened.
std::vector<double> rounded(Dtype dtype_y, const std::vector<double>& values);

}  // namespace tileglu::reference
