// SPDX-License-Identifier: Apache-2.0
#include "tune_bench.hpp"

#include "bench_shape.hpp"

#include <algorithm>
#include <chrono>

namespace tileglu::tool {
namespace {

// Outputs that are compared with fp64: all of them up to this many, else whole rows spread over the problem. Whether
// the rest was written, and nothing beyond it, is always seen.
constexpr std::int64_t kCheckedOutputs = std::int64_t{1} << 20;
constexpr int kHeatSamples = 7, kFinalSamples = 20;
constexpr double kFinalSeconds = 0.15, kWarmupSeconds = 0.05;

Shape shape_of(const Problem& problem) {
  return {.m = problem.m, .n = problem.n, .k = problem.k};
}

}  // namespace

double KernelBench::now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Status KernelBench::begin(const Problem& problem) {
  y_.clear();
  data_ = {};  // before the next problem's buffers are made
  problem_ = problem;
  const double set_bytes = bytes_moved(shape_of(problem), problem.dtype, problem.dtype_y);
  const int sets = sets_past_cache(set_bytes, problem.memory, problem.device);
  Result<SyntheticData> data = SyntheticData::make(problem, {.seed = settings_.seed, .sets = sets});
  TILEGLU_TRY(data.status());
  data_ = std::move(data.value());
  TILEGLU_TRY(data_.add_layout(problem.layout));
  problem_ = data_.problem(problem.layout);
  const std::size_t y_bytes = static_cast<std::size_t>(problem.m * problem.ldy) * size_of(problem.dtype_y);
  for (int set = 0; set < sets; ++set) {
    Result<runtime::Buffer> y = runtime::Buffer::make(problem.memory, problem.device, y_bytes);
    TILEGLU_TRY(y.status());
    y_.push_back(y.value());
  }
  Result<ResultCheck> check = ResultCheck::make(problem_, data_, std::max(kCheckedOutputs / problem.n, kCheckedRows));
  TILEGLU_TRY(check.status());
  check_ = std::move(check.value());
  return {};
}

Operands KernelBench::operands(int set, void* y, const runtime::Stream& stream) const {
  Operands operands = data_.operands(problem_.layout, set);
  operands.y = y;
  operands.stream = stream.handle();
  return operands;
}

Status KernelBench::verify(const std::string& kernel) {
  const Result<Call> call = Call::plan(problem_, {.backend = settings_.backend, .kernel = kernel});
  TILEGLU_TRY(call.status());
  Result<GuardedOutput> output = GuardedOutput::make(problem_);
  TILEGLU_TRY(output.status());
  TILEGLU_TRY(output.value().poison());
  const Result<runtime::Stream> stream = runtime::Stream::make(problem_.memory, problem_.device);
  TILEGLU_TRY(stream.status());
  TILEGLU_TRY(call.value().run(operands(0, output.value().y(), stream.value())));
  TILEGLU_TRY(stream.value().synchronize());
  TILEGLU_TRY(output.value().download());
  if (!output.value().guards_intact()) return {Code::kInternalError, "memory outside the output was written"};
  const std::size_t y_bytes = static_cast<std::size_t>(problem_.m * problem_.ldy) * size_of(problem_.dtype_y);
  const Fault fault = kernel == settings_.wrong_kernel ? Fault::kStripe : Fault::kNone;
  const ResultCheck::Outcome outcome = check_.output(kernel, {output.value().host_y(), y_bytes}, fault);
  return outcome.reason.empty() ? Status() : Status(Code::kInternalError, outcome.reason);
}

Result<std::vector<Measurement>> KernelBench::race(const std::vector<std::string>& kernels, bool thorough) {
  std::vector<Contestant> contestants;
  for (const std::string& kernel : kernels) {
    const Result<Call> call = Call::plan(problem_, {.backend = settings_.backend, .kernel = kernel});
    TILEGLU_TRY(call.status());
    contestants.emplace_back([this, call = call.value()](const runtime::Stream& stream, int set) {
      return call.run(operands(set, y_[static_cast<std::size_t>(set)].data(), stream));
    });
  }
  return measure(contestants, {.memory = problem_.memory,
                               .device = problem_.device,
                               .sets = static_cast<int>(y_.size()),
                               .cuda_graph = problem_.memory == Memory::kCuda && needs_graph(shape_of(problem_)),
                               .samples = thorough ? kFinalSamples : kHeatSamples,
                               .min_time_s = thorough ? kFinalSeconds : 0,
                               .warmup_s = kWarmupSeconds});
}

}  // namespace tileglu::tool
