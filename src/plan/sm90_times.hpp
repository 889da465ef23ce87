// SPDX-License-Identifier: Apache-2.0
// What each row of sm90_configs.hpp takes, fitted to an H200: the planner's numbers. sm90_times.inc is written by
// scripts/fit_times.py from kernels.json and kernels_random.json in benchmarks/h200; a row that is not in it is not
// measured yet and comes last.
#pragma once

#include <array>
#include <string_view>

namespace tileglu {

struct KernelTimes {
  std::string_view kernel;
  double step_us;  // of a tile, tile_k deep
  double tile_us;  // of a tile, besides its steps
  double part_us;  // of a part of a tile that another worker did
  double gbps;     // at which it streams A, weights and y
};

inline constexpr auto kSm90Times = std::to_array<KernelTimes>({
#include "plan/sm90_times.inc"
});

}  // namespace tileglu
