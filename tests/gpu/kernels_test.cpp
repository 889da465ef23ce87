// SPDX-License-Identifier: Apache-2.0
// Every kernel that a plan can pick, by name, against fp64: ragged shapes, models, and the check itself.
#include "launch.hpp"
#include "op/op_case.hpp"
#include "verified.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace tileglu::gpu {
namespace {

class Kernels : public testing::TestWithParam<Kernel> {
 protected:
  static std::int64_t rows(std::int64_t m) { return rows_for(GetParam(), m); }
  static Problem square() {
    return {.memory = Memory::kCuda, .m = rows(64), .n = 64, .k = 64, .lda = 64, .ld_gate = 64, .ldy = 64};
  }
};
INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(all_kernels()), test_name);

// m, n and k around the edges of tiles and of the 16-byte rule. The lengths of the lists share no divisor: walked side
// by side they keep meeting in other pairs.
constexpr std::array<std::int64_t, 13> kM{1, 2, 7, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300};
constexpr std::array<std::int64_t, 11> kN{8, 16, 40, 72, 96, 120, 128, 136, 608, 712, 1376};
constexpr std::array<std::int64_t, 8> kK{8, 16, 56, 64, 72, 128, 136, 1024};
constexpr std::size_t kRaggedCases = 6 * kM.size();

TEST_P(Kernels, RaggedShapesStridesAndTypes) {
  std::vector<Problem> taken = variants(square(), GetParam());
  std::erase_if(taken, [](const Problem& problem) { return problem.dtype_y != problem.dtype; });
  ASSERT_FALSE(taken.empty()) << "the kernel takes no problem at all: " << tileglu_last_error();
  for (std::size_t i = 0; i < kRaggedCases; ++i) {
    const Problem& variant = taken[i * 5 % taken.size()];
    const std::int64_t pad = std::array<std::int64_t, 3>{0, 8, 72}[i % 3];
    const test::OpCase op{.dtype = variant.dtype,
                          .activation = variant.activation,
                          .layout = variant.layout,
                          .m = rows(kM[i % kM.size()]),
                          .n = kN[i % kN.size()],
                          .k = kK[i % kK.size()],
                          .pad = {.a = pad, .gate = 8 * (pad % 5), .up = pad, .y = 72 - pad},
                          .seed = static_cast<unsigned>(i + 1)};
    test::Outcome outcome = test::run_case(op, GetParam().options(), Memory::kCuda);
    if (outcome.status == TILEGLU_OK) allow_unfused_path(op, outcome);
    EXPECT_TRUE(test::accepted(op, outcome));
    if (outcome.status != TILEGLU_OK) continue;
    const double error =
        reference::compare(op.result_dtype(), op.m, op.n, outcome.y.data(), op.n, outcome.baselines.exact)
            .relative_frobenius;
    if (GetParam().backend ==
        BackendId::kSm90) {  // rounds once, and so has one rounding's error, not just less than three
      EXPECT_LE(error, 1.03 * outcome.baselines.rounded.relative_frobenius + accumulation_noise(op.k)) << describe(op);
    }
    record(GetParam().name, {.relative_frobenius = error});
  }
}

// Tiles that narrow to different numbers of columns, in one and in several waves, and where the last one overlaps its
// neighbour.
TEST_P(Kernels, ManyColumns) {
  struct Size {
    std::int64_t m, n;
  };
  for (const Layout layout : layouts(square(), GetParam())) {
    for (const Size& size : {Size{130, 2120}, Size{5, 4864}, Size{5, 4888}, Size{5, 9016}, Size{2, 17000}}) {
      const test::OpCase op{.layout = layout, .m = rows(size.m), .n = size.n, .k = 72, .pad = {.y = 24}};
      EXPECT_TRUE(test::accepted(op, test::run_case(op, GetParam().options(), Memory::kCuda)));
    }
  }
}

