// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tile_plan.hpp"

#include "core/format.hpp"

#include <algorithm>

namespace tileglu::cpu {
namespace {

const std::array<std::string, 2> kKernels = {"onednn_blocked", "dot_blocked"};

// Up to this many rows dot_blocked is faster. Zen 1, n=4864 k=896, ms of one core, dot_blocked against onednn_blocked:
// bf16 m=1 2.1/2.9, m=4 3.4/5.3, m=16 9.6/10.8; fp32 m=4 3.5/6.1, m=16 9.7/11.3; about even at m=32.
constexpr std::int64_t kDotRows = 16;
// Keeps the workspace arithmetic far from overflow.
constexpr std::int64_t kMaxDepth = (std::int64_t{1} << 31) - 1;

Result<std::string> choose_kernel(const Problem& problem, const std::string& kernel) {
  if (kernel.empty()) return kKernels[problem.m <= kDotRows ? 1 : 0];
  if (std::find(kKernels.begin(), kKernels.end(), kernel) != kKernels.end()) return kernel;
  return Status(Code::kInvalidArgument,
                formatted("kernel={} is none of the cpu backend's: {}", kernel, joined(kKernels)));
}

// How a matmul reads A and the weights.
enum class Reading {
  kInPlace,  // only weight rows that are not evenly spaced are copied together
  kGapless,  // as stored, but what has gaps between its rows is copied
  kWidened,  // copied as fp32
};

Needs matmul_needs(const Problem& p, Reading reading) {
  if (reading == Reading::kWidened) return {.a_bytes = sizeof(float), .weight_bytes = sizeof(float)};
  const HalfRows half = gate_rows(p.layout, p.n);
  const bool gaps_a = p.lda != p.k;
  const bool gaps_weights = half.pitch * p.ld_gate != p.k || (!is_single_matrix(p.layout) && p.ld_up != p.k);
  const bool gapless = reading == Reading::kGapless;
  return {.a_bytes = gapless && gaps_a ? size_of(p.dtype) : 0,
          .weight_bytes = half.group > 1 || (gapless && gaps_weights) ? size_of(p.dtype) : 0};
}

MatmulShape matmul_shape(const TilePlan& plan, std::int64_t rows, std::int64_t columns, int half) {
  const Problem& p = plan.problem;
  const bool both_halves = plan.needs.weight_bytes > 0;
  const bool up_matrix = half == 1 && !is_single_matrix(p.layout);
  const std::int64_t pitch = gate_rows(p.layout, p.n).pitch;
  const std::int64_t sums_columns = both_halves ? 2 * columns : columns;
  return {.dtype = plan.needs.a_bytes == sizeof(float) ? Dtype::kFp32 : p.dtype,
          .rows = rows,
          .columns = sums_columns,
          .k = p.k,
          .lda = plan.needs.a_bytes > 0 ? p.k : p.lda,
          .ldw = both_halves ? p.k : (up_matrix ? p.ld_up : pitch * p.ld_gate),
          .ld_sums = sums_columns};
}

Status make_matmuls(TilePlan& plan) {
  const Blocking& b = plan.blocking;
  const std::array<std::int64_t, 2> rows = {b.block_rows, plan.problem.m % b.block_rows};
  const std::array<std::int64_t, 2> columns = {b.block_columns, plan.problem.n % b.block_columns};
  const int halves = plan.needs.weight_bytes > 0 ? 1 : 2;
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t c = 0; c < 2; ++c) {
      if (rows[r] == 0 || columns[c] == 0) continue;
      for (int half = 0; half < halves; ++half) {
        Result<TileMatmul> matmul = TileMatmul::make(matmul_shape(plan, rows[r], columns[c], half));
        if (!matmul.ok()) return matmul.status();
        plan.needs.matmul_scratch = std::max(plan.needs.matmul_scratch, matmul.value().scratch_bytes());
        plan.matmuls[r][c][static_cast<std::size_t>(half)] = std::move(matmul.value());
      }
    }
  }
  return {};
}

Result<TilePlan> build(const Problem& problem, const std::string& kernel, const Needs& needs, int max_threads) {
  TilePlan plan{.problem = problem,
                .kernel = kernel,
                .simd = &best_simd(),
                .needs = needs,
                .blocking = choose_blocks(problem, needs, max_threads),
                .matmuls = {}};
  if (!plan.by_dots() && problem.k > 0) TILEGLU_TRY(make_matmuls(plan));
  lay_out_workspace(problem, plan.needs, plan.blocking);
  return plan;
}

}  // namespace

std::span<const std::string> kernel_names() {
  return kKernels;
}

Result<TilePlan> make_tile_plan(const Problem& problem, const std::string& kernel, int max_threads) {
  if (problem.k > kMaxDepth) {
    return Status(Code::kNotSupported, formatted("k={} is above {}, the cpu backend's limit", problem.k, kMaxDepth));
  }
  const Result<std::string> chosen = choose_kernel(problem, kernel);
  if (!chosen.ok()) return chosen.status();
  if (chosen.value() == kKernels[1]) {
    return build(problem, chosen.value(), {.a_bytes = problem.k > 0 ? sizeof(float) : 0, .few_rows = true},
                 max_threads);
  }
  if (problem.k == 0) return build(problem, chosen.value(), {}, max_threads);
  const auto attempt = [&](Reading reading) {
    return build(problem, chosen.value(), matmul_needs(problem, reading), max_threads);
  };
  if (problem.dtype == Dtype::kFp32) return attempt(Reading::kInPlace);
  if (problem.dtype == Dtype::kBf16) {
    for (const Reading reading : {Reading::kInPlace, Reading::kGapless}) {
      Result<TilePlan> plan = attempt(reading);
      if (plan.ok()) return plan;
    }
  }
  return attempt(Reading::kWidened);
}

}  // namespace tileglu::cpu
