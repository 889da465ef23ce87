// SPDX-License-Identifier: Apache-2.0
// The sm90 kernels: one row is one kernel. Tests, verify, bench, info, tune and the build walk this table; a new tile
// is a new row (each starts with its family, which src/backends/sm90/CMakeLists.txt reads).
// benchmarks/h200/kernels.json has the times of all of them on all sizes; sm90_times.inc is made from it.
#pragma once

#include "plan/kernel_config.hpp"

#include <array>

namespace tileglu {

// clang-format off
inline constexpr auto kSm90Configs = std::to_array<KernelConfig>({
    {.family = KernelFamily::kInterleave, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 192, .cluster_m = 2, .granularity = 8},
    {.family = KernelFamily::kInterleave, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 192, .cluster_m = 2, .granularity = 1},
    {.family = KernelFamily::kInterleave, .schedule = Schedule::kCooperative, .tile_m = 128, .tile_n2 = 256, .cluster_m = 2, .granularity = 8},
    {.family = KernelFamily::kInterleave, .schedule = Schedule::kCooperative, .tile_m = 128, .tile_n2 = 256, .cluster_m = 2, .granularity = 1},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 128, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 128, .cluster_m = 2, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 144, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 144, .cluster_m = 2, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 160, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 160, .cluster_m = 2, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 176, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 192, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 192, .cluster_m = 2, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kCooperative, .tile_m = 128, .tile_n2 = 224, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kCooperative, .tile_m = 128, .tile_n2 = 224, .cluster_m = 2, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kCooperative, .tile_m = 128, .tile_n2 = 256, .cluster_m = 2, .raster_group = 32},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 192, .cluster_m = 2, .raster_group = 32, .shared = true},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 128, .raster_group = 32, .general = true},
    {.family = KernelFamily::kPaired, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 192, .cluster_m = 2, .raster_group = 32, .general = true},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 16, .tile_n2 = 128, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 16, .tile_n2 = 256, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 24, .tile_n2 = 128, .raster_group = 16, .shared = true},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 24, .tile_n2 = 256, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 32, .tile_n2 = 128, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 32, .tile_n2 = 256, .cluster_m = 2, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 48, .tile_n2 = 128, .raster_group = 16, .shared = true},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 48, .tile_n2 = 256, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 48, .tile_n2 = 256, .cluster_m = 2, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 128, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 128, .raster_group = 16, .shared = true},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 256, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 128, .cluster_m = 2, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 256, .cluster_m = 2, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 96, .tile_n2 = 128, .raster_group = 16, .shared = true},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 96, .tile_n2 = 256, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 96, .tile_n2 = 256, .cluster_m = 2, .raster_group = 16, .shared = true},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 192, .tile_n2 = 128, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 48, .tile_n2 = 128, .cluster_m = 2, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 32, .tile_n2 = 64, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 64, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 128, .split_k = 4, .raster_group = 16},
    {.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 128, .tile_n2 = 128, .split_k = 4, .raster_group = 16},
    {.family = KernelFamily::kSyncPingpong, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 128, .cluster_m = 2, .raster_group = 16},
    {.family = KernelFamily::kSyncPingpong, .schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 192, .cluster_m = 2, .raster_group = 16},
    {.family = KernelFamily::kMma, .schedule = Schedule::kStreamed, .tile_m = 8, .tile_n2 = 16, .tile_k = 512},
    {.family = KernelFamily::kMma, .schedule = Schedule::kStreamed, .tile_m = 8, .tile_n2 = 16, .tile_k = 1024},
    {.family = KernelFamily::kMma, .schedule = Schedule::kStreamed, .tile_m = 16, .tile_n2 = 16, .tile_k = 512},
    {.family = KernelFamily::kVector, .schedule = Schedule::kStreamed, .tile_m = 1, .tile_n2 = 2, .tile_k = 256},
    {.family = KernelFamily::kVector, .schedule = Schedule::kStreamed, .tile_m = 1, .tile_n2 = 2, .tile_k = 512},
});
// clang-format on

}  // namespace tileglu
