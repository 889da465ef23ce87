// SPDX-License-Identifier: Apache-2.0
// The sub-commands. Each adds its options to the parser and, when it is the one chosen, sets the action.
#pragma once

#include "options.hpp"

namespace tileglu::tool {

void add_info(CLI::App& app, Action& action);
void add_models(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_roofline(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_pack(CLI::App& app, Action& action);
void add_unpack(CLI::App& app, Action& action);

}  // namespace tileglu::tool
