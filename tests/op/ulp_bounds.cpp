// SPDX-License-Identifier: Apache-2.0
#include "op/ulp_bounds.hpp"

#include "core/format.hpp"
#include "op/op_cases.hpp"
#include "reference/number_format.hpp"

#include <algorithm>
#include <cmath>

namespace tileglu::test {

std::vector<double> finite_numbers(Dtype dtype) {
  std::vector<double> numbers;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const double value = reference::decode16(reference::number_format(dtype), bits);
    if (std::isfinite(value)) numbers.push_back(value);
  }
  return numbers;
}

std::vector<double> exact_activations(Activation activation, const std::vector<double>& gates) {
  const Problem problem{.activation = activation, .swiglu = numbers_of(activation)};
  return reference::exact(problem, {.gate = gates, .up = std::vector<double>(gates.size(), 1)});
}

double worst_ulps(Dtype dtype, const std::vector<double>& results, const std::vector<double>& exact) {
  const reference::NumberFormat format = reference::number_format(dtype);
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double nearest = reference::round_to(format, exact[i]);
    if (std::isinf(nearest) && results[i] == nearest) continue;
    const double off = std::abs(results[i] - exact[i]);
    if (std::abs(exact[i]) < kTail && off <= kTail) continue;
    const double ulps = off / reference::unit_in_last_place(format, exact[i]);
    worst = std::abs(exact[i]) < kTail || std::isnan(ulps) ? INFINITY : std::max(worst, ulps);
    if (std::isinf(worst)) break;
  }
  return worst;
}

std::string ulp_table() {
  std::string table =
      "| activation | gates | cpu, fp32 | GPU, fp32 | rounded to the gates' type |\n"
      "|---|---|---:|---:|---:|\n";
  for (const UlpBound& row : kUlpBounds) {
    table += formatted("| {} | {} | {:.4g} | {:.4g} | {:.4g} |\n", name_of(row.activation), name_of(row.gates),
                       row.cpu_fp32, row.gpu_fp32, row.rounded);
  }
  return table;
}

}  // namespace tileglu::test
