// SPDX-License-Identifier: Apache-2.0
// two_gemms_act_mul: what frameworks do, as a baseline. Two matmuls whose results are written whole, [m,n] in the type
// of Y, then the activation over one of them, then the product. Never the backend's own choice.
#pragma once

#include "backends/backend.hpp"

namespace tileglu::cpu {

inline constexpr char kUnfusedKernel[] = "two_gemms_act_mul";

Result<std::unique_ptr<Plan>> make_unfused_plan(const Problem& problem, int threads);

}  // namespace tileglu::cpu
