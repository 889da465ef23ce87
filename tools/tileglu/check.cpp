// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include "core/format.hpp"
#include "random_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace tileglu::tool {
namespace {

constexpr double kEarlyRoundingSlack = 1.10;
constexpr double kStripeSlack = 2.0;      // a stripe pools fewer elements than the whole, so it scatters more
constexpr std::int64_t kStripeRows = 16;  // below, a stripe pools too few elements to be judged by its norm
constexpr double kMinNoise = 1e-6;

// Half a unit in the last place, relative.
double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return 0x1p-8;
    case Dtype::kFp16: return 0x1p-11;
    case Dtype::kFp32: break;
  }
  return 0x1p-24;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

bool rounds_in_steps(const Problem& problem, std::string_view kernel) {
  return problem.rounding == Rounding::kUnfused || rounds_early(kernel);
}

// An element may be off by its own roundings, and by the noise of the accumulation, which does not shrink where the
// product does. 256 leaves room for six sigma and for the truncating adds of tensor cores.
std::int64_t count_outliers(const Problem& problem, const Yardstick& yardstick, const Produced& produced) {
  const bool early = rounds_in_steps(problem, produced.kernel);
  if (early && problem.activation == Activation::kSwiglu) return 0;  // an up rounded near -offset may lose all its bits
  const double roundings = early ? 5 : 1.5;
  const double relative = roundings * unit_roundoff(problem.dtype_y);
  const double absolute = 256 * yardstick.noise * root_mean_square(yardstick.exact);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < problem.m; ++i) {
    for (std::int64_t j = 0; j < problem.n; ++j) {
      const double expected = yardstick.exact[static_cast<std::size_t>(i * problem.n + j)];
      const double got = load(problem.dtype_y, produced.y, i * problem.ldy + j);
      if (!(std::abs(got - expected) <= relative * std::abs(expected) + absolute)) ++count;
    }
  }
  return count;
}

struct Limits {
  double whole = 0, stripe = 0;
};

Limits limits_of(const Problem& problem, const Yardstick& yardstick, const Produced& produced) {
  const double slack = rounds_in_steps(problem, produced.kernel) ? kEarlyRoundingSlack : 1;
  // A single correct rounding can be worse than the unfused path on a handful of elements, by luck.
  const auto larger = [&](double unfused, double rounded) { return std::max(slack * unfused, rounded); };
  const reference::ErrorReport& u = yardstick.unfused;
  const reference::ErrorReport& r = yardstick.rounded;
  return {.whole = larger(u.relative_frobenius, r.relative_frobenius) + yardstick.noise,
          .stripe = kStripeSlack * larger(u.worst_stripe, r.worst_stripe) + 8 * yardstick.noise};
}

std::string reason_against(const Problem& problem, const Verdict& verdict, const Limits& limits, bool normal_data) {
  const reference::ErrorReport& e = verdict.error;
  if (e.unwritten > 0) return formatted("{} elements were not written", e.unwritten);
  if (!verdict.guards_intact) return "memory outside the output was written";
  if (e.not_finite > 0) return formatted("{} elements are not finite where the reference is", e.not_finite);
  if (!(e.relative_frobenius <= limits.whole)) {
    return formatted("relative error {:.3g} is over the limit {:.3g} (the unfused path in this dtype)",
                     e.relative_frobenius, limits.whole);
  }
  if (!normal_data) return {};
  if (problem.m >= kStripeRows && !(e.worst_stripe <= limits.stripe)) {
    return formatted("a stripe of 16 columns has relative error {:.3g}, over the limit {:.3g}", e.worst_stripe,
                     limits.stripe);
  }
  if (verdict.outliers > 0) return formatted("{} elements are further off than rounding explains", verdict.outliers);
  return {};
}

}  // namespace

bool rounds_early(std::string_view kernel) {
  return kernel.starts_with("two_gemms") || kernel.starts_with("merged");
}

