// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include "core/c_fields.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "plan/sm90_configs.hpp"
#include "tileglu/check.hpp"
#include "verified.hpp"

#include <algorithm>
#include <cmath>

namespace tileglu::gpu {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kWorkspaceGuard = 256;
const Kernel kEager{BackendId::kCublas, "two_gemms_silu_mul"};

std::string text_of(const Problem& p, const Kernel& kernel) {
  return formatted("{} m={} n={} k={} {}->{} {} {} lda={} ld_gate={} ldy={}", kernel.name, p.m, p.n, p.k,
                   name_of(p.dtype), name_of(p.dtype_y), name_of(p.layout), name_of(p.activation), p.lda, p.ld_gate,
                   p.ldy);
}

bool all_poison(const unsigned char* bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte == reference::kPoisonByte; });
}

tileglu_options to_options(const Kernel& kernel) {
  tileglu_options options = TILEGLU_OPTIONS_INIT;
  options.backend = static_cast<int>(kernel.backend);
  options.kernel = kernel.name.c_str();
  options.flags = kernel.flags;
  return options;
}

// The size from which the error of a sample is steady enough to be held against another.
constexpr std::int64_t kSteadyElements = 4096;

// The error of two_gemms_silu_mul on the same data; measured once.
double eager_error(const Problem& problem, Inputs& inputs, Yardstick& yardstick) {
  if (yardstick.measured_eager != 0) return yardstick.measured_eager;
  Problem eager = inputs.problem(Layout::kSeparate, problem.m);
  eager.activation = problem.activation;
  const std::vector<unsigned char> y = run(eager, kEager, inputs.operands(Layout::kSeparate));
  const Verdict verdict = judge(eager, kEager, y.data(), yardstick);
  EXPECT_EQ(verdict.complaint, "") << text_of(eager, kEager);
  yardstick.measured_eager = verdict.error;
  return verdict.error;
}

struct Limits {
  double error = 0, stripe = 0;
};

// The same roundings of nearly the same sums. What differs is the noise of fp32 accumulation; and in the unfused path a
// sum that lies next to a rounding boundary may go the other way, which at worst turns its error round. Few do: less
// than 1 % and, where there are few elements, less than three.
Limits limits_of(const Problem& problem, const Kernel& kernel, const Yardstick& yardstick) {
  const bool fused = !tool::rounds_early(kernel.name);
  const reference::ErrorReport& ideal = fused                        ? yardstick.fused
                                        : kernel.name == kEager.name ? yardstick.eager
                                                                     : yardstick.unfused;
  const auto limit = [&](double error, double elements) {
    const double turned = fused ? 0 : 2.5 * yardstick.rounding * std::sqrt(3 / elements + 0.01);
    return std::hypot(1.03 * error, turned);
  };
  const auto elements = static_cast<double>(yardstick.exact.size());
  const double stripe_elements = elements / static_cast<double>(problem.n) * 16;
  return {.error = limit(ideal.relative_frobenius, elements) + yardstick.noise,
          .stripe = limit(ideal.worst_stripe, std::min(elements, stripe_elements)) + 4 * yardstick.noise};
}

}  // namespace

void PrintTo(const Kernel& kernel, std::ostream* out) {
  *out << name_of(kernel.backend) << ' ' << kernel.name;
}

std::vector<Kernel> sm90_kernels() {
  std::vector<Kernel> kernels;
  for (const KernelConfig& config : kSm90Configs) kernels.push_back({BackendId::kSm90, config_name(config)});
  return kernels;
}

std::vector<Kernel> cublas_kernels() {
  std::vector<Kernel> kernels;
  for (const char* name : {"fp32_merged", "fp32_two_gemms", "merged", "two_gemms", "two_gemms_silu_mul"})
    kernels.push_back({BackendId::kCublas, name});
  return kernels;
}

std::vector<Kernel> all_kernels() {
  std::vector<Kernel> kernels = sm90_kernels();
  std::ranges::copy(cublas_kernels(), std::back_inserter(kernels));
  return kernels;
}

std::int64_t rows_for(const Kernel& kernel, std::int64_t m) {
  for (const KernelConfig& config : kSm90Configs) {
    if (config.streamed() && config_name(config) == kernel.name) {
      return std::min<std::int64_t>(m, config.tile_m);
    }
  }
  return m;
}

std::vector<Kernel> tall_kernels() {
  constexpr std::int64_t kTall = 1 << 20;
  std::vector<Kernel> kernels = all_kernels();
  std::erase_if(kernels, [](const Kernel& kernel) { return rows_for(kernel, kTall) < kTall; });
  return kernels;
}

std::string test_name(const testing::TestParamInfo<Kernel>& info) {
  return formatted("{}_{}", name_of(info.param.backend), info.param.name);
}

