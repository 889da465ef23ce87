// SPDX-License-Identifier: Apache-2.0
// Field cases about sizes, strides and addresses: C01 C02 C03 C05 C06. Named kernels where each has to hold, the
// planner's choice where a fallback may take over.
#include "core/layout.hpp"
#include "launch.hpp"
#include "op/op_case.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>

namespace tileglu::gpu {
namespace {

const Kernel kAny{BackendId::kAuto, ""};

class Shapes : public testing::TestWithParam<Kernel> {};
INSTANTIATE_TEST_SUITE_P(All, Shapes, testing::ValuesIn(all_kernels()), test_name);
class ManyRows : public testing::TestWithParam<Kernel> {};
INSTANTIATE_TEST_SUITE_P(All, ManyRows, testing::ValuesIn(tall_kernels()), test_name);

// C01: no tokens, no pointer to them; then at once a normal call.
TEST_P(Shapes, ZeroTokensThenSeven) {
  const auto inputs = Inputs::shared({.m = 7, .n = 14336, .k = 4096});
  const std::int64_t m = rows_for(GetParam(), 7);
  for (const Layout layout : layouts(inputs->problem(Layout::kSeparate, m), GetParam())) {
    const PlanPointer plan = make_plan(inputs->problem(layout, 0), GetParam());
    ASSERT_NE(plan, nullptr) << tileglu_last_error();
    EXPECT_EQ(tileglu_plan_workspace(plan.get()), 0U);
    tileglu_args args = TILEGLU_ARGS_INIT;
    args.gate = inputs->operands(layout).gate;
    args.up = inputs->operands(layout).up;
    EXPECT_EQ(tileglu_plan_run(plan.get(), &args), TILEGLU_OK) << tileglu_last_error();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    check(inputs->problem(layout, m), GetParam(), *inputs);
  }
}

// C03: no depth gives zeros, no columns give nothing; neither may hang.
TEST(EmptySizes, NoDepthGivesZerosAndNoColumnsNothing) {
  const auto start = std::chrono::steady_clock::now();
  for (const Layout layout : {Layout::kSeparate, Layout::kInterleaved8}) {
    const test::OpCase no_depth{.layout = layout, .m = 16, .n = 256, .k = 0};
    const test::Outcome zeros = test::run_case(no_depth, kAny.options(), Memory::kCuda);
    ASSERT_EQ(zeros.status, TILEGLU_OK) << zeros.error;
    EXPECT_TRUE(std::ranges::all_of(zeros.y, [](unsigned char byte) { return byte == 0; }));
    EXPECT_TRUE(zeros.guards_intact);
    const test::OpCase no_columns{.layout = layout, .m = 16, .n = 0, .k = 64};
    const test::Outcome nothing = test::run_case(no_columns, kAny.options(), Memory::kCuda);
    EXPECT_EQ(nothing.status, TILEGLU_OK) << nothing.error;
    EXPECT_TRUE(nothing.guards_intact);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
}

// --- C02 -------------------------------------------------------------------------------------------------------------

// `rows` rows of a matrix in CUDA memory, `bytes` of each, without the gaps.
std::vector<unsigned char> download_rows(const void* base, std::size_t pitch, std::size_t bytes, std::size_t rows) {
  std::vector<unsigned char> host(bytes * rows);
  require(cudaMemcpy2D(host.data(), bytes, base, pitch, bytes, rows, cudaMemcpyDeviceToHost) == cudaSuccess
              ? Status()
              : Status(Code::kCudaError, cudaGetErrorString(cudaGetLastError())));
  return host;
}

// Judges part of a result: the problem of these rows and columns alone, and where they are in memory.
void check_part(Problem part, const Operands& operands, const void* y, const Kernel& kernel, const char* what) {
  const Yardstick yardstick = make_yardstick(require(reference::preactivations(part, operands)), part, {.m = part.m});
  const std::size_t bytes = static_cast<std::size_t>(part.n) * size_of(part.dtype_y);
  const std::vector<unsigned char> rows = download_rows(y, static_cast<std::size_t>(part.ldy) * size_of(part.dtype_y),
                                                        bytes, static_cast<std::size_t>(part.m));
  part.ldy = part.n;
  EXPECT_EQ(judge(part, kernel, rows.data(), yardstick).complaint, "") << what;
}

// (a) More than 2^31 outputs: rows around the places where 16, 17 and 31-bit offsets end, rows all over, and the last
// 64 columns of all rows.
TEST_P(ManyRows, MoreThan2To31Outputs) {
  constexpr std::int64_t kRows = 131088, kColumns = 16384, kDepth = 64, kLast = 64;
  const auto inputs = Inputs::shared({.m = kRows, .n = kColumns, .k = kDepth});
  const std::vector<Layout> taken = layouts(inputs->problem(Layout::kSeparate, kRows), GetParam());
  ASSERT_FALSE(taken.empty()) << tileglu_last_error();
  const Layout layout = taken.front();
  const Problem p = inputs->problem(layout, kRows);
  const Operands operands = inputs->operands(layout);
  const PlanPointer plan = make_plan(p, GetParam());
  ASSERT_NE(plan, nullptr) << tileglu_last_error();
  const runtime::Stream stream = require(runtime::Stream::make(Memory::kCuda, 0));
  const Output output(p, tileglu_plan_workspace(plan.get()));
  const tileglu_args args = output.args(operands, stream);
  ASSERT_EQ(tileglu_plan_run(plan.get(), &args), TILEGLU_OK) << tileglu_last_error();
  require(stream.synchronize());

  const auto at = [&](const void* base, std::int64_t elements) {
    return static_cast<const char*>(base) + 2 * elements;
  };
  const auto check_rows = [&](std::int64_t first, std::int64_t count, std::int64_t step, const char* what) {
    Problem part = p;
    part.m = count;
    part.lda *= step;
    part.ldy *= step;
    Operands from = operands;
    from.a = at(operands.a, first * p.lda);
    check_part(part, from, at(args.y, first * p.ldy), GetParam(), what);
  };
  check_rows(0, 64, 2048, "every 2048th row");
  check_rows(65535, 2, 1, "rows 65535 and 65536");
  check_rows(131071, 17, 1, "rows 131071 to 131087");
  Problem part = p;  // the last columns: the last weight rows
  part.n = kLast;
  Operands from = operands;
  const std::int64_t first_row = (is_single_matrix(layout) ? 2 : 1) * (kColumns - kLast);
  if (layout == Layout::kGateUp || layout == Layout::kUpGate) {
    part.layout = Layout::kSeparate;
    part.ld_up = p.ld_gate;
    from.gate =
        at(operands.gate, (layout == Layout::kGateUp ? kColumns : 2 * kColumns) * p.ld_gate - kLast * p.ld_gate);
    from.up = at(operands.gate, (layout == Layout::kGateUp ? 2 * kColumns : kColumns) * p.ld_gate - kLast * p.ld_gate);
  } else {
    from.gate = at(operands.gate, first_row * p.ld_gate);
    if (layout == Layout::kSeparate) from.up = at(operands.up, first_row * p.ld_up);
  }
  check_part(part, from, at(args.y, kColumns - kLast), GetParam(), "the last 64 columns");
}

// (c) A whose rows lie so far apart that their offsets pass 2^31.
TEST_P(ManyRows, RowOffsetsPast2To31) {
  constexpr std::int64_t kRows = 70000, kColumns = 128, kDepth = 64, kStride = 32768;
  const auto inputs = Inputs::shared({.m = kRows, .n = kColumns, .k = kDepth});
  const std::vector<Layout> taken = layouts(inputs->problem(Layout::kSeparate, kRows), GetParam());
  ASSERT_FALSE(taken.empty()) << tileglu_last_error();
  Problem p = inputs->problem(taken.front(), kRows);
  Operands operands = inputs->operands(p.layout);
  const auto spread = require(runtime::Buffer::make(Memory::kCuda, 0, std::size_t{2} * kRows * kStride));
  require(spread.fill(0xFF));
  ASSERT_EQ(cudaMemcpy2D(spread.data(), 2 * kStride, operands.a, 2 * static_cast<std::size_t>(p.lda), 2 * kDepth, kRows,
                         cudaMemcpyDeviceToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  operands.a = spread.data();
  p.lda = kStride;
  const std::vector<unsigned char> y = run(p, GetParam(), operands);
  EXPECT_EQ(judge(p, GetParam(), y.data(), inputs->yardstick({.m = kRows})).complaint, "");
}

// --- C05, C06: what TMA cannot address is computed by another kernel, or refused with the number that is at fault
// -----

// The planner's choice must be right; a kernel by name does it too, or refuses, names `culprit` and touches nothing.
void check_all(const test::OpCase& op, const std::string& culprit) {
  EXPECT_TRUE(test::accepted(op, test::run_case(op, kAny.options(), Memory::kCuda)));
  for (const Kernel& kernel : all_kernels()) {
    const test::Outcome outcome = test::run_case(op, kernel.options(), Memory::kCuda);
    EXPECT_TRUE(test::accepted(op, outcome, true)) << kernel.name;
    if (outcome.status == TILEGLU_OK) continue;
    const bool never = outcome.error.find("layout") != std::string::npos ||  // whatever the sizes
                       outcome.error.find("tokens") != std::string::npos;
    EXPECT_TRUE(never || outcome.error.find(culprit) != std::string::npos) << kernel.name << ": " << outcome.error;
  }
}

TEST(Alignment, OutputRowsOffThe16ByteGrid) {
  for (const Layout layout : {Layout::kSeparate, Layout::kGateUp, Layout::kInterleaved1}) {
    for (const std::int64_t n : {4097, 4098, 4100, 4104}) {
      check_all({.layout = layout, .m = 257, .n = n, .k = 512, .pad = {}}, "n=" + std::to_string(n));
    }
  }
}

TEST(Alignment, OutputViewsOffThe16ByteGrid) {
  for (const Layout layout : {Layout::kGateUp, Layout::kInterleaved1, Layout::kInterleaved8}) {
    check_all({.layout = layout, .m = 257, .n = 4096, .k = 512, .pad = {.y = 8}, .misalign = {.y = 1}}, "alignment=2");
    check_all({.layout = layout, .m = 257, .n = 4096, .k = 512, .pad = {.y = 1}}, "ldy=4097");
  }
}

TEST(Alignment, InputsOffThe16ByteGrid) {
  for (const Layout layout : {Layout::kSeparate, Layout::kUpGate, Layout::kInterleaved1, Layout::kInterleaved8}) {
    check_all({.layout = layout, .m = 64, .n = 128, .k = 64, .pad = {.a = 1, .y = 64}}, "lda=65");
    check_all({.layout = layout, .m = 64, .n = 128, .k = 511}, "k=511");
    check_all({.layout = layout, .m = 64, .n = 128, .k = 512, .misalign = {.a = 1}}, "alignment=2");
    check_all({.layout = layout, .m = 64, .n = 128, .k = 512, .misalign = {.gate = 1}}, "alignment=2");
  }
}

// The query must agree with the plan, for what is taken and for what is refused.
TEST_P(Shapes, CanImplementAgreesWithPlanning) {
  for (const std::int64_t n : {1, 3, 8, 12, 64, 4097}) {
    for (const std::int64_t k : {1, 8, 511, 512}) {
      Problem p{.memory = Memory::kCuda, .m = 257, .n = n, .k = k, .lda = k, .ld_gate = k, .ldy = n};
      for (const Layout layout : {Layout::kSeparate, Layout::kGateUp, Layout::kInterleaved1, Layout::kInterleaved8}) {
        p.layout = layout;
        p.ld_up = layout == Layout::kSeparate ? k : 0;
        std::string reason;
        const tileglu_status able = can_implement(p, GetParam(), &reason);
        const PlanPointer plan = make_plan(p, GetParam());
        EXPECT_EQ(able == TILEGLU_OK, plan != nullptr) << "n=" << n << " k=" << k << ": " << reason;
        EXPECT_EQ(able == TILEGLU_OK, reason.empty()) << reason;
      }
    }
  }
}

}  // namespace
}  // namespace tileglu::gpu