// The unused part of a narrow tile is whatever the kernel before left in shared memory.
TEST_P(Kernels, LeftoversInSharedMemoryDoNotMatter) {
  constexpr std::int64_t kWide = 16896, kDeep = 128;  // whole tiles on 132 SMs
  const Layout layout = layouts(square(), GetParam()).front();
  std::vector<std::vector<unsigned char>> results;
  for (const double left : {std::numeric_limits<double>::quiet_NaN(), 3.0}) {
    test::OpCase before{.layout = layout, .m = rows(16), .n = kWide, .k = kDeep};
    before.gate = before.up = std::vector<double>(static_cast<std::size_t>(kWide * kDeep), left);
    ASSERT_EQ(test::run_case(before, GetParam().options(), Memory::kCuda).status, TILEGLU_OK);
    const test::OpCase op{.layout = layout, .m = rows(13), .n = 4888, .k = 72};
    const test::Outcome outcome = test::run_case(op, GetParam().options(), Memory::kCuda);
    EXPECT_TRUE(test::accepted(op, outcome));
    results.emplace_back(outcome.y.begin(), outcome.y.end());
  }
  EXPECT_EQ(results[0], results[1]);
}

// Whatever the kernel takes: every activation, layout and pair of types, at one shape.
TEST_P(Kernels, EveryVariant) {
  for (const Problem& variant : variants(square(), GetParam())) {
    const auto inputs = Inputs::shared({.dtype = variant.dtype, .m = 130, .n = 200, .k = 136});
    Problem problem = inputs->problem(variant.layout, rows(130));
    problem.activation = variant.activation;
    problem.dtype_y = variant.dtype_y;
    check(problem, GetParam(), *inputs);
  }
}

// Field case C12: for every kernel, two shapes, small and plain scale, each stripe of 16 columns on its own. A stripe
// may be no worse than the roundings of the format, here 2^-7 even for the path that rounds three times.
TEST_P(Kernels, EveryStripe) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16}) {
    for (const double scale : {0.02, 1.0}) {
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1024, 512, 1024}, {300, 712, 640}}) {
        const auto inputs = Inputs::shared({.dtype = dtype, .m = m, .n = n, .k = k, .scale = scale});
        for (const Layout layout : layouts(inputs->problem(Layout::kSeparate, rows(m)), GetParam())) {
          check(inputs->problem(layout, rows(m)), GetParam(), *inputs,
                {.against_eager = GetParam().backend == BackendId::kSm90});
        }
      }
    }
  }
}

struct Model {
  const char* name;
  std::int64_t n, k;
};
constexpr std::array<Model, 4> kQwen25{
    {{"0.5b", 4864, 896}, {"1.5b", 8960, 1536}, {"3b", 11008, 2048}, {"7b", 18944, 3584}}};

// The acceptance of the fused kernels: at most 0.55 of the error of two GEMMs, an activation and a product.
TEST_P(Kernels, ModelShapes) {
  const bool fused = GetParam().backend == BackendId::kSm90;
  for (const Model& model : kQwen25) {
    const auto inputs = Inputs::shared({.m = 2048, .n = model.n, .k = model.k});
    for (const std::int64_t m : {rows(128), rows(512), rows(2048)}) {
      std::vector<Layout> taken = layouts(inputs->problem(Layout::kSeparate, m), GetParam());
      if (m == 2048 || !fused) taken.resize(std::min<std::size_t>(taken.size(), 1));  // they differ in addresses only
      EXPECT_FALSE(taken.empty()) << tileglu_last_error();
      for (const Layout layout : taken) {
        // 13 is prime to every tile: the sampled rows are in all places of a tile.
        check(inputs->problem(layout, m), GetParam(), *inputs, {.row_step = 13, .against_eager = fused});
      }
    }
  }
}

