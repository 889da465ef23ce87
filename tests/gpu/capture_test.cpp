// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: captured at the first run of a plan, planned inside the capture, replayed with new contents.
#include "core/format.hpp"
#include "launch.hpp"
#include "plan/sm90_configs.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace tileglu::gpu {
namespace {

constexpr std::int64_t kRows = 300, kColumns = 712, kDepth = 640;

class Capture : public testing::TestWithParam<Kernel> {
 protected:
  Capture() : stream_(require(runtime::Stream::make(Memory::kCuda, 0))) {}

  static Problem problem(Inputs& inputs, std::int64_t wanted) {
    const std::int64_t m = rows_for(GetParam(), wanted);
    const std::vector<Layout> taken = layouts(inputs.problem(Layout::kSeparate, m), GetParam());
    if (taken.empty()) throw std::runtime_error(std::string("no layout is taken: ") + tileglu_last_error());
    return inputs.problem(taken.front(), m);
  }
  runtime::Graph captured_run(const tileglu_plan* plan, const tileglu_args& args) const {
    return require(runtime::Graph::capture(stream_, [&]() -> Status {
      const tileglu_status status = tileglu_plan_run(plan, &args);
      return status == TILEGLU_OK ? Status() : Status(Code::kInternalError, tileglu_last_error());
    }));
  }
  // Replays `graph` with new contents of A each time; every result must be that of a plain run, bit for bit.
  void replay(const runtime::Graph& graph, const Output& output, const Problem& problem, Inputs& inputs,
              int replays) const {
    for (int i = 0; i < replays; ++i) {
      inputs.refill_a(static_cast<unsigned>(100 + i));
      output.poison();
      require(graph.launch(stream_));
      require(stream_.synchronize());
      ASSERT_TRUE(output.download() == run(problem, GetParam(), inputs.operands(problem.layout))) << "replay " << i;
    }
  }

