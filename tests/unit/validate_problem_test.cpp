// SPDX-License-Identifier: Apache-2.0
#include "core/validate.hpp"
#include "unit/c_structs.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tileglu {
namespace {

using test::longer_struct;
using test::valid_merged_problem;
using test::valid_problem;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

struct BadProblem {
  const char* name;
  void (*spoil)(tileglu_problem&);
  const char* message;  // a part of it
};

const BadProblem kBadProblems[] = {
    {"size_zero", [](auto& p) { p.struct_size = 0; }, "problem.struct_size=0 is outside 88..512"},
    {"size_short", [](auto& p) { p.struct_size = 80; }, "problem.struct_size=80 is outside"},
    {"size_garbage", [](auto& p) { p.struct_size = 0xFFFFFFFFU; }, "problem.struct_size=4294967295 is outside"},
    {"dtype_forgotten", [](auto& p) { p.dtype = 0; }, "dtype=0 is none of 1 bf16, 2 fp16, 3 fp32"},
    {"dtype_high", [](auto& p) { p.dtype = 4; }, "dtype=4 is none of"},
    {"dtype_y", [](auto& p) { p.dtype_y = -1; }, "dtype_y=-1 is none of"},
    {"activation_forgotten", [](auto& p) { p.activation = 0; }, "activation=0 is none of 1 silu"},
    {"activation_high", [](auto& p) { p.activation = 8; }, "activation=8 is none of"},
    {"layout_forgotten", [](auto& p) { p.layout = 0; }, "layout=0 is none of 1 separate"},
    {"layout_high", [](auto& p) { p.layout = 6; }, "layout=6 is none of"},
    {"memory_forgotten", [](auto& p) { p.memory = 0; }, "memory=0 is none of 1 host, 2 cuda"},
    {"memory_high", [](auto& p) { p.memory = 3; }, "memory=3 is none of"},
    {"device", [](auto& p) { p.memory = TILEGLU_MEMORY_CUDA, p.device = -2; }, "device=-2 is below 0"},
    {"m", [](auto& p) { p.m = -1; }, "m=-1 is outside 0..2^56"},
    {"n", [](auto& p) { p.n = -64; }, "n=-64 is outside 0..2^56"},
    {"k", [](auto& p) { p.k = std::numeric_limits<std::int64_t>::min(); }, "k=-9223372036854775808 is outside"},
    {"m_huge", [](auto& p) { p.m = kHuge; }, "m=9223372036854775807 is outside"},
    {"a_bytes", [](auto& p) { p.m = std::int64_t{1} << 50; }, "a: 1125899906842624 rows of k=128 elements"},
    {"a_bytes_by_stride", [](auto& p) { p.lda = kHuge / 3; }, "a: 4 rows of k=128 elements with stride lda="},
    {"gate_bytes", [](auto& p) { p.m = 0, p.n = std::int64_t{1} << 55, p.k = 16; }, "gate: "},
    {"gate_bytes_by_stride", [](auto& p) { p.ld_gate = kHuge / 2; }, "gate: 64 rows of k=128 elements with stride"},
    {"up_bytes_by_stride", [](auto& p) { p.ld_up = kHuge / 2; }, "up: 64 rows of k=128 elements with stride ld_up="},
    {"y_bytes", [](auto& p) { p.k = 0, p.m = p.n = std::int64_t{1} << 40; }, "y: 1099511627776 rows of n="},
    {"y_bytes_by_stride", [](auto& p) { p.ldy = kHuge; }, "y: 4 rows of n=64 elements with stride ldy="},
    {"lda", [](auto& p) { p.lda = 100; }, "lda=100 is below k=128 (row strides are in elements"},
    {"lda_negative", [](auto& p) { p.lda = -128; }, "lda=-128 is below k=128"},
    {"ld_gate", [](auto& p) { p.ld_gate = 127; }, "ld_gate=127 is below k=128"},
    {"ld_up", [](auto& p) { p.ld_up = 1; }, "ld_up=1 is below k=128"},
    {"ldy", [](auto& p) { p.ldy = 63; }, "ldy=63 is below n=64"},
    {"k_zero_negative_stride", [](auto& p) { p.k = 0, p.lda = -1; }, "lda=-1 is below k=0"},
    {"merged_ld_up", [](auto& p) { p.layout = TILEGLU_GATE_UP, p.ld_up = 128; },
     "ld_up=128 must be 0 in layout gate_up"},
    {"merged_two_rows", [](auto& p) { p.layout = TILEGLU_UP_GATE, p.n = 1, p.ld_gate = 1; },
     "ld_gate=1 is below k=128"},
    {"interleaved_8", [](auto& p) { p.layout = TILEGLU_INTERLEAVED_8, p.n = 60; }, "n=60 is not a multiple of 8"},
    {"alignment_odd", [](auto& p) { p.alignment = 24; }, "alignment=24 is not a power of two from 2"},
    {"alignment_negative", [](auto& p) { p.alignment = -16; }, "alignment=-16 is not a power of two"},
    {"alignment_int_min", [](auto& p) { p.alignment = std::numeric_limits<int>::min(); }, "alignment=-2147483648 is"},
    {"alignment_below_element", [](auto& p) { p.alignment = 1; }, "alignment=1 is not a power of two from 2"},
    {"alignment_below_output", [](auto& p) { p.alignment = 2, p.dtype_y = TILEGLU_FP32; },
     "a power of two from 4 (the"},
    {"alignment_high", [](auto& p) { p.alignment = 8192; },
     "alignment=8192 is not a power of two from 2 (the element "},
};

class RefusedProblem : public testing::TestWithParam<BadProblem> {};

TEST_P(RefusedProblem, NamesFieldValueAndRule) {
  tileglu_problem problem = valid_problem();
  GetParam().spoil(problem);
  const Result<Problem> result = validate_problem(&problem);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
  EXPECT_NE(result.status().text().find(GetParam().message), std::string::npos) << result.status().text();
  EXPECT_EQ(result.status().text().find('\n'), std::string::npos) << "one line";
}
INSTANTIATE_TEST_SUITE_P(Each, RefusedProblem, testing::ValuesIn(kBadProblems),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(ValidateProblem, RefusesNull) {
  const Result<Problem> result = validate_problem(nullptr);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().text(), "problem is NULL");
}

TEST(ValidateProblem, FillsDefaults) {
  tileglu_problem c = valid_problem();
  c.dtype = TILEGLU_FP16;
  const Result<Problem> result = validate_problem(&c);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Problem expected{.dtype = Dtype::kFp16,
                         .dtype_y = Dtype::kFp16,
                         .m = 4,
                         .n = 64,
                         .k = 128,
                         .lda = 128,
                         .ld_gate = 128,
                         .ld_up = 128,
                         .ldy = 64};
  EXPECT_EQ(result.value(), expected);
}

TEST(ValidateProblem, KeepsWhatIsGiven) {
  tileglu_problem c = valid_merged_problem();
  c.dtype_y = TILEGLU_FP32;
  c.activation = TILEGLU_GELU_ERF;
  c.memory = TILEGLU_MEMORY_CUDA;
  c.device = 3, c.alignment = 4096;
  c.lda = 136, c.ld_gate = 144, c.ldy = 72;
  const Result<Problem> result = validate_problem(&c);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Problem expected{.dtype = Dtype::kBf16,
                         .dtype_y = Dtype::kFp32,
                         .activation = Activation::kGeluErf,
                         .layout = Layout::kGateUp,
                         .memory = Memory::kCuda,
                         .device = 3,
                         .alignment = 4096,
                         .m = 4,
                         .n = 64,
                         .k = 128,
                         .lda = 136,
                         .ld_gate = 144,
                         .ld_up = 0,
                         .ldy = 72};
  EXPECT_EQ(result.value(), expected);
}

TEST(ValidateProblem, IgnoresTheDeviceOfHostMemory) {
  tileglu_problem c = valid_problem();
  c.device = -7;
  const Result<Problem> result = validate_problem(&c);
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ(result.value().device, 0);
}

// Field case C08: the stride of a dimension of size one means nothing, whatever it is.
TEST(ValidateProblem, NormalisesTheStridesOfSingleRows) {
  for (const std::int64_t stride : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{-3},
                                    (std::int64_t{1} << 31) + 8, kHuge, std::numeric_limits<std::int64_t>::min()}) {
    tileglu_problem c = valid_problem();
    c.m = 1, c.n = 1;
    c.lda = c.ld_gate = c.ld_up = c.ldy = stride;
    const Result<Problem> result = validate_problem(&c);
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_EQ(result.value().lda, 128);
    EXPECT_EQ(result.value().ld_gate, 128);
    EXPECT_EQ(result.value().ld_up, 128);
    EXPECT_EQ(result.value().ldy, 1);
  }
}

