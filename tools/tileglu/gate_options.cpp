// SPDX-License-Identifier: Apache-2.0
#include "gate_options.hpp"

#include "arguments.hpp"
#include "core/layout.hpp"
#include "core/names.hpp"
#include "output.hpp"

namespace tileglu::tool {
namespace {

constexpr double kLargest = 1e6;
constexpr const char* kColumns = "separate, gate_up, up_gate, interleaved_1, interleaved_8";

std::optional<BiasChoice> bias_named(std::string_view name) {
  if (name == "gate") return BiasChoice{.gate = true};
  if (name == "up") return BiasChoice{.up = true};
  if (name == "both") return BiasChoice{.gate = true, .up = true};
  return {};
}

std::int64_t row_length(Layout layout, std::int64_t n) {
  return is_single_matrix(layout) ? 2 * n : n;
}

}  // namespace

void add_gate_options(CLI::App& command, GateOptions& options) {
  add_number(command, "--alpha", options.alpha, {.low = -kLargest, .high = kLargest},
             "swiglu: factor of the gate in its sigmoid (default 1)");
  add_number(command, "--limit", options.limit, {.low = 1e-6, .high = kLargest},
             "swiglu: clamps the gate from above, up on both sides (default: none)");
  add_number(command, "--up-offset", options.up_offset, {.low = -kLargest, .high = kLargest},
             "swiglu: added to up after its clamp (default 0)");
  add_choice(command, "--rounding", options.rounding, rounding_named, "once, unfused",
             "Where results are rounded: only Y, or every step as frameworks do");
}

void add_operand_options(CLI::App& command, GateOptions& options) {
  add_choice(command, "--bias", options.bias, bias_named, "gate, up, both", "Add random biases");
  add_choice(command, "--addend", options.addend, layout_named, kColumns,
             "Add a random [m,2n] matrix whose columns lie so");
  add_choice(command, "--save-preactivations", options.save, layout_named, kColumns,
             "Write gate and up before the activation, columns lying so");
}

Result<Problem> with_gate(const GateOptions& options, Problem problem) {
  const std::pair<const char*, const std::optional<double>*> numbers[] = {
      {"--alpha", &options.alpha}, {"--limit", &options.limit}, {"--up-offset", &options.up_offset}};
  for (const auto& [name, value] : numbers) {
    if (*value && problem.activation != Activation::kSwiglu) {
      return bad_argument(name, formatted("{}", **value),
                          formatted("activation {} has no such number; only swiglu does", name_of(problem.activation)));
    }
  }
  const auto given = [](const std::optional<double>& value, float otherwise) {
    return value ? static_cast<float>(*value) : otherwise;
  };
  const SwigluNumbers none;
  problem.swiglu = {.alpha = given(options.alpha, none.alpha),
                    .limit = given(options.limit, none.limit),
                    .up_offset = given(options.up_offset, none.up_offset)};
  problem.rounding = options.rounding;
  problem.extra = {.bias_gate = options.bias.gate,
                   .bias_up = options.bias.up,
                   .addend = options.addend.has_value(),
                   .preactivations = options.save.has_value()};
  problem.layout_add = options.addend.value_or(problem.layout_add);
  problem.layout_pre = options.save.value_or(problem.layout_pre);
  problem.ld_add = options.addend ? row_length(*options.addend, problem.n) : 0;
  problem.ld_pre = options.save ? row_length(*options.save, problem.n) : 0;
  return problem;
}

std::string operand_names(const Problem& p) {
  std::vector<std::string> names;
  if (p.extra.bias_gate) names.emplace_back("bias_gate");
  if (p.extra.bias_up) names.emplace_back("bias_up");
  if (p.extra.addend) names.push_back(formatted("addend:{}", name_of(p.layout_add)));
  if (p.extra.preactivations) names.push_back(formatted("preactivations:{}", name_of(p.layout_pre)));
  return joined(names);
}

}  // namespace tileglu::tool
