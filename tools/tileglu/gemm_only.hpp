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
  // Writes the product [m,2n] to operands.y, rows of product_ld() elements.
  Status run(const Operands& operands, int algorithm) const;
  std::int64_t product_ld() const;

 private:
  struct Implementation;
  std::shared_ptr<const Implementation> implementation_;
  runtime::Buffer workspace_;
};

}  // namespace tileglu::tool
