// SPDX-License-Identifier: Apache-2.0
// The sm90 kernels: one row is one kernel. Tests, verify, bench and info walk this table; a new tile is a new row.
#pragma once

#include "plan/kernel_config.hpp"

#include <array>

namespace tileglu {

inline constexpr std::array kSm90Configs{
    KernelConfig{.schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 128, .cluster_m = 2, .granularity = 1},
    KernelConfig{.schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 128, .cluster_m = 2, .granularity = 8},
    KernelConfig{.schedule = Schedule::kCooperative, .tile_m = 128, .tile_n2 = 256, .cluster_m = 2, .granularity = 1},
    KernelConfig{.schedule = Schedule::kCooperative, .tile_m = 128, .tile_n2 = 256, .cluster_m = 2, .granularity = 8},
};

}  // namespace tileglu
