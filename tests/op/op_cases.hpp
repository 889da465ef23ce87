// SPDX-License-Identifier: Apache-2.0
// The tables of cases, for any backend. What a backend cannot do it has to refuse with a reason; the cpu backend
// refuses none of them.
#pragma once

#include "op/op_case.hpp"

namespace tileglu::test {

struct NamedCase {
  std::string name;
  OpCase op;
};
void PrintTo(const NamedCase& named, std::ostream* stream);

inline constexpr Dtype kDtypes[] = {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32};
inline constexpr Layout kLayouts[] = {Layout::kSeparate, Layout::kGateUp, Layout::kUpGate, Layout::kInterleaved1,
                                      Layout::kInterleaved8};
inline constexpr Activation kActivations[] = {Activation::kSilu,  Activation::kGeluTanh, Activation::kGeluErf,
                                              Activation::kRelu,  Activation::kSigmoid,  Activation::kIdentity,
                                              Activation::kSwiglu};
// gpt-oss.
inline constexpr SwigluNumbers kGptOss{.alpha = 1.702F, .limit = 7, .up_offset = 1};
constexpr SwigluNumbers numbers_of(Activation activation) {
  return activation == Activation::kSwiglu ? kGptOss : SwigluNumbers{};
}
inline constexpr std::int64_t kRaggedM[] = {1, 2, 7, 16, 17, 127, 128, 129, 300};
inline constexpr std::int64_t kRaggedN[] = {1, 3, 8, 12, 40, 96, 130, 608, 1234};
inline constexpr std::int64_t kRaggedK[] = {1, 8, 40, 64, 511, 896};

// Every ragged n and k for this m; dtypes, layouts, activations, strides and alignments take turns.
std::vector<OpCase> ragged_cases(std::int64_t m);
// dtype x dtype_y x activation x layout at one awkward shape with few rows and one with many.
std::vector<OpCase> combination_cases();
// Each base and each stride off on its own, and all of them.
std::vector<OpCase> alignment_cases();
// Rows and columns just around the block sizes of the cpu backend, and more rows than one of its panels.
std::vector<OpCase> block_edge_cases();
// activation x operands x rounding x dtype; the layouts and strides of operands and results take turns.
std::vector<OpCase> operand_cases();
// Cases of the field-failure collection that are a matter of shape: C04 C05 C06 C08 C12 C25.
std::vector<NamedCase> field_cases();

}  // namespace tileglu::test
