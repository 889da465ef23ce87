// SPDX-License-Identifier: Apache-2.0
// What a measurement was made on: the processor or GPU, its driver, clocks and power.
#pragma once

#include "core/problem.hpp"
#include "json_output.hpp"

#include <optional>

namespace tileglu::tool {

// "NVIDIA H200" or the processor's name.
std::string device_name(Memory memory, int device);
// Name, cores or SMs, caches, driver.
Json device_facts(Memory memory, int device);
// SM and memory clock and power at this moment; null for the host, and for what the GPU does not report.
Json sensor_reading(Memory memory, int device);
// Versions and host of this run.
Json software_facts();
// Bytes that a buffer rotation has to exceed: the L2 of the GPU, or the last-level cache of the processor.
std::int64_t last_cache_bytes(Memory memory, int device);

// Most that the device can do, from its data sheet figures; none if not known. Never another device's.
struct Peak {
  std::optional<double> tflops = {}, gbps = {};
};
Peak device_peak(Memory memory, int device, Dtype dtype);

}  // namespace tileglu::tool
