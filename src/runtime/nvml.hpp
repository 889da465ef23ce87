// SPDX-License-Identifier: Apache-2.0
// The few facts that only NVML (libnvidia-ml, part of the driver) knows. Opened at run time; without it they are
// absent.
#pragma once

#include "runtime/runtime.hpp"

namespace tileglu::runtime {

std::string nvml_driver_version();  // "580.95.05", or empty
// `pci_bus_id` as cudaDeviceGetPCIBusId writes it.
Result<DeviceSensors> nvml_sensors(const char* pci_bus_id);

}  // namespace tileglu::runtime
