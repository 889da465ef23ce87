// SPDX-License-Identifier: Apache-2.0
// What the planner knows of a GPU: data, so that an H100 or H20 can be planned for without the card.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tileglu {

struct Tuning;

struct DeviceSpec {
  std::string name;
  int capability_major = 0, capability_minor = 0;
  int sm_count = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t shared_memory_per_block = 0;  // bytes, opt-in limit
  int sm_clock_khz = 0;
  std::shared_ptr<const Tuning> tuning = nullptr;  // kernels measured on such GPUs; none: the time model alone
};

}  // namespace tileglu
