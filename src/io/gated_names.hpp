// SPDX-License-Identifier: Apache-2.0
// The names under which checkpoints keep gated projections. To add a family of models: a row in gated_names.cpp.
#pragma once

#include "io/checkpoint.hpp"

#include <set>
#include <string_view>
#include <tuple>

namespace tileglu::io {

// What follows "layers.L."; '#' stands for the expert's number.
struct Naming {
  std::string_view group;
  std::string_view gate;                // or the single matrix
  std::string_view up;                  // empty: a single matrix
  std::string_view weight = ".weight";  // ending of the matrix itself
  bool packed = false;                  // by `tileglu pack`
  bool stacked = false;                 // all experts in one 3-D tensor: known, not supported

  bool of_expert() const { return group.find('#') != std::string_view::npos; }
};

// A pair of matrices that some tensor name speaks of.
struct Candidate {
  int layer = 0;
  std::string prefix = {};
  std::size_t naming = 0;  // row of the table
  int expert = -1;

  auto key() const { return std::tie(layer, prefix, naming, expert); }
  bool operator<(const Candidate& other) const { return key() < other.key(); }
  const Naming& names() const;
  std::string base(std::string_view part) const;  // full name of a part, without its ending
};

// Every pair that a name in the checkpoint speaks of, supported or not.
std::set<Candidate> all_candidates(const Checkpoint& checkpoint);

// The pair of this layer (and expert). Where several parts of a model have such a layer, the language model's is taken
// rather than that of a vision tower or a draft head; refuses what is still ambiguous.
Result<Candidate> choose_candidate(const std::set<Candidate>& candidates, const std::string& file, int layer,
                                   std::optional<int> expert);

}  // namespace tileglu::io
