// SPDX-License-Identifier: Apache-2.0
// What tune says at the end: a table, or the JSON document.
#pragma once

#include "json_output.hpp"
#include "tune_loop.hpp"

namespace tileglu::tool {

struct TuneSummary {
  int tuned = 0, known = 0, duplicate = 0, refused = 0, failed = 0, not_reached = 0;
  int failed_candidates = 0;
  std::string first_failure = {};  // of a problem or a candidate
};
TuneSummary summarise(const std::vector<TuneProblem>& problems);

// All candidates with what became of each.
Json tune_rows(const std::vector<TuneProblem>& problems);
std::string tune_table(const std::vector<TuneProblem>& problems);

}  // namespace tileglu::tool
