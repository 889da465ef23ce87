// SPDX-License-Identifier: Apache-2.0
// Options of how the gate is computed and of what is read and written besides A, the weights and Y.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace tileglu::tool {

struct BiasChoice {
  bool gate = false, up = false;
};

struct GateOptions {
  std::optional<double> alpha = {}, limit = {}, up_offset = {};  // swiglu only
  Rounding rounding = Rounding::kOnce;
  BiasChoice bias = {};
  std::optional<Layout> addend = {}, save = {};  // of their columns
};

void add_gate_options(CLI::App& command, GateOptions& options);
void add_operand_options(CLI::App& command, GateOptions& options);

// The problem with what the options say; its activation, m and n are set. Rows of addend and pre-activations have no
// gaps. kInvalidArgument for numbers of swiglu beside another activation.
Result<Problem> with_gate(const GateOptions& options, Problem problem);

// "bias_gate, addend:gate_up": what a run reads and writes besides A, the weights and Y, with its columns' layout.
std::string operand_names(const Problem& problem);

}  // namespace tileglu::tool
