// SPDX-License-Identifier: Apache-2.0
#include "backends/cublas/work.hpp"

#include "core/layout.hpp"

#include <algorithm>

namespace tileglu::cublas {
namespace {

// Rows are worked off in slices of this many, so that no intermediate has 2^31 elements or more and no grid of cuBLASLt
// meets a limit (field case C02). The last slice is moved up to full size: its first rows are computed twice, alike.
std::int64_t slice_rows(std::int64_t m, std::int64_t ld) {
  constexpr std::int64_t kMaxRows = std::int64_t{1} << 20, kMaxElements = std::int64_t{1} << 31;
  const std::int64_t limit = std::min(kMaxRows, (kMaxElements - 1) / ld);
  if (m <= limit) return m;
  return std::max<std::int64_t>(1, limit >= 128 ? limit / 128 * 128 : limit);
}

// The workspace is carved up here and nowhere else: the results of the GEMMs, then scratch for cuBLASLt.
void lay_out_workspace(Work& work) {
  const std::size_t result = round_to_part(static_cast<std::size_t>(work.rows * work.ld) * size_of(work.between));
  std::size_t scratch = 0;
  for (std::size_t i = 0; i < work.parts.size(); ++i) {
    work.parts[i].result_offset = i * result;
    scratch = std::max(scratch, work.parts[i].gemm.scratch_bytes(0));
  }
  work.scratch_offset = work.parts.size() * result;
  work.workspace_bytes = work.scratch_offset + round_to_part(scratch);
}

// Weight rows as a matrix of their own.
struct WeightRows {
  std::int64_t first_element = 0;  // from the base `gate` or `up`
  std::int64_t count = 0, ld = 0;
  bool from_up = false;
};

WeightRows all_rows(const Problem& problem) {
  return {.first_element = 0, .count = 2 * problem.n, .ld = problem.ld_gate, .from_up = false};
}

// Not for INTERLEAVED_8, whose halves are no strided matrices; pick_kernel has refused it.
WeightRows half_rows(const Problem& problem, bool up) {
  const HalfRows rows = up ? up_rows(problem.layout, problem.n) : gate_rows(problem.layout, problem.n);
  const bool from_up = up && !is_single_matrix(problem.layout);
  const std::int64_t ld = from_up ? problem.ld_up : problem.ld_gate;
  return {.first_element = rows.first * ld, .count = problem.n, .ld = rows.pitch * ld, .from_up = from_up};
}

Status add_part(const Problem& problem, const WeightRows& weights, Work& work) {
  const auto size = static_cast<std::int64_t>(size_of(problem.dtype));
  const std::int64_t weight_offset = weights.first_element * size;
  const std::int64_t slice_offset = work.rows < problem.m ? problem.lda * size : 0;
  Result<Gemm> gemm = Gemm::make({.dtype = problem.dtype,
                                  .dtype_d = work.between,
                                  .device = problem.device,
                                  .m = work.rows,
                                  .n = weights.count,
                                  .k = problem.k,
                                  .lda = problem.lda,
                                  .ldw = weights.ld,
                                  .ldd = work.ld,
                                  .align_a = alignment_at(problem.alignment, slice_offset),
                                  .align_w = alignment_at(problem.alignment, weight_offset)},
                                 1);
  TILEGLU_TRY(gemm.status());
  work.parts.push_back({.gemm = std::move(gemm.value()),
                        .from_up = weights.from_up,
                        .weight_offset = static_cast<std::size_t>(weight_offset)});
  return {};
}

Status add_parts(const Problem& problem, bool merged, Work& work) {
  if (merged) return add_part(problem, all_rows(problem), work);
  TILEGLU_TRY(add_part(problem, half_rows(problem, false), work));
  return add_part(problem, half_rows(problem, true), work);
}

// The shape that all element-wise kernels of a plan start from: separate halves, ending in y.
ElementwiseShape elementwise_shape(const Problem& problem, const Work& work, int sm_count) {
  return {.dtype_in = work.between,
          .dtype_out = problem.dtype_y,
          .activation = problem.activation,
          .n = problem.n,
          .ld_in = work.ld,
          .ld_out = problem.ldy,
          .align_in = static_cast<int>(kPartAlignment),
          .align_out = alignment_at(problem.alignment, 0),
          .sm_count = sm_count};
}

Status add_step(const ElementwiseShape& shape, Step step, Work& work) {
  const Result<Elementwise> kernel = Elementwise::make(shape);
  TILEGLU_TRY(kernel.status());
  step.kernel = kernel.value();
  work.steps.push_back(step);
  return {};
}

Status add_merged_step(const Problem& problem, ElementwiseShape shape, Work& work) {
  Step step;
  const std::size_t half = static_cast<std::size_t>(problem.n) * size_of(work.between);
  switch (problem.layout) {
    case Layout::kInterleaved1: shape.columns = Columns::kInterleaved1; break;
    case Layout::kInterleaved8: shape.columns = Columns::kInterleaved8; break;
    case Layout::kUpGate: step.gate_offset = half; break;
    default: step.up_offset = half; break;
  }
  shape.align_in = alignment_at(shape.align_in, static_cast<std::int64_t>(step.gate_offset + step.up_offset));
  return add_step(shape, step, work);
}

Status add_separate_steps(Kernel kernel, ElementwiseShape shape, Work& work) {
  const Step last{.kernel = {}, .gate_offset = work.parts[0].result_offset, .up_offset = work.parts[1].result_offset};
  if (kernel != kTwoGemmsSiluMul) return add_step(shape, last, work);
  ElementwiseShape alone = shape;
  alone.multiply = false;
  alone.dtype_out = shape.dtype_in;
  alone.ld_out = shape.ld_in;
  alone.align_out = shape.align_in;
  TILEGLU_TRY(add_step(alone, {.kernel = {}, .gate_offset = last.gate_offset, .to_y = false}, work));
  shape.activation = Activation::kIdentity;
  return add_step(shape, last, work);
}

// Whether the sums are to be finished by more than act(gate) * up with one rounding.
bool needs_finish(const Problem& problem) {
  return problem.extra.any() || problem.activation == Activation::kSwiglu || problem.rounding == Rounding::kUnfused;
}

Status add_finish(const Problem& problem, bool merged, int sm_count, Work& work) {
  const Result<Finish> finish = Finish::make({.dtype = problem.dtype,
                                              .dtype_y = problem.dtype_y,
                                              .activation = problem.activation,
                                              .swiglu = problem.swiglu,
                                              .rounding = problem.rounding,
                                              .n = problem.n,
                                              .ldy = problem.ldy,
                                              .sm_count = sm_count});
  TILEGLU_TRY(finish.status());
  work.finish = finish.value();
  if (merged) {
    work.gate_columns = gate_rows(problem.layout, problem.n);
    work.up_columns = up_rows(problem.layout, problem.n);
  } else if (!work.parts.empty()) {
    work.gate_offset = work.parts[0].result_offset;
    work.up_offset = work.parts[1].result_offset;
  }
  return {};
}

}  // namespace

Result<Work> make_work(const Problem& problem, Kernel kernel, int sm_count) {
  const bool merged = kernel == kMerged || kernel == kFp32Merged;
  Work work;
  work.between = kernel == kFp32Merged || kernel == kFp32TwoGemms ? Dtype::kFp32 : problem.dtype;
  work.ld = padded_columns(work.between, merged ? 2 * problem.n : problem.n);
  work.rows = slice_rows(problem.m, work.ld);
  if (problem.k > 0) TILEGLU_TRY(add_parts(problem, merged, work));  // else the sums are 0
  lay_out_workspace(work);
  if (needs_finish(problem)) {
    TILEGLU_TRY(add_finish(problem, merged, sm_count, work));
    return work;
  }
  const ElementwiseShape shape = elementwise_shape(problem, work, sm_count);
  TILEGLU_TRY(merged ? add_merged_step(problem, shape, work) : add_separate_steps(kernel, shape, work));
  return work;
}

}  // namespace tileglu::cublas