tileglu_problem to_c(const Problem& problem) {
  tileglu_problem c = TILEGLU_PROBLEM_INIT;
  c.dtype = static_cast<int>(problem.dtype);
  c.dtype_y = static_cast<int>(problem.dtype_y);
  put_gate_fields(problem, c);
  c.layout = static_cast<int>(problem.layout);
  c.memory = static_cast<int>(problem.memory);
  c.device = problem.device;
  c.alignment = problem.alignment;
  c.m = problem.m;
  c.n = problem.n;
  c.k = problem.k;
  c.lda = problem.lda;
  c.ld_gate = problem.ld_gate;
  c.ld_up = problem.ld_up;
  c.ldy = problem.ldy;
  return c;
}

PlanPointer make_plan(const Problem& problem, const Kernel& kernel) {
  const tileglu_problem c = to_c(problem);
  const tileglu_options options = to_options(kernel);
  tileglu_plan* plan = nullptr;
  (void)tileglu_plan_create(&c, &options, &plan);
  return PlanPointer(plan);
}

tileglu_status can_implement(const Problem& problem, const Kernel& kernel, std::string* reason) {
  const tileglu_problem c = to_c(problem);
  const tileglu_options options = to_options(kernel);
  char text[4096] = {};
  const tileglu_status status = tileglu_can_implement(&c, &options, text, sizeof text);
  if (reason != nullptr) *reason = text;
  return status;
}

Kernel picked(const Problem& problem, const Kernel& kernel) {
  const PlanPointer plan = make_plan(problem, kernel);
  if (plan == nullptr) throw std::runtime_error(text_of(problem, kernel) + ": " + tileglu_last_error());
  return {backend_named(tileglu_plan_backend(plan.get())).value_or(BackendId::kAuto), tileglu_plan_kernel(plan.get())};
}

std::vector<Layout> layouts(const Problem& problem, const Kernel& kernel) {
  std::vector<Layout> taken;
  for (int layout = TILEGLU_SEPARATE; layout <= TILEGLU_INTERLEAVED_8; ++layout) {
    Problem tried = problem;
    tried.layout = static_cast<Layout>(layout);
    tried.ld_up = tried.layout == Layout::kSeparate ? tried.ld_gate : 0;
    if (can_implement(tried, kernel) == TILEGLU_OK) taken.push_back(tried.layout);
  }
  return taken;
}

std::vector<Problem> variants(const Problem& problem, const Kernel& kernel) {
  std::vector<Problem> taken;
  for (int activation = TILEGLU_SILU; activation <= TILEGLU_IDENTITY; ++activation) {
    for (int dtype = TILEGLU_BF16; dtype <= TILEGLU_FP32; ++dtype) {
      for (int dtype_y = TILEGLU_BF16; dtype_y <= TILEGLU_FP32; ++dtype_y) {
        Problem tried = problem;
        tried.activation = static_cast<Activation>(activation);
        tried.dtype = static_cast<Dtype>(dtype);
        tried.dtype_y = static_cast<Dtype>(dtype_y);
        for (const Layout layout : layouts(tried, kernel)) {
          tried.layout = layout;
          tried.ld_up = layout == Layout::kSeparate ? tried.ld_gate : 0;
          taken.push_back(tried);
        }
      }
    }
  }
  return taken;
}

Output::Output(const Problem& problem, std::size_t workspace_bytes)
    : problem_(problem), workspace_bytes_(workspace_bytes) {
  const std::size_t rows = static_cast<std::size_t>(problem.m * problem.ldy) * size_of(problem.dtype_y);
  y_ = require(runtime::Buffer::make(Memory::kCuda, problem.device, kGuardBytes + rows + kGuardBytes));
  workspace_ = require(runtime::Buffer::make(Memory::kCuda, problem.device, workspace_bytes + kWorkspaceGuard));
  poison();
}

void Output::poison() const {
  require(y_.fill(reference::kPoisonByte));
  require(workspace_.fill(reference::kPoisonByte));
}

tileglu_args Output::args(const Operands& inputs, const runtime::Stream& stream) const {
  tileglu_args args = TILEGLU_ARGS_INIT;
  args.a = inputs.a;
  args.gate = inputs.gate;
  args.up = inputs.up;
  args.y = static_cast<unsigned char*>(y_.data()) + kGuardBytes;
  args.workspace = workspace_.data();
  args.workspace_bytes = workspace_bytes_;
  args.stream = stream.handle();
  return args;
}

