// SPDX-License-Identifier: Apache-2.0
// The sm90 backend: one fused kernel on Hopper, chosen by plan/planner.hpp from plan/sm90_configs.hpp.
#include "backends/backend.hpp"

#include "backends/sm90/kernel_entry.hpp"
#include "core/format.hpp"
#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"
#include "runtime/device_guard.hpp"
#include "runtime/runtime.hpp"

#include <utility>

namespace tileglu {
namespace sm90 {

Status cuda_failure(const KernelConfig& config, const char* call, const char* error) {
  (void)cudaGetLastError();
  return {Code::kCudaError, formatted("{}: {}: {}", config_name(config), call, error)};
}

namespace {

constexpr int kRows = static_cast<int>(kSm90Configs.size());
static_assert(kRows == TILEGLU_SM90_ROWS, "src/backends/sm90/CMakeLists.txt compiles another number of rows");

template <int... Row>
const KernelEntry& entry_of(int row, std::integer_sequence<int, Row...>) {
  static const std::array<const KernelEntry*, kRows> entries{&kernel_entry<Row>()...};
  return *entries[static_cast<std::size_t>(row)];
}

const KernelEntry& entry_of(int row) {
  return entry_of(row, std::make_integer_sequence<int, kRows>{});
}

class Sm90Plan final : public Plan {
 public:
  Sm90Plan(const Problem& problem, int row, int sm_count)
      : Plan("sm90", config_name(kSm90Configs[static_cast<std::size_t>(row)]), 0),
        problem_(problem),
        entry_(entry_of(row)),
        sm_count_(sm_count) {}

  Status run(const Operands& operands) const noexcept override {
    const runtime::DeviceGuard guard(problem_.device);
    TILEGLU_TRY(guard.status());
    return entry_.launch(problem_, operands, sm_count_);
  }

 private:
  Problem problem_;
  const KernelEntry& entry_;
  int sm_count_;
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
  const Result<Candidate> choice = choose(problem, spec.value(), options.kernel);
  if (!choice.ok()) return choice.status();
  const runtime::DeviceGuard guard(problem.device);
  TILEGLU_TRY(guard.status());
  const runtime::RelaxedCapture relaxed;
  TILEGLU_TRY(entry_of(choice.value().row).prepare());
  return std::unique_ptr<Plan>(std::make_unique<Sm90Plan>(problem, choice.value().row, spec.value().sm_count));
}

}  // namespace
}  // namespace sm90

const Backend kSm90Backend{
    .id = BackendId::kSm90, .name = "sm90", .available = sm90::available, .kernels = sm90::kernels, .plan = sm90::plan};

}  // namespace tileglu
