// SPDX-License-Identifier: Apache-2.0
#include "op/op_cases.hpp"

namespace tileglu::test {
namespace {

// None, each alone, biases with an addend, and all.
constexpr ExtraOperands kOperands[] = {{},
                                       {.bias_gate = true},
                                       {.bias_up = true},
                                       {.addend = true},
                                       {.preactivations = true},
                                       {.bias_gate = true, .bias_up = true, .addend = true},
                                       {.bias_gate = true, .bias_up = true, .addend = true, .preactivations = true}};

// Column layouts, strides and bases of the extra operands, and how the rest lies meanwhile.
struct Lie {
  Layout layout, add, pre;
  std::int64_t pad_add, pad_pre, misalign;
  std::int64_t m, n, k;
};
constexpr Lie kLies[] = {
    {Layout::kSeparate, Layout::kGateUp, Layout::kGateUp, 0, 0, 0, 35, 72, 83},
    {Layout::kGateUp, Layout::kSeparate, Layout::kUpGate, 8, 3, 1, 5, 72, 83},
    {Layout::kInterleaved1, Layout::kInterleaved8, Layout::kInterleaved1, 5, 64, 3, 35, 136, 64},
    {Layout::kUpGate, Layout::kInterleaved1, Layout::kSeparate, 0, 7, 1, 17, 51, 40},
    {Layout::kInterleaved8, Layout::kUpGate, Layout::kInterleaved8, 1, 1, 0, 16, 264, 24},
};

}  // namespace

std::vector<OpCase> operand_cases() {
  std::vector<OpCase> cases;
  std::size_t count = 0;
  for (const Dtype dtype : kDtypes) {
    for (const Activation activation : kActivations) {
      for (const Rounding rounding : {Rounding::kOnce, Rounding::kUnfused}) {
        for (const ExtraOperands& extra : kOperands) {
          const Lie& lie = kLies[count++ % std::size(kLies)];
          cases.push_back({.dtype = dtype,
                           .dtype_y = count % 4 == 0 ? kDtypes[count / 4 % 3] : dtype,
                           .activation = activation,
                           .layout = lie.layout,
                           .m = lie.m,
                           .n = lie.n,
                           .k = lie.k,
                           .seed = static_cast<unsigned>(count),
                           .swiglu = numbers_of(activation),
                           .rounding = rounding,
                           .extra = extra,
                           .layout_add = lie.add,
                           .layout_pre = lie.pre,
                           .pad_add = lie.pad_add,
                           .pad_pre = lie.pad_pre,
                           .misalign_extra = lie.misalign});
        }
      }
    }
  }
  return cases;
}

}  // namespace tileglu::test
