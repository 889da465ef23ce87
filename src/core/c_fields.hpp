// SPDX-License-Identifier: Apache-2.0
// The other way round than validate.hpp: the fields of the C structs that tell how the gate is computed and which
// operands there are, from plain values. For those inside that call through the C ABI: the tool and the tests.
#pragma once

#include "core/problem.hpp"

#include <cmath>

namespace tileglu {

inline void put_gate_fields(const Problem& p, tileglu_problem& c) {
  const auto bit = [](bool present, tileglu_operand operand) {
    return present ? static_cast<std::uint32_t>(operand) : 0U;
  };
  c.activation = static_cast<int>(p.activation);
  if (p.activation == Activation::kSwiglu) {
    c.alpha = p.swiglu.alpha;
    c.limit = std::isinf(p.swiglu.limit) ? 0 : p.swiglu.limit;
    c.up_offset = p.swiglu.up_offset;
  }
  c.rounding = static_cast<int>(p.rounding);
  c.operands = bit(p.extra.bias_gate, TILEGLU_BIAS_GATE) | bit(p.extra.bias_up, TILEGLU_BIAS_UP) |
               bit(p.extra.addend, TILEGLU_ADDEND) | bit(p.extra.preactivations, TILEGLU_PREACTIVATIONS);
  if (p.extra.addend) c.layout_add = static_cast<int>(p.layout_add);
  if (p.extra.preactivations) c.layout_pre = static_cast<int>(p.layout_pre);
  c.ld_add = p.ld_add;
  c.ld_pre = p.ld_pre;
}

inline void put_operands(const Operands& operands, tileglu_args& c) {
  c.a = operands.a;
  c.gate = operands.gate;
  c.up = operands.up;
  c.y = operands.y;
  c.stream = operands.stream;
  c.bias_gate = operands.bias_gate;
  c.bias_up = operands.bias_up;
  c.add_gate = operands.add_gate;
  c.add_up = operands.add_up;
  c.pre_gate = operands.pre_gate;
  c.pre_up = operands.pre_up;
}

}  // namespace tileglu
