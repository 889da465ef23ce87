// SPDX-License-Identifier: Apache-2.0
// The element-wise half of the unfused path: out = act(gate) * up over the intermediate that the GEMMs wrote, one
// kernel.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <cuda_runtime_api.h>

namespace tileglu::cublas {

// How gate and up columns lie in a row of the intermediate.
enum class Columns : int {
  kHalves,        // gate column c at gate[c], up column c at up[c]
  kInterleaved1,  // at gate[2c] and gate[2c + 1]
  kInterleaved8,  // in blocks of 8: gate[16 (c / 8) + c % 8], and 8 further
};

struct ElementwiseShape {
  Dtype dtype_in = Dtype::kBf16, dtype_out = Dtype::kBf16;
  Activation activation = Activation::kSilu;
  bool multiply = true;  // false: out = act(gate), and dtype_out must be dtype_in
  Columns columns = Columns::kHalves;
  std::int64_t n = 0;                  // output columns
  std::int64_t ld_in = 0, ld_out = 0;  // elements
  int align_in = 16, align_out = 16;   // bytes of gate and up; of out
  int sm_count = 1;
};

struct ElementwiseOperands {
  std::int64_t m = 0;
  const void* gate = nullptr;
  const void* up = nullptr;  // only read for kHalves
  void* out = nullptr;       // may be gate if multiply is false
};

class Elementwise {
 public:
  // Picks the kernel (16-byte vectors where the shape allows) and loads it on the current device.
  static Result<Elementwise> make(const ElementwiseShape& shape);
  Status run(const ElementwiseOperands& operands, cudaStream_t stream) const;

 private:
  ElementwiseShape shape_;
  const void* kernel_ = nullptr;
  int vector_ = 1;  // elements that a thread takes at a time
};

}  // namespace tileglu::cublas
