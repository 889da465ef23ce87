// SPDX-License-Identifier: Apache-2.0
// What the epilogues share: act(gate) * up for the four accumulator pairs that one thread holds of two rows x two
// output columns, packing, and the swizzle of TMA boxes.
#pragma once

#include "core/activation.hpp"

#include <cuda_bf16.h>

#include <cstdint>

namespace tileglu::sm90 {

struct Quad {
  float v[4];
};

template <class Act>
concept HasRatio = requires(Act act) {
  act.ratio(0.0F);
};

// With a ratio, one reciprocal serves all four: 1.25 MUFU instructions a value instead of 2. The multiplications run on
// the FMA pipe, which the epilogue leaves idle (H200: MUFU gives 16 results a clock and SM, FMA 128).
template <class Act>
__device__ __forceinline__ Quad act_times_up(const Quad& gate, const Quad& up) {
  Quad y;
  if constexpr (HasRatio<Act>) {
    Ratio<float> r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) r[i] = Act{}.ratio(gate.v[i]);
    const float d01 = r[0].denominator * r[1].denominator;
    const float d23 = r[2].denominator * r[3].denominator;
    const float all = reciprocal(d01 * d23);
    const float inverse01 = all * d23;
    const float inverse23 = all * d01;
    y.v[0] = r[0].numerator * up.v[0] * (inverse01 * r[1].denominator);
    y.v[1] = r[1].numerator * up.v[1] * (inverse01 * r[0].denominator);
    y.v[2] = r[2].numerator * up.v[2] * (inverse23 * r[3].denominator);
    y.v[3] = r[3].numerator * up.v[3] * (inverse23 * r[2].denominator);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) y.v[i] = Act{}(gate.v[i]) * up.v[i];
  }
  return y;
}

__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

// Where TMA expects 16-byte unit `unit` of row `row` inside a box of 64, 32 or 16 16-bit columns (rows of 128, 64, 32
// bytes).
template <int BoxColumns>
__device__ __forceinline__ int swizzled_unit(int row, int unit) {
  static_assert(BoxColumns == 64 || BoxColumns == 32 || BoxColumns == 16);
  return unit ^ (BoxColumns == 64 ? row % 8 : BoxColumns == 32 ? row / 2 % 4 : row / 4 % 2);
}

}  // namespace tileglu::sm90
