// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tile_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
                fmt::format("kernel={} is none of the cpu backend's: {}", kernel, fmt::join(kKernels, ", ")));
}

Needs dot_needs() {
  return {.staged_a = true, .few_rows = true};
}

// as_stored: oneDNN reads the data as it is, only weights whose rows are not evenly spaced are copied together.
Needs matmul_needs(const Problem& problem, bool as_stored) {
  if (!as_stored) return {.staged_a = true, .staged_weight_bytes = sizeof(float)};
  const bool even_rows = gate_rows(problem.layout, problem.n).group == 1;
  return {.staged_weight_bytes = even_rows ? 0 : size_of(problem.dtype)};
}

MatmulShape matmul_shape(const TilePlan& plan, std::int64_t rows, std::int64_t columns, int half) {
  const Problem& p = plan.problem;
  const bool staged = plan.needs.staged_weight_bytes > 0;
  const bool own_matrix = half == 1 && !is_single_matrix(p.layout);
  const std::int64_t pitch = gate_rows(p.layout, p.n).pitch;
  return {.dtype = plan.needs.staged_a ? Dtype::kFp32 : p.dtype,
          .rows = rows,
          .columns = staged ? 2 * columns : columns,
          .k = p.k,
          .lda = plan.needs.staged_a ? plan.blocking.staged_ld : p.lda,
          .ldw = staged ? p.k : (own_matrix ? p.ld_up : pitch * p.ld_gate),
          .ld_sums = 2 * columns};
}

Status make_matmuls(TilePlan& plan) {
  const Blocking& b = plan.blocking;
  const std::array<std::int64_t, 2> rows = {b.block_rows, plan.problem.m % b.block_rows};
  const std::array<std::int64_t, 2> columns = {b.block_columns, plan.problem.n % b.block_columns};
  const int halves = plan.needs.staged_weight_bytes > 0 ? 1 : 2;
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
  if (!plan.by_dots()) TILEGLU_TRY(make_matmuls(plan));
  lay_out_workspace(problem, plan.needs, plan.blocking);
  return plan;
}

}  // namespace

std::span<const std::string> kernel_names() {
  return kKernels;
}

Result<TilePlan> make_tile_plan(const Problem& problem, const std::string& kernel, int max_threads) {
  if (problem.k > kMaxDepth) {
    return Status(Code::kNotSupported, fmt::format("k={} is above {}, the cpu backend's limit", problem.k, kMaxDepth));
  }
  const Result<std::string> chosen = choose_kernel(problem, kernel);
  if (!chosen.ok()) return chosen.status();
  if (chosen.value() == kKernels[1]) return build(problem, chosen.value(), dot_needs(), max_threads);
  if (problem.dtype != Dtype::kFp16) {
    Result<TilePlan> plan = build(problem, chosen.value(), matmul_needs(problem, true), max_threads);
    if (plan.ok() || problem.dtype == Dtype::kFp32) return plan;
  }
  return build(problem, chosen.value(), matmul_needs(problem, false), max_threads);
}

}  // namespace tileglu::cpu
