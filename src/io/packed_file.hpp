// SPDX-License-Identifier: Apache-2.0
// Files written by `tileglu pack`: safetensors with one matrix [2n,k] a layer (and expert), whose row order, and tensor
// parallel slice, stand in __metadata__:
//   tileglu_format = "1"               marks the file; a packed file is never packed again by mistake
//   tileglu_layout = "interleaved_8"   or another layout of one matrix, as name_of(Layout) spells it
//   tileglu_tp_rank, tileglu_tp_size   "0", "1" if the file holds whole matrices; absent means that too
//   tileglu_hidden_act = "silu"        as in config.json; absent if that was not known
// Tensors: "layers.L.gate_up", "layers.L.experts.E.gate_up".
#pragma once

#include "io/tensor.hpp"

#include <optional>

namespace tileglu::io {

struct PackedInfo {
  Layout layout = Layout::kInterleaved8;
  int tp_rank = 0, tp_size = 1;
  std::optional<std::string> hidden_act = {};
};

std::string packed_tensor_name(int layer, std::optional<int> expert = {});
Metadata make_packed_metadata(const PackedInfo& info);

// None if the metadata has no tileglu_format; refuses versions, layouts and numbers it does not know.
Result<std::optional<PackedInfo>> read_packed_metadata(const Metadata& metadata, const std::string& file);

}  // namespace tileglu::io
