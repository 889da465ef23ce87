// SPDX-License-Identifier: Apache-2.0
// Valid C structs that tests then spoil, one field at a time.
#pragma once

#include <tileglu/tileglu.h>

#include <cstring>
#include <vector>

namespace tileglu::test {

inline tileglu_problem valid_problem() {
  tileglu_problem p = TILEGLU_PROBLEM_INIT;
  p.dtype = TILEGLU_BF16;
  p.activation = TILEGLU_SILU;
  p.layout = TILEGLU_SEPARATE;
  p.memory = TILEGLU_MEMORY_HOST;
  p.m = 4, p.n = 64, p.k = 128;
  return p;
}

inline tileglu_problem valid_merged_problem() {
  tileglu_problem p = valid_problem();
  p.layout = TILEGLU_GATE_UP;
  return p;
}

// A caller built against a later header: the struct of today with `extra` bytes behind it.
template <class Struct>
std::vector<unsigned char> longer_struct(Struct value, std::size_t extra, unsigned char byte) {
  std::vector<unsigned char> bytes(sizeof(Struct) + extra, byte);
  value.struct_size = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(bytes.data(), &value, sizeof(Struct));
  return bytes;
}

}  // namespace tileglu::test