std::string saved_reason(const Problem& problem, const reference::Preactivations& saved,
                         const reference::Preactivations& exact, double noise) {
  for (const bool is_up : {false, true}) {
    const std::vector<double>& expected = is_up ? exact.up : exact.gate;
    const auto report = [&](const std::vector<double>& values) {
      return reference::compare(problem.dtype, problem.m, problem.n, values, expected);
    };
    const reference::ErrorReport mine = report(is_up ? saved.up : saved.gate);
    const reference::ErrorReport best = report(reference::rounded(problem.dtype, expected));
    const double limit = 1.01 * best.relative_frobenius + noise;
    if (mine.unwritten == 0 && mine.not_finite == 0 && mine.relative_frobenius <= limit) continue;
    return formatted("saved {}: relative error {:.3g} (limit {:.3g}), {} not finite, {} not written",
                     is_up ? "up" : "gate", mine.relative_frobenius, limit, mine.not_finite, mine.unwritten);
  }
  return {};
}

Yardstick make_yardstick(const Problem& problem, const reference::Preactivations& preactivations) {
  Yardstick yardstick;
  yardstick.exact = reference::exact(problem, preactivations);
  const auto report = [&](const std::vector<double>& y) {
    return reference::compare(problem.dtype_y, problem.m, problem.n, y, yardstick.exact);
  };
  yardstick.unfused = report(reference::unfused(problem, preactivations));
  yardstick.rounded = report(reference::rounded(problem.dtype_y, yardstick.exact));
  yardstick.noise = std::max(kMinNoise, 0x1p-24 * std::sqrt(static_cast<double>(problem.k)));
  return yardstick;
}

Verdict judge(const Problem& problem, const Yardstick& yardstick, const Produced& produced) {
  Verdict verdict;
  verdict.guards_intact = produced.guards_intact;
  verdict.error = reference::compare(problem.dtype_y, problem.m, problem.n, produced.y, problem.ldy, yardstick.exact);
  if (produced.normal_data) verdict.outliers = count_outliers(problem, yardstick, produced);
  verdict.reason = reason_against(problem, verdict, limits_of(problem, yardstick, produced), produced.normal_data);
  verdict.pass = verdict.reason.empty();
  return verdict;
}

std::optional<Fault> fault_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Fault>, 6> kFaults{{{"stripe", Fault::kStripe},
                                                                       {"swap", Fault::kSwap},
                                                                       {"row", Fault::kRow},
                                                                       {"element", Fault::kElement},
                                                                       {"unwritten", Fault::kUnwritten},
                                                                       {"guard", Fault::kGuard}}};
  for (const auto& [known, fault] : kFaults) {
    if (known == name) return fault;
  }
  return {};
}

void inject(Fault fault, const Problem& problem, const reference::Preactivations& preactivations, void* y) {
  if (fault == Fault::kNone || problem.m == 0 || problem.n == 0) return;
  const std::size_t element = size_of(problem.dtype_y);
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return static_cast<std::byte*>(y) + static_cast<std::size_t>(i * problem.ldy + j) * element;
  };
  const std::int64_t last_row = problem.m - 1;
  const std::int64_t last_stripe = (problem.n - 1) / 16 * 16;
  switch (fault) {
    case Fault::kNone: break;
    case Fault::kStripe:
      for (std::int64_t i = 0; i < problem.m; ++i) {
        std::memset(at(i, last_stripe), 0, static_cast<std::size_t>(problem.n - last_stripe) * element);
      }
      break;
    case Fault::kSwap: {
      const std::vector<double> swapped =
          reference::exact(problem, {.gate = preactivations.up, .up = preactivations.gate});
      for (std::int64_t i = 0; i < problem.m; ++i) {
        for (std::int64_t j = 0; j < problem.n; ++j) {
          store(problem.dtype_y, at(i, j), 0, swapped[static_cast<std::size_t>(i * problem.n + j)]);
        }
      }
      break;
    }
    case Fault::kRow: std::memset(at(last_row, 0), 0, static_cast<std::size_t>(problem.n) * element); break;
    case Fault::kElement:
      store(problem.dtype_y, at(last_row, problem.n - 1), 0, 1 + 2 * load(problem.dtype_y, at(last_row, 0), 0));
      break;
    case Fault::kUnwritten: std::memset(at(last_row, 0), reference::kPoisonByte, element); break;
    case Fault::kGuard: std::memset(at(last_row, problem.ldy), 0, 1); break;
  }
}

}  // namespace tileglu::tool
