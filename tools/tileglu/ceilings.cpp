// SPDX-License-Identifier: Apache-2.0
#include "ceilings.hpp"

#if TILEGLU_HAVE_CUDA
#include "core/format.hpp"
#include "gemm_only.hpp"
#include "measure.hpp"
#include "read_bandwidth.hpp"
#include "synthetic.hpp"
#endif

namespace tileglu::tool {

#if TILEGLU_HAVE_CUDA

namespace {

constexpr std::int64_t kSquare = 8192;
constexpr std::size_t kBytes = std::size_t{1} << 30;
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

Status cuda_status(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return {};
  return {Code::kCudaError, formatted("{}: {}", call, cudaGetErrorString(error))};
}

Result<double> copy_gbps(int device) {
  Result<runtime::Buffer> from = runtime::Buffer::make(Memory::kCuda, device, kBytes);
  if (!from.ok()) return from.status();
  Result<runtime::Buffer> to = runtime::Buffer::make(Memory::kCuda, device, kBytes);
  if (!to.ok()) return to.status();
  TILEGLU_TRY(from.value().fill(0x3C));
  const Contestant copy = [&](const runtime::Stream& stream, int) -> Status {
    return cuda_status("cudaMemcpyAsync",
                       cudaMemcpyAsync(to.value().data(), from.value().data(), kBytes, cudaMemcpyDeviceToDevice,
                                       static_cast<cudaStream_t>(stream.handle())));
  };
  const Result<double> us = median_us({copy}, device);
  if (!us.ok()) return us.status();
  return 2.0 * static_cast<double>(kBytes) / us.value() * 1e-3;
}

Result<double> read_gbps(int device) {
  Result<runtime::Buffer> from = runtime::Buffer::make(Memory::kCuda, device, kBytes);
  if (!from.ok()) return from.status();
  Result<runtime::Buffer> sink = runtime::Buffer::make(Memory::kCuda, device, sizeof(unsigned));
  if (!sink.ok()) return sink.status();
  TILEGLU_TRY(from.value().fill(0x3C));
  std::vector<Contestant> grids;
  for (const int blocks_per_sm : {1, 2, 4, 8}) {
    grids.emplace_back([&, blocks_per_sm](const runtime::Stream& stream, int) {
      return cuda_status(
          "read_all", read_all(from.value().data(), kBytes, blocks_per_sm, static_cast<unsigned*>(sink.value().data()),
                               static_cast<cudaStream_t>(stream.handle())));
    });
  }
  const Result<double> us = median_us(grids, device);
  if (!us.ok()) return us.status();
  return static_cast<double>(kBytes) / us.value() * 1e-3;
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
  Result<runtime::Buffer> product = runtime::Buffer::make(
      Memory::kCuda, device, static_cast<std::size_t>(kSquare * gemm.value().product_ld()) * sizeof(std::uint16_t));
  if (!product.ok()) return product.status();
  std::vector<Contestant> algorithms;
  for (int i = 0; i < gemm.value().algorithms(); ++i) {
    algorithms.emplace_back([&, i](const runtime::Stream& stream, int set) {
      Operands operands = data.value().operands(Layout::kGateUp, set);
      operands.y = product.value().data();
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
  const Result<double> read = read_gbps(device);
  if (!read.ok()) return read.status();
  const Result<double> gemm = square_gemm_tflops(device);
  if (!gemm.ok()) return gemm.status();
  return Ceilings{.copy_gbps = copy.value(), .read_gbps = read.value(), .gemm_tflops = gemm.value()};
}

#else

Result<Ceilings> measure_ceilings(int) {
  return Status(Code::kNotAvailable, "this build has no CUDA (configure with nvcc and the CUTLASS headers)");
}

#endif

}  // namespace tileglu::tool
