// SPDX-License-Identifier: Apache-2.0
#include "inputs.hpp"

#include "core/activation.hpp"
#include "core/float16.hpp"
#include "pack/relayout.hpp"
#include "reference/number_format.hpp"
#include "reference/reference.hpp"

#include <cmath>
#include <cstring>
#include <random>

namespace tileglu::gpu {
namespace {

constexpr std::size_t kTailBytes = 512;  // NaN behind every matrix

// Normal numbers in the storage format. A matrix of them is cut out of one long row, at another place for each of its
// rows, which is fast enough for the weights of a 7B model and leaves no two rows alike.
std::vector<unsigned char> normal_row(Dtype dtype, std::int64_t count, double deviation, double mean, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(static_cast<float>(mean), static_cast<float>(deviation));
  const std::size_t size = size_of(dtype);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count) * size);
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    const float value = normal(generator);
    const Bf16 bf16 = narrow<Bf16>(value);
    const Fp16 fp16 = narrow<Fp16>(value);
    const void* stored = dtype == Dtype::kFp32   ? static_cast<const void*>(&value)
                         : dtype == Dtype::kBf16 ? static_cast<const void*>(&bf16)
                                                 : static_cast<const void*>(&fp16);
    std::memcpy(&bytes[i], stored, size);
  }
  return bytes;
}

// What an implementation gets that rounds to `dtype` where the unfused path does, and at the end to `dtype_y`.
std::vector<double> round_early(const YardstickOptions& options, Dtype dtype, bool round_activated,
                                const reference::Preactivations& sums) {
  const auto format = reference::number_format(dtype);
  std::vector<double> y(sums.gate.size());
  visit_activation(options.activation, {}, [&](auto act) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      double activated = act(reference::round_to(format, sums.gate[i]));
      if (round_activated) activated = reference::round_to(format, activated);
      y[i] = activated * reference::round_to(format, sums.up[i]);
    }
  });
  return reference::rounded(options.dtype_y, y);
}

}  // namespace

double accumulation_noise(std::int64_t k) {
  return std::ldexp(8.0 + static_cast<double>(k) / 16, -23);
}

Yardstick make_yardstick(const reference::Preactivations& sums, const Problem& problem,
                         const YardstickOptions& options) {
  Yardstick made;
  made.row_step = options.row_step;
  made.exact = reference::exact({.activation = options.activation}, sums);
  const auto rows = static_cast<std::int64_t>(made.exact.size()) / problem.n;
  const auto errors = [&](const std::vector<double>& y) {
    return reference::compare(options.dtype_y, rows, problem.n, y, made.exact);
  };
  made.fused = errors(reference::rounded(options.dtype_y, made.exact));
  made.unfused = errors(round_early(options, problem.dtype, false, sums));
  made.eager = errors(round_early(options, problem.dtype, true, sums));
  made.rounding = errors(reference::rounded(problem.dtype, made.exact)).relative_frobenius;
  made.noise = accumulation_noise(problem.k);
  return made;
}

Inputs::Inputs(const InputShape& shape) : shape_(shape) {
  // Gate and up must not be exchangeable: up has a mean.
  const double depth = static_cast<double>(shape.k);
  host_gate_ = normal(shape.n, 1 / std::sqrt(depth), 0, 11);
  host_up_ = normal(shape.n, 1 / std::sqrt(depth), 0.5 / depth, 12);
  refill_a(13);
}

std::shared_ptr<Inputs> Inputs::shared(const InputShape& shape) {
  static std::map<InputShape, std::shared_ptr<Inputs>> all;
  std::shared_ptr<Inputs>& found = all[shape];
  if (found == nullptr) found = std::make_shared<Inputs>(shape);
  return found;
}

// `rows` rows of k numbers.
Inputs::Bytes Inputs::normal(std::int64_t rows, double deviation, double mean, unsigned seed) const {
  const std::int64_t places = rows < 65536 ? 65537 : 1048583;  // primes, so that no place comes twice
  const std::size_t size = size_of(shape_.dtype), row_bytes = static_cast<std::size_t>(shape_.k) * size;
  const Bytes numbers = normal_row(shape_.dtype, places + shape_.k, deviation, mean, seed);
  Bytes matrix(static_cast<std::size_t>(rows) * row_bytes);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::size_t place = static_cast<std::size_t>(i * 7919 % places) * size;
    std::memcpy(matrix.data() + static_cast<std::size_t>(i) * row_bytes, numbers.data() + place, row_bytes);
  }
  return matrix;
}

runtime::Buffer Inputs::upload(const Bytes& host) const {
  const auto buffer = require(runtime::Buffer::make(Memory::kCuda, shape_.device, host.size() + kTailBytes));
  require(buffer.fill(0xFF));  // NaN in every format
  require(buffer.upload(host.data(), host.size()));
  return buffer;
}

void Inputs::refill_a(unsigned seed) {
  const Bytes host = normal(shape_.m, shape_.scale, 0, seed);
  if (a_.size() == 0) {
    a_ = upload(host);
  } else {
    require(a_.upload(host.data(), host.size()));
  }
  yardsticks_.clear();
}

Problem Inputs::problem(Layout layout, std::int64_t m) const {
  return {.dtype = shape_.dtype,
          .dtype_y = shape_.dtype,
          .layout = layout,
          .memory = Memory::kCuda,
          .device = shape_.device,
          .m = m,
          .n = shape_.n,
          .k = shape_.k,
          .lda = shape_.k,
          .ld_gate = shape_.k,
          .ld_up = layout == Layout::kSeparate ? shape_.k : 0,
          .ldy = shape_.n};
}

Operands Inputs::operands(Layout layout) {
  const auto found = weights_.find(layout);
  if (found != weights_.end()) {
    return {.a = a_.data(), .gate = found->second.gate.data(), .up = found->second.up.data()};
  }
  Weights made;
  if (layout == Layout::kSeparate) {
    made = {.gate = upload(host_gate_), .up = upload(host_up_)};
  } else {
    Bytes single(host_gate_.size() + host_up_.size());
    relayout_host({.dtype = shape_.dtype, .n = shape_.n, .k = shape_.k},
                  {.gate = host_gate_.data(), .up = host_up_.data(), .ld_gate = shape_.k, .ld_up = shape_.k},
                  {.layout = layout, .gate = single.data(), .ld_gate = shape_.k});
    made.gate = upload(single);
  }
  weights_.emplace(layout, made);
  return operands(layout);
}

Yardstick& Inputs::yardstick(const YardstickOptions& options) {
  const auto known = yardsticks_.find(options);
  if (known != yardsticks_.end()) return known->second;
  Problem sampled = problem(Layout::kSeparate, (options.m + options.row_step - 1) / options.row_step);
  sampled.lda *= options.row_step;
  const reference::Preactivations sums = require(reference::preactivations(sampled, operands(Layout::kSeparate)));
  return yardsticks_.emplace(options, make_yardstick(sums, sampled, options)).first->second;
}

}  // namespace tileglu::gpu
