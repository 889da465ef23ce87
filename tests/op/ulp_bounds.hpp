// SPDX-License-Identifier: Apache-2.0
// How far an activation may be from fp64, over all finite gates of a 16-bit type: the one table. cpu_ulp_test.cpp holds
// the cpu backend's functors to it, tests/gpu/ulp_test.cpp whole GPU kernels, and docs/numerics.md shows it.
#pragma once

#include "core/names.hpp"
#include "core/problem.hpp"

#include <array>
#include <string>
#include <vector>

namespace tileglu::test {

struct UlpBound {
  Activation activation;
  Dtype gates;
  double cpu_fp32;  // in units in the last place of fp32, on the cpu backend
  double gpu_fp32;  // the same on GPUs: ex2.approx and rcp.approx
  double rounded;   // of a result in the gates' type, in its units, on all backends: 0.5 would be correct rounding
};

inline constexpr std::array<UlpBound, 14> kUlpBounds{{
    {Activation::kSilu, Dtype::kBf16, 60, 120, 0.505},
    {Activation::kSilu, Dtype::kFp16, 60, 120, 0.505},
    {Activation::kGeluTanh, Dtype::kBf16, 150, 300, 0.505},
    {Activation::kGeluTanh, Dtype::kFp16, 165, 330, 0.505},
    {Activation::kGeluErf, Dtype::kBf16, 60, 160, 0.505},
    {Activation::kGeluErf, Dtype::kFp16, 60, 160, 0.505},
    {Activation::kRelu, Dtype::kBf16, 0, 0, 0},
    {Activation::kRelu, Dtype::kFp16, 0, 0, 0},
    {Activation::kSigmoid, Dtype::kBf16, 60, 120, 0.505},
    {Activation::kSigmoid, Dtype::kFp16, 60, 120, 0.505},
    {Activation::kIdentity, Dtype::kBf16, 0, 0, 0},
    {Activation::kIdentity, Dtype::kFp16, 0, 0, 0},
    {Activation::kSwiglu, Dtype::kBf16, 75, 150, 0.505},
    {Activation::kSwiglu, Dtype::kFp16, 160, 320, 0.505},
}};

// Below this magnitude e^-x leaves fp32's normal numbers and is taken for 0: results are within kTail of fp64.
inline constexpr double kTail = 0x1p-110;

// All finite numbers of a 16-bit type.
std::vector<double> finite_numbers(Dtype dtype);
// What an activation makes of each gate with up = 1, in fp64. swiglu has the numbers of gpt-oss.
std::vector<double> exact_activations(Activation activation, const std::vector<double>& gates);
// Largest error in units in the last place of `dtype` where the exact result is above kTail; infinite if one below it
// is further off than kTail, or one is not a number.
double worst_ulps(Dtype dtype, const std::vector<double>& results, const std::vector<double>& exact);

// The table as docs/numerics.md has it.
std::string ulp_table();

}  // namespace tileglu::test
