// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/unfused.hpp"

#include "backends/cpu/matmul.hpp"
#include "backends/cpu/simd.hpp"
#include "core/format.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <new>

namespace tileglu::cpu {
namespace {

constexpr std::size_t kAlignment = 64;

// Offsets into the workspace, bytes. `a` and `weights` are used only if oneDNN takes widened operands.
struct Parts {
  std::size_t a = 0, weights = 0, sums = 0, halves = 0, rows = 0, scratch = 0, end = 0;
};

unsigned char* at(void* base, std::size_t bytes) {
  return static_cast<unsigned char*>(base) + bytes;
}

class UnfusedPlan final : public Plan {
 public:
  UnfusedPlan(const Problem& problem, TileMatmul matmul, bool widened, const Parts& parts, int threads)
      : Plan("cpu", kUnfusedKernel, parts.end),
        problem_(problem),
        matmul_(std::move(matmul)),
        widened_(widened),
        parts_(parts),
        threads_(threads) {}

  Status run(const Operands& operands) const noexcept override try {
    const Problem& p = problem_;
    const bool single = is_single_matrix(p.layout);
    const std::array<WeightRows, 2> halves{
        WeightRows{.base = operands.gate, .ld = p.ld_gate, .half = gate_rows(p.layout, p.n), .count = p.n},
        WeightRows{.base = single ? operands.gate : operands.up,
                   .ld = single ? p.ld_gate : p.ld_up,
                   .half = up_rows(p.layout, p.n),
                   .count = p.n}};
    const void* a = operands.a;
    if (widened_) {
      widen(operands.a, p.lda, HalfRows{}, p.m, at(operands.workspace, parts_.a));
      a = at(operands.workspace, parts_.a);
    }
    TileMatmul::Call multiply(matmul_, at(operands.workspace, parts_.scratch));
    auto* sums = reinterpret_cast<float*>(at(operands.workspace, parts_.sums));
    for (std::size_t half = 0; half < 2; ++half) {
      const void* weights = rows_of(halves[half], operands.workspace);
      multiply(a, weights, sums);
      store_half(sums, half, operands.workspace);
    }
    for_rows(operands.workspace, [&](std::int64_t row, float* pair) {  // act(gate), rounded, in place
      load(row, 0, operands.workspace, pair);
      std::fill_n(pair + p.n, p.n, 1.0F);
      finish(p.activation, pair, stored(row, 0, operands.workspace), p.n);
    });
    for_rows(operands.workspace, [&](std::int64_t row, float* pair) {  // its product with up, rounded
      load(row, 0, operands.workspace, pair);
      load(row, 1, operands.workspace, pair + p.n);
      finish(Activation::kIdentity, pair, at(operands.y, bytes_of(row * p.ldy)), p.ldy);
    });
    return {};
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "cpu backend: no memory for oneDNN"};
  } catch (const dnnl::error& error) {
    return {Code::kInternalError, std::string("cpu backend: ") + error.what()};
  }

 private:
  std::size_t bytes_of(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * size_of(problem_.dtype_y);
  }

  void widen(const void* source, std::int64_t ld, const HalfRows& rows, std::int64_t count, void* destination) const {
    const auto widen_row = simd_.widen_row[Simd::index(problem_.dtype)];
#pragma omp parallel for num_threads(threads_)
    for (std::int64_t i = 0; i < count; ++i) {
      widen_row(static_cast<const unsigned char*>(source) +
                    rows.row(i) * ld * static_cast<std::int64_t>(size_of(problem_.dtype)),
                problem_.k, static_cast<float*>(destination) + i * problem_.k);
    }
  }

  // The half as oneDNN takes it: where it lies, or widened in the workspace.
  const void* rows_of(const WeightRows& half, void* workspace) const {
    if (!widened_) {
      return static_cast<const unsigned char*>(half.base) +
             half.half.first * half.ld * static_cast<std::int64_t>(size_of(problem_.dtype));
    }
    widen(half.base, half.ld, half.half, problem_.n, at(workspace, parts_.weights));
    return at(workspace, parts_.weights);
  }

