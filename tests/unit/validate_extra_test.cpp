// SPDX-License-Identifier: Apache-2.0
// The fields after ldy and the pointers after stream: numbers of swiglu, rounding, operands.
#include "core/validate.hpp"
#include "unit/c_structs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tileglu {
namespace {

using test::valid_problem;

tileglu_problem swiglu_problem() {
  tileglu_problem p = valid_problem();
  p.activation = TILEGLU_SWIGLU;
  return p;
}
tileglu_problem with_everything() {
  tileglu_problem p = valid_problem();
  p.operands = TILEGLU_BIAS_GATE | TILEGLU_BIAS_UP | TILEGLU_ADDEND | TILEGLU_PREACTIVATIONS;
  return p;
}

struct Spoilt {
  const char* name;
  void (*spoil)(tileglu_problem&);
  const char* message;
};

const Spoilt kSpoilt[] = {
    {"alpha_of_silu", [](auto& p) { p.alpha = 1.5F; }, "alpha=1.5 must be 0 with activation=silu"},
    {"limit_of_silu", [](auto& p) { p.limit = 7; }, "limit=7 must be 0 with activation=silu"},
    {"offset_of_silu", [](auto& p) { p.up_offset = 1; }, "up_offset=1 must be 0 with activation=silu"},
    {"alpha_nan", [](auto& p) { p.activation = TILEGLU_SWIGLU, p.alpha = NAN; }, "alpha=nan is not finite"},
    {"limit_inf", [](auto& p) { p.activation = TILEGLU_SWIGLU, p.limit = INFINITY; }, "limit=inf is not finite"},
    {"offset_nan", [](auto& p) { p.up_offset = NAN; }, "up_offset=nan is not finite"},
    {"limit_negative", [](auto& p) { p.activation = TILEGLU_SWIGLU, p.limit = -7; }, "limit=-7 is below 0"},
    {"rounding", [](auto& p) { p.rounding = 3; }, "rounding=3 is none of 1 once, 2 unfused"},
    {"rounding_negative", [](auto& p) { p.rounding = -1; }, "rounding=-1 is none of"},
    {"operands", [](auto& p) { p.operands = 0x11; }, "operands=0x11 has bits outside 0xf"},
    {"reserved", [](auto& p) { p.reserved = 1; }, "problem.reserved=1 must be 0"},
    {"layout_add_absent", [](auto& p) { p.layout_add = TILEGLU_GATE_UP; }, "layout_add=2 and ld_add=0 must be 0"},
    {"ld_pre_absent", [](auto& p) { p.ld_pre = 128; }, "layout_pre=0 and ld_pre=128 must be 0: problem.operands has"},
    {"layout_add", [](auto& p) { p = with_everything(), p.layout_add = 6; }, "layout_add=6 is none of 1 separate"},
    {"layout_pre", [](auto& p) { p = with_everything(), p.layout_pre = -1; }, "layout_pre=-1 is none of"},
    {"ld_add", [](auto& p) { p = with_everything(), p.ld_add = 127; }, "ld_add=127 is below 2n=128"},
    {"ld_add_separate", [](auto& p) { p = with_everything(), p.layout_add = TILEGLU_SEPARATE, p.ld_add = 63; },
     "ld_add=63 is below n=64"},
    {"ld_pre", [](auto& p) { p = with_everything(), p.ld_pre = -128; }, "ld_pre=-128 is below 2n=128"},
    {"ld_pre_bytes", [](auto& p) { p = with_everything(), p.ld_pre = INT64_MAX; }, "pre-activations: 4 rows of 2n=128"},
    {"interleaved_8", [](auto& p) { p = with_everything(), p.n = 60, p.layout_pre = TILEGLU_INTERLEAVED_8; },
     "n=60 is not a multiple of 8, which layout_pre=interleaved_8 needs"},
};

class RefusedExtra : public testing::TestWithParam<Spoilt> {};
TEST_P(RefusedExtra, NamesFieldValueAndRule) {
  tileglu_problem problem = valid_problem();
  GetParam().spoil(problem);
  const Result<Problem> result = validate_problem(&problem);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
  EXPECT_NE(result.status().text().find(GetParam().message), std::string::npos) << result.status().text();
}
INSTANTIATE_TEST_SUITE_P(Each, RefusedExtra, testing::ValuesIn(kSpoilt),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(ValidateExtra, Defaults) {
  tileglu_problem c = swiglu_problem();
  c.limit = c.up_offset = -0.0F;
  const Problem plain = validate_problem(&c).value();
  EXPECT_EQ(plain.swiglu, SwigluNumbers{});
  EXPECT_FALSE(std::signbit(plain.swiglu.up_offset)) << "equal problems have equal hashes";
  EXPECT_EQ(plain.rounding, Rounding::kOnce);
  EXPECT_FALSE(plain.extra.any());
  EXPECT_EQ(plain.ld_add, 0);
  c = with_everything();
  const Problem full = validate_problem(&c).value();
  EXPECT_EQ(full.layout_add, Layout::kGateUp);
  EXPECT_EQ(full.ld_add, 128);
  EXPECT_EQ(full.ld_pre, 128);
  c.layout_pre = TILEGLU_SEPARATE;
  EXPECT_EQ(validate_problem(&c).value().ld_pre, 64);
  c.m = 1, c.ld_pre = -5;  // of one row: means nothing
  EXPECT_EQ(validate_problem(&c).value().ld_pre, 64);
}

TEST(ValidateExtra, KeepsWhatIsGiven) {
  tileglu_problem c = swiglu_problem();
  c.alpha = -1.702F, c.limit = 7, c.up_offset = 1, c.rounding = TILEGLU_ROUND_UNFUSED;
  c.operands = TILEGLU_BIAS_UP | TILEGLU_ADDEND, c.layout_add = TILEGLU_INTERLEAVED_1, c.ld_add = 200;
  const Problem p = validate_problem(&c).value();
  EXPECT_EQ(p.swiglu, (SwigluNumbers{.alpha = -1.702F, .limit = 7, .up_offset = 1}));
  EXPECT_EQ(p.rounding, Rounding::kUnfused);
  EXPECT_EQ(p.extra, (ExtraOperands{.bias_up = true, .addend = true}));
  EXPECT_EQ(p.layout_add, Layout::kInterleaved1);
  EXPECT_EQ(p.ld_add, 200);
}

// A caller built before these fields were added: whatever lies behind its shorter structs is not read.
TEST(ValidateExtra, AShorterStructMeansZeros) {
  tileglu_problem c = with_everything();
  c.alpha = NAN, c.rounding = 77, c.reserved = 5;
  c.struct_size = offsetof(tileglu_problem, alpha);
  const Result<Problem> problem = validate_problem(&c);
  ASSERT_TRUE(problem.ok()) << problem.status().text();
  EXPECT_FALSE(problem.value().extra.any());
  tileglu_args args = TILEGLU_ARGS_INIT;
  args.pre_gate = &args, args.bias_up = &args;
  args.struct_size = offsetof(tileglu_args, bias_gate);
  Problem empty = problem.value();
  empty.m = 0;
  const Result<Operands> operands = validate_args(&args, empty, 0);
  ASSERT_TRUE(operands.ok()) << operands.status().text();
  EXPECT_EQ(operands.value().pre_gate, nullptr);
}

// --- Pointers: bf16, m=4 n=64 k=128. A 1024 bytes, weights 16384 each, Y 512, biases 128, pairs 1024. ---------------

void* at(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}
tileglu_args all_pointers() {
  tileglu_args args = TILEGLU_ARGS_INIT;
  args.a = at(0x100000), args.gate = at(0x200000), args.up = at(0x300000), args.y = at(0x400000);
  args.bias_gate = at(0x500002), args.bias_up = at(0x600002), args.add_gate = at(0x700002);
  args.pre_gate = at(0x800002);
  return args;
}
std::string answer(const tileglu_args& args, const tileglu_problem& c) {
  const Result<Problem> problem = validate_problem(&c);
  EXPECT_TRUE(problem.ok()) << problem.status().text();
  const Result<Operands> operands = validate_args(&args, problem.value(), 0);
  return operands.ok() ? "accepted" : operands.status().text();
}

TEST(ValidateExtraArgs, AreGivenExactlyIfTheProblemHasThem) {
  EXPECT_EQ(answer(all_pointers(), with_everything()), "accepted");
  const auto pointer = [](tileglu_args& a, int i) -> const void*& {
    const void** all[] = {&a.bias_gate, &a.bias_up, &a.add_gate, const_cast<const void**>(&a.pre_gate)};
    return *all[i];
  };
  const std::string names[] = {"bias_gate", "bias_up", "add_gate", "pre_gate"};
  for (int i = 0; i < 4; ++i) {
    tileglu_args args = all_pointers();
    pointer(args, i) = nullptr;
    EXPECT_EQ(answer(args, with_everything()),
              names[i] + " is NULL and must hold " + (i < 2 ? "128" : "1024") + " bytes");
    tileglu_problem without = with_everything();
    without.operands &= ~(1U << i);
    EXPECT_NE(answer(all_pointers(), without).find(names[i] + "=0x"), std::string::npos) << i;
    EXPECT_NE(answer(all_pointers(), without).find("must be NULL: problem.operands has no"), std::string::npos) << i;
    EXPECT_EQ(answer(args, without), "accepted") << i;
  }
}

TEST(ValidateExtraArgs, TheSecondMatrixBelongsToSeparate) {
  tileglu_args args = all_pointers();
  args.add_up = at(0x900000);
  EXPECT_EQ(answer(args, with_everything()),
            "add_up=0x900000 must be NULL: the layout is one matrix with the base of gate");
  tileglu_problem separate = with_everything();
  separate.layout_add = separate.layout_pre = TILEGLU_SEPARATE;
  EXPECT_EQ(answer(args, separate), "pre_up is NULL and must hold 512 bytes");
  args.pre_up = at(0xA00000);
  EXPECT_EQ(answer(args, separate), "accepted");
}

TEST(ValidateExtraArgs, NeedTheAlignmentOfAnElementOnly) {
  tileglu_args args = all_pointers();
  args.bias_up = at(0x600001);
  EXPECT_EQ(answer(args, with_everything()), "bias_up=0x600001 is not a multiple of 2 bytes");
}

TEST(ValidateExtraArgs, WhatIsWrittenOverlapsNothing) {
  const auto moved = [](auto move) {
    tileglu_args args = all_pointers();
    move(args);
    return answer(args, with_everything());
  };
  EXPECT_EQ(moved([](auto& a) { a.pre_gate = at(0x400000 + 510); }),
            "y=0x400000 (512 bytes) overlaps pre_gate=0x4001fe"
            " (1024 bytes)");
  EXPECT_NE(moved([](auto& a) { a.pre_gate = at(0x100000); }).find("pre_gate=0x100000 (1024 bytes) overlaps a="),
            std::string::npos);
  EXPECT_NE(moved([](auto& a) { a.pre_gate = at(0x700000 - 512); }).find("overlaps add_gate="), std::string::npos);
  EXPECT_NE(moved([](auto& a) { a.y = at(0x600000); }).find("y=0x600000 (512 bytes) overlaps bias_up="),
            std::string::npos);
  EXPECT_EQ(moved([](auto& a) { a.bias_up = a.bias_gate; }), "accepted") << "inputs may be shared";
}

}  // namespace
}  // namespace tileglu
