// SPDX-License-Identifier: Apache-2.0
#include "op/unfused_steps.hpp"

#include "core/format.hpp"
#include "op/op_data.hpp"
#include "reference/number_format.hpp"

#include <algorithm>
#include <cmath>

namespace tileglu::test {
namespace {

constexpr double kFunction = 0x1p-18;  // what an fp32 activation may be off, |gate| up to about 10

// Share of elements whose result a tie may decide; twice the expected share and more. fp16 has finer numbers.
double max_undecided(Dtype dtype) {
  return dtype == Dtype::kFp16 ? 0.06 : 0.02;
}

// The numbers that a value may have been rounded to. Nearly always one.
using Set = std::vector<double>;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double activated(Activation activation, double g) {
  switch (activation) {
    case Activation::kSilu: return g * sigmoid(g);
    case Activation::kGeluTanh: return g * sigmoid(2 * std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g));
    case Activation::kGeluErf: return 0.5 * g * std::erfc(-g / std::sqrt(2.0));
    case Activation::kRelu: return std::max(g, 0.0);
    case Activation::kSigmoid: return sigmoid(g);
    case Activation::kIdentity:
    case Activation::kSwiglu: break;
  }
  return g;
}

class Steps {
 public:
  explicit Steps(const OpCase& op) : op_(op), format_(reference::number_format(op.result_dtype())) {}

  Set operator()(double gate, double up) const {
    if (op_.activation != Activation::kSwiglu) {
      return product(step({gate}, kFunction, [&](double g) { return activated(op_.activation, g); }), {up});
    }
    const double limit = op_.swiglu.limit;
    const Set g = step({std::min(gate, limit)}, 0, [](double x) { return x; });
    const Set u = step({std::clamp(up, -limit, limit)}, 0, [](double x) { return x; });
    const Set scaled = step(g, 0, [&](double x) { return op_.swiglu.alpha * static_cast<float>(x); });
    const Set weight = step(scaled, kFunction, sigmoid);
    const Set moved = step(u, 0, [&](double x) { return static_cast<float>(x) + op_.swiglu.up_offset; });
    return product(moved, product(g, weight));
  }

 private:
  template <class Function>
  Set step(const Set& values, double relative, Function function) const {
    Set results;
    for (const double value : values) {
      const double exact = function(value);  // or an fp32 sum or product, which is one number
      for (const double factor : {1 - relative, 1.0, 1 + relative}) {
        results.push_back(reference::round_to(format_, exact * factor));
      }
    }
    std::ranges::sort(results);
    const auto rest = std::ranges::unique(results);
    results.erase(rest.begin(), rest.end());
    return results;
  }
  Set product(const Set& x, const Set& y) const {  // of two 16-bit numbers: exact in fp32
    Set results;
    for (const double factor : y) {
      const Set some = step(x, 0, [&](double value) { return value * factor; });
      results.insert(results.end(), some.begin(), some.end());
    }
    return results;
  }

  const OpCase& op_;
  reference::NumberFormat format_;
};

}  // namespace

::testing::AssertionResult judge_steps(const OpCase& op, const Outcome& outcome) {
  const Steps steps(op);
  const std::vector<double> gate = decode(op.dtype, outcome.pre_gate), up = decode(op.dtype, outcome.pre_up);
  const std::vector<double> y = values(op, outcome);
  std::int64_t undecided = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Set allowed = steps(gate[i], up[i]);
    if (std::ranges::find(allowed, y[i]) == allowed.end()) {
      return ::testing::AssertionFailure() << formatted("{}: element {} is {}, the steps make {} of gate={} up={}",
                                                        describe(op), i, y[i], joined(allowed), gate[i], up[i]);
    }
    undecided += std::ranges::count_if(allowed, [&](double value) { return value != y[i]; }) > 0 ? 1 : 0;
  }
  if (static_cast<double>(undecided) <= max_undecided(op.dtype) * static_cast<double>(y.size()) + 1) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << describe(op) << ": " << undecided << " elements lie near ties";
}

}  // namespace tileglu::test
