// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_config.hpp"

#include "core/format.hpp"

namespace tileglu {

const char* family_name(KernelFamily family) {
  switch (family) {
    case KernelFamily::kInterleave: return "interleave";
    case KernelFamily::kPaired: return "paired";
  }
  return "?";
}

std::string config_name(const KernelConfig& config) {
  const std::string name = formatted("{}_{}x{}_{}_c{}x{}", family_name(config.family), config.tile_m, config.tile_n2,
                                     config.schedule == Schedule::kPingpong ? "pingpong" : "cooperative",
                                     config.cluster_m, config.cluster_n);
  return config.granularity == 0 ? name : formatted("{}_g{}", name, config.granularity);
}

}  // namespace tileglu
