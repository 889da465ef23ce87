// SPDX-License-Identifier: Apache-2.0
#include "verify_jobs.hpp"

namespace tileglu::tool {
namespace {

constexpr Layout kLayouts[] = {Layout::kSeparate, Layout::kGateUp, Layout::kUpGate, Layout::kInterleaved1,
                               Layout::kInterleaved8};
constexpr Activation kActivations[] = {Activation::kSilu,  Activation::kGeluTanh, Activation::kGeluErf,
                                       Activation::kRelu,  Activation::kSigmoid,  Activation::kIdentity,
                                       Activation::kSwiglu};
constexpr Dtype kDtypes[] = {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32};
constexpr SwigluNumbers kGptOss{.alpha = 1.702F, .limit = 7, .up_offset = 1};

// Nothing, one row, around tiles of 64 and 128, widths that no vector divides, strides longer than rows.
struct GridShape {
  std::int64_t m, n, k, padding;
};
constexpr GridShape kGrid[] = {
    {.m = 0, .n = 64, .k = 64, .padding = 0},     {.m = 5, .n = 24, .k = 0, .padding = 0},
    {.m = 1, .n = 1, .k = 1, .padding = 0},       {.m = 1, .n = 256, .k = 512, .padding = 0},
    {.m = 7, .n = 24, .k = 40, .padding = 8},     {.m = 63, .n = 130, .k = 65, .padding = 3},
    {.m = 127, .n = 120, .k = 72, .padding = 0},  {.m = 128, .n = 256, .k = 128, .padding = 0},
    {.m = 129, .n = 264, .k = 136, .padding = 8}, {.m = 300, .n = 712, .k = 640, .padding = 0}};

// Extra operands, each with other columns, and how the weights lie meanwhile.
struct OperandGrid {
  GridShape shape;
  GateOptions gate;
  Layout weights;
};
const OperandGrid kOperandGrid[] = {
    {kGrid[8], {.bias = {.gate = true}}, Layout::kSeparate},
    {kGrid[5], {.bias = {.up = true}, .save = Layout::kSeparate}, Layout::kGateUp},
    {kGrid[8], {.addend = Layout::kGateUp, .save = Layout::kInterleaved8}, Layout::kInterleaved1},
    {kGrid[6], {.bias = {.gate = true, .up = true}, .addend = Layout::kSeparate}, Layout::kInterleaved8},
    {kGrid[4],
     {.bias = {.gate = true, .up = true}, .addend = Layout::kInterleaved8, .save = Layout::kGateUp},
     Layout::kUpGate},
    {kGrid[1],
     {.bias = {.gate = true, .up = true}, .addend = Layout::kInterleaved1, .save = Layout::kUpGate},
     Layout::kGateUp}};

Problem make_problem(const VerifyOptions& options, Memory memory, const GridShape& shape, Dtype dtype) {
  return {.dtype = dtype,
          .dtype_y = dtype,
          .memory = memory,
          .device = options.common.device,
          .m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .lda = shape.k + shape.padding,
          .ld_gate = shape.k + shape.padding,
          .ld_up = shape.k + shape.padding,
          .ldy = shape.n + shape.padding};
}

// The activations of a grid, or the one that was asked for, under one rounding.
std::vector<VerifyGate> grid_gates(const VerifyOptions& options, Rounding rounding) {
  std::vector<VerifyGate> gates;
  for (const Activation activation : kActivations) {
    if (options.common.activation && *options.common.activation != activation) continue;
    gates.push_back({.activation = activation,
                     .swiglu = activation == Activation::kSwiglu ? kGptOss : SwigluNumbers{},
                     .rounding = rounding});
  }
  return gates;
}

Result<std::vector<VerifyJob>> grid_jobs(const VerifyOptions& options, Memory memory) {
  if (options.shape.given()) return Status(Code::kInvalidArgument, "--all brings its own shapes; leave out others");
  std::vector<VerifyJob> jobs;
  for (const Dtype dtype : kDtypes) {
    if (options.common.dtype && *options.common.dtype != dtype) continue;
    for (const GridShape& shape : kGrid) {
      VerifyJob job{.problem = make_problem(options, memory, shape, dtype)};
      job.layouts =
          options.layout ? std::vector{*options.layout} : std::vector(std::begin(kLayouts), std::end(kLayouts));
      if (shape.n % 8 != 0) std::erase(job.layouts, Layout::kInterleaved8);
      job.gates = grid_gates(options, Rounding::kOnce);
      jobs.push_back(std::move(job));
    }
    jobs.push_back({.problem = make_problem(options, memory, kGrid[8], dtype),
                    .layouts = {options.layout.value_or(Layout::kSeparate)},
                    .gates = grid_gates(options, Rounding::kUnfused)});
    for (const OperandGrid& row : kOperandGrid) {
      const Result<Problem> problem = with_gate(row.gate, make_problem(options, memory, row.shape, dtype));
      if (!problem.ok()) return problem.status();
      VerifyJob job{.problem = problem.value(), .layouts = {options.layout.value_or(row.weights)}};
      for (const Rounding rounding : {Rounding::kOnce, Rounding::kUnfused}) {
        for (const VerifyGate& gate : grid_gates(options, rounding)) job.gates.push_back(gate);
      }
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

}  // namespace

Result<std::vector<VerifyJob>> make_jobs(const VerifyOptions& options, Memory memory) {
  if (options.all) return grid_jobs(options, memory);
  const Result<std::vector<Shape>> shapes = resolve_shapes(options.shape, {64});
  if (!shapes.ok()) return shapes.status();
  std::vector<VerifyJob> jobs;
  for (const Shape& shape : shapes.value()) {
    const GridShape sizes{.m = shape.m, .n = shape.n, .k = shape.k, .padding = 0};
    Problem plain = make_problem(options, memory, sizes, options.common.dtype.value_or(Dtype::kBf16));
    plain.activation = options.common.activation.value_or(shape.activation);
    const Result<Problem> problem = with_gate(options.gate, plain);
    if (!problem.ok()) return problem.status();
    const Problem& p = problem.value();
    jobs.push_back({.model = shape.model,
                    .problem = p,
                    .layouts = {options.layout.value_or(Layout::kSeparate)},
                    .gates = {{.activation = p.activation, .swiglu = p.swiglu, .rounding = p.rounding}}});
  }
  return jobs;
}

}  // namespace tileglu::tool
