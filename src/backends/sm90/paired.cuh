// SPDX-License-Identifier: Apache-2.0
// "paired": gate and up of a tile multiplied together; the weights are used where they lie.
#pragma once

#include "backends/sm90/token_rows.cuh"

namespace tileglu::sm90 {

template <KernelConfig C>
Result<std::unique_ptr<Launcher>> make(const Problem& problem, const LaunchOptions& options) {
  constexpr bool kPingpong = C.schedule == Schedule::kPingpong;
  using Tile = TokenRowsTile<C.tile_m, C.tile_n2, 1, C.cluster_m, kPingpong, C.shared, C.general>;
  return FusedLauncher<C, Tile>::make(problem, options);
}

}  // namespace tileglu::sm90
