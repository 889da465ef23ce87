// SPDX-License-Identifier: Apache-2.0
// The activations of GPU kernels over every finite gate: A is the first unit vector, the gate weights are the gates,
// the up weights 1. The fp32 results of cublas show the functors, the 16-bit ones of each kernel its whole epilogue.
#include "core/format.hpp"
#include "op/op_cases.hpp"
#include "op/op_data.hpp"
#include "op/ulp_bounds.hpp"

namespace tileglu::gpu {
namespace {

using test::UlpBound;

test::OpCase sweep_case(const UlpBound& bound, Dtype dtype_y, std::int64_t m, const std::vector<double>& gates) {
  constexpr std::int64_t kDepth = 64;
  test::OpCase op{.dtype = bound.gates,
                  .dtype_y = dtype_y,
                  .activation = bound.activation,
                  .m = m,
                  .n = static_cast<std::int64_t>(gates.size()),
                  .k = kDepth,
                  .swiglu = test::numbers_of(bound.activation)};
  op.pad = {};
  op.a.assign(static_cast<std::size_t>(m * kDepth), 0);
  op.gate.assign(gates.size() * kDepth, 0);
  op.up = op.gate;
  for (std::int64_t i = 0; i < m; ++i) op.a[static_cast<std::size_t>(i * kDepth)] = 1;
  for (std::size_t j = 0; j < gates.size(); ++j) op.gate[j * kDepth] = gates[j], op.up[j * kDepth] = 1;
  return op;
}

double worst_of(const UlpBound& bound, const PlanOptions& options, Dtype dtype_y, std::int64_t m) {
  const std::vector<double> gates = test::finite_numbers(bound.gates);
  const test::OpCase op = sweep_case(bound, dtype_y, m, gates);
  const test::Baselines none{.pre = {}, .exact = {}, .unfused = {}, .rounded = {}};
  const test::Outcome outcome = test::run_case(op, options, Memory::kCuda, &none);
  EXPECT_EQ(outcome.status, TILEGLU_OK) << outcome.error;
  if (outcome.status != TILEGLU_OK) return 0;
  std::vector<double> first_row = test::values(op, outcome);
  first_row.resize(gates.size());
  return test::worst_ulps(dtype_y, first_row, test::exact_activations(bound.activation, gates));
}

class GpuUlp : public ::testing::TestWithParam<UlpBound> {};

TEST_P(GpuUlp, FunctorsInFp32) {
  const UlpBound& bound = GetParam();
  const double worst = worst_of(bound, {.backend = BackendId::kCublas, .kernel = {}}, Dtype::kFp32, 1);
  RecordProperty("fp32_ulps", formatted("{:.4g}", worst));
  EXPECT_LE(worst, bound.gpu_fp32);
}

// The planner's kernels for one token, a few and many, and the fallback.
TEST_P(GpuUlp, WholeKernelsRounded) {
  const UlpBound& bound = GetParam();
  for (const BackendId backend : {BackendId::kAuto, BackendId::kCublas}) {
    for (const std::int64_t m : {1, 16, 128}) {
      const double worst = worst_of(bound, {.backend = backend, .kernel = {}}, bound.gates, m);
      EXPECT_LE(worst, bound.rounded) << name_of(backend) << " m=" << m;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, GpuUlp, ::testing::ValuesIn(test::kUlpBounds), [](const auto& instance) {
  return std::string(name_of(instance.param.activation)) + "_" + name_of(instance.param.gates);
});

}  // namespace
}  // namespace tileglu::gpu
