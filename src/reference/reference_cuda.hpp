// SPDX-License-Identifier: Apache-2.0
// The GPU half of the reference, called by reference.cpp (only in builds with CUDA).
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

namespace tileglu::reference {

// Fills gate and up, each [m,n] doubles on the host, with fp64 sums computed on the GPU that holds the operands. Works
// on operands.stream and returns when the results have arrived.
Status preactivations_cuda(const Problem& problem, const Operands& operands, double* gate, double* up);

}  // namespace tileglu::reference
