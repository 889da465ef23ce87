// SPDX-License-Identifier: Apache-2.0
// The work of one unfused plan: GEMMs into the workspace, element-wise kernels from there to y. Planned by work.cpp,
// run by backend.cpp.
#pragma once

#include "backends/cublas/activation.hpp"
#include "backends/cublas/finish.hpp"
#include "backends/cublas/gemm.hpp"

#include <optional>
#include <vector>

namespace tileglu::cublas {

enum Kernel : std::size_t { kFp32Merged, kFp32TwoGemms, kMerged, kTwoGemms, kTwoGemmsSiluMul };

// One GEMM of a plan: which weight rows, and where in the workspace its result goes.
struct Part {
  Gemm gemm;
  bool from_up = false;           // the matrix `up`, else `gate`
  std::size_t weight_offset = 0;  // bytes
  std::size_t result_offset = 0;
};

// One element-wise kernel of a plan: offsets into the workspace, and y if it is the last.
struct Step {
  Elementwise kernel;
  std::size_t gate_offset = 0, up_offset = 0;
  bool to_y = true;  // else in place of gate
};

// All that a run needs to know.
struct Work {
  std::int64_t rows = 0;         // of a slice
  Dtype between = Dtype::kFp32;  // type of the intermediate
  std::int64_t ld = 0;           // of the intermediate, in elements
  std::vector<Part> parts;
  std::vector<Step> steps;
  std::optional<Finish> finish;                // in place of steps
  HalfRows gate_columns, up_columns;           // of the intermediate, for finish
  std::size_t gate_offset = 0, up_offset = 0;  // the same: where the matrix of the half begins
  std::size_t scratch_offset = 0;              // after the intermediates; shared by all GEMMs
  std::size_t workspace_bytes = 0;
};

// The layout must allow the kernel; the device of the problem is current.
Result<Work> make_work(const Problem& problem, Kernel kernel, int sm_count);

}  // namespace tileglu::cublas
