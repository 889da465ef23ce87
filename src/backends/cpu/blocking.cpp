// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/blocking.hpp"

#include <algorithm>

namespace tileglu::cpu {
namespace {

// Gate and up weight rows of a block, as the matmul reads them, stay within half of a typical L2 cache (1 MiB on
// servers of 2018 and later). Measured on a Zen 1 with 512 KiB, n=4864 k=896, m=16...256: 32 to 256 columns are within
// 2 % of each other and 3 to 8 % faster than one matmul over all columns.
constexpr std::size_t kCacheBudgetBytes = std::size_t{512} * 1024;
constexpr std::int64_t kMaxColumns = 128, kMinColumns = 32, kColumnStep = 16;
constexpr std::int64_t kMaxRows = 256;
// Columns of a tile of few rows: a multiple of the 3 and of the 4 columns that the dot kernels take at once.
constexpr std::int64_t kFewRows = 16, kFewRowsColumns = 48;
// Rows of A that are widened at a time: bounds the workspace; the weights are staged anew for every panel.
constexpr std::int64_t kPanelRows = 4 * kMaxRows;
// Tiles are handed out one at a time; so many per thread keep the last ones from leaving threads idle.
constexpr std::int64_t kTilesPerThread = 4;
// Multiply-adds below which another thread costs more to wake (5 us on an idle machine, far more on a busy one) than it
// saves.
constexpr double kWorkPerThread = 1 << 20;
constexpr std::size_t kAlignment = 256;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}
std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
std::int64_t blocks_of(std::int64_t extent, std::int64_t block) {
  return (extent + block - 1) / block;
}

int useful_threads(const Problem& problem, int max_threads) {
  const double work =
      2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  return static_cast<int>(std::clamp(work / kWorkPerThread, 1.0, static_cast<double>(max_threads)));
}

std::int64_t columns_in_cache(const Problem& problem) {
  const std::size_t column_bytes = 2 * static_cast<std::size_t>(problem.k) * sizeof(float);
  const auto columns = static_cast<std::int64_t>(kCacheBudgetBytes / std::max<std::size_t>(column_bytes, 1));
  return std::clamp(columns / kColumnStep * kColumnStep, kMinColumns, kMaxColumns);
}

}  // namespace

Blocking choose_blocks(const Problem& problem, const Needs& needs, int max_threads) {
  Blocking b;
  b.block_rows = std::min(problem.m, needs.few_rows ? kFewRows : kMaxRows);
  b.panel_rows = needs.a_bytes > 0 ? std::min(problem.m, kPanelRows) : problem.m;
  b.row_blocks = blocks_of(b.panel_rows, b.block_rows);
  b.block_columns = needs.few_rows ? kFewRowsColumns : columns_in_cache(problem);
  const int threads = useful_threads(problem, max_threads);
  const std::int64_t wanted_tiles = threads > 1 ? kTilesPerThread * threads : 1;
  while (b.block_columns > kColumnStep && b.row_blocks * blocks_of(problem.n, b.block_columns) < wanted_tiles) {
    b.block_columns = std::max(kColumnStep, round_up(b.block_columns / 2, kColumnStep));
  }
  b.block_columns = std::min(b.block_columns, problem.n);
  b.column_blocks = blocks_of(problem.n, b.block_columns);
  b.threads = static_cast<int>(std::min<std::int64_t>(threads, b.row_blocks * b.column_blocks));
  return b;
}

void lay_out_workspace(const Problem& problem, const Needs& needs, Blocking& b) {
  b.panel_bytes = aligned(static_cast<std::size_t>(b.panel_rows * problem.k) * needs.a_bytes);
  const auto columns = 2 * static_cast<std::size_t>(b.block_columns);
  b.weights_offset = aligned(static_cast<std::size_t>(b.block_rows) * columns * sizeof(float));
  b.matmul_offset = b.weights_offset + aligned(columns * static_cast<std::size_t>(problem.k) * needs.weight_bytes);
  b.thread_bytes = b.matmul_offset + aligned(needs.matmul_scratch);
}

}  // namespace tileglu::cpu
