// SPDX-License-Identifier: Apache-2.0
#include "random_data.hpp"

#include "core/float16.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <thread>
#include <vector>

namespace tileglu::tool {
namespace {

// splitmix64 (Steele, Lea, Flood 2014): a counter in, 64 random bits out.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// Two independent N(0,1) values of one counter (Box-Muller).
struct Pair {
  float first, second;
};
Pair normal_pair(std::uint64_t bits) {
  constexpr float kUnit = 1.0F / 4294967296.0F;
  const float u = (static_cast<float>(bits >> 32) + 0.5F) * kUnit;  // in (0, 1]
  const float angle = static_cast<float>(bits & 0xFFFFFFFFU) * kUnit * (2 * std::numbers::pi_v<float>);
  const float radius = std::sqrt(-2.0F * std::log(std::min(u, 1.0F)));
  return {.first = radius * std::cos(angle), .second = radius * std::sin(angle)};
}

template <class T>
void fill_rows(const NormalMatrix& matrix, T* data, std::int64_t begin, std::int64_t end) {
  const auto scale = static_cast<float>(matrix.scale);
  const auto shift = static_cast<float>(matrix.shift);
  const std::int64_t pairs = (matrix.columns + 1) / 2;
  for (std::int64_t i = begin; i < end; ++i) {
    T* row = data + i * matrix.ld;
    for (std::int64_t p = 0; p < pairs; ++p) {
      const Pair value = normal_pair(mix(mix(matrix.seed) + static_cast<std::uint64_t>(i * pairs + p)));
      row[2 * p] = narrow<T>(value.first * scale + shift);
      if (2 * p + 1 < matrix.columns) row[2 * p + 1] = narrow<T>(value.second * scale + shift);
    }
  }
}

// Calls visitor(T*) with the storage type of a dtype.
template <class Visitor>
auto visit_dtype(Dtype dtype, Visitor&& visitor) {
  switch (dtype) {
    case Dtype::kBf16: return visitor(static_cast<Bf16*>(nullptr));
    case Dtype::kFp16: return visitor(static_cast<Fp16*>(nullptr));
    case Dtype::kFp32: break;
  }
  return visitor(static_cast<float*>(nullptr));
}

// Reads and writes through memcpy: data inside a mapped file may be misaligned.
template <class T>
T load_as(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void store_as(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

void parallel_for(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body) {
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::int64_t parts = std::min(cores, count);
  std::vector<std::jthread> threads;
  for (std::int64_t part = 1; part < parts; ++part) {
    threads.emplace_back([&, part] { body(count * part / parts, count * (part + 1) / parts); });
  }
  if (parts > 0) body(0, count / parts);
}

void fill_normal(const NormalMatrix& matrix, void* data) {
  visit_dtype(matrix.dtype, [&]<class T>(T*) {
    parallel_for(matrix.rows,
                 [&](std::int64_t begin, std::int64_t end) { fill_rows(matrix, static_cast<T*>(data), begin, end); });
  });
}

bool widens(Dtype from, Dtype to) {
  return from == to || to == Dtype::kFp32;
}

void convert(Dtype from, const void* source, Dtype to, void* destination, std::int64_t count) {
  visit_dtype(from, [&]<class From>(From*) {
    visit_dtype(to, [&]<class To>(To*) {
      parallel_for(count, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          store_as(destination, i, narrow<To>(widen(load_as<From>(source, i))));
        }
      });
    });
  });
}

double load(Dtype dtype, const void* data, std::int64_t index) {
  return visit_dtype(dtype, [&]<class T>(T*) { return static_cast<double>(widen(load_as<T>(data, index))); });
}

void store(Dtype dtype, void* data, std::int64_t index, double value) {
  visit_dtype(dtype, [&]<class T>(T*) { store_as(data, index, narrow<T>(static_cast<float>(value))); });
}

}  // namespace tileglu::tool