  unsigned char* stored(std::int64_t row, std::size_t half, void* workspace) const {
    return at(workspace, parts_.halves + bytes_of((static_cast<std::int64_t>(half) * problem_.m + row) * problem_.n));
  }
  void load(std::int64_t row, std::size_t half, void* workspace, float* destination) const {
    simd_.widen_row[Simd::index(problem_.dtype_y)](stored(row, half, workspace), problem_.n, destination);
  }
  // One row: act(pair[0..n)) * pair[n..2n), rounded to the type of Y.
  void finish(Activation activation, const float* pair, void* y, std::int64_t ldy) const {
    simd_.finish[Simd::index(Rounding::kOnce)][Simd::index(activation)][Simd::index(problem_.dtype_y)](
        {.swiglu = {},
         .gate = pair,
         .up = pair + problem_.n,
         .sums_ld = 2 * problem_.n,
         .rows = 1,
         .columns = problem_.n,
         .y = y,
         .ldy = ldy});
  }

  void store_half(const float* sums, std::size_t half, void* workspace) const {
    for_rows(workspace, [&](std::int64_t row, float* pair) {
      std::copy_n(sums + row * problem_.n, problem_.n, pair);
      std::fill_n(pair + problem_.n, problem_.n, 1.0F);
      finish(Activation::kIdentity, pair, stored(row, half, workspace), problem_.n);
    });
  }

  // body(row, 2n floats of the thread's own) for all rows of Y, by all threads.
  template <class Body>
  void for_rows(void* workspace, const Body& body) const {
    auto* pairs = reinterpret_cast<float*>(at(workspace, parts_.rows));
#pragma omp parallel for num_threads(threads_)
    for (std::int64_t row = 0; row < problem_.m; ++row) body(row, pairs + omp_get_thread_num() * 2 * problem_.n);
  }

  Problem problem_;
  TileMatmul matmul_;
  bool widened_;
  Parts parts_;
  int threads_;
  const Simd& simd_ = best_simd();
};

Result<TileMatmul> whole_matmul(const Problem& p, bool widened) {
  const std::int64_t pitch = gate_rows(p.layout, p.n).pitch;
  return TileMatmul::make({.dtype = widened ? Dtype::kFp32 : p.dtype,
                           .rows = p.m,
                           .columns = p.n,
                           .k = p.k,
                           .lda = widened ? p.k : p.lda,
                           .ldw = widened ? p.k : pitch * p.ld_gate,
                           .ld_sums = p.n,
                           .all_threads = true});
}

Parts lay_out(const Problem& p, bool widened, std::size_t scratch_bytes, int threads) {
  Parts parts;
  const auto place = [&](std::size_t& offset, std::size_t bytes) {
    offset = parts.end;
    parts.end = (parts.end + bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n), k = static_cast<std::size_t>(p.k);
  place(parts.a, widened ? m * k * sizeof(float) : 0);
  place(parts.weights, widened ? n * k * sizeof(float) : 0);
  place(parts.sums, m * n * sizeof(float));
  place(parts.halves, 2 * m * n * size_of(p.dtype_y));
  place(parts.rows, static_cast<std::size_t>(threads) * 2 * n * sizeof(float));
  place(parts.scratch, scratch_bytes);
  return parts;
}

}  // namespace

Result<std::unique_ptr<Plan>> make_unfused_plan(const Problem& problem, int threads) {
  if (problem.extra.any() || problem.activation == Activation::kSwiglu) {
    return Status(Code::kNotSupported,
                  formatted("kernel={} takes neither activation=swiglu nor operands (a baseline)", kUnfusedKernel));
  }
  // In place only where both halves are matrices of one stride and oneDNN multiplies their type.
  const bool in_place = problem.dtype != Dtype::kFp16 && gate_rows(problem.layout, problem.n).group == 1 &&
                        (is_single_matrix(problem.layout) || problem.ld_gate == problem.ld_up);
  Result<TileMatmul> matmul = whole_matmul(problem, !in_place);
  const bool widened = !in_place || !matmul.ok();
  if (in_place && !matmul.ok()) matmul = whole_matmul(problem, true);
  if (!matmul.ok()) return matmul.status();
  const Parts parts = lay_out(problem, widened, matmul.value().scratch_bytes(), threads);
  return std::unique_ptr<Plan>(
      std::make_unique<UnfusedPlan>(problem, std::move(matmul.value()), widened, parts, threads));
}

}  // namespace tileglu::cpu
