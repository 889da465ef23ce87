// SPDX-License-Identifier: Apache-2.0
// The run: all threads bring a panel of A into form, then take tiles in turn. A tile's result depends neither on the
// thread that computes it nor on the number of threads.
#include "backends/cpu/tile_plan.hpp"

#include <omp.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

namespace tileglu::cpu {
namespace {

struct Tile {
  std::int64_t row = 0, rows = 0;  // row: in the whole of A
  std::int64_t column = 0, columns = 0;
};

unsigned char* offset(void* base, std::int64_t elements, Dtype dtype) {
  return static_cast<unsigned char*>(base) + elements * static_cast<std::int64_t>(size_of(dtype));
}
const unsigned char* offset(const void* base, std::int64_t elements, Dtype dtype) {
  return static_cast<const unsigned char*>(base) + elements * static_cast<std::int64_t>(size_of(dtype));
}

// What went wrong first, in whichever thread; exceptions must not leave a parallel region.
class FirstFailure {
 public:
  bool happened() const { return happened_; }
  void set(Code code, const char* text) {
    const std::lock_guard lock(mutex_);
    if (!happened_) status_ = Status(code, std::string("cpu backend: ") + text);
    happened_ = true;
  }
  Status status() { return std::move(status_); }

 private:
  std::mutex mutex_;
  std::atomic<bool> happened_ = false;
  Status status_;
};

// One thread's share of a run.
class Worker {
 public:
  Worker(const TilePlan& plan, const Operands& operands, int thread)
      : plan_(plan), operands_(operands), staged_a_(static_cast<float*>(operands.workspace)) {
    const Blocking& b = plan.blocking;
    scratch_ = static_cast<unsigned char*>(operands.workspace) + b.staged_a_bytes +
               static_cast<std::size_t>(thread) * b.thread_bytes;
    sums_ = reinterpret_cast<float*>(scratch_);
    const Problem& p = plan.problem;
    const bool single = is_single_matrix(p.layout);
    halves_[0] = {.base = operands.gate, .ld = p.ld_gate, .half = gate_rows(p.layout, p.n)};
    halves_[1] = {.base = single ? operands.gate : operands.up,
                  .ld = single ? p.ld_gate : p.ld_up,
                  .half = up_rows(p.layout, p.n)};
  }

  void stage_a_row(std::int64_t row, std::int64_t panel_row) const {
    const Problem& p = plan_.problem;
    const auto& functions = plan_.by_dots() ? plan_.simd->prepare_row : plan_.simd->widen_row;
    functions[Simd::index(p.dtype)](offset(operands_.a, row * p.lda, p.dtype), p.k,
                                    staged_a_ + panel_row * plan_.blocking.staged_ld);
  }

  void run_tile(const Tile& tile, std::int64_t panel) {
    const Problem& p = plan_.problem;
    const void* a = plan_.needs.staged_a
                        ? static_cast<const void*>(staged_a_ + (tile.row - panel) * plan_.blocking.staged_ld)
                        : offset(operands_.a, tile.row * p.lda, p.dtype);
    if (plan_.by_dots()) {
      dot_sums(tile, static_cast<const float*>(a));
    } else {
      matmul_sums(tile, a);
    }
    plan_.simd->finish[Simd::index(p.activation)][Simd::index(p.dtype_y)](
        {.sums = sums_,
         .rows = tile.rows,
         .columns = tile.columns,
         .y = offset(operands_.y, tile.row * p.ldy + tile.column, p.dtype_y),
         .ldy = p.ldy});
  }

 private:
  WeightRows weight_rows(std::size_t half, const Tile& tile) const {
    WeightRows rows = halves_[half];
    rows.first = tile.column;
    rows.count = tile.columns;
    return rows;
  }

  void dot_sums(const Tile& tile, const float* a) const {
    for (std::size_t half = 0; half < 2; ++half) {
      plan_.simd->dot[Simd::index(plan_.problem.dtype)]({.a = a,
                                                         .lda = plan_.blocking.staged_ld,
                                                         .rows = tile.rows,
                                                         .k = plan_.problem.k,
                                                         .weights = weight_rows(half, tile),
                                                         .sums = sums_ + static_cast<std::int64_t>(half) * tile.columns,
                                                         .sums_ld = 2 * tile.columns});
    }
  }

