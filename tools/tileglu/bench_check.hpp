// SPDX-License-Identifier: Apache-2.0
// What a contender has to pass before it is timed: some rows of its result against fp64, and the whole of it written.
#pragma once

#include "check.hpp"
#include "synthetic.hpp"

#include <span>
#include <string>
#include <vector>

namespace tileglu::tool {

inline constexpr std::int64_t kCheckedRows = 8;

class ResultCheck {
 public:
  static Result<ResultCheck> make(const Problem& problem, const SyntheticData& data, std::int64_t rows = kCheckedRows);

  struct Outcome {
    double relative_error = 0;  // of the checked rows
    std::string reason = {};    // empty: right
  };
  // y: the whole output on the host, [m, ldy]; `fault` spoils it first.
  Outcome output(const std::string& kernel, std::span<std::byte> y, Fault fault) const;
  // product: [m,2n] of an activation-free GEMM over weights in this layout, rows of `ld` elements.
  Outcome product(Layout layout, std::int64_t ld, const std::vector<std::byte>& product) const;

 private:
  Problem problem_;
  Problem sample_;          // the checked rows as a problem of their own, by longer strides
  std::int64_t first_ = 0;  // row of the problem that the sample starts with
  std::int64_t step_ = 1;   // rows from one to the next
  reference::Preactivations preactivations_;
  Yardstick yardstick_;
};

}  // namespace tileglu::tool
