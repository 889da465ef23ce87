// SPDX-License-Identifier: Apache-2.0
// Kernel-1, "sync_pingpong": the gate's accumulators are complete first and go through the activation in registers
// while the up tiles are on their way; then the up's, the product and the store. A is read twice.
#pragma once

#include "backends/sm90/token_rows.cuh"

namespace tileglu::sm90 {

template <KernelConfig C>
Result<std::unique_ptr<Launcher>> make(const Problem& problem, const LaunchOptions& options) {
  static_assert(C.schedule == Schedule::kPingpong && !C.shared && !C.general);
  using Tile = TokenRowsTile<C.tile_m, C.tile_n2, 2, C.cluster_m, true, false, false>;
  return FusedLauncher<C, Tile>::make(problem, options);
}

}  // namespace tileglu::sm90
