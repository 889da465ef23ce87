// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_config.hpp"

#include "core/format.hpp"

namespace tileglu {

const char* family_name(KernelFamily family) {
  switch (family) {
    case KernelFamily::kInterleave: return "interleave";
    case KernelFamily::kSyncPingpong: return "sync_pingpong";
    case KernelFamily::kPaired: return "paired";
    case KernelFamily::kDecode:
    case KernelFamily::kMma:
    case KernelFamily::kVector: return "decode";
  }
  return "?";
}

std::string config_name(const KernelConfig& config) {
  const char* family = family_name(config.family);
  if (config.streamed()) {
    return formatted("{}_{}x{}x{}_{}", family, config.tile_m, config.tile_n2, config.tile_k,
                     config.family == KernelFamily::kMma ? "mma" : "vector");
  }
  std::string name = formatted("{}_{}x{}_{}_c{}x1", family, config.tile_m, config.tile_n2,
                               config.schedule == Schedule::kPingpong ? "pingpong" : "cooperative", config.cluster_m);
  if (config.split_k > 1) name += formatted("_k{}", config.split_k);
  if (config.shared) name += "_sk";
  if (config.general) name += "_general";
  if (config.granularity != 0) name += formatted("_g{}", config.granularity);
  return name;
}

}  // namespace tileglu
