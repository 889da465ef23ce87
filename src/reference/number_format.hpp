// SPDX-License-Identifier: Apache-2.0
// The storage formats as plain arithmetic, for the reference and the metrics. Written apart from core/float16.hpp,
// which the backends use, so that an error there cannot hide here.
#pragma once

#include "core/problem.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tileglu::reference {

struct NumberFormat {
  int fraction_bits, min_exponent, max_exponent;  // value = 1.fraction * 2^exponent; subnormal below 2^min_exponent
};

constexpr NumberFormat number_format(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return {.fraction_bits = 7, .min_exponent = -126, .max_exponent = 127};
    case Dtype::kFp16: return {.fraction_bits = 10, .min_exponent = -14, .max_exponent = 15};
    case Dtype::kFp32: break;
  }
  return {.fraction_bits = 23, .min_exponent = -126, .max_exponent = 127};
}

// 2^exponent, for exponents of normal doubles.
inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// Distance of neighbouring numbers of the format at a finite value.
inline double unit_in_last_place(NumberFormat format, double value) {
  const int exponent = static_cast<int>((std::bit_cast<std::uint64_t>(value) >> 52) & 0x7FF) - 1023;
  return power_of_two(std::max(exponent, format.min_exponent) - format.fraction_bits);
}

// Nearest number of the format, ties to even; infinity past the largest.
inline double round_to(NumberFormat format, double value) {
  if (!std::isfinite(value)) return value;
  const double past_largest = power_of_two(format.max_exponent) * 2;
  if (std::abs(value) >= past_largest) return std::copysign(INFINITY, value);
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer
  const double unit = unit_in_last_place(format, value);
  const double rounded = std::copysign((value / unit + kRound - kRound) * unit, value);
  return std::abs(rounded) >= past_largest ? std::copysign(INFINITY, value) : rounded;
}

// The value of a 16-bit pattern, straight from the definition.
inline double decode16(NumberFormat format, unsigned bits) {
  const unsigned fraction = bits & ((1U << format.fraction_bits) - 1);
  const int biased = static_cast<int>((bits & 0x7FFFU) >> format.fraction_bits);
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  if (biased == 2 * format.max_exponent + 1) return fraction != 0 ? NAN : sign * INFINITY;
  const double implicit_one = biased != 0 ? power_of_two(format.fraction_bits) : 0.0;
  const int exponent = std::max(biased - format.max_exponent, format.min_exponent) - format.fraction_bits;
  return sign * (fraction + implicit_one) * power_of_two(exponent);
}

// Reads stored elements as doubles.
class Decoder {
 public:
  explicit Decoder(Dtype dtype) : dtype_(dtype), table_(table(dtype)) {}

  double operator()(const void* data, std::int64_t index) const {
    const auto* bytes = static_cast<const unsigned char*>(data) + index * static_cast<std::int64_t>(size_of(dtype_));
    if (table_ == nullptr) {
      float value;
      std::memcpy(&value, bytes, sizeof(value));
      return value;
    }
    std::uint16_t bits;
    std::memcpy(&bits, bytes, sizeof(bits));
    return (*table_)[bits];
  }

 private:
  using Table = std::array<double, 65536>;

  static Table make_table(NumberFormat format) {
    Table values;
    for (unsigned bits = 0; bits < values.size(); ++bits) values[bits] = decode16(format, bits);
    return values;
  }
  static const Table* table(Dtype dtype) {
    static const Table bf16 = make_table(number_format(Dtype::kBf16));
    static const Table fp16 = make_table(number_format(Dtype::kFp16));
    if (dtype == Dtype::kFp32) return nullptr;
    return dtype == Dtype::kBf16 ? &bf16 : &fp16;
  }

  Dtype dtype_;
  const Table* table_;
};

}  // namespace tileglu::reference
