// SPDX-License-Identifier: Apache-2.0
#include "op/random_cases.hpp"

#include "core/format.hpp"
#include "op/op_cases.hpp"

#include <algorithm>
#include <random>

namespace tileglu::test {
namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : generator_(seed) {}

  bool one_in(unsigned n) { return generator_() % n == 0; }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(high - low + 1));
  }
  template <class T, std::size_t N>
  T of(const T (&values)[N]) {
    return values[generator_() % N];
  }
  // Small, near a power of two, or anything up to `limit`.
  std::int64_t size(std::int64_t limit) {
    switch (generator_() % 4) {
      case 0: return between(1, 9);
      case 1: return std::clamp<std::int64_t>((std::int64_t{8} << generator_() % 6) + between(-1, 1), 1, limit);
      case 2: return 8 * between(1, limit / 8);
      default: return between(1, limit);
    }
  }
  std::int64_t pad() { return one_in(2) ? 0 : one_in(2) ? 8 * between(1, 8) : between(1, 9); }
  std::int64_t offset() { return one_in(4) ? between(1, 7) : 0; }
  float number(double low, double high) {
    return static_cast<float>(std::uniform_real_distribution(low, high)(generator_));
  }

 private:
  std::mt19937_64 generator_;
};

Layout layout_for(Draw& draw, std::int64_t n) {
  const Layout layout = draw.of(kLayouts);
  return layout == Layout::kInterleaved8 && n % 8 != 0 ? Layout::kInterleaved1 : layout;
}

void draw_gate(Draw& draw, OpCase& op) {
  op.activation = draw.of(kActivations);
  if (op.activation == Activation::kSwiglu) {
    op.swiglu.alpha = draw.one_in(3) ? 1 : draw.number(0.25, 2);
    if (!draw.one_in(3)) op.swiglu.limit = draw.number(0.5, 8);
    op.swiglu.up_offset = draw.one_in(3) ? 0 : draw.number(-1, 1);
  }
  op.rounding = draw.one_in(3) ? Rounding::kUnfused : Rounding::kOnce;
  if (!draw.one_in(2)) return;
  op.extra = {.bias_gate = draw.one_in(2), .bias_up = draw.one_in(2), .addend = draw.one_in(2)};
  op.extra.preactivations = draw.one_in(2);
  op.layout_add = layout_for(draw, op.n), op.layout_pre = layout_for(draw, op.n);
  op.pad_add = draw.pad(), op.pad_pre = draw.pad();
  op.misalign_extra = draw.offset();
}

}  // namespace

OpCase random_case(unsigned seed) {
  // Fewer elements than these, and a sum that cancels, or a tie, decides alone whether the norm of the error is small.
  constexpr std::int64_t kMinElements = 96;
  Draw draw(seed);
  OpCase op{.dtype = draw.of(kDtypes), .seed = seed};
  if (draw.one_in(3)) op.dtype_y = draw.of(kDtypes);
  op.m = draw.size(260), op.n = draw.size(520), op.k = draw.size(700);
  if (op.m * op.n < kMinElements) op.n = kMinElements / op.m + op.n;
  op.layout = layout_for(draw, op.n);
  op.pad = {.a = draw.pad(), .gate = draw.pad(), .up = draw.pad(), .y = draw.pad()};
  op.misalign = {.a = draw.offset(), .gate = draw.offset(), .up = draw.offset(), .y = draw.offset()};
  draw_gate(draw, op);
  if (op.extra.any() && draw.one_in(10)) op.k = 0;
  return op;
}

RandomRun run_random_case(unsigned seed, Memory memory) {
  const OpCase op = random_case(seed);
  RandomRun run;
  std::optional<Baselines> known;
  const auto try_kernel = [&](const PlanOptions& options) {
    const bool may_refuse = !options.kernel.empty();
    const Outcome outcome = run_case(op, options, memory, known ? &*known : nullptr);
    const ::testing::AssertionResult good = accepted(op, outcome, may_refuse);
    if (!good) {
      run.failures.push_back(formatted("seed {} {} kernel={}: {}", seed, name_of(options.backend),
                                       options.kernel.empty() ? outcome.kernel : options.kernel, good.message()));
    } else if (outcome.status == TILEGLU_OK) {
      ++run.accepted;
      known = outcome.baselines;
    } else {
      ++run.refused;
    }
  };
  try_kernel({});
  for (const Backend* backend : backends()) {
    if ((backend->id == BackendId::kCpu) != (memory == Memory::kHost) || !backend->available().ok()) continue;
    for (const std::string& kernel : backend->kernels()) {
      const bool rounds_its_own_way = kernel.starts_with("merged") || kernel.starts_with("two_gemms");
      if (!rounds_its_own_way) try_kernel({.backend = backend->id, .kernel = kernel});
    }
  }
  return run;
}

}  // namespace tileglu::test
