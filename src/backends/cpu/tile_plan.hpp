// SPDX-License-Identifier: Apache-2.0
// One problem decided: block sizes, the method for a tile's sums, and the oneDNN primitives that it takes.
#pragma once

#include "backends/cpu/blocking.hpp"
#include "backends/cpu/matmul.hpp"
#include "backends/cpu/simd.hpp"

#include <array>
#include <optional>
#include <span>
#include <string>

namespace tileglu::cpu {

// onednn_blocked  matmuls by oneDNN: on the caller's data for fp32, and for bf16 where the processor multiplies bf16
//                 (copied together first if there are gaps between rows); else A and the weights are widened to fp32
//                 (which is exact) block by block
// dot_blocked     our own dot products, for few rows: weights are read once and widened in registers
std::span<const std::string> kernel_names();

struct TilePlan {
  Problem problem;
  std::string kernel;
  const Simd* simd = nullptr;
  Needs needs;
  Blocking blocking;
  // By [last, smaller row block][last, smaller column block][half]. With copied weights half 0 computes gate and up.
  // None for dot_blocked.
  std::array<std::array<std::array<std::optional<TileMatmul>, 2>, 2>, 2> matmuls;

  bool by_dots() const { return needs.few_rows; }
};

// kernel: empty for the faster one.
Result<TilePlan> make_tile_plan(const Problem& problem, const std::string& kernel, int max_threads);
// Operands have been checked; see Plan.
Status run_tiles(const TilePlan& plan, const Operands& operands) noexcept;

}  // namespace tileglu::cpu
