// SPDX-License-Identifier: Apache-2.0
#include "gemm_only.hpp"

#include "core/format.hpp"
#include "measure.hpp"
#include "synthetic.hpp"

#if TILEGLU_HAVE_CUDA
#include "backends/cublas/gemm.hpp"

#include <cuda_runtime_api.h>
#endif

namespace tileglu::tool {

#if TILEGLU_HAVE_CUDA

struct GemmOnlyCall::Implementation {
  cublas::GemmOnly gemm;
};

Result<GemmOnlyCall> GemmOnlyCall::make(const Problem& problem) {
  Result<cublas::GemmOnly> gemm = cublas::GemmOnly::make(problem);
  if (!gemm.ok()) return gemm.status();
  GemmOnlyCall call;
  Result<runtime::Buffer> workspace =
      runtime::Buffer::make(problem.memory, problem.device, gemm.value().workspace_bytes());
  if (!workspace.ok()) return workspace.status();
  call.workspace_ = workspace.value();
  call.product_ld_ = cublas::padded_columns(problem.dtype, 2 * problem.n);
  call.implementation_ = std::make_shared<const Implementation>(Implementation{std::move(gemm.value())});
  return call;
}

int GemmOnlyCall::algorithms() const {
  return implementation_->gemm.algorithms();
}

Status GemmOnlyCall::run(const Operands& operands, int algorithm) const {
  Operands with_workspace = operands;
  with_workspace.workspace = workspace_.data();
  with_workspace.workspace_bytes = workspace_.size();
  return implementation_->gemm.run(with_workspace, algorithm);
}

namespace {

constexpr std::int64_t kSquare = 8192;
constexpr std::size_t kCopyBytes = std::size_t{1} << 30;
constexpr MeasureOptions kCeilingOptions{.memory = Memory::kCuda, .samples = 15, .min_time_s = 0.2, .warmup_s = 0.3};

Result<double> median_us(const std::vector<Contestant>& contestants, int device) {
  MeasureOptions options = kCeilingOptions;
  options.device = device;
  const Result<int> best = fastest(contestants, options);
  if (!best.ok()) return best.status();
  const Result<std::vector<Measurement>> measured =
      measure({contestants[static_cast<std::size_t>(best.value())]}, options);
  if (!measured.ok()) return measured.status();
  TILEGLU_TRY(measured.value().front().status);
  return summarise(measured.value().front().samples_us).median;
}

Result<double> copy_gbps(int device) {
  Result<runtime::Buffer> from = runtime::Buffer::make(Memory::kCuda, device, kCopyBytes);
  if (!from.ok()) return from.status();
  Result<runtime::Buffer> to = runtime::Buffer::make(Memory::kCuda, device, kCopyBytes);
  if (!to.ok()) return to.status();
  TILEGLU_TRY(from.value().fill(0x3C));
  const Contestant copy = [&](const runtime::Stream& stream, int) -> Status {
    const cudaError_t error = cudaMemcpyAsync(to.value().data(), from.value().data(), kCopyBytes,
                                              cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream.handle()));
    if (error == cudaSuccess) return {};
    return {Code::kCudaError, formatted("cudaMemcpyAsync: {}", cudaGetErrorString(error))};
  };
  const Result<double> us = median_us({copy}, device);
  if (!us.ok()) return us.status();
  return 2.0 * static_cast<double>(kCopyBytes) / us.value() * 1e-3;
}

Result<double> square_gemm_tflops(int device) {
  const Problem problem{.layout = Layout::kGateUp,
                        .memory = Memory::kCuda,
                        .device = device,
                        .m = kSquare,
                        .n = kSquare / 2,
                        .k = kSquare,
                        .lda = kSquare,
                        .ld_gate = kSquare,
                        .ldy = kSquare / 2};
  const Result<SyntheticData> data = SyntheticData::make(problem, {});
  if (!data.ok()) return data.status();
  const Result<GemmOnlyCall> gemm = GemmOnlyCall::make(problem);
  if (!gemm.ok()) return gemm.status();
  std::vector<Contestant> algorithms;
  for (int i = 0; i < gemm.value().algorithms(); ++i) {
    algorithms.emplace_back([&, i](const runtime::Stream& stream, int set) {
      Operands operands = data.value().operands(Layout::kGateUp, set);
      operands.stream = stream.handle();
      return gemm.value().run(operands, i);
    });
  }
  const Result<double> us = median_us(algorithms, device);
  if (!us.ok()) return us.status();
  return 2.0 * kSquare * kSquare * kSquare / us.value() * 1e-6;
}

}  // namespace

Result<Ceilings> measure_ceilings(int device) {
  const Result<double> copy = copy_gbps(device);
  if (!copy.ok()) return copy.status();
  const Result<double> gemm = square_gemm_tflops(device);
  if (!gemm.ok()) return gemm.status();
  return Ceilings{.copy_gbps = copy.value(), .gemm_tflops = gemm.value()};
}

#else

struct GemmOnlyCall::Implementation {};

namespace {
Status no_cuda() {
  return {Code::kNotAvailable, "this build has no CUDA (configure with nvcc and the CUTLASS headers)"};
}
}  // namespace

Result<GemmOnlyCall> GemmOnlyCall::make(const Problem&) {
  return no_cuda();
}
int GemmOnlyCall::algorithms() const {
  return 0;
}
Status GemmOnlyCall::run(const Operands&, int) const {
  return no_cuda();
}
Result<Ceilings> measure_ceilings(int) {
  return no_cuda();
}

#endif

}  // namespace tileglu::tool
