// SPDX-License-Identifier: Apache-2.0
// How far a result is from the fp64 reference.
#pragma once

#include "core/problem.hpp"

#include <cstdint>
#include <vector>

namespace tileglu::reference {

struct ErrorReport {
  double relative_frobenius = 0;    // ||y - ref|| / ||ref||
  double worst_stripe = 0;          // largest relative Frobenius error of one row's aligned block of 16 columns pooled
                                    // over all rows: a wrong stripe cannot hide in the whole (field case C12)
  double share_over_1_percent = 0;  // elements with |y - ref| > 0.01 |ref|, of all
  double max_ulp = 0;               // in units in the last place of dtype_y at the reference value
  std::int64_t not_finite = 0;      // NaN or infinite where the reference, rounded to dtype_y, is not, or the reverse;
                                    // such elements are in none of the figures above
  std::int64_t unwritten = 0;       // elements that still hold the poison pattern
};

// Bytes that buffers are filled with before a run: 0x7E7E is a NaN in fp16, a huge value in bf16, never a plausible
// result.
inline constexpr unsigned char kPoisonByte = 0x7E;

// y: m*n elements of dtype_y with row stride ldy, host memory. reference: [m,n] without padding.
ErrorReport compare(Dtype dtype_y, std::int64_t m, std::int64_t n, const void* y, std::int64_t ldy,
                    const std::vector<double>& reference);
// The same for values already widened (the unfused baseline), [m,n] without padding.
ErrorReport compare(Dtype dtype_y, std::int64_t m, std::int64_t n, const std::vector<double>& y,
                    const std::vector<double>& reference);

}  // namespace tileglu::reference
