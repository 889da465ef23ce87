// SPDX-License-Identifier: Apache-2.0
// Error figures against the fp64 reference.
#include "reference/metrics.hpp"

#include "reference/number_format.hpp"

#include <cmath>

namespace tileglu::reference {
namespace {

constexpr std::int64_t kStripeColumns = 16;

struct Squares {
  double difference = 0, reference = 0;

  double relative() const {
    if (difference == 0) return 0;
    return reference > 0 ? std::sqrt(difference / reference) : INFINITY;
  }
};

class Comparison {
 public:
  Comparison(Dtype dtype_y, std::int64_t m, std::int64_t n)
      : format_(number_format(dtype_y)), elements_(m * n), stripes_(static_cast<std::size_t>(n / kStripeColumns + 1)) {}

  void add(std::int64_t column, double y, double reference) {
    const double nearest = round_to(format_, reference);
    if (!std::isfinite(y) || !std::isfinite(nearest)) {
      // Overflow of a finite reference to the right infinity, and NaN for NaN, are right results.
      const bool right = y == nearest || (std::isnan(y) && std::isnan(nearest));
      report_.not_finite += right ? 0 : 1;
      return;
    }
    const double difference = std::abs(y - reference);
    Squares& stripe = stripes_[static_cast<std::size_t>(column / kStripeColumns)];
    stripe.difference += difference * difference;
    stripe.reference += reference * reference;
    over_1_percent_ += difference > 0.01 * std::abs(reference) ? 1 : 0;
    report_.max_ulp = std::max(report_.max_ulp, difference / unit_in_last_place(format_, reference));
  }
  void add_unwritten() { ++report_.unwritten; }

  ErrorReport report() const {
    ErrorReport report = report_;
    Squares all;
    for (const Squares& stripe : stripes_) {
      all.difference += stripe.difference;
      all.reference += stripe.reference;
      report.worst_stripe = std::max(report.worst_stripe, stripe.relative());
    }
    report.relative_frobenius = all.relative();
    report.share_over_1_percent =
        elements_ > 0 ? static_cast<double>(over_1_percent_) / static_cast<double>(elements_) : 0;
    return report;
  }

 private:
  NumberFormat format_;
  std::int64_t elements_;
  std::int64_t over_1_percent_ = 0;
  std::vector<Squares> stripes_;
  ErrorReport report_;
};

bool is_poison(const unsigned char* element, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (element[i] != kPoisonByte) return false;
  }
  return true;
}

}  // namespace

ErrorReport compare(Dtype dtype_y, std::int64_t m, std::int64_t n, const void* y, std::int64_t ldy,
                    const std::vector<double>& reference) {
  Comparison comparison(dtype_y, m, n);
  const Decoder decode(dtype_y);
  const std::size_t bytes = size_of(dtype_y);
  for (std::int64_t i = 0; i < m; ++i) {
    const auto* row = static_cast<const unsigned char*>(y) + i * ldy * static_cast<std::int64_t>(bytes);
    for (std::int64_t j = 0; j < n; ++j) {
      if (is_poison(row + j * static_cast<std::int64_t>(bytes), bytes)) comparison.add_unwritten();
      comparison.add(j, decode(row, j), reference[static_cast<std::size_t>(i * n + j)]);
    }
  }
  return comparison.report();
}

ErrorReport compare(Dtype dtype_y, std::int64_t m, std::int64_t n, const std::vector<double>& y,
                    const std::vector<double>& reference) {
  Comparison comparison(dtype_y, m, n);
  for (std::int64_t i = 0; i < m * n; ++i) {
    const auto index = static_cast<std::size_t>(i);
    comparison.add(i % n, y[index], reference[index]);
  }
  return comparison.report();
}

}  // namespace tileglu::reference
