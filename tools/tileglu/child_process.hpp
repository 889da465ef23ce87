// SPDX-License-Identifier: Apache-2.0
// Runs another program to its end and reads what it writes.
#pragma once

#include "core/status.hpp"

#include <string>
#include <utility>
#include <vector>

namespace tileglu::tool {

struct Finished {
  int code = 0;  // 128 + signal if one ended it
  std::string out, error;
};

// arguments[0] is looked up on PATH. `variables` are set in its environment, beside this process's own. kNotAvailable
// if the program cannot be started.
Result<Finished> run_program(const std::vector<std::string>& arguments,
                             const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace tileglu::tool