std::vector<unsigned char> Output::download() const {
  std::vector<unsigned char> all(y_.size());
  require(y_.download(all.data(), all.size()));
  EXPECT_TRUE(all_poison(all.data(), kGuardBytes)) << "bytes before Y were written";
  EXPECT_TRUE(all_poison(all.data() + all.size() - kGuardBytes, kGuardBytes)) << "bytes behind Y were written";
  unsigned char guard[kWorkspaceGuard];
  require(workspace_.download(guard, sizeof guard, workspace_bytes_));
  EXPECT_TRUE(all_poison(guard, sizeof guard)) << "bytes behind the workspace were written";
  return {all.begin() + kGuardBytes, all.end() - kGuardBytes};
}

std::vector<unsigned char> run(const Problem& problem, const Kernel& kernel, const Operands& inputs) {
  const PlanPointer plan = make_plan(problem, kernel);
  if (plan == nullptr) throw std::runtime_error(text_of(problem, kernel) + ": " + tileglu_last_error());
  const runtime::Stream stream = require(runtime::Stream::make(Memory::kCuda, problem.device));
  const Output output(problem, tileglu_plan_workspace(plan.get()));
  const tileglu_args args = output.args(inputs, stream);
  if (tileglu_plan_run(plan.get(), &args) != TILEGLU_OK) {
    throw std::runtime_error(text_of(problem, kernel) + ": " + tileglu_last_error());
  }
  const Status done = stream.synchronize();
  if (!done.ok()) throw std::runtime_error(text_of(problem, kernel) + ": " + done.text());
  return output.download();
}

Verdict judge(const Problem& problem, const Kernel& kernel, const void* y, const Yardstick& yardstick) {
  const std::int64_t rows = (problem.m + yardstick.row_step - 1) / yardstick.row_step;
  const reference::ErrorReport got =
      reference::compare(problem.dtype_y, rows, problem.n, y, problem.ldy * yardstick.row_step, yardstick.exact);
  const Limits limits = limits_of(problem, kernel, yardstick);
  Verdict verdict{.complaint = {}, .error = got.relative_frobenius};
  if (got.unwritten != 0) verdict.complaint += formatted("{} elements unwritten; ", got.unwritten);
  if (got.not_finite != 0) verdict.complaint += formatted("{} elements wrongly finite or not; ", got.not_finite);
  if (!(got.relative_frobenius <= limits.error)) {
    verdict.complaint += formatted("relative error {:.3g} above {:.3g}; ", got.relative_frobenius, limits.error);
  }
  if (!(got.worst_stripe <= limits.stripe)) {
    verdict.complaint += formatted("worst stripe {:.3g} above {:.3g}; ", got.worst_stripe, limits.stripe);
  }
  return verdict;
}

void check(const Problem& problem, const Kernel& kernel, Inputs& inputs, const CheckOptions& options) {
  Yardstick& yardstick = inputs.yardstick(
      {.m = problem.m, .activation = problem.activation, .dtype_y = problem.dtype_y, .row_step = options.row_step});
  const Kernel actual = picked(problem, kernel);
  const std::vector<unsigned char> y = run(problem, actual, inputs.operands(problem.layout));
  const Verdict verdict = judge(problem, actual, y.data(), yardstick);
  EXPECT_EQ(verdict.complaint, "") << text_of(problem, actual);
  double ratio = 0;
  if (options.against_eager && static_cast<std::int64_t>(yardstick.exact.size()) >= kSteadyElements) {
    const double eager = eager_error(problem, inputs, yardstick);
    ratio = verdict.error / eager;
    EXPECT_LE(ratio, kEagerShare) << text_of(problem, actual) << ": error " << verdict.error
                                  << " against two_gemms_silu_mul's " << eager;
  }
  record(actual.name, {.relative_frobenius = verdict.error, .ratio_to_eager = ratio});
}

void allow_unfused_path(const test::OpCase& op, test::Outcome& outcome) {
  if (!tool::rounds_early(outcome.kernel)) return;
  reference::ErrorReport& allowed = outcome.baselines.unfused;
  if (op.result_dtype() != op.dtype) {  // three roundings are less than twice as far off as one
    const reference::ErrorReport one = reference::compare(
        op.result_dtype(), op.m, op.n, reference::rounded(op.dtype, outcome.baselines.exact), outcome.baselines.exact);
    allowed.relative_frobenius += 3 * one.relative_frobenius;
    allowed.worst_stripe += 3 * one.worst_stripe;
  }
  // Four standard deviations of a root mean square over that many elements.
  const auto m = static_cast<double>(op.m), n = static_cast<double>(op.n);
  allowed.relative_frobenius *= 1 + 4 / std::sqrt(m * n);
  allowed.worst_stripe *= 1 + 4 / std::sqrt(m * std::min(n, 16.0));
}

}  // namespace tileglu::gpu
