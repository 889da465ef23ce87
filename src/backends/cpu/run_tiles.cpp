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
      : plan_(plan), operands_(operands), panel_(static_cast<unsigned char*>(operands.workspace)) {
    const Blocking& b = plan.blocking;
    scratch_ = panel_ + b.panel_bytes + static_cast<std::size_t>(thread) * b.thread_bytes;
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
    const void* source = offset(operands_.a, row * p.lda, p.dtype);
    unsigned char* destination = panel_ + panel_row * row_bytes(plan_.needs.a_bytes);
    if (plan_.by_dots()) {
      plan_.simd->prepare_row[Simd::index(p.dtype)](source, p.k, reinterpret_cast<float*>(destination));
    } else {
      stage_row(source, destination, plan_.needs.a_bytes);
    }
  }

  void run_tile(const Tile& tile, std::int64_t panel) {
    const Sums sums = plan_.problem.k == 0 ? no_sums(tile) : sums_of(tile, panel);
    if (plan_.problem.extra.any()) add_extra(tile, sums);
    const Problem& p = plan_.problem;
    plan_.simd->finish[Simd::index(p.rounding)][Simd::index(p.activation)][Simd::index(p.dtype_y)](
        {.swiglu = p.swiglu,
         .gate = sums.gate,
         .up = sums.up,
         .sums_ld = sums.ld,
         .rows = tile.rows,
         .columns = tile.columns,
         .y = offset(operands_.y, tile.row * p.ldy + tile.column, p.dtype_y),
         .ldy = p.ldy});
  }

 private:
  // Gate and up of a tile, fp32.
  struct Sums {
    float *gate, *up;
    std::int64_t ld;
  };

  Sums sums_of(const Tile& tile, std::int64_t panel) {
    const Problem& p = plan_.problem;
    const void* a = plan_.needs.a_bytes > 0
                        ? static_cast<const void*>(panel_ + (tile.row - panel) * row_bytes(plan_.needs.a_bytes))
                        : offset(operands_.a, tile.row * p.lda, p.dtype);
    if (plan_.by_dots()) return dot_sums(tile, static_cast<const float*>(a));
    return plan_.needs.weight_bytes > 0 ? staged_matmul_sums(tile, a) : matmul_sums(tile, a);
  }

  // k = 0: nothing but what is added.
  Sums no_sums(const Tile& tile) const {
    std::fill_n(sums_, 2 * tile.rows * tile.columns, 0.0F);
    return side_by_side(tile);
  }

  void add_extra(const Tile& tile, const Sums& sums) const {
    const Problem& p = plan_.problem;
    for (const bool is_up : {false, true}) {
      plan_.simd->extra[Simd::index(p.dtype)]({.sums = is_up ? sums.up : sums.gate,
                                               .sums_ld = sums.ld,
                                               .rows = tile.rows,
                                               .columns = tile.columns,
                                               .row = tile.row,
                                               .column = tile.column,
                                               .bias = is_up ? operands_.bias_up : operands_.bias_gate,
                                               .add = add_half(p, operands_, is_up),
                                               .save = pre_half(p, operands_, is_up)});
    }
  }

  std::int64_t row_bytes(std::size_t element_bytes) const {
    return plan_.problem.k * static_cast<std::int64_t>(element_bytes);
  }

  void stage_row(const void* source, unsigned char* destination, std::size_t element_bytes) const {
    const Problem& p = plan_.problem;
    if (element_bytes == size_of(p.dtype)) {
      std::memcpy(destination, source, static_cast<std::size_t>(row_bytes(element_bytes)));
    } else {
      plan_.simd->widen_row[Simd::index(p.dtype)](source, p.k, reinterpret_cast<float*>(destination));
    }
  }

  // Gate in the first half of each row of sums, up in the second.
  Sums side_by_side(const Tile& tile) const {
    return {.gate = sums_, .up = sums_ + tile.columns, .ld = 2 * tile.columns};
  }

  Sums dot_sums(const Tile& tile, const float* a) const {
    for (std::size_t half = 0; half < 2; ++half) {
      WeightRows weights = halves_[half];
      weights.first = tile.column;
      weights.count = tile.columns;
      plan_.simd->dot[Simd::index(plan_.problem.dtype)]({.a = a,
                                                         .lda = plan_.problem.k,
                                                         .rows = tile.rows,
                                                         .k = plan_.problem.k,
                                                         .weights = weights,
                                                         .sums = sums_ + static_cast<std::int64_t>(half) * tile.columns,
                                                         .sums_ld = 2 * tile.columns});
    }
    return side_by_side(tile);
  }

  Sums staged_matmul_sums(const Tile& tile, const void* a) {
    stage_weights(tile);
    call(tile, 0)(a, scratch_ + plan_.blocking.weights_offset, sums_);
    return side_by_side(tile);
  }

  // One matrix of sums for gate and one for up: oneDNN's best code wants matrices without gaps.
  Sums matmul_sums(const Tile& tile, const void* a) {
    float* sums[2] = {sums_, sums_ + tile.rows * tile.columns};
    for (std::size_t half = 0; half < 2; ++half) {
      const WeightRows& weights = halves_[half];
      const std::int64_t first = weights.half.row(tile.column) * weights.ld;
      call(tile, half)(a, offset(weights.base, first, plan_.problem.dtype), sums[half]);
    }
    return {.gate = sums[0], .up = sums[1], .ld = tile.columns};
  }

  // Gate rows of the block, then up rows. Consecutive tiles mostly share them.
  void stage_weights(const Tile& tile) {
    if (staged_column_ == tile.column) return;
    staged_column_ = tile.column;
    const std::int64_t bytes = row_bytes(plan_.needs.weight_bytes);
    unsigned char* destination = scratch_ + plan_.blocking.weights_offset;
    for (const WeightRows& weights : halves_) {
      for (std::int64_t i = 0; i < tile.columns; ++i, destination += bytes) {
        const std::int64_t row = weights.half.row(tile.column + i);
        stage_row(offset(weights.base, row * weights.ld, plan_.problem.dtype), destination, plan_.needs.weight_bytes);
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
  unsigned char* panel_;  // the copy of A, shared by all threads
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
      if (plan.needs.a_bytes > 0) {
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