TEST(ValidateProblem, TakesEmptySizes) {
  for (const auto& [m, n, k] : {std::array{0, 64, 128}, {4, 0, 128}, {4, 64, 0}, {0, 0, 0}}) {
    tileglu_problem c = valid_problem();
    c.m = m, c.n = n, c.k = k;
    for (const int layout : {TILEGLU_SEPARATE, TILEGLU_UP_GATE, TILEGLU_INTERLEAVED_8}) {
      c.layout = layout;
      const Result<Problem> result = validate_problem(&c);
      ASSERT_TRUE(result.ok()) << result.status().text();
      EXPECT_GE(result.value().lda, 1);
      EXPECT_GE(result.value().ldy, 1);
    }
  }
}

TEST(ValidateProblem, TakesTheLargestMatrixAndNoLarger) {
  tileglu_problem c = valid_problem();
  c.k = 1, c.n = 1, c.m = std::int64_t{1} << 55;  // 2^56 bytes of bf16
  EXPECT_TRUE(validate_problem(&c).ok()) << validate_problem(&c).status().text();
  c.m += 1;
  EXPECT_FALSE(validate_problem(&c).ok());
}

TEST(ValidateProblem, TakesALongerStructOnlyIfWhatItDoesNotKnowIsZero) {
  for (const std::size_t extra : {std::size_t{1}, std::size_t{8}, 512 - sizeof(tileglu_problem)}) {
    auto zeros = longer_struct(valid_problem(), extra, 0);
    const auto* problem = reinterpret_cast<const tileglu_problem*>(zeros.data());
    EXPECT_TRUE(validate_problem(problem).ok()) << validate_problem(problem).status().text();
    zeros.back() = 1;
    const Result<Problem> refused = validate_problem(problem);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::kNotSupported);
    EXPECT_NE(refused.status().text().find("is 1, in a field that this version (136 bytes) does not have"),
              std::string::npos)
        << refused.status().text();
  }
  const auto too_long = longer_struct(valid_problem(), 513 - sizeof(tileglu_problem), 0);
  EXPECT_FALSE(validate_problem(reinterpret_cast<const tileglu_problem*>(too_long.data())).ok());
}

