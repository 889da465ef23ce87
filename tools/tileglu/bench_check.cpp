// SPDX-License-Identifier: Apache-2.0
#include "bench_check.hpp"

#include "core/format.hpp"
#include "core/layout.hpp"
#include "random_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tileglu::tool {
namespace {

constexpr double kPartialRoundingSlack = 2;  // cuBLAS may round partial sums of the activation-free GEMM

template <class Word>
std::int64_t count_poison(std::span<const std::byte> bytes) {
  constexpr auto kPoison = static_cast<Word>(0x7E7E7E7EU);
  static_assert(kPoison % 256 == reference::kPoisonByte);
  std::int64_t count = 0;
  for (std::size_t offset = 0; offset < bytes.size(); offset += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + offset, sizeof(Word));
    count += word == kPoison ? 1 : 0;
  }
  return count;
}

}  // namespace

Result<ResultCheck> ResultCheck::make(const Problem& problem, const SyntheticData& data, std::int64_t rows) {
  ResultCheck check;
  check.problem_ = problem;
  check.sample_ = problem;
  rows = std::min(problem.m, rows);
  check.step_ = rows > 1 ? (problem.m - 1) / (rows - 1) : 1;
  check.first_ = problem.m - 1 - (rows - 1) * check.step_;  // the last row is always among them
  check.sample_.m = rows;
  check.sample_.lda = check.step_ * problem.lda;
  check.sample_.ldy = check.step_ * problem.ldy;

  Operands operands = data.operands(Layout::kSeparate, 0);
  operands.a = static_cast<const std::byte*>(operands.a) +
               static_cast<std::size_t>(check.first_ * problem.lda) * size_of(problem.dtype);
  Problem separate = data.problem(Layout::kSeparate);
  separate.m = rows;
  separate.lda = check.sample_.lda;
  if (problem.extra.addend) {
    const std::size_t first = static_cast<std::size_t>(check.first_ * problem.ld_add) * size_of(problem.dtype);
    for (const void** add : {&operands.add_gate, &operands.add_up}) {
      if (*add != nullptr) *add = static_cast<const std::byte*>(*add) + first;
    }
    separate.ld_add = check.step_ * problem.ld_add;
  }
  Result<reference::Preactivations> preactivations = reference::preactivations(separate, operands);
  if (!preactivations.ok()) return preactivations.status();
  check.preactivations_ = std::move(preactivations.value());
  check.yardstick_ = make_yardstick(check.sample_, check.preactivations_);
  return check;
}

ResultCheck::Outcome ResultCheck::output(const std::string& kernel, std::span<std::byte> y, Fault fault) const {
  void* rows = y.data() + static_cast<std::size_t>(first_ * problem_.ldy) * size_of(problem_.dtype_y);
  inject(fault, sample_, preactivations_, rows);
  const Verdict verdict = judge(sample_, yardstick_, {.kernel = kernel, .y = rows});
  Outcome outcome{.relative_error = verdict.error.relative_frobenius, .reason = verdict.reason};
  const std::int64_t unwritten =
      problem_.dtype_y == Dtype::kFp32 ? count_poison<std::uint32_t>(y) : count_poison<std::uint16_t>(y);
  if (verdict.pass && unwritten > 0) outcome.reason = formatted("{} elements were not written", unwritten);
  return outcome;
}

ResultCheck::Outcome ResultCheck::product(Layout layout, std::int64_t ld, const std::vector<std::byte>& product) const {
  const HalfRows halves[] = {gate_rows(layout, problem_.n), up_rows(layout, problem_.n)};
  const std::vector<double>* expected[] = {&preactivations_.gate, &preactivations_.up};
  double error = 0, norm = 0, best = 0;
  for (int half = 0; half < 2; ++half) {
    const std::vector<double> rounded = reference::rounded(problem_.dtype, *expected[half]);
    for (std::size_t i = 0; i < rounded.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i) / problem_.n;
      const auto column = static_cast<std::int64_t>(i) % problem_.n;
      const std::int64_t at = (first_ + row * step_) * ld + halves[half].row(column);
      const double want = (*expected[half])[i];
      error += std::pow(load(problem_.dtype, product.data(), at) - want, 2);
      best += std::pow(rounded[i] - want, 2);
      norm += want * want;
    }
  }
  Outcome outcome{.relative_error = std::sqrt(error / norm)};
  const double limit = kPartialRoundingSlack * std::sqrt(best / norm) + yardstick_.noise;
  if (!(outcome.relative_error <= limit)) {
    outcome.reason = formatted("relative error {:.3g} is over the limit {:.3g}", outcome.relative_error, limit);
  }
  return outcome;
}

}  // namespace tileglu::tool
