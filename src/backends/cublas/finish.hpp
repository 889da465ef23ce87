// SPDX-License-Identifier: Apache-2.0
// The end of the unfused path where more is asked than act(gate) * up of the sums: biases, an addend, saved
// pre-activations, swiglu, rounding step by step. From fp32 sums, in one kernel.
#pragma once

#include "core/layout.hpp"
#include "core/problem.hpp"
#include "core/status.hpp"

#include <cuda_runtime_api.h>

namespace tileglu::cublas {

struct FinishShape {
  Dtype dtype = Dtype::kBf16, dtype_y = Dtype::kBf16;  // of biases, addend and pre-activations; of y
  Activation activation = Activation::kSilu;
  SwigluNumbers swiglu = {};
  Rounding rounding = Rounding::kOnce;
  std::int64_t n = 0;
  std::int64_t ldy = 0;
  int sm_count = 1;
};

struct FinishHalf {
  ColumnHalf<const void*> sums;  // fp32; base null: zeros
  const void* bias = nullptr;    // null: none, as with the next two
  ColumnHalf<const void*> add;
  ColumnHalf<void*> pre;
};

struct FinishOperands {
  std::int64_t m = 0;
  FinishHalf gate, up;
  void* y = nullptr;
};

class Finish {
 public:
  // Loads the kernel on the current device.
  static Result<Finish> make(const FinishShape& shape);
  Status run(const FinishOperands& operands, cudaStream_t stream) const;

 private:
  FinishShape shape_;
  const void* kernel_ = nullptr;
};

}  // namespace tileglu::cublas
