// SPDX-License-Identifier: Apache-2.0
// The activation-free cuBLASLt GEMM over 2n columns as a contender of the benchmark. In builds without CUDA everything
// here answers kNotAvailable.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "runtime/runtime.hpp"

#include <memory>

namespace tileglu::tool {

class GemmOnlyCall {
 public:
  static Result<GemmOnlyCall> make(const Problem& problem);
  int algorithms() const;
  Status run(const Operands& operands, int algorithm) const;
  // The product [m,2n] of the last run, on the GPU at the start of this buffer, rows of product_ld() elements.
  const runtime::Buffer& product() const { return workspace_; }
  std::int64_t product_ld() const { return product_ld_; }

 private:
  struct Implementation;
  std::shared_ptr<const Implementation> implementation_;
  runtime::Buffer workspace_;
  std::int64_t product_ld_ = 0;
};

}  // namespace tileglu::tool
