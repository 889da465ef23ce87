// SPDX-License-Identifier: Apache-2.0
// The cpu backend's activations over every finite bf16 and fp16 gate, in each instruction set, against fp64.
#include "backends/cpu/simd.hpp"
#include "core/format.hpp"
#include "op/op_cases.hpp"
#include "op/op_data.hpp"
#include "op/ulp_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

namespace tileglu::test {
namespace {

std::vector<double> results_of(const cpu::Simd& simd, Activation activation, Dtype dtype_y,
                               const std::vector<double>& gates) {
  std::vector<float> gate(gates.begin(), gates.end()), up(gates.size(), 1);
  std::vector<unsigned char> y(gates.size() * size_of(dtype_y));
  const auto count = static_cast<std::int64_t>(gates.size());
  simd.finish[cpu::Simd::index(Rounding::kOnce)][cpu::Simd::index(activation)][cpu::Simd::index(dtype_y)](
      {.swiglu = numbers_of(activation),
       .gate = gate.data(),
       .up = up.data(),
       .sums_ld = count,
       .rows = 1,
       .columns = count,
       .y = y.data(),
       .ldy = count});
  return decode(dtype_y, y);
}

class CpuUlp : public ::testing::TestWithParam<UlpBound> {};

// Within the bounds, and the bounds not far beyond: a table that holds anything would say nothing.
TEST_P(CpuUlp, OverAllFiniteGates) {
  const UlpBound& bound = GetParam();
  const std::vector<double> gates = finite_numbers(bound.gates);
  ASSERT_GT(gates.size(), 63000U);
  const std::vector<double> exact = exact_activations(bound.activation, gates);
  double worst = 0, rounded = 0;
  for (const cpu::Simd* simd : cpu::all_simd()) {
    if (!simd->supported()) continue;
    worst = std::max(worst, worst_ulps(Dtype::kFp32, results_of(*simd, bound.activation, Dtype::kFp32, gates), exact));
    rounded =
        std::max(rounded, worst_ulps(bound.gates, results_of(*simd, bound.activation, bound.gates, gates), exact));
  }
  const std::string found = formatted("{} {}: {:.4g} fp32 ulp, {:.5g} rounded", name_of(bound.activation),
                                      name_of(bound.gates), worst, rounded);
  EXPECT_LE(worst, bound.cpu_fp32) << found;
  EXPECT_GE(worst, 0.5 * bound.cpu_fp32) << found;
  EXPECT_LE(rounded, bound.rounded) << found;
  EXPECT_GE(rounded, 0.9 * bound.rounded) << found;
}
INSTANTIATE_TEST_SUITE_P(Each, CpuUlp, ::testing::ValuesIn(kUlpBounds), [](const auto& instance) {
  return std::string(name_of(instance.param.activation)) + "_" + name_of(instance.param.gates);
});

TEST(UlpSweep, CanFail) {
  const std::vector<double> exact{1, 0x1p-120, 2};
  EXPECT_EQ(worst_ulps(Dtype::kFp32, {1, 0, 2}, exact), 0);
  EXPECT_EQ(worst_ulps(Dtype::kBf16, {1, 0, 2 + 0x1p-5}, exact), 2);
  EXPECT_EQ(worst_ulps(Dtype::kFp32, {1, 0x1p-100, 2}, exact), INFINITY);
  EXPECT_EQ(worst_ulps(Dtype::kFp32, {NAN, 0, 2}, exact), INFINITY);
}

TEST(UlpSweep, TheDocumentHasTheTable) {
  std::ifstream file(TILEGLU_SOURCE_DIR "/docs/numerics.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find(ulp_table()), std::string::npos) << "docs/numerics.md must have:\n" << ulp_table();
}

}  // namespace
}  // namespace tileglu::test
