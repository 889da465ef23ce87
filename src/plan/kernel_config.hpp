// SPDX-License-Identifier: Apache-2.0
// KernelConfig: one compiled sm90 kernel as a value. The same value is a row of the table (sm90_configs.hpp) and the
// template argument of the kernel.
#pragma once

#include <string>

namespace tileglu {

enum class KernelFamily { kInterleave, kPaired };
// Ping-pong: two consumer warpgroups, a tile each, one's epilogue under the other's main loop. Cooperative: both share
// one tile, 64 rows each.
enum class Schedule { kPingpong, kCooperative };

struct KernelConfig {
  KernelFamily family = KernelFamily::kInterleave;
  Schedule schedule = Schedule::kPingpong;
  int tile_m = 128;      // rows of A
  int tile_n2 = 128;     // weight rows, counted over 2n: half gate, half up
  int tile_k = 64;       // 128 bytes of bf16: one swizzle atom
  int cluster_m = 1;     // CTAs that share a weight tile by multicast
  int cluster_n = 1;     // CTAs that share an A tile by multicast
  int raster_group = 1;  // cluster tiles along the shorter side (interleave) or along m (paired) before moving on
  int granularity = 0;   // interleave: rows of gate, then of up, alternating in the weights: 1 or 8

  bool operator==(const KernelConfig&) const = default;
};

const char* family_name(KernelFamily family);
// "interleave_128x128_pingpong_c2x1_g8", "paired_128x192_pingpong_c2x1"
std::string config_name(const KernelConfig& config);

}  // namespace tileglu