  runtime::Stream stream_;
};
INSTANTIATE_TEST_SUITE_P(All, Capture, testing::ValuesIn(all_kernels()), test_name);

// Field case C20: nothing of the plan has run before the capture; then even the plan is made inside it.
TEST_P(Capture, FirstRunOfAPlan) {
  Inputs inputs({.m = kRows, .n = kColumns, .k = kDepth});
  const Problem p = problem(inputs, kRows);
  const PlanPointer plan = make_plan(p, GetParam());
  ASSERT_NE(plan, nullptr) << tileglu_last_error();
  const Output output(p, tileglu_plan_workspace(plan.get()));
  const tileglu_args args = output.args(inputs.operands(p.layout), stream_);
  replay(captured_run(plan.get(), args), output, p, inputs, 20);
}

TEST_P(Capture, PlannedInsideTheCapture) {
  Inputs inputs({.m = kRows, .n = kColumns, .k = kDepth});
  const Problem p = problem(inputs, kRows);
  const Output output(p, std::size_t{64} << 20);
  const tileglu_args args = output.args(inputs.operands(p.layout), stream_);
  PlanPointer plan;
  const runtime::Graph graph = require(runtime::Graph::capture(stream_, [&]() -> Status {
    plan = make_plan(p, GetParam());
    if (plan != nullptr && tileglu_plan_run(plan.get(), &args) == TILEGLU_OK) return {};
    return {Code::kInternalError, tileglu_last_error()};
  }));
  replay(graph, output, p, inputs, 3);
}

// Field case C19: graphs of two sizes, each with a workspace of its own; eager calls of other sizes and other memory
// come between; destroying one graph leaves the other alone.
TEST_P(Capture, GraphsKeepTheirWorkspaces) {
  Inputs inputs({.m = 4096, .n = kColumns, .k = kDepth});
  const Problem one = problem(inputs, 1), eight = problem(inputs, 8);
  const PlanPointer plan_one = make_plan(one, GetParam()), plan_eight = make_plan(eight, GetParam());
  ASSERT_TRUE(plan_one != nullptr && plan_eight != nullptr) << tileglu_last_error();
  const Output out_one(one, tileglu_plan_workspace(plan_one.get()));
  const Output out_eight(eight, tileglu_plan_workspace(plan_eight.get()));
  const Operands operands = inputs.operands(one.layout);
  auto graph_one = std::make_unique<runtime::Graph>(captured_run(plan_one.get(), out_one.args(operands, stream_)));
  const runtime::Graph graph_eight = captured_run(plan_eight.get(), out_eight.args(operands, stream_));
  for (const std::int64_t m : {1, 64, 4096}) (void)run(problem(inputs, m), GetParam(), operands);
  const auto sentinels = require(runtime::Buffer::make(Memory::kCuda, 0, std::size_t{1} << 28));
  require(sentinels.fill(0x5A));
  for (int i = 0; i < 100; ++i) {
    if (i == 50) graph_one.reset();
    if (graph_one != nullptr) require(graph_one->launch(stream_));
    require(graph_eight.launch(stream_));
  }
  require(stream_.synchronize());
  EXPECT_TRUE(out_one.download() == run(one, GetParam(), operands));
  replay(graph_eight, out_eight, eight, inputs, 3);
  std::vector<unsigned char> seen(sentinels.size());
  require(sentinels.download(seen.data(), seen.size()));
  EXPECT_TRUE(std::ranges::all_of(seen, [](unsigned char byte) { return byte == 0x5A; }));
}

// The same as the library's very first use in a process, for which each kernel needs a process of its own: the parent
// below starts it and says in a variable which layout the kernel takes, since asking would be a use.
constexpr const char* kLayoutVariable = "TILEGLU_GPU_TESTS_LAYOUT";

TEST_P(Capture, DISABLED_FirstUseInTheProcess) {
  const char* given = std::getenv(kLayoutVariable);
  ASSERT_NE(given, nullptr) << kLayoutVariable;
  const auto layout = static_cast<Layout>(std::atoi(given));
  Inputs inputs({.m = 5, .n = kColumns, .k = kDepth});
  const Problem p = inputs.problem(layout, rows_for(GetParam(), 5));
  const Output output(p, std::size_t{64} << 20);
  const tileglu_args args = output.args(inputs.operands(layout), stream_);
  PlanPointer plan;
  const runtime::Graph graph = require(runtime::Graph::capture(stream_, [&]() -> Status {
    plan = make_plan(p, GetParam());
    if (plan != nullptr && tileglu_plan_run(plan.get(), &args) == TILEGLU_OK) return {};
    return {Code::kInternalError, tileglu_last_error()};
  }));
  require(graph.launch(stream_));
  require(stream_.synchronize());
  const std::vector<unsigned char> y = output.download();
  EXPECT_EQ(judge(p, GetParam(), y.data(), inputs.yardstick({.m = p.m})).complaint, "");
}

// One kernel of each family, and of cublas all.
std::vector<Kernel> one_of_each_family() {
  std::vector<Kernel> kernels = cublas_kernels();
  std::set<KernelFamily> seen;
  for (const KernelConfig& config : kSm90Configs) {
    if (seen.insert(config.family).second) kernels.push_back({BackendId::kSm90, config_name(config)});
  }
  return kernels;
}

TEST(CaptureInNewProcess, FirstUseOfEachFamily) {
  const auto inputs = Inputs::shared({.m = 5, .n = kColumns, .k = kDepth});
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const Kernel& kernel : one_of_each_family()) {
    const std::vector<Layout> taken = layouts(inputs->problem(Layout::kSeparate, rows_for(kernel, 5)), kernel);
    ASSERT_FALSE(taken.empty()) << kernel.name << ": " << tileglu_last_error();
    const std::string command = formatted(
        "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX {}={} '{}' --gtest_also_run_disabled_tests --gtest_brief=1 "
        "--gtest_output= "
        "'--gtest_filter=All/Capture.DISABLED_FirstUseInTheProcess/{}'",
        kLayoutVariable, static_cast<int>(taken.front()), self, test_name({kernel, 0}));
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

}  // namespace
}  // namespace tileglu::gpu
