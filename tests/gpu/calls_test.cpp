// SPDX-License-Identifier: Apache-2.0
// The rules of the call on a GPU, for every kernel: repeatable, shared between threads and streams, the caller's device
// left alone, refusals clean.
#include "core/names.hpp"
#include "launch.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

namespace tileglu::gpu {
namespace {

constexpr std::int64_t kRows = 300, kColumns = 712, kDepth = 640;

class Calls : public testing::TestWithParam<Kernel> {
 protected:
  // The first layout that the kernel takes.
  Problem problem(Inputs& inputs) const {
    const std::int64_t m = rows_for(GetParam(), kRows);
    const std::vector<Layout> taken = layouts(inputs.problem(Layout::kSeparate, m), GetParam());
    if (taken.empty()) throw std::runtime_error(std::string("no layout is taken: ") + tileglu_last_error());
    return inputs.problem(taken.front(), m);
  }
  std::shared_ptr<Inputs> inputs(int device = 0) const {
    return Inputs::shared({.m = kRows, .n = kColumns, .k = kDepth, .device = device});
  }
};
INSTANTIATE_TEST_SUITE_P(All, Calls, testing::ValuesIn(all_kernels()), test_name);

TEST_P(Calls, TenRunsAreBitwiseEqual) {
  const auto data = inputs();
  const Problem p = problem(*data);
  const std::vector<unsigned char> first = run(p, GetParam(), data->operands(p.layout));
  for (int i = 1; i < 10; ++i) ASSERT_EQ(run(p, GetParam(), data->operands(p.layout)), first) << "run " << i;
}

TEST_P(Calls, OnePlanServesFourThreadsOnTwoStreams) {
  constexpr int kThreads = 4, kRounds = 20;
  const auto data = inputs();
  const Problem p = problem(*data);
  const Operands operands = data->operands(p.layout);
  const std::vector<unsigned char> right = run(p, GetParam(), operands);
  const PlanPointer plan = make_plan(p, GetParam());
  ASSERT_NE(plan, nullptr) << tileglu_last_error();
  const std::array<runtime::Stream, 2> streams{require(runtime::Stream::make(Memory::kCuda, 0)),
                                               require(runtime::Stream::make(Memory::kCuda, 0))};
  std::vector<Output> outputs;
  for (int i = 0; i < kThreads; ++i) outputs.emplace_back(p, tileglu_plan_workspace(plan.get()));
  std::array<std::string, kThreads> failures;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const tileglu_args args = outputs[t].args(operands, streams[t % streams.size()]);
        for (int round = 0; round < kRounds; ++round) {
          if (tileglu_plan_run(plan.get(), &args) != TILEGLU_OK) failures[t] = tileglu_last_error();
        }
      });
    }
  }
  for (const runtime::Stream& stream : streams) require(stream.synchronize());
  for (std::size_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(failures[t], "") << "thread " << t;
    EXPECT_TRUE(outputs[t].download() == right) << "thread " << t;
  }
}

