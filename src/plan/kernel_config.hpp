// SPDX-License-Identifier: Apache-2.0
// KernelConfig: one compiled sm90 kernel as a value. The same value is a row of the table (sm90_configs.hpp) and the
// template argument of the kernel.
#pragma once

#include <string>

namespace tileglu {

enum class KernelFamily { kInterleave, kSyncPingpong, kPaired, kDecode, kMma, kVector };
// Ping-pong: two consumer warpgroups, a tile each, one's epilogue under the other's main loop. Cooperative: all share
// one tile. Streamed: each warp loads what it multiplies, with mma.sync or on the CUDA cores.
enum class Schedule { kPingpong, kCooperative, kStreamed };

struct KernelConfig {
  KernelFamily family = KernelFamily::kInterleave;
  Schedule schedule = Schedule::kPingpong;
  int tile_m = 128;   // rows of A
  int tile_n2 = 128;  // weight rows, counted over 2n: half gate, half up
  // 128 bytes of a 16-bit type, one swizzle atom; streamed: elements of a row that a block has in flight.
  int tile_k = 64;
  int cluster_m = 1;     // CTAs along m that share a weight tile by multicast
  int split_k = 1;       // decode: CTAs of a cluster that divide k of one tile
  int raster_group = 1;  // cluster tiles along the shorter side (interleave) or along m (others) before moving on
  bool shared = false;   // paired, decode: the ragged last wave's tiles are cut along k (work_split.hpp)
  bool general = false;  // paired: every operand, rounding and type of y (finish.cuh), at a price
  int granularity = 0;   // interleave: rows of gate, then of up, alternating in the weights: 1 or 8

  // All tokens in one tile, of which there may be no more.
  constexpr bool streamed() const { return schedule == Schedule::kStreamed; }

  // Interleave has none; paired tiles that may be cut along k have no registers left for them.
  constexpr bool takes_bias() const {
    return family != KernelFamily::kInterleave && !(family == KernelFamily::kPaired && shared);
  }

  // decode: 32 gate and 32 up rows in a WGMMA instead of 64 in each of two (sm90/decode_stacked.cuh).
  constexpr bool stacked() const { return family == KernelFamily::kDecode && (split_k > 1 || tile_n2 % 128 != 0); }

  constexpr int cluster_size() const { return cluster_m * split_k; }

  // Its tiles may have fewer rows and columns at run time (tile_rows() and tile_columns() in work_split.hpp).
  constexpr bool narrows() const { return family == KernelFamily::kDecode && !shared; }

  bool operator==(const KernelConfig&) const = default;
};

const char* family_name(KernelFamily family);
// "interleave_128x128_pingpong_c2x1_g8", "paired_128x192_pingpong_c2x1_sk", "decode_1x2x512_vector"
std::string config_name(const KernelConfig& config);

}  // namespace tileglu
