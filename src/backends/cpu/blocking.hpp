// SPDX-License-Identifier: Apache-2.0
// How the cpu backend cuts a problem into tiles, and where in the workspace each piece lies: the one place with block
// sizes. Pure arithmetic.
//
// The m rows are walked in panels; of a panel, A is first brought into the form that the method wants (by all threads
// together), then the threads take tiles of block_rows x block_columns outputs in turn. A thread's scratch holds gate
// and up of one tile in fp32 and, where the method wants it, the weight rows of one block of columns.
#pragma once

#include "core/problem.hpp"

#include <cstddef>

namespace tileglu::cpu {

// What a method needs besides the tile of fp32 sums.
struct Needs {
  std::size_t a_bytes = 0;         // of an element of A, if the method reads a copy (a panel at a time); 0: none
  std::size_t weight_bytes = 0;    // the same for weight rows (a block of columns at a time)
  std::size_t matmul_scratch = 0;  // bytes per thread
  bool few_rows = false;           // tiles of few rows: the method reads the tile's weights again for every four rows
};

struct Blocking {
  int threads = 1;
  std::int64_t panel_rows = 0;  // a multiple of block_rows, or m
  std::int64_t block_rows = 0;
  std::int64_t block_columns = 0;
  std::int64_t row_blocks = 0;  // of a whole panel
  std::int64_t column_blocks = 0;
  // Workspace: [copy of A | thread 0 | thread 1 | ...], and a thread's part: [sums | copy of weights | matmul scratch].
  // Copies have no gaps between their rows.
  std::size_t panel_bytes = 0;
  std::size_t weights_offset = 0, matmul_offset = 0, thread_bytes = 0;

  std::size_t workspace_bytes() const { return panel_bytes + static_cast<std::size_t>(threads) * thread_bytes; }
};

// The block sizes first (they do not depend on matmul_scratch), the rest once the matmuls have been made for them.
Blocking choose_blocks(const Problem& problem, const Needs& needs, int max_threads);
void lay_out_workspace(const Problem& problem, const Needs& needs, Blocking& blocking);

}  // namespace tileglu::cpu
