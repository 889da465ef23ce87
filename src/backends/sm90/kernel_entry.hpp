// SPDX-License-Identifier: Apache-2.0
// What each compiled row of plan/sm90_configs.hpp gives to the backend.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "plan/kernel_config.hpp"

namespace tileglu::sm90 {

struct KernelEntry {
  // Sets the kernel's shared-memory limit on the current device; at plan time.
  Status (*prepare)();
  // Launches on operands.stream of the current device; obeys the rules of the call.
  Status (*launch)(const Problem& problem, const Operands& operands, int sm_count);
};

Status cuda_failure(const KernelConfig& config, const char* call, const char* error);

template <int Row>
const KernelEntry& kernel_entry();

}  // namespace tileglu::sm90
