// SPDX-License-Identifier: Apache-2.0
// The fp64 reference on the CPU. Shares with the backends only the definitions of the activations and of the layouts.
#include "reference/reference.hpp"

#include "core/activation.hpp"
#include "core/format.hpp"
#include "core/layout.hpp"
#include "reference/number_format.hpp"
#if TILEGLU_HAVE_CUDA
#include "reference/reference_cuda.hpp"
#endif

#include <atomic>
#include <new>
#include <span>
#include <thread>

namespace tileglu::reference {
namespace {

// One thread's part: blocks of 64 rows of A, widened once, against blocks of 16 weight rows.
constexpr std::int64_t kRowBlock = 64, kColumnBlock = 16;

struct Scratch {
  std::vector<double> a, gate, up;
  std::int64_t row_block = -1;  // which rows `a` holds
};

struct Sums {
  double gate = 0, up = 0;
};

Sums dot(const double* a, const double* gate, const double* up, std::int64_t k) {
  double g[4] = {}, u[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    for (int lane = 0; lane < 4; ++lane) {
      g[lane] += a[i + lane] * gate[i + lane];
      u[lane] += a[i + lane] * up[i + lane];
    }
  }
  for (; i < k; ++i) {
    g[0] += a[i] * gate[i];
    u[0] += a[i] * up[i];
  }
  return {.gate = (g[0] + g[1]) + (g[2] + g[3]), .up = (u[0] + u[1]) + (u[2] + u[3])};
}

class HostSums {
 public:
  HostSums(const Problem& problem, const Operands& operands, Preactivations& result)
      : problem_(problem), operands_(operands), result_(result), decode_(problem.dtype) {}

  std::int64_t column_blocks() const { return (problem_.n + kColumnBlock - 1) / kColumnBlock; }
  std::int64_t blocks() const { return (problem_.m + kRowBlock - 1) / kRowBlock * column_blocks(); }

  void run_block(std::int64_t block, Scratch& scratch) const {
    const std::int64_t row_block = block / column_blocks(), column_block = block % column_blocks();
    const std::int64_t first_row = row_block * kRowBlock, last_row = std::min(first_row + kRowBlock, problem_.m);
    if (scratch.row_block != row_block) {
      for (std::int64_t i = first_row; i < last_row; ++i) {
        widen_row(operands_.a, i * problem_.lda, scratch.a.data() + (i - first_row) * problem_.k);
      }
      scratch.row_block = row_block;
    }
    const std::int64_t first = column_block * kColumnBlock, last = std::min(first + kColumnBlock, problem_.n);
    for (std::int64_t j = first; j < last; ++j) {
      widen_weights(j, scratch);
      for (std::int64_t i = first_row; i < last_row; ++i) {
        const Sums sums =
            dot(scratch.a.data() + (i - first_row) * problem_.k, scratch.gate.data(), scratch.up.data(), problem_.k);
        result_.gate[i * problem_.n + j] = sums.gate + added(false, i, j);
        result_.up[i * problem_.n + j] = sums.up + added(true, i, j);
      }
    }
  }

 private:
  void widen_row(const void* matrix, std::int64_t offset, double* row) const {
    for (std::int64_t i = 0; i < problem_.k; ++i) row[i] = decode_(matrix, offset + i);
  }
  void widen_weights(std::int64_t column, Scratch& scratch) const {
    const bool single = is_single_matrix(problem_.layout);
    const std::int64_t gate_row = gate_rows(problem_.layout, problem_.n).row(column);
    const std::int64_t up_row = up_rows(problem_.layout, problem_.n).row(column);
    widen_row(operands_.gate, gate_row * problem_.ld_gate, scratch.gate.data());
    widen_row(single ? operands_.gate : operands_.up, up_row * (single ? problem_.ld_gate : problem_.ld_up),
              scratch.up.data());
  }

  double added(bool is_up, std::int64_t row, std::int64_t column) const {
    double sum = 0;
    if (is_up ? problem_.extra.bias_up : problem_.extra.bias_gate) {
      sum = decode_(is_up ? operands_.bias_up : operands_.bias_gate, column);
    }
    if (problem_.extra.addend) {
      const ColumnHalf<const void*> half = add_half(problem_, operands_, is_up);
      sum += decode_(half.base, half.index(row, column));
    }
    return sum;
  }

  const Problem& problem_;
  const Operands& operands_;
  Preactivations& result_;
  Decoder decode_;
};

// All memory is allocated before a thread starts; the threads take blocks in turn.
void sum_on_host(const Problem& problem, const Operands& operands, Preactivations& result) {
  const HostSums sums(problem, operands, result);
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<Scratch> scratch(static_cast<std::size_t>(std::clamp<std::int64_t>(sums.blocks(), 1, cores)));
  for (Scratch& s : scratch) {
    s.a.resize(static_cast<std::size_t>(std::min(problem.m, kRowBlock) * problem.k));
    s.gate.resize(static_cast<std::size_t>(problem.k));
    s.up.resize(static_cast<std::size_t>(problem.k));
  }
  std::atomic<std::int64_t> next = 0;
  const auto work = [&](Scratch& mine) {
    for (std::int64_t block = next++; block < sums.blocks(); block = next++) sums.run_block(block, mine);
  };
  std::vector<std::jthread> threads;
  threads.reserve(scratch.size());
  for (Scratch& s : std::span(scratch).subspan(1)) threads.emplace_back(work, std::ref(s));
  work(scratch.front());
}

}  // namespace

Result<Preactivations> preactivations(const Problem& problem, const Operands& operands) {
  Preactivations result;
  try {
    const auto elements = static_cast<std::size_t>(problem.m * problem.n);
    result.gate.resize(elements);
    result.up.resize(elements);
    if (problem.memory == Memory::kHost) {
      sum_on_host(problem, operands, result);
      return result;
    }
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, formatted("no host memory for the fp64 reference of m={} n={} k={}", problem.m,
                                                problem.n, problem.k));
  }
#if TILEGLU_HAVE_CUDA
  TILEGLU_TRY(preactivations_cuda(problem, operands, result.gate.data(), result.up.data()));
  return result;
#else
  return Status(Code::kNotAvailable, "the fp64 reference on CUDA memory: this build has no CUDA");
#endif
}

std::vector<double> exact(const Problem& problem, const Preactivations& pre) {
  std::vector<double> y(pre.gate.size());
  visit_activation(problem.activation, problem.swiglu, [&](auto act) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = gated(act, pre.gate[i], pre.up[i]);
  });
  return y;
}

std::vector<double> unfused(const Problem& problem, const Preactivations& pre) {
  const auto round = [format = number_format(problem.dtype_y)](double x) { return round_to(format, x); };
  std::vector<double> y(pre.gate.size());
  visit_activation(problem.activation, problem.swiglu, [&](auto act) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = gated_unfused(act, pre.gate[i], pre.up[i], round);
  });
  return y;
}

std::vector<double> rounded(Dtype dtype_y, const std::vector<double>& values) {
  const NumberFormat format = number_format(dtype_y);
  std::vector<double> y(values.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = round_to(format, values[i]);
  return y;
}

}  // namespace tileglu::reference
