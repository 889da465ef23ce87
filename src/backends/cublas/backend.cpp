// SPDX-License-Identifier: Apache-2.0
// The cublas backend, the unfused path: GEMMs through cuBLASLt into an intermediate, then element-wise kernels. By
// name:
//   fp32_merged         one GEMM over all 2n weight rows into fp32, one kernel for the rest: rounds as the problem says
//   fp32_two_gemms      the same with one GEMM for each half
// and what others do, never picked by itself, with an intermediate of the input dtype:
//   merged              one GEMM, one kernel for act(gate) * up (vLLM, SGLang)
//   two_gemms           one GEMM for each half, the same kernel
//   two_gemms_silu_mul  as two_gemms, but act(gate) and the product are kernels of their own, each rounding its result
//                       (PyTorch eager)
#include "backends/backend.hpp"

#include "backends/cublas/work.hpp"
#include "core/format.hpp"
#include "core/layout.hpp"
#include "runtime/device_guard.hpp"
#include "runtime/runtime.hpp"

#include <algorithm>
#include <array>

namespace tileglu {
namespace cublas {
namespace {

constexpr int kMinCapabilityMajor = 8;

std::span<const std::string> kernels() {
  static const std::array<std::string, 5> names{"fp32_merged", "fp32_two_gemms", "merged", "two_gemms",
                                                "two_gemms_silu_mul"};
  return names;
}

class CublasPlan final : public Plan {
 public:
  CublasPlan(const Problem& problem, const std::string& kernel, Work work)
      : Plan("cublas", kernel, work.workspace_bytes), problem_(problem), work_(std::move(work)) {}

  Status run(const Operands& operands) const noexcept override {
    const runtime::DeviceGuard guard(problem_.device);
    TILEGLU_TRY(guard.status());
    const runtime::RelaxedCapture relaxed;  // cuBLASLt loads a kernel on its first use
    for (std::int64_t row = 0; row < problem_.m; row += work_.rows) {
      TILEGLU_TRY(run_slice(operands, std::min(row, problem_.m - work_.rows)));
    }
    return {};
  }

 private:
  Status run_slice(const Operands& operands, std::int64_t row) const {
    const auto stream = static_cast<cudaStream_t>(operands.stream);
    char* workspace = static_cast<char*>(operands.workspace);
    const auto a_offset = static_cast<std::size_t>(row * problem_.lda) * size_of(problem_.dtype);
    const auto y_offset = static_cast<std::size_t>(row * problem_.ldy) * size_of(problem_.dtype_y);
    for (const Part& part : work_.parts) {
      const void* weights = part.from_up ? operands.up : operands.gate;
      TILEGLU_TRY(part.gemm.run(static_cast<const char*>(operands.a) + a_offset,
                                static_cast<const char*>(weights) + part.weight_offset, workspace + part.result_offset,
                                workspace + work_.scratch_offset, stream));
    }
    if (work_.finish) return finish(operands, row, workspace);
    for (const Step& step : work_.steps) {
      char* gate = workspace + step.gate_offset;
      void* out = step.to_y ? static_cast<char*>(operands.y) + y_offset : gate;
      TILEGLU_TRY(
          step.kernel.run({.m = work_.rows, .gate = gate, .up = workspace + step.up_offset, .out = out}, stream));
    }
    return {};
  }

  Status finish(const Operands& operands, std::int64_t row, const char* workspace) const {
    const auto half = [&](bool is_up) {
      FinishHalf made{
          .sums = {.base = problem_.k > 0 ? workspace + (is_up ? work_.up_offset : work_.gate_offset) : nullptr,
                   .ld = work_.ld,
                   .columns = is_up ? work_.up_columns : work_.gate_columns},
          .bias = is_up ? operands.bias_up : operands.bias_gate,
          .add = add_half(problem_, operands, is_up),
          .pre = pre_half(problem_, operands, is_up)};
      const auto element = static_cast<std::int64_t>(size_of(problem_.dtype));
      if (made.add.base != nullptr)
        made.add.base = static_cast<const char*>(made.add.base) + row * made.add.ld * element;
      if (made.pre.base != nullptr) made.pre.base = static_cast<char*>(made.pre.base) + row * made.pre.ld * element;
      return made;
    };
    const auto y_offset = static_cast<std::size_t>(row * problem_.ldy) * size_of(problem_.dtype_y);
    return work_.finish->run(
        {.m = work_.rows, .gate = half(false), .up = half(true), .y = static_cast<char*>(operands.y) + y_offset},
        static_cast<cudaStream_t>(operands.stream));
  }