// Field case C09: a NaN or an infinity reaches its own row, all of it (an infinite gate times an infinite up), and no
// other.
TEST_P(Kernels, NotFiniteRowsStayApart) {
  constexpr std::int64_t kColumns = 64, kDepth = 64;
  const std::int64_t m = rows(40), nan = m * 3 / 40, inf = m * 17 / 40, minus_inf = m * 18 / 40;
  Inputs inputs({.m = m, .n = kColumns, .k = kDepth});
  for (const Layout layout : layouts(inputs.problem(Layout::kSeparate, m), GetParam())) {
    const Problem problem = inputs.problem(layout, m);
    Operands operands = inputs.operands(layout);
    std::vector<std::uint16_t> a(static_cast<std::size_t>(m * kDepth));  // bf16, +-1 to +-1.5
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<std::uint16_t>((i % 3 == 0 ? 0xBF80 : 0x3F80) + i % 64);
    a[static_cast<std::size_t>(nan * kDepth + 5)] = 0x7FC0;
    a[static_cast<std::size_t>(inf * kDepth + 0)] = 0x7F80;
    a[static_cast<std::size_t>(minus_inf * kDepth + 9)] = 0xFF80;
    const auto buffer = require(runtime::Buffer::make(Memory::kCuda, 0, a.size() * 2));
    require(buffer.upload(a.data(), a.size() * 2));
    operands.a = buffer.data();
    const std::vector<unsigned char> y = run(problem, GetParam(), operands);
    for (std::int64_t row = 0; row < m; ++row) {
      int not_finite = 0;
      for (std::int64_t column = 0; column < kColumns; ++column) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, &y[static_cast<std::size_t>(2 * (row * kColumns + column))], 2);
        not_finite += (bits & 0x7F80) == 0x7F80 ? 1 : 0;
      }
      EXPECT_EQ(not_finite, row == nan || row == inf || row == minus_inf ? kColumns : 0) << "row " << row;
    }
  }
}

// The checker must see the faults that kernels have: planted in a right result, each has to be refused.
class Checker : public testing::Test {
 protected:
  static constexpr std::int64_t kRows = 300, kColumns = 712;
  void SetUp() override {
    problem_ = inputs_.problem(Layout::kGateUp, kRows);
    y_ = run(problem_, kernel_, inputs_.operands(Layout::kGateUp));
    ASSERT_EQ(complaint(), "");
  }
  std::string complaint() { return judge(problem_, kernel_, y_.data(), inputs_.yardstick({.m = kRows})).complaint; }
  std::uint16_t& at(std::int64_t row, std::int64_t column) {
    return *reinterpret_cast<std::uint16_t*>(&y_[static_cast<std::size_t>(2 * (row * kColumns + column))]);
  }

  Inputs inputs_{{.m = kRows, .n = kColumns, .k = 640}};
  const Kernel kernel_{BackendId::kCublas, "merged"};
  Problem problem_;
  std::vector<unsigned char> y_;
};

TEST_F(Checker, SeesAZeroedStripeOfOneTile) {
  for (std::int64_t row = 128; row < 256; ++row) {
    for (std::int64_t column = 32; column < 48; ++column) at(row, column) = 0;
  }
  EXPECT_NE(complaint(), "");
}

TEST_F(Checker, SeesOneUnwrittenElement) {
  at(299, 711) = 0x7E7E;
  EXPECT_NE(complaint().find("unwritten"), std::string::npos);
}

TEST_F(Checker, SeesSwappedColumns) {
  for (std::int64_t row = 0; row < kRows; ++row) std::swap(at(row, 700), at(row, 701));
  EXPECT_NE(complaint(), "");
}

TEST_F(Checker, SeesGateAndUpExchanged) {
  Problem swapped = problem_;
  swapped.layout = Layout::kUpGate;
  y_ = run(swapped, kernel_, inputs_.operands(Layout::kGateUp));
  EXPECT_NE(complaint(), "");
}

}  // namespace
}  // namespace tileglu::gpu
