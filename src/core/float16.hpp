// SPDX-License-Identifier: Apache-2.0
// bf16 and fp16 on the host: storage types with exact widening and round-to-nearest-even narrowing, branch-free so that
// loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace tileglu {

struct Bf16 {
  std::uint16_t bits = 0;
};
struct Fp16 {
  std::uint16_t bits = 0;
};

inline float widen(float x) {
  return x;
}
inline float widen(Bf16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
inline float widen(Fp16 x) {
  const std::uint32_t sign = (x.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = x.bits & 0x7FFFU;
  // Normal: shift into place and re-bias the exponent by a multiplication that also normalises subnormals.
  const float scaled = std::bit_cast<float>(magnitude << 13) * std::bit_cast<float>(0x77800000U);  // 2^112
  const std::uint32_t special =
      magnitude >= 0x7C00U ? 0x7F800000U | (magnitude << 13) : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(sign | special);
}

template <class T>
T narrow(float x);

template <>
inline float narrow<float>(float x) {
  return x;
}
template <>
inline Bf16 narrow<Bf16>(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (u + 0x7FFFU + ((u >> 16) & 1U)) >> 16;
  const std::uint32_t quiet_nan = (u >> 16) | 0x40U;
  return {static_cast<std::uint16_t>((u & 0x7FFFFFFFU) > 0x7F800000U ? quiet_nan : rounded)};
}
template <>
inline Fp16 narrow<Fp16>(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (u >> 16) & 0x8000U;
  const std::uint32_t magnitude = u & 0x7FFFFFFFU;
  const std::uint32_t normal = (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  // Below 2^-14 the sum with 0.5 (ulp 2^-24) rounds to the subnormal grid and leaves it in the low bits.
  const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  std::uint32_t half = magnitude < 0x38800000U ? subnormal : normal;
  half = magnitude >= 0x477FF000U ? 0x7C00U : half;  // rounds past 65504
  half = magnitude > 0x7F800000U ? 0x7E00U : half;
  return {static_cast<std::uint16_t>(sign | half)};
}

}  // namespace tileglu
