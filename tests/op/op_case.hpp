// SPDX-License-Identifier: Apache-2.0
// One case of the operator as data, and what it takes to run it through the C ABI on host or GPU memory and to judge
// the result against fp64. The tables of cases are in op_cases.hpp; what must fail is in mutation_test.cpp.
#pragma once

#include "backends/backend.hpp"
#include "core/names.hpp"
#include "core/problem.hpp"
#include "reference/metrics.hpp"
#include "reference/reference.hpp"
#include "runtime/runtime.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tileglu::test {

// One value for each matrix of the operator.
struct PerMatrix {
  std::int64_t a = 0, gate = 0, up = 0, y = 0;
};

struct OpCase {
  Dtype dtype = Dtype::kBf16;
  std::optional<Dtype> dtype_y = {};  // none: as dtype
  Activation activation = Activation::kSilu;
  Layout layout = Layout::kSeparate;
  std::int64_t m = 1, n = 1, k = 1;
  PerMatrix pad = {.y = 64};  // row stride minus row length; the gap is filled with NaN, in Y with poison
  PerMatrix misalign = {};    // bases off their 256-byte alignment, in elements of the wider of dtype and dtype_y
  PerMatrix stated_ld =
      {};  // row stride that the call is told, where it means nothing (at most one row); 0: the true one
  unsigned seed = 1;
  double input_scale = 1;  // A ~ N(0,1) * input_scale; gate ~ N(0,1)/sqrt(k), up the same + 0.5/k
  std::vector<double> a = {}, gate = {}, up = {};  // if not empty: these values instead, row by row without gaps
  SwigluNumbers swiglu = {};
  Rounding rounding = Rounding::kOnce;
  ExtraOperands extra = {};  // biases and addend ~ N(0,1)
  Layout layout_add = Layout::kGateUp, layout_pre = Layout::kGateUp;
  std::int64_t pad_add = 0, pad_pre = 0;  // as pad
  std::int64_t misalign_extra = 0;        // of all extra operands, in elements of dtype

  Dtype result_dtype() const { return dtype_y.value_or(dtype); }
};
std::string describe(const OpCase& op);
void PrintTo(const OpCase& op, std::ostream* stream);

// What a result may be off: the unfused path's error, or that of one rounding where luck makes unfused better still.
struct Baselines {
  reference::Preactivations pre;
  std::vector<double> exact;
  reference::ErrorReport unfused, rounded;
};

struct Outcome {
  tileglu_status status = TILEGLU_INTERNAL_ERROR;
  std::string error;  // of the call that refused
  std::string backend, kernel;
  std::vector<unsigned char> y;                 // the result without gaps, [m,n]
  std::vector<unsigned char> pre_gate, pre_up;  // what was saved, the same; empty if nothing is
  bool guards_intact = false;                   // around Y, the workspace and the inputs
  bool untouched = false;                       // Y holds nothing but poison
  Baselines baselines;                          // only if status is OK
};

// known: the baselines of the same case from an earlier run, which take most of the time.
Outcome run_case(const OpCase& op, const PlanOptions& options, Memory memory, const Baselines* known = nullptr);
// The result as doubles.
std::vector<double> values(const OpCase& op, const Outcome& outcome);
// A result against the baselines; on failure, which figure is over which limit.
::testing::AssertionResult judge(const OpCase& op, const Baselines& baselines, const std::vector<unsigned char>& y);
// All of it: it ran, or refused with a reason and left Y alone where `may_refuse`; guards; judge.
::testing::AssertionResult accepted(const OpCase& op, const Outcome& outcome, bool may_refuse = false);

}  // namespace tileglu::test
