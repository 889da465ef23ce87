// SPDX-License-Identifier: Apache-2.0
// What each compiled row of plan/sm90_configs.hpp gives to the backend.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "plan/kernel_config.hpp"

#include <cstddef>
#include <memory>

namespace tileglu::sm90 {

struct LaunchOptions {
  int sm_count = 0;
  bool prefetch_weights = false;  // read weights before the grid ahead in the stream has ended
  bool batch_invariant = false;   // no arithmetic that outputs share
};

// A kernel made ready for one problem: all but the addresses is decided.
class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  // Launches on operands.stream of the current device; obeys the rules of the call.
  virtual Status run(const Operands& operands) const noexcept = 0;
  virtual std::size_t workspace_bytes() const { return 0; }
};

// For the current device.
template <int Row>
Result<std::unique_ptr<Launcher>> make_launcher(const Problem& problem, const LaunchOptions& options);

Status cuda_failure(const KernelConfig& config, const char* call, const char* error);

// For tiles that are cut along k: differs from the last and from whatever memory is likely to hold (parts.cuh).
unsigned long long next_ticket();

}  // namespace tileglu::sm90
