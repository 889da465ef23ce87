// SPDX-License-Identifier: Apache-2.0
#include "core/validate_extra.hpp"

#include "core/checks.hpp"

#include <cmath>

namespace tileglu::checks {
namespace {

constexpr std::uint32_t kOperandBits = TILEGLU_BIAS_GATE | TILEGLU_BIAS_UP | TILEGLU_ADDEND | TILEGLU_PREACTIVATIONS;

Status number_allowed(const char* field, float value, Activation activation) {
  if (!std::isfinite(value)) return invalid("{}={} is not finite", field, value);
  if (value == 0 || activation == Activation::kSwiglu) return {};
  return invalid("{}={} must be 0 with activation={} (only swiglu has it)", field, value, name_of(activation));
}

Status read_numbers(const tileglu_problem& c, Problem& p) {
  TILEGLU_TRY(number_allowed("alpha", c.alpha, p.activation));
  TILEGLU_TRY(number_allowed("limit", c.limit, p.activation));
  TILEGLU_TRY(number_allowed("up_offset", c.up_offset, p.activation));
  if (c.limit < 0) return invalid("limit={} is below 0 (0: no limit)", c.limit);
  if (c.alpha != 0) p.swiglu.alpha = c.alpha;
  if (c.limit != 0) p.swiglu.limit = c.limit;
  p.swiglu.up_offset = c.up_offset + 0.0F;  // -0 as 0: equal problems are equal in their bits
  return {};
}

// Columns of the addend or of the pre-activations.
struct PairFields {
  const char *name, *layout_name, *stride_name;
  std::int32_t layout;
  std::int64_t ld;
};

Status read_pair(const PairFields& fields, bool present, Problem& p, Layout& layout, std::int64_t& ld) {
  if (!present) {
    if (fields.layout == 0 && fields.ld == 0) return {};
    return invalid("{}={} and {}={} must be 0: problem.operands has no {}", fields.layout_name, fields.layout,
                   fields.stride_name, fields.ld, fields.name);
  }
  if (fields.layout != 0) {
    TILEGLU_TRY(in_range(fields.layout_name, fields.layout, Layout::kSeparate, Layout::kInterleaved8));
    layout = static_cast<Layout>(fields.layout);
  }
  if (layout == Layout::kInterleaved8 && p.n % 8 != 0) {
    return invalid("n={} is not a multiple of 8, which {}=interleaved_8 needs", p.n, fields.layout_name);
  }
  ld = fields.ld;
  const bool single = is_single_matrix(layout);
  return resolve_stride({fields.name, fields.stride_name, single ? "2n" : "n", p.m, single ? 2 * p.n : p.n,
                         static_cast<std::int64_t>(size_of(p.dtype))},
                        ld);
}

// One pointer and whether the problem has it.
Status belongs(const char* name, const void* pointer, bool present, const char* reason) {
  if (present || pointer == nullptr) return {};
  return invalid("{}={} must be NULL: {}", name, pointer, reason);
}

std::int64_t pair_bytes(const Problem& p, bool present, Layout layout, std::int64_t ld, bool is_up) {
  if (!present || (is_up && is_single_matrix(layout))) return 0;
  const std::int64_t columns = is_single_matrix(layout) ? 2 * p.n : p.n;
  // read_pair has seen that it is not too long.
  return extent_bytes(p.m, columns, ld, static_cast<std::int64_t>(size_of(p.dtype))).value_or(0);
}

}  // namespace

Status read_extra(const tileglu_problem& c, Problem& p) {
  TILEGLU_TRY(read_numbers(c, p));
  if (c.rounding != 0) {
    TILEGLU_TRY(in_range("rounding", c.rounding, Rounding::kOnce, Rounding::kUnfused));
    p.rounding = static_cast<Rounding>(c.rounding);
  }
  if ((c.operands & ~kOperandBits) != 0) {
    return invalid("operands={:#x} has bits outside {:#x}", c.operands, kOperandBits);
  }
  if (c.reserved != 0) return invalid("problem.reserved={} must be 0", c.reserved);
  p.extra = {.bias_gate = (c.operands & TILEGLU_BIAS_GATE) != 0,
             .bias_up = (c.operands & TILEGLU_BIAS_UP) != 0,
             .addend = (c.operands & TILEGLU_ADDEND) != 0,
             .preactivations = (c.operands & TILEGLU_PREACTIVATIONS) != 0};
  TILEGLU_TRY(
      read_pair({"addend", "layout_add", "ld_add", c.layout_add, c.ld_add}, p.extra.addend, p, p.layout_add, p.ld_add));
  return read_pair({"pre-activations", "layout_pre", "ld_pre", c.layout_pre, c.ld_pre}, p.extra.preactivations, p,
                   p.layout_pre, p.ld_pre);
}

Status extra_pointers_belong(const tileglu_args& args, const Problem& p) {
  constexpr const char* kSingle = "the layout is one matrix with the base of gate";
  TILEGLU_TRY(belongs("bias_gate", args.bias_gate, p.extra.bias_gate, "problem.operands has no TILEGLU_BIAS_GATE"));
  TILEGLU_TRY(belongs("bias_up", args.bias_up, p.extra.bias_up, "problem.operands has no TILEGLU_BIAS_UP"));
  TILEGLU_TRY(belongs("add_gate", args.add_gate, p.extra.addend, "problem.operands has no TILEGLU_ADDEND"));
  TILEGLU_TRY(belongs("add_up", args.add_up, p.extra.addend, "problem.operands has no TILEGLU_ADDEND"));
  TILEGLU_TRY(belongs("add_up", args.add_up, !is_single_matrix(p.layout_add), kSingle));
  constexpr const char* kNoPre = "problem.operands has no TILEGLU_PREACTIVATIONS";
  TILEGLU_TRY(belongs("pre_gate", args.pre_gate, p.extra.preactivations, kNoPre));
  TILEGLU_TRY(belongs("pre_up", args.pre_up, p.extra.preactivations, kNoPre));
  return belongs("pre_up", args.pre_up, !is_single_matrix(p.layout_pre), kSingle);
}

std::array<NamedRange, 4> extra_inputs(const tileglu_args& args, const Problem& p) {
  const std::int64_t bias_bytes = p.n * static_cast<std::int64_t>(size_of(p.dtype));
  const auto add_bytes = [&](bool is_up) { return pair_bytes(p, p.extra.addend, p.layout_add, p.ld_add, is_up); };
  return {{{"bias_gate", {args.bias_gate, p.extra.bias_gate ? bias_bytes : 0}},
           {"bias_up", {args.bias_up, p.extra.bias_up ? bias_bytes : 0}},
           {"add_gate", {args.add_gate, add_bytes(false)}},
           {"add_up", {args.add_up, add_bytes(true)}}}};
}

std::array<NamedRange, 2> extra_outputs(const tileglu_args& args, const Problem& p) {
  const auto bytes = [&](bool is_up) { return pair_bytes(p, p.extra.preactivations, p.layout_pre, p.ld_pre, is_up); };
  return {{{"pre_gate", {args.pre_gate, bytes(false)}}, {"pre_up", {args.pre_up, bytes(true)}}}};
}

}  // namespace tileglu::checks
