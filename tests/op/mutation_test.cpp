// SPDX-License-Identifier: Apache-2.0
// The checks must be able to fail: right results are spoilt in the ways kernels go wrong, and each has to be caught.
#include "op/op_cases.hpp"
#include "op/op_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

namespace tileglu::test {
namespace {

// A right result (the exact one; judged() rounds it) and what it is judged by.
struct Sample {
  OpCase op;
  reference::Preactivations pre;
  Baselines baselines;
  std::vector<double> y;

  double& at(std::int64_t row, std::int64_t column) { return y[static_cast<std::size_t>(row * op.n + column)]; }
};

Sample make_sample(const OpCase& op) {
  const OpData data(op, Memory::kHost);
  const Problem problem{.dtype = op.dtype,
                        .dtype_y = op.result_dtype(),
                        .m = op.m,
                        .n = op.n,
                        .k = op.k,
                        .lda = data.a().ld,
                        .ld_gate = data.gate().ld,
                        .ld_up = data.up().ld};
  const Operands operands{.a = data.a().address(), .gate = data.gate().address(), .up = data.up().address()};
  Sample sample{.op = op, .pre = reference::preactivations(problem, operands).value(), .baselines = {}, .y = {}};
  sample.y = sample.baselines.exact = reference::exact({.activation = op.activation}, sample.pre);
  sample.baselines.unfused =
      reference::compare(op.result_dtype(), op.m, op.n,
                         reference::unfused({.dtype_y = op.result_dtype(), .activation = op.activation}, sample.pre),
                         sample.baselines.exact);
  return sample;
}

class Mutation : public ::testing::TestWithParam<Dtype> {
 protected:
  ::testing::AssertionResult judged(const std::function<void(Sample&)>& spoil) const {
    Sample sample = make_sample({.dtype = GetParam(), .m = 300, .n = 712, .k = 64, .seed = 12, .input_scale = 0.02});
    spoil(sample);
    return judge(sample.op, sample.baselines, encode(GetParam(), sample.y));
  }
};

TEST_P(Mutation, NothingSpoiltIsAccepted) {
  EXPECT_TRUE(judged([](Sample&) {}));
}

TEST_P(Mutation, C26_GateAndUpExchanged) {
  EXPECT_FALSE(judged([](Sample& s) {
    s.y = reference::exact({.activation = s.op.activation}, {.gate = s.pre.up, .up = s.pre.gate});
  }));
}

TEST_P(Mutation, C12_ZeroedStripe) {
  EXPECT_FALSE(judged([](Sample& s) {
    for (std::int64_t row = 0; row < s.op.m; ++row) std::fill_n(&s.at(row, 160), 16, 0.0);
  }));
}

TEST_P(Mutation, StripeOfTheNeighbour) {
  EXPECT_FALSE(judged([](Sample& s) {
    for (std::int64_t row = 0; row < s.op.m; ++row) std::copy_n(&s.at(row, 176), 16, &s.at(row, 160));
  }));
}

TEST_P(Mutation, LastColumnOffByFivePercent) {
  EXPECT_FALSE(judged([](Sample& s) {
    for (std::int64_t row = 0; row < s.op.m; ++row) s.at(row, s.op.n - 1) *= 1.05;
  }));
}

TEST_P(Mutation, SkippedRow) {
  EXPECT_FALSE(judged([](Sample& s) { std::fill_n(&s.at(299, 0), s.op.n, 0.0); }));
}

TEST_P(Mutation, UnwrittenElement) {
  const std::vector<unsigned char> poison(size_of(GetParam()), reference::kPoisonByte);
  EXPECT_FALSE(judged([&](Sample& s) { s.at(17, 400) = decode(GetParam(), poison).front(); }));
}

TEST_P(Mutation, NotFiniteElement) {
  EXPECT_FALSE(judged([](Sample& s) { s.at(3, 5) = NAN; }));
  EXPECT_FALSE(judged([](Sample& s) { s.at(3, 5) = INFINITY; }));
}

TEST_P(Mutation, FiniteWhereTheReferenceIsNot) {
  EXPECT_FALSE(judged([](Sample& s) { s.baselines.exact[7] = NAN; }));
}

// Two bits of the mantissa are missing (fp32: ten), as after a 16-bit detour.
TEST_P(Mutation, TooFewBits) {
  const double relative = GetParam() == Dtype::kBf16 ? 0x1p-5 : GetParam() == Dtype::kFp16 ? 0x1p-8 : 0x1p-13;
  EXPECT_FALSE(judged([&](Sample& s) {
    for (double& value : s.y) {
      const double unit = std::exp2(std::floor(std::log2(std::abs(value)))) * relative;
      value = std::nearbyint(value / unit) * unit;
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Mutation, ::testing::ValuesIn(kDtypes),
                         [](const auto& instance) { return name_of(instance.param); });

// The same through a real run: weights handed over in the wrong order.
TEST(MutationOfRun, C26_WeightsHandedOverInTheWrongOrder) {
  for (const Layout layout : kLayouts) {
    OpCase op{.layout = layout, .m = 16, .n = 40, .k = 64};
    std::mt19937 generator(26);
    std::normal_distribution<double> normal(0, 1.0 / 8);
    for (std::vector<double>* weights : {&op.gate, &op.up}) {
      weights->resize(40 * 64);
      for (double& w : *weights) w = normal(generator);
    }
    OpCase exchanged = op;
    std::swap(exchanged.gate, exchanged.up);
    const PlanOptions cpu{.backend = BackendId::kCpu, .kernel = {}};
    const Outcome right = run_case(op, cpu, Memory::kHost);
    EXPECT_TRUE(accepted(op, right));
    EXPECT_FALSE(judge(op, right.baselines, run_case(exchanged, cpu, Memory::kHost).y));
  }
}

// What is saved is checked as well: each half, each row, and that it is written at all.
TEST(MutationOfRun, SpoiltPreactivationsAreSeen) {
  for (const Rounding rounding : {Rounding::kOnce, Rounding::kUnfused}) {
    const OpCase op{
        .m = 33, .n = 48, .k = 64, .rounding = rounding, .extra = {.bias_up = true, .preactivations = true}};
    const Outcome right = run_case(op, {.backend = BackendId::kCpu, .kernel = {}}, Memory::kHost);
    EXPECT_TRUE(accepted(op, right));
    const auto spoilt = [&](const std::function<void(Outcome&)>& spoil) {
      Outcome outcome = right;
      spoil(outcome);
      return !accepted(op, outcome);
    };
    EXPECT_TRUE(spoilt([](Outcome& o) { std::swap(o.pre_gate, o.pre_up); }));
    EXPECT_TRUE(spoilt([](Outcome& o) { std::fill_n(o.pre_up.end() - 96, 96, 0); })) << "the last row";
    EXPECT_TRUE(spoilt([](Outcome& o) { std::fill_n(o.pre_gate.begin() + 64, 2, reference::kPoisonByte); }));
    EXPECT_TRUE(spoilt([](Outcome& o) { std::rotate(o.pre_gate.begin(), o.pre_gate.begin() + 32, o.pre_gate.end()); }))
        << "stripes of 16 columns at each other's place";
  }
}

// Under the unfused policy one wrong bit of one element is seen.
TEST(MutationOfRun, OneBitOffTheStepsIsSeen) {
  const OpCase op{.m = 33, .n = 48, .k = 64, .rounding = Rounding::kUnfused, .extra = {.preactivations = true}};
  Outcome outcome = run_case(op, {.backend = BackendId::kCpu, .kernel = {}}, Memory::kHost);
  EXPECT_TRUE(accepted(op, outcome));
  outcome.y[2 * (17 * 48 + 5)] ^= 1;
  EXPECT_FALSE(accepted(op, outcome));
}

// Writes past the result, into a gap, into the workspace's guard and into an input are seen.
TEST(MutationOfRun, WritesOutsideAreSeen) {
  const OpCase op{.m = 3, .n = 5, .k = 4, .pad = {.y = 64}};
  const auto spoilt = [&](const std::function<unsigned char*(OpData&)>& where) {
    OpData data(op, Memory::kHost);
    auto* workspace = static_cast<unsigned char*>(data.workspace(256));
    unsigned char* byte = where(data);
    *(byte != nullptr ? byte : workspace + 256) ^= 1;
    data.download();
    return !data.guards_intact();
  };
  const auto y = [](OpData& data) { return static_cast<unsigned char*>(data.y().address()); };
  EXPECT_TRUE(spoilt([&](OpData& data) { return y(data) + 2 * 5; }));                      // behind row 0
  EXPECT_TRUE(spoilt([&](OpData& data) { return y(data) - 1; }));                          // before Y
  EXPECT_TRUE(spoilt([&](OpData& data) { return y(data) + 2 * (3 * data.y().ld + 4); }));  // a row below Y
  EXPECT_TRUE(spoilt([](OpData& data) { return static_cast<unsigned char*>(data.a().address()); }));
  EXPECT_TRUE(spoilt([](OpData& data) { return static_cast<unsigned char*>(data.gate().address()); }));
  EXPECT_TRUE(spoilt([](OpData&) -> unsigned char* { return nullptr; }));
  EXPECT_FALSE(spoilt([&](OpData& data) { return y(data) + 2 * (data.y().ld + 4); }));  // the last element of row 1
}

}  // namespace
}  // namespace tileglu::test
