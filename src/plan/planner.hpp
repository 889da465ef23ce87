// SPDX-License-Identifier: Apache-2.0
// Planner of the sm90 backend: candidates -> legal, with reason -> measured or else predicted time -> best. Pure
// functions of the problem and the device description; no CUDA headers.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "plan/device_spec.hpp"
#include "plan/kernel_config.hpp"

#include <string_view>
#include <vector>

namespace tileglu {

struct Candidate {
  int row = 0;              // index into kSm90Configs
  Status legal;             // OK, or kNotSupported and the rule that the problem breaks
  double predicted_us = 0;  // only if legal
  double measured_us = 0;   // of the tuning row for this problem that chose it; else 0
};

// TILEGLU_PREFETCH_WEIGHTS, TILEGLU_BATCH_INVARIANT.
struct PlanFlags {
  bool prefetch_weights = false;
  bool batch_invariant = false;
};

// Whether the kernel can run the problem on the device.
Status legal(const KernelConfig& config, const Problem& problem, const DeviceSpec& device);
// Whether all rows of y are computed alike, whatever the kernel, m and the other rows (TILEGLU_BATCH_INVARIANT).
Status batch_invariant(const KernelConfig& config);
// Model of the time, in microseconds; for choosing, not for reporting.
double predict_us(const KernelConfig& config, const Problem& problem, const DeviceSpec& device);
// All rows whose family or full name is `kernel` (all rows if empty), best legal first. Where weights are prefetched,
// streamed kernels come after all others: their blocks leave the next grid no place on the SMs to prefetch from.
std::vector<Candidate> candidates(const Problem& problem, const DeviceSpec& device, std::string_view kernel = {},
                                  PlanFlags flags = {});
// The best legal row; else kInvalidArgument for an unknown name, or kNotSupported with the reason of each row. With no
// `kernel` named, the row that device.tuning has for the problem comes first: the user's, then the shipped one. A row
// whose kernel does not exist, is not legal, or would come after all others for the flags is passed over.
Result<Candidate> choose(const Problem& problem, const DeviceSpec& device, std::string_view kernel = {},
                         PlanFlags flags = {});

}  // namespace tileglu
