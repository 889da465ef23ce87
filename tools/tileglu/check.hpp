// SPDX-License-Identifier: Apache-2.0
// When a result is right. The yardstick is the error of the unfused path in the same dtype, measured against the same
// fp64 reference: a fused kernel rounds once and has to be at or below it.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "reference/metrics.hpp"
#include "reference/reference.hpp"

#include <string>
#include <vector>

namespace tileglu::tool {

// Everything that results of one problem are compared with.
struct Yardstick {
  std::vector<double> exact;       // fp64, unrounded, [m,n]
  reference::ErrorReport unfused;  // gate, up, act(gate) and the product each rounded, as frameworks do
  reference::ErrorReport rounded;  // one rounding at the end: the best possible
  double noise = 0;                // what fp32 accumulation over k may add, relative to the norm of the result
};
Yardstick make_yardstick(const Problem& problem, const reference::Preactivations& preactivations);

// Kernels that round gate and up before the activation. They are held to the emulated unfused path with 10 % to spare,
// since they also round in the accumulation.
bool rounds_early(std::string_view kernel);

// Why what was saved is not the pre-activations rounded once, or nothing.
std::string saved_reason(const Problem& problem, const reference::Preactivations& saved,
                         const reference::Preactivations& exact, double noise);

struct Verdict {
  bool pass = false;
  std::string reason;  // empty if pass
  reference::ErrorReport error;
  std::int64_t outliers = 0;  // elements further off than rounding explains: catches a single wrong element
  bool guards_intact = true;
};
struct Produced {
  std::string kernel;
  const void* y = nullptr;  // host, row stride problem.ldy
  bool guards_intact = true;
  bool normal_data = true;  // A and weights are synthetic: stripes and single elements are judged as well
};
Verdict judge(const Problem& problem, const Yardstick& yardstick, const Produced& produced);

// Faults that tests plant to see the check fail.
enum class Fault { kNone, kStripe, kSwap, kRow, kElement, kUnwritten, kGuard };
std::optional<Fault> fault_named(std::string_view name);
inline constexpr const char* kFaultNames = "stripe, swap, row, element, unwritten, guard";
// Spoils y (host, with a guard directly behind row m - 1) in place.
void inject(Fault fault, const Problem& problem, const reference::Preactivations& preactivations, void* y);

}  // namespace tileglu::tool
