// SPDX-License-Identifier: Apache-2.0
// The sm90 backend: one fused kernel on Hopper, chosen by plan/planner.hpp from plan/sm90_configs.hpp.
#include "backends/backend.hpp"

#include "backends/sm90/kernel_entry.hpp"
#include "core/format.hpp"
#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"
#include "runtime/device_guard.hpp"
#include "runtime/runtime.hpp"

#include <atomic>
#include <chrono>
#include <utility>

namespace tileglu {
namespace sm90 {

Status cuda_failure(const KernelConfig& config, const char* call, const char* error) {
  (void)cudaGetLastError();
  return {Code::kCudaError, formatted("{}: {}: {}", config_name(config), call, error)};
}

unsigned long long next_ticket() {
  // An odd step visits all 2^64 values before it repeats one.
  constexpr unsigned long long kStep = 0x9E3779B97F4A7C15;
  static std::atomic<unsigned long long> last{
      static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch().count()) * kStep};
  unsigned long long ticket = 0;
  while (ticket == 0) ticket = last.fetch_add(kStep, std::memory_order_relaxed) + kStep;  // 0 is a cleared flag
  return ticket;
}

namespace {

constexpr int kRows = static_cast<int>(kSm90Configs.size());
static_assert(kRows == TILEGLU_SM90_ROWS, "src/backends/sm90/CMakeLists.txt compiles another number of rows");

using MakeLauncher = decltype(&make_launcher<0>);

template <int... Row>
MakeLauncher maker_of(int row, std::integer_sequence<int, Row...>) {
  static constexpr std::array<MakeLauncher, kRows> kMakers{&make_launcher<Row>...};
  return kMakers[static_cast<std::size_t>(row)];
}

class Sm90Plan final : public Plan {
 public:
  Sm90Plan(int device, int row, std::unique_ptr<Launcher> launcher)
      : Plan("sm90", config_name(kSm90Configs[static_cast<std::size_t>(row)]), launcher->workspace_bytes()),
        device_(device),
        launcher_(std::move(launcher)) {}

  Status run(const Operands& operands) const noexcept override {
    const runtime::DeviceGuard guard(device_);
    TILEGLU_TRY(guard.status());
    return launcher_->run(operands);
  }

 private:
  int device_;
  std::unique_ptr<Launcher> launcher_;
};

Status available() {
  TILEGLU_TRY(runtime::cuda_status());
  std::string found;
  for (int device = 0; device < runtime::device_count(); ++device) {
    const Result<DeviceSpec> spec = runtime::device_spec(device);
    if (!spec.ok()) return spec.status();
    if (spec.value().capability_major == 9 && spec.value().capability_minor == 0) return {};
    found += formatted("{}{} ({}.{})", found.empty() ? "" : ", ", spec.value().name, spec.value().capability_major,
                       spec.value().capability_minor);
  }
  return {Code::kNotAvailable, formatted("no GPU of compute capability 9.0 (Hopper); found: {}", found)};
}

std::span<const std::string> kernels() {
  static const auto names = [] {
    std::array<std::string, kRows> all;
    for (std::size_t row = 0; row < all.size(); ++row) all[row] = config_name(kSm90Configs[row]);
    return all;
  }();
  return names;
}

Result<std::unique_ptr<Plan>> plan(const Problem& problem, const PlanOptions& options) {
  const Result<DeviceSpec> spec = runtime::device_spec(problem.device);
  if (!spec.ok()) return spec.status();
  const PlanFlags flags{.prefetch_weights = options.prefetch_weights, .batch_invariant = options.batch_invariant};
  const Result<Candidate> choice = choose(problem, spec.value(), options.kernel, flags);
  if (!choice.ok()) return choice.status();
  const int row = choice.value().row;
  const runtime::DeviceGuard guard(problem.device);
  TILEGLU_TRY(guard.status());
  const runtime::RelaxedCapture relaxed;
  Result<std::unique_ptr<Launcher>> launcher =
      maker_of(row, std::make_integer_sequence<int, kRows>{})(problem, {.sm_count = spec.value().sm_count,
                                                                        .prefetch_weights = options.prefetch_weights,
                                                                        .batch_invariant = options.batch_invariant});
  if (!launcher.ok()) return launcher.status();
  return std::unique_ptr<Plan>(std::make_unique<Sm90Plan>(problem.device, row, std::move(launcher.value())));
}

}  // namespace
}  // namespace sm90

const Backend kSm90Backend{
    .id = BackendId::kSm90, .name = "sm90", .available = sm90::available, .kernels = sm90::kernels, .plan = sm90::plan};

}  // namespace tileglu
