// SPDX-License-Identifier: Apache-2.0
// What stands in the list of backends for those that a build without CUDA leaves out. The sm90 kernels can still be
// named there, so that a misspelt name is told apart from a missing GPU.
#if !TILEGLU_HAVE_CUDA

#include "backends/backend.hpp"
#include "plan/sm90_configs.hpp"

#include <algorithm>
#include <array>

namespace tileglu {
namespace {

Status no_cuda() {
  return {Code::kNotAvailable, "this build has no CUDA (configure with nvcc and the CUTLASS headers)"};
}

Result<std::unique_ptr<Plan>> no_plan(const Problem&, const PlanOptions&) {
  return no_cuda();
}

std::span<const std::string> sm90_kernels() {
  static const auto names = [] {
    std::array<std::string, kSm90Configs.size()> all;
    std::ranges::transform(kSm90Configs, all.begin(), config_name);
    return all;
  }();
  return names;
}

std::span<const std::string> cublas_kernels() {
  return {};
}

}  // namespace

constinit const Backend kSm90Backend{BackendId::kSm90, "sm90", no_cuda, sm90_kernels, no_plan};
constinit const Backend kCublasBackend{BackendId::kCublas, "cublas", no_cuda, cublas_kernels, no_plan};

}  // namespace tileglu

#endif