TEST(ValidateOptions, DefaultsAndValues) {
  EXPECT_EQ(validate_options(nullptr).value(), PlanOptions{});
  tileglu_options c = TILEGLU_OPTIONS_INIT;
  EXPECT_EQ(validate_options(&c).value(), PlanOptions{});
  c.backend = TILEGLU_BACKEND_SM90;
  c.kernel = "interleave_128x128_pingpong_c2x1_g8";
  const PlanOptions expected{.backend = BackendId::kSm90, .kernel = c.kernel};
  EXPECT_EQ(validate_options(&c).value(), expected);
  c.kernel = "";
  EXPECT_EQ(validate_options(&c).value().kernel, "");
}

TEST(ValidateOptions, Flags) {
  tileglu_options c = TILEGLU_OPTIONS_INIT;
  c.flags = TILEGLU_PREFETCH_WEIGHTS;
  EXPECT_EQ(validate_options(&c).value(), (PlanOptions{.backend = {}, .kernel = {}, .prefetch_weights = true}));
  c.flags = TILEGLU_BATCH_INVARIANT;
  EXPECT_EQ(validate_options(&c).value(), (PlanOptions{.backend = {}, .kernel = {}, .batch_invariant = true}));
  c.flags = 4;
  EXPECT_EQ(validate_options(&c).status().text(), "options.flags=0x4 has bits outside 0x3");
  c.flags = 0;
  c.reserved = 7;
  EXPECT_EQ(validate_options(&c).status().text(), "options.reserved=7 must be 0");
  c.flags = 4;
  c.struct_size = offsetof(tileglu_options, flags);  // an older caller's struct ends before them
  EXPECT_EQ(validate_options(&c).value(), PlanOptions{});
}

TEST(ValidateOptions, Refuses) {
  const auto refusal = [](int backend, const char* kernel) {
    tileglu_options c = TILEGLU_OPTIONS_INIT;
    c.backend = backend, c.kernel = kernel;
    const Result<PlanOptions> result = validate_options(&c);
    return result.ok() ? std::string("accepted") : result.status().text();
  };
  EXPECT_EQ(refusal(4, nullptr), "options.backend=4 is none of 0 auto, 1 sm90, 2 cublas, 3 cpu");
  EXPECT_EQ(refusal(-1, nullptr), "options.backend=-1 is none of 0 auto, 1 sm90, 2 cublas, 3 cpu");
  EXPECT_NE(refusal(0, "inter leave").find("options.kernel has byte 0x20 at position 5"), std::string::npos);
  EXPECT_NE(refusal(0, "\xff").find("options.kernel has byte 0xff at position 0"), std::string::npos);
  const std::string longest(128, 'a');
  EXPECT_EQ(refusal(0, longest.c_str()), "accepted");
  EXPECT_NE(refusal(0, (longest + "a").c_str()).find("at position 128"), std::string::npos);
  tileglu_options c = TILEGLU_OPTIONS_INIT;
  c.struct_size = 8;
  EXPECT_EQ(validate_options(&c).status().text(), "options.struct_size=8 is outside 16..512 (set by the INIT macro)");
}

}  // namespace
}  // namespace tileglu
