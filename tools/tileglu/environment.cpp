// SPDX-License-Identifier: Apache-2.0
#include "environment.hpp"

#include "build_info.hpp"
#include "core/format.hpp"
#include "runtime/runtime.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#if TILEGLU_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace tileglu::tool {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// Double data rate times bus width, as the driver reports them.
std::optional<double> memory_peak_gbps([[maybe_unused]] int device) {
#if TILEGLU_HAVE_CUDA
  int clock_khz = 0, bus_bits = 0;
  if (cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device) == cudaSuccess && clock_khz > 0) {
    return 2.0 * clock_khz * 1e3 * bus_bits / 8 * 1e-9;
  }
#endif
  return {};
}

Json nullable(double value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

}  // namespace

std::string device_name(Memory memory, int device) {
  if (memory == Memory::kHost) return processor_name();
  const Result<DeviceSpec> spec = runtime::device_spec(device);
  return spec.ok() ? spec.value().name : "unknown GPU";
}

Json device_facts(Memory memory, int device) {
  if (memory == Memory::kHost) {
    return {{"name", processor_name()},
            {"cores", std::thread::hardware_concurrency()},
            {"last_cache_bytes", last_cache_bytes(memory, device)}};
  }
  const Result<DeviceSpec> spec = runtime::device_spec(device);
  if (!spec.ok()) return {{"name", nullptr}, {"reason", spec.status().text()}};
  const DeviceSpec& s = spec.value();
  return {{"index", device},
          {"name", s.name},
          {"compute_capability", formatted("{}.{}", s.capability_major, s.capability_minor)},
          {"sm_count", s.sm_count},
          {"l2_bytes", s.l2_bytes},
          {"max_sm_clock_mhz", s.sm_clock_khz / 1000},
          {"driver", runtime::driver_description()}};
}

Json sensor_reading(Memory memory, int device) {
  if (memory == Memory::kHost) return nullptr;
  const Result<runtime::DeviceSensors> sensors = runtime::device_sensors(device);
  if (!sensors.ok()) return nullptr;
  const runtime::DeviceSensors& s = sensors.value();
  return {{"sm_clock_mhz", nullable(s.sm_clock_mhz)},
          {"memory_clock_mhz", nullable(s.memory_clock_mhz)},
          {"power_watts", nullable(s.power_watts)}};
}

Json software_facts() {
  utsname system{};
  uname(&system);
  return {{"tileglu", TILEGLU_BUILD_VERSION},
          {"commit", TILEGLU_BUILD_COMMIT},
          {"compiler", TILEGLU_BUILD_COMPILER},
          {"cuda", TILEGLU_BUILD_CUDA},
          {"cutlass", TILEGLU_BUILD_CUTLASS},
          {"driver", runtime::driver_description()},
          {"system", formatted("{} {}", system.sysname, system.machine)},
          {"processor", processor_name()}};
}

std::int64_t last_cache_bytes(Memory memory, int device) {
  constexpr std::int64_t kUnknown = 64 << 20;  // more than most have
  if (memory == Memory::kCuda) {
    const Result<DeviceSpec> spec = runtime::device_spec(device);
    return spec.ok() && spec.value().l2_bytes > 0 ? spec.value().l2_bytes : kUnknown;
  }
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : kUnknown;
}

Peak device_peak(Memory memory, int device, Dtype dtype) {
  if (memory == Memory::kHost) return {};
  Peak peak{.gbps = memory_peak_gbps(device)};
  const Result<DeviceSpec> spec = runtime::device_spec(device);
  if (!spec.ok() || dtype == Dtype::kFp32) return peak;
  const DeviceSpec& s = spec.value();
  // Dense bf16 and fp16 tensor cores of Hopper: 4096 FLOP per clock and SM, at the highest clock.
  if (s.capability_major == 9 && s.capability_minor == 0) {
    peak.tflops = 4096.0 * s.sm_count * s.sm_clock_khz * 1e3 * 1e-12;
  }
  return peak;
}

}  // namespace tileglu::tool
