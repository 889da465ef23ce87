// SPDX-License-Identifier: Apache-2.0
#include "runtime/nvml.hpp"

#include <dlfcn.h>

#include <array>

namespace tileglu::runtime {
namespace {

// nvml.h is not part of every CUDA installation; these few signatures have not changed since NVML 5.
using Device = struct nvmlDevice*;
constexpr int kSuccess = 0;
constexpr int kClockSm = 1, kClockMemory = 2;

struct Nvml {
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_by_pci_bus_id)(const char*, Device*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*power_milliwatts)(Device, unsigned*) = nullptr;
  bool usable = false;
};

template <class Function>
bool resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Nvml load() {
  Nvml nvml;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  nvml.usable = library != nullptr && resolve(library, "nvmlInit_v2", nvml.init) &&
                resolve(library, "nvmlSystemGetDriverVersion", nvml.driver_version) &&
                resolve(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.device_by_pci_bus_id) &&
                resolve(library, "nvmlDeviceGetClockInfo", nvml.clock) &&
                resolve(library, "nvmlDeviceGetPowerUsage", nvml.power_milliwatts) && nvml.init() == kSuccess;
  return nvml;
}

const Nvml& nvml() {
  static const Nvml loaded = load();
  return loaded;
}

}  // namespace

std::string nvml_driver_version() {
  std::array<char, 96> text{};
  if (!nvml().usable || nvml().driver_version(text.data(), text.size()) != kSuccess) return {};
  return text.data();
}

Result<DeviceSensors> nvml_sensors(const char* pci_bus_id) {
  Device device = nullptr;
  if (!nvml().usable || nvml().device_by_pci_bus_id(pci_bus_id, &device) != kSuccess) {
    return Status{Code::kNotAvailable, std::string("NVML does not answer for the GPU at ") + pci_bus_id};
  }
  unsigned sm = 0, memory = 0, power = 0;
  if (nvml().clock(device, kClockSm, &sm) != kSuccess) sm = 0;
  if (nvml().clock(device, kClockMemory, &memory) != kSuccess) memory = 0;
  if (nvml().power_milliwatts(device, &power) != kSuccess) power = 0;
  return DeviceSensors{.sm_clock_mhz = static_cast<int>(sm),
                       .memory_clock_mhz = static_cast<int>(memory),
                       .power_watts = power / 1000.0};
}

}  // namespace tileglu::runtime
