// SPDX-License-Identifier: Apache-2.0
// TILEGLU_BATCH_INVARIANT and TILEGLU_PREFETCH_WEIGHTS.
#include "launch.hpp"
#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"

#include <cstring>

namespace tileglu::gpu {
namespace {

constexpr std::int64_t kRows = 300, kColumns = 712, kDepth = 640;

std::vector<Kernel> invariant_kernels() {
  std::vector<Kernel> kernels;
  for (const KernelConfig& config : kSm90Configs) {
    if (!batch_invariant(config).ok()) continue;
    kernels.push_back({.backend = BackendId::kSm90, .name = config_name(config), .flags = TILEGLU_BATCH_INVARIANT});
  }
  return kernels;
}

// Row `row` alone and as one of several gives the same bits, in every kernel that may be picked.
TEST(BatchInvariance, BitsOfARowDependOnNothingElse) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16}) {
    Inputs inputs({.dtype = dtype, .m = kRows, .n = kColumns, .k = kDepth});
    Operands operands = inputs.operands(Layout::kGateUp);
    const void* const a = operands.a;
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf}) {
      Problem p = inputs.problem(Layout::kGateUp, kRows);
      p.activation = activation;
      operands.a = a;
      const std::vector<unsigned char> all = run(p, invariant_kernels().front(), operands);
      for (const Kernel& kernel : invariant_kernels()) {
        for (const auto& [first, m] : {std::pair<std::int64_t, std::int64_t>{0, 300}, {17, 1}, {128, 100}, {295, 5}}) {
          p.m = m;
          operands.a = static_cast<const char*>(a) + first * kDepth * 2;
          const std::vector<unsigned char> part = run(p, kernel, operands);
          ASSERT_EQ(std::memcmp(part.data(), all.data() + first * kColumns * 2, part.size()), 0)
              << kernel.name << ", rows " << first << " to " << first + m;
        }
      }
    }
  }
}

TEST(BatchInvariance, WithoutItTheChoiceDependsOnM) {
  // Otherwise the test above would hold for any flag.
  const auto inputs = Inputs::shared({.m = kRows, .n = kColumns, .k = kDepth});
  const Kernel any{BackendId::kSm90, ""}, invariant{BackendId::kSm90, "", TILEGLU_BATCH_INVARIANT};
  EXPECT_NE(picked(inputs->problem(Layout::kGateUp, 1), any).name,
            picked(inputs->problem(Layout::kGateUp, 1), invariant).name);
  Kernel cublas = cublas_kernels().front();
  cublas.flags = TILEGLU_BATCH_INVARIANT;
  std::string reason;
  EXPECT_EQ(can_implement(inputs->problem(Layout::kGateUp, 1), cublas, &reason), TILEGLU_NOT_SUPPORTED);
  EXPECT_NE(reason.find("TILEGLU_BATCH_INVARIANT"), std::string::npos) << reason;
}

// A chain in which every call reads what the one before has written, as fast as the stream takes them.
class Chain : public testing::TestWithParam<Kernel> {
 protected:
  static constexpr int kLinks = 8;
  static constexpr std::int64_t kSize = 1024;

  Chain() : inputs_({.m = rows_for(GetParam(), 200), .n = kSize, .k = kSize}) {}

  // Runs all links; waits for each if `apart`. The last result.
  std::vector<unsigned char> run_links(const Kernel& kernel, bool apart, bool in_graph) {
    const std::vector<Layout> taken = layouts(inputs_.problem(Layout::kSeparate, inputs_.shape().m), GetParam());
    const Problem p = inputs_.problem(taken.at(0), inputs_.shape().m);
    const PlanPointer plan = make_plan(p, kernel);
    if (plan == nullptr) throw std::runtime_error(tileglu_last_error());
    const runtime::Stream stream = require(runtime::Stream::make(Memory::kCuda, 0));
    std::vector<Output> outputs;
    for (int i = 0; i < kLinks; ++i) outputs.emplace_back(p, tileglu_plan_workspace(plan.get()));
    const auto enqueue = [&]() -> Status {
      Operands operands = inputs_.operands(p.layout);
      for (const Output& output : outputs) {
        const tileglu_args args = output.args(operands, stream);
        if (tileglu_plan_run(plan.get(), &args) != TILEGLU_OK) return {Code::kInternalError, tileglu_last_error()};
        operands.a = args.y;
        if (apart) TILEGLU_TRY(stream.synchronize());
      }
      return {};
    };
    if (in_graph) {
      const runtime::Graph graph = require(runtime::Graph::capture(stream, enqueue));
      require(graph.launch(stream));
      require(stream.synchronize());
    } else {
      require(enqueue());
      require(stream.synchronize());
    }
    return outputs.back().download();
  }

  Inputs inputs_;
};
INSTANTIATE_TEST_SUITE_P(All, Chain, testing::ValuesIn(sm90_kernels()), test_name);

TEST_P(Chain, EachCallSeesWhatTheOneBeforeWrote) {
  Kernel prefetch = GetParam();
  prefetch.flags = TILEGLU_PREFETCH_WEIGHTS;
  const std::vector<unsigned char> right = run_links(GetParam(), true, false);
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(run_links(GetParam(), false, false) == right);
    EXPECT_TRUE(run_links(prefetch, false, false) == right);
    EXPECT_TRUE(run_links(prefetch, false, true) == right);
  }
}

}  // namespace
}  // namespace tileglu::gpu
