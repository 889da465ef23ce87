// SPDX-License-Identifier: Apache-2.0
// Runs a kernel through the C ABI into guarded, poisoned memory and judges the result.
#pragma once

#include "backends/backend.hpp"
#include "inputs.hpp"
#include "op/op_case.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace tileglu::gpu {

// One configuration that a plan can pick.
struct Kernel {
  BackendId backend = BackendId::kAuto;
  std::string name;         // empty: whatever the planner picks
  std::uint32_t flags = 0;  // tileglu_flag

  PlanOptions options() const { return {.backend = backend, .kernel = name}; }
};
void PrintTo(const Kernel& kernel, std::ostream* out);

std::vector<Kernel> sm90_kernels();  // all rows of kSm90Configs
std::vector<Kernel> cublas_kernels();
std::vector<Kernel> all_kernels();
std::vector<Kernel> tall_kernels();  // those that take any number of rows
// m, or as many rows as the kernel takes.
std::int64_t rows_for(const Kernel& kernel, std::int64_t m);
std::string test_name(const testing::TestParamInfo<Kernel>& info);  // "sm90_interleave_..."

tileglu_problem to_c(const Problem& problem);

struct DestroyPlan {
  void operator()(tileglu_plan* plan) const { tileglu_plan_destroy(plan); }
};
using PlanPointer = std::unique_ptr<tileglu_plan, DestroyPlan>;

// The plan, or null and tileglu_last_error().
PlanPointer make_plan(const Problem& problem, const Kernel& kernel);
// OK or why the kernel cannot do the problem.
tileglu_status can_implement(const Problem& problem, const Kernel& kernel, std::string* reason = nullptr);

// What a plan for `kernel` really runs, if its backend or name were left open.
Kernel picked(const Problem& problem, const Kernel& kernel);

// Every problem that differs from `problem` only in layout, dtypes and activation and that the kernel takes.
std::vector<Problem> variants(const Problem& problem, const Kernel& kernel);
// The layouts in which the kernel takes the problem.
std::vector<Layout> layouts(const Problem& problem, const Kernel& kernel);

// Y and workspace of one call, poisoned, with guards around both.
class Output {
 public:
  Output(const Problem& problem, std::size_t workspace_bytes);
  // Fills in y, workspace and workspace_bytes.
  tileglu_args args(const Operands& inputs, const runtime::Stream& stream) const;
  void poison() const;
  // Y as it lies in memory, from row 0 on. Adds a failure if a guard has changed.
  std::vector<unsigned char> download() const;

 private:
  Problem problem_;
  std::size_t workspace_bytes_;
  runtime::Buffer y_, workspace_;
};

// Plans, runs and waits; adds a failure for anything but success. Returns Y with row stride problem.ldy.
std::vector<unsigned char> run(const Problem& problem, const Kernel& kernel, const Operands& inputs);

// Whether Y (row stride problem.ldy) is what the kernel has to give, and its relative Frobenius error.
struct Verdict {
  std::string complaint;  // empty: right
  double error = 0;
};
Verdict judge(const Problem& problem, const Kernel& kernel, const void* y, const Yardstick& yardstick);

// Runs and judges one problem, adds a failure if it is wrong, and enters the kernel's error into the record. If
// `against_eager`, the error must also be at most kEagerShare of what two_gemms_silu_mul makes on the same data.
struct CheckOptions {
  std::int64_t row_step = 1;
  bool against_eager = false;
};
inline constexpr double kEagerShare = 0.55;
void check(const Problem& problem, const Kernel& kernel, Inputs& inputs, const CheckOptions& options = {});

// The tables of tests/op judge by the error of three roundings to the type of Y. The cublas backend makes roundings of
// its own: in the type of A, which may be coarser, and of sums that differ in their last fp32 bits, so that over a few
// elements its error is another draw from the same distribution. Raises the limits of a cublas result accordingly.
void allow_unfused_path(const test::OpCase& op, test::Outcome& outcome);

}  // namespace tileglu::gpu