  void matmul_sums(const Tile& tile, const void* a) {
    if (plan_.needs.staged_weight_bytes > 0) {
      stage_weights(tile);
      call(tile, 0)(a, scratch_ + plan_.blocking.weights_offset, sums_);
      return;
    }
    for (std::size_t half = 0; half < 2; ++half) {
      const WeightRows& weights = halves_[half];
      const std::int64_t first = weights.half.row(tile.column) * weights.ld;
      call(tile, half)(a, offset(weights.base, first, plan_.problem.dtype),
                       sums_ + static_cast<std::int64_t>(half) * tile.columns);
    }
  }

  // Gate rows of the block, then up rows, each of k elements. Consecutive tiles mostly share them.
  void stage_weights(const Tile& tile) {
    if (staged_column_ == tile.column) return;
    staged_column_ = tile.column;
    const Problem& p = plan_.problem;
    const auto row_bytes = static_cast<std::int64_t>(plan_.needs.staged_weight_bytes) * p.k;
    unsigned char* destination = scratch_ + plan_.blocking.weights_offset;
    for (const WeightRows& weights : halves_) {
      for (std::int64_t i = 0; i < tile.columns; ++i, destination += row_bytes) {
        const void* source = offset(weights.base, weights.half.row(tile.column + i) * weights.ld, p.dtype);
        if (plan_.needs.staged_weight_bytes == size_of(p.dtype)) {
          std::memcpy(destination, source, static_cast<std::size_t>(row_bytes));
        } else {
          plan_.simd->widen_row[Simd::index(p.dtype)](source, p.k, reinterpret_cast<float*>(destination));
        }
      }
    }
  }

  TileMatmul::Call& call(const Tile& tile, std::size_t half) {
    const std::size_t last_rows = tile.rows != plan_.blocking.block_rows ? 1 : 0;
    const std::size_t last_columns = tile.columns != plan_.blocking.block_columns ? 1 : 0;
    std::optional<TileMatmul::Call>& slot = calls_[last_rows][last_columns][half];
    if (!slot) {
      slot.emplace(*plan_.matmuls[last_rows][last_columns][half], scratch_ + plan_.blocking.matmul_offset);
    }
    return *slot;
  }

  const TilePlan& plan_;
  const Operands& operands_;
  float* staged_a_;
  unsigned char* scratch_;
  float* sums_;
  std::array<WeightRows, 2> halves_;  // gate, up
  std::int64_t staged_column_ = -1;
  std::array<std::array<std::array<std::optional<TileMatmul::Call>, 2>, 2>, 2> calls_;
};

// Column blocks are cut into row blocks, so that consecutive tiles share their weights.
Tile tile_at(const TilePlan& plan, std::int64_t panel, std::int64_t row_blocks, std::int64_t index) {
  const Blocking& b = plan.blocking;
  const std::int64_t row = panel + index % row_blocks * b.block_rows;
  const std::int64_t column = index / row_blocks * b.block_columns;
  return {.row = row,
          .rows = std::min(b.block_rows, plan.problem.m - row),
          .column = column,
          .columns = std::min(b.block_columns, plan.problem.n - column)};
}

void guarded(FirstFailure& failure, Worker& worker, const Tile& tile, std::int64_t panel) {
  if (failure.happened()) return;
  try {
    worker.run_tile(tile, panel);
  } catch (const std::bad_alloc&) {
    failure.set(Code::kOutOfMemory, "no memory for oneDNN");
  } catch (const dnnl::error& error) {
    failure.set(error.status == dnnl_out_of_memory ? Code::kOutOfMemory : Code::kInternalError, error.what());
  }
}

}  // namespace

Status run_tiles(const TilePlan& plan, const Operands& operands) noexcept {
  const Blocking& b = plan.blocking;
  FirstFailure failure;
#pragma omp parallel num_threads(b.threads)
  {
    const SingleThreaded single;
    Worker worker(plan, operands, omp_get_thread_num());
    for (std::int64_t panel = 0; panel < plan.problem.m; panel += b.panel_rows) {
      const std::int64_t rows = std::min(b.panel_rows, plan.problem.m - panel);
      if (plan.needs.staged_a) {
#pragma omp for
        for (std::int64_t row = 0; row < rows; ++row) worker.stage_a_row(panel + row, row);
      }
      const std::int64_t row_blocks = (rows + b.block_rows - 1) / b.block_rows;
#pragma omp for schedule(dynamic) nowait
      for (std::int64_t i = 0; i < row_blocks * b.column_blocks; ++i) {
        guarded(failure, worker, tile_at(plan, panel, row_blocks, i), panel);
      }
      if (panel + rows < plan.problem.m) {
#pragma omp barrier  // the next panel takes the place of this one
      }
    }
  }
  return failure.status();
}

}  // namespace tileglu::cpu