  Problem problem_;
  Work work_;
};

Status check_capability(const Problem& problem, const DeviceSpec& spec) {
  if (spec.capability_major >= kMinCapabilityMajor) return {};
  return {Code::kNotSupported, formatted("GPU {} ({}) has compute capability {}.{}, below {}.0", problem.device,
                                         spec.name, spec.capability_major, spec.capability_minor, kMinCapabilityMajor)};
}

Status available() {
  TILEGLU_TRY(runtime::cuda_status());
  TILEGLU_TRY(load());
  std::string found;
  for (int device = 0; device < runtime::device_count(); ++device) {
    const Result<DeviceSpec> spec = runtime::device_spec(device);
    TILEGLU_TRY(spec.status());
    if (spec.value().capability_major >= kMinCapabilityMajor) return {};
    found += formatted("{}{} ({}.{})", found.empty() ? "" : ", ", spec.value().name, spec.value().capability_major,
                       spec.value().capability_minor);
  }
  return {Code::kNotAvailable, formatted("no GPU of compute capability 8.0 or newer; found: {}", found)};
}

Result<Kernel> pick_kernel(const Problem& problem, const std::string& name) {
  const std::span<const std::string> names = kernels();
  if (name.empty()) return is_single_matrix(problem.layout) ? kFp32Merged : kFp32TwoGemms;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return Status{Code::kInvalidArgument, formatted("kernel={} is none of {}", name, joined(names))};
  }
  const auto kernel = static_cast<Kernel>(found - names.begin());
  const bool merged = kernel == kMerged || kernel == kFp32Merged;
  if (merged && !is_single_matrix(problem.layout)) {
    return Status{Code::kNotSupported,
                  formatted("kernel={} needs gate and up rows in one matrix, not layout=separate", name)};
  }
  if (!merged && problem.layout == Layout::kInterleaved8) {
    return Status{Code::kNotSupported, formatted("kernel={} cannot address one half of layout=interleaved_8", name)};
  }
  const bool baseline = kernel != kFp32Merged && kernel != kFp32TwoGemms;
  const bool rounds_so = problem.rounding == Rounding::kOnce || kernel == kTwoGemmsSiluMul;
  if (baseline && (problem.extra.any() || problem.activation == Activation::kSwiglu || !rounds_so)) {
    return Status{Code::kNotSupported, formatted("kernel={} is a baseline: no operands, activation=swiglu or rounding "
                                                 "other than its own (tileglu_rounding)",
                                                 name)};
  }
  return kernel;
}

Result<std::unique_ptr<Plan>> plan(const Problem& problem, const PlanOptions& options) {
  const Result<DeviceSpec> spec = runtime::device_spec(problem.device);
  TILEGLU_TRY(spec.status());
  TILEGLU_TRY(check_capability(problem, spec.value()));
  TILEGLU_TRY(load());
  const Result<Kernel> kernel = pick_kernel(problem, options.kernel);
  TILEGLU_TRY(kernel.status());
  const runtime::DeviceGuard guard(problem.device);
  TILEGLU_TRY(guard.status());
  const runtime::RelaxedCapture relaxed;
  Result<Work> work = make_work(problem, kernel.value(), spec.value().sm_count);
  TILEGLU_TRY(work.status());
  return std::unique_ptr<Plan>(
      std::make_unique<CublasPlan>(problem, kernels()[kernel.value()], std::move(work.value())));
}

}  // namespace
}  // namespace cublas

constinit const Backend kCublasBackend{.id = BackendId::kCublas,
                                       .name = "cublas",
                                       .available = cublas::available,
                                       .kernels = cublas::kernels,
                                       .plan = cublas::plan};

}  // namespace tileglu