// Field case C16, with as many GPUs as there are: operands on each, while each other one is current.
TEST_P(Calls, TheCurrentDeviceStaysAsItWas) {
  for (int device = 0; device < runtime::device_count(); ++device) {
    const auto data = inputs(device);
    const Problem p = problem(*data);
    const std::vector<unsigned char> right = run(p, GetParam(), data->operands(p.layout));
    for (int current = 0; current < runtime::device_count(); ++current) {
      ASSERT_EQ(cudaSetDevice(current), cudaSuccess);
      EXPECT_TRUE(run(p, GetParam(), data->operands(p.layout)) == right) << "device " << device << " from " << current;
      int after = -1;
      ASSERT_EQ(cudaGetDevice(&after), cudaSuccess);
      EXPECT_EQ(after, current);
    }
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_P(Calls, ADeviceThatIsNotThereIsNamed) {
  const auto data = inputs();
  Problem p = problem(*data);
  p.device = runtime::device_count();
  std::string reason;
  EXPECT_EQ(can_implement(p, GetParam(), &reason), TILEGLU_NOT_AVAILABLE) << reason;
  EXPECT_NE(reason.find("device=" + std::to_string(p.device)), std::string::npos) << reason;
  p = problem(*data);
  p.memory = Memory::kHost;
  EXPECT_EQ(can_implement(p, GetParam(), &reason), TILEGLU_NOT_SUPPORTED) << reason;
}

// A call that must fail: the code, Y as it was, and a good call right after it.
TEST_P(Calls, RefusalsLeaveOutputAndContextAlone) {
  const auto data = inputs();
  const Problem p = problem(*data);
  const PlanPointer plan = make_plan(p, GetParam());
  ASSERT_NE(plan, nullptr) << tileglu_last_error();
  const std::size_t workspace = tileglu_plan_workspace(plan.get());
  const runtime::Stream stream = require(runtime::Stream::make(Memory::kCuda, 0));
  const Output output(p, workspace);
  const tileglu_args good = output.args(data->operands(p.layout), stream);

  const auto refused = [&](const tileglu_args& args, tileglu_status expected, const char* named) {
    EXPECT_EQ(tileglu_plan_run(plan.get(), &args), expected) << named;
    EXPECT_NE(std::string(tileglu_last_error()).find(named), std::string::npos) << tileglu_last_error();
    require(stream.synchronize());
    const std::vector<unsigned char> y = output.download();
    EXPECT_TRUE(std::ranges::all_of(y, [](unsigned char b) { return b == reference::kPoisonByte; })) << named;
  };
  tileglu_args bad = good;
  bad.a = nullptr;
  refused(bad, TILEGLU_INVALID_ARGUMENT, "a is NULL");
  bad = good;
  bad.y = static_cast<char*>(good.y) + 2;
  refused(bad, TILEGLU_INVALID_ARGUMENT, "y=");
  bad = good;
  bad.y = const_cast<void*>(good.a);
  refused(bad, TILEGLU_INVALID_ARGUMENT, "overlaps");
  if (workspace > 0) {
    bad = good;
    bad.workspace_bytes = workspace - 1;
    refused(bad, TILEGLU_WORKSPACE_TOO_SMALL, "workspace");
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ASSERT_EQ(tileglu_plan_run(plan.get(), &good), TILEGLU_OK) << tileglu_last_error();
  require(stream.synchronize());
  EXPECT_TRUE(output.download() == run(p, GetParam(), data->operands(p.layout)));
}

// The promise of the planned call in C: validation, addresses into the plan's descriptors, one launch.
TEST(HostPath, APlannedCallTakesLessThanFiveMicroseconds) {
  constexpr int kBatch = 32, kBatches = 200;  // a batch does not fill the queue
  const auto data = Inputs::shared({.m = 16, .n = 256, .k = 256});
  for (const char* kernel : {"paired", "decode"}) {
    const Kernel fused{BackendId::kSm90, kernel};
    const Problem p = data->problem(Layout::kSeparate, 16);
    const PlanPointer plan = make_plan(p, fused);
    ASSERT_NE(plan, nullptr) << tileglu_last_error();
    const runtime::Stream stream = require(runtime::Stream::make(Memory::kCuda, 0));
    const Output output(p, tileglu_plan_workspace(plan.get()));
    const tileglu_args args = output.args(data->operands(p.layout), stream);
    double best_us = 1e9;  // the least of many batches: other programs may be using this machine
    for (int batch = 0; batch < kBatches; ++batch) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kBatch; ++i) ASSERT_EQ(tileglu_plan_run(plan.get(), &args), TILEGLU_OK);
      const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
      best_us = std::min(best_us, elapsed.count() / kBatch);
      require(stream.synchronize());
    }
    std::printf("%s: %.2f us a planned call\n", tileglu_plan_kernel(plan.get()), best_us);
    EXPECT_LT(best_us, 5.0) << kernel;
  }
}

// A launch that CUDA itself refuses is reported once, and not to whoever calls next (field case C01).
TEST_P(Calls, AnErrorOfTheRuntimeIsNotLeftBehind) {
  const auto data = inputs();
  const Problem p = problem(*data);
  (void)runtime::Buffer::make(Memory::kCuda, 0, std::size_t{1} << 46);  // no GPU has 64 TiB
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_FALSE(run(p, GetParam(), data->operands(p.layout)).empty());
}

// sm90 is offered to Hopper alone (field case C36); what it does not take goes to cublas and says so.
TEST(Selection, PlansSayWhatRunsAndWhy) {
  const DeviceSpec spec = require(runtime::device_spec(0));
  const bool hopper = spec.capability_major == 9 && spec.capability_minor == 0;
  const auto data = Inputs::shared({.m = 64, .n = 64, .k = 64});
  const Kernel any{BackendId::kAuto, ""};
  const Kernel fused = picked(data->problem(Layout::kInterleaved8, 64), any);
  EXPECT_EQ(name_of(fused.backend), std::string(hopper ? "sm90" : "cublas"));
  const auto wide = Inputs::shared({.dtype = Dtype::kFp32, .m = 64, .n = 64, .k = 64});
  const PlanPointer plan = make_plan(wide->problem(Layout::kGateUp, 64), any);
  ASSERT_NE(plan, nullptr) << tileglu_last_error();
  EXPECT_STREQ(tileglu_plan_backend(plan.get()), "cublas");
  EXPECT_STREQ(tileglu_plan_kernel(plan.get()), "fp32_merged");
  EXPECT_NE(std::string(tileglu_plan_describe(plan.get())).find("sm90"), std::string::npos)
      << tileglu_plan_describe(plan.get());
}

}  // namespace
}  // namespace tileglu::gpu
