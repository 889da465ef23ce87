// SPDX-License-Identifier: Apache-2.0
// The module libtileglu_cpu.so: what loader.cpp finds in it.
#include "backends/cpu/module.hpp"
#include "backends/cpu/tile_plan.hpp"
#include "backends/cpu/unfused.hpp"

#include <omp.h>

#include <new>
#include <vector>

namespace tileglu::cpu {
namespace {

class CpuPlan final : public Plan {
 public:
  explicit CpuPlan(TilePlan tiles)
      : Plan("cpu", tiles.kernel, tiles.blocking.workspace_bytes()), tiles_(std::move(tiles)) {}

  Status run(const Operands& operands) const noexcept override { return run_tiles(tiles_, operands); }

 private:
  TilePlan tiles_;
};

std::span<const std::string> all_kernel_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all(kernel_names().begin(), kernel_names().end());
    all.emplace_back(kUnfusedKernel);
    return all;
  }();
  return names;
}

Result<std::unique_ptr<Plan>> make_plan(const Problem& problem, const PlanOptions& options) try {
  if (options.kernel == kUnfusedKernel) return make_unfused_plan(problem, omp_get_max_threads());
  Result<TilePlan> tiles = make_tile_plan(problem, options.kernel, omp_get_max_threads());
  if (!tiles.ok()) return tiles.status();
  return std::unique_ptr<Plan>(std::make_unique<CpuPlan>(std::move(tiles.value())));
} catch (const std::bad_alloc&) {
  return Status(Code::kOutOfMemory, "no memory for a plan of the cpu backend");
}

}  // namespace
}  // namespace tileglu::cpu

extern "C" __attribute__((visibility("default"))) const tileglu::cpu::Module tileglu_cpu_module = {
    .tag = tileglu::cpu::kModuleTag,
    .kernels = tileglu::cpu::all_kernel_names,
    .plan = tileglu::cpu::make_plan,
};
