// SPDX-License-Identifier: Apache-2.0
#include "core/validate.hpp"
#include "unit/c_structs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tileglu {
namespace {

// Addresses are only compared, never read, so plain numbers will do.
const void* at(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);
}
void* out(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

// bf16, m=4 n=64 k=128: A 1024 bytes, weights 16384 bytes each, Y 512 bytes, workspace 1024 bytes.
constexpr std::uintptr_t kA = 0x100000, kGate = 0x200000, kUp = 0x300000, kY = 0x400000, kWorkspace = 0x500000;
constexpr std::size_t kWorkspaceBytes = 1024;

Problem problem_of(const tileglu_problem& c) {
  const Result<Problem> result = validate_problem(&c);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.value();
}

tileglu_args valid_args() {
  tileglu_args args = TILEGLU_ARGS_INIT;
  args.a = at(kA), args.gate = at(kGate), args.up = at(kUp), args.y = out(kY);
  args.workspace = out(kWorkspace), args.workspace_bytes = kWorkspaceBytes;
  args.stream = out(0x77);
  return args;
}

struct BadArgs {
  const char* name;
  void (*spoil)(tileglu_args&);
  Code code;
  const char* message;
};

const BadArgs kBadArgs[] = {
    {"size", [](auto& a) { a.struct_size = 63; }, Code::kInvalidArgument, "args.struct_size=63 is outside"},
    {"reserved", [](auto& a) { a.reserved = 5; }, Code::kInvalidArgument, "args.reserved=5 must be 0"},
    {"a_null", [](auto& a) { a.a = nullptr; }, Code::kInvalidArgument, "a is NULL and must hold 1024 bytes"},
    {"gate_null", [](auto& a) { a.gate = nullptr; }, Code::kInvalidArgument, "gate is NULL and must hold 16384"},
    {"up_null", [](auto& a) { a.up = nullptr; }, Code::kInvalidArgument, "up is NULL and must hold 16384"},
    {"y_null", [](auto& a) { a.y = nullptr; }, Code::kInvalidArgument, "y is NULL and must hold 512"},
    {"a_align", [](auto& a) { a.a = at(kA + 8); }, Code::kInvalidArgument, "a=0x100008 is not a multiple of 16"},
    {"gate_align", [](auto& a) { a.gate = at(kGate + 2); }, Code::kInvalidArgument, "gate=0x200002 is not"},
    {"up_align", [](auto& a) { a.up = at(kUp + 15); }, Code::kInvalidArgument, "up=0x30000f is not"},
    {"y_align", [](auto& a) { a.y = out(kY + 1); }, Code::kInvalidArgument, "y=0x400001 is not a multiple of 16"},
    {"y_is_a", [](auto& a) { a.y = out(kA); }, Code::kInvalidArgument, "y=0x100000 (512 bytes) overlaps a=0x100000"},
    {"y_in_a", [](auto& a) { a.y = out(kA + 1008); }, Code::kInvalidArgument, "overlaps a="},
    {"a_in_y", [](auto& a) { a.y = out(kA - 496); }, Code::kInvalidArgument, "overlaps a="},
    {"y_in_gate", [](auto& a) { a.y = out(kGate + 16368); }, Code::kInvalidArgument, "overlaps gate="},
    {"y_in_up", [](auto& a) { a.y = out(kUp + 8192); }, Code::kInvalidArgument, "overlaps up="},
    {"workspace_null", [](auto& a) { a.workspace = nullptr; }, Code::kWorkspaceTooSmall, "this plan needs 1024 bytes"},
    {"workspace_short", [](auto& a) { a.workspace_bytes = 1023; }, Code::kWorkspaceTooSmall, "workspace_bytes=1023"},
    {"workspace_align", [](auto& a) { a.workspace = out(kWorkspace + 128); }, Code::kInvalidArgument,
     "workspace=0x500080 is not a multiple of 256"},
    {"workspace_on_y", [](auto& a) { a.workspace = out(kY + 256); }, Code::kInvalidArgument, "overlaps y="},
    {"workspace_on_up", [](auto& a) { a.workspace = out(kUp); }, Code::kInvalidArgument, "overlaps up="},
};

class RefusedArgs : public testing::TestWithParam<BadArgs> {};

TEST_P(RefusedArgs, NamesFieldValueAndRule) {
  tileglu_args args = valid_args();
  GetParam().spoil(args);
  const Result<Operands> result = validate_args(&args, problem_of(test::valid_problem()), kWorkspaceBytes);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), GetParam().code);
  EXPECT_NE(result.status().text().find(GetParam().message), std::string::npos) << result.status().text();
}
INSTANTIATE_TEST_SUITE_P(Each, RefusedArgs, testing::ValuesIn(kBadArgs),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

std::string refusal(const tileglu_args& args, const tileglu_problem& problem, std::size_t workspace = 0) {
  const Result<Operands> result = validate_args(&args, problem_of(problem), workspace);
  return result.ok() ? "accepted" : result.status().text();
}

TEST(ValidateArgs, PassesOperandsOn) {
  const tileglu_args args = valid_args();
  const Result<Operands> result = validate_args(&args, problem_of(test::valid_problem()), kWorkspaceBytes);
  ASSERT_TRUE(result.ok()) << result.status().text();
  const Operands& o = result.value();
  EXPECT_EQ(o.a, args.a);
  EXPECT_EQ(o.gate, args.gate);
  EXPECT_EQ(o.up, args.up);
  EXPECT_EQ(o.y, args.y);
  EXPECT_EQ(o.workspace, args.workspace);
  EXPECT_EQ(o.workspace_bytes, args.workspace_bytes);
  EXPECT_EQ(o.stream, args.stream);
  EXPECT_EQ(validate_args(nullptr, problem_of(test::valid_problem()), 0).status().text(), "args is NULL");
}

TEST(ValidateArgs, NeighboursThatTouchDoNotOverlap) {
  tileglu_args args = valid_args();
  args.y = out(kA + 1024);
  EXPECT_EQ(refusal(args, test::valid_problem()), "accepted");
  args.y = out(kA - 512);
  EXPECT_EQ(refusal(args, test::valid_problem()), "accepted");
}

TEST(ValidateArgs, OverlapIsJudgedOnTheStridedExtent) {
  tileglu_problem problem = test::valid_problem();
  problem.lda = 1024;  // (3 * 1024 + 128) * 2 = 6400 bytes, without the gap behind the last row
  tileglu_args args = valid_args();
  args.y = out(kA + 6384);
  EXPECT_NE(refusal(args, problem).find("overlaps a=0x100000 (6400 bytes)"), std::string::npos);
  args.y = out(kA + 6400);
  EXPECT_EQ(refusal(args, problem), "accepted");
}

TEST(ValidateArgs, AddressesAtTheEndOfMemoryDoNotWrapAround) {
  tileglu_args args = valid_args();
  args.y = out(~std::uintptr_t{0} - 15);
  args.a = at(16);
  EXPECT_EQ(refusal(args, test::valid_problem()), "accepted");
}

TEST(ValidateArgs, MergedLayoutsTakeOneMatrix) {
  tileglu_args args = valid_args();
  EXPECT_EQ(refusal(args, test::valid_merged_problem()),
            "up=0x300000 must be NULL in layout gate_up (one matrix with base gate)");
  args.up = nullptr;
  EXPECT_EQ(refusal(args, test::valid_merged_problem()), "accepted");
  args.y = out(kGate + 20000 / 16 * 16);  // behind the gate rows, inside the up rows
  EXPECT_NE(refusal(args, test::valid_merged_problem()).find("overlaps gate=0x200000 (32768 bytes)"),
            std::string::npos);
}

TEST(ValidateArgs, AsksNothingOfPointersWhenNothingIsLaunched) {
  tileglu_problem problem = test::valid_problem();
  problem.m = 0;
  const tileglu_args empty = TILEGLU_ARGS_INIT;
  EXPECT_EQ(refusal(empty, problem), "accepted");
  problem = test::valid_problem();
  problem.n = 0;
  EXPECT_EQ(refusal(empty, problem), "accepted");
}

TEST(ValidateArgs, EmptySumsNeedOnlyY) {
  tileglu_problem problem = test::valid_problem();
  problem.k = 0;
  tileglu_args args = TILEGLU_ARGS_INIT;
  EXPECT_NE(refusal(args, problem).find("y is NULL"), std::string::npos);
  args.y = out(kY);
  EXPECT_EQ(refusal(args, problem), "accepted");
}

TEST(ValidateArgs, WorkspaceIsIgnoredWhenNoneIsNeeded) {
  tileglu_args args = valid_args();
  args.workspace = out(kY + 1), args.workspace_bytes = 0;
  EXPECT_EQ(refusal(args, test::valid_problem()), "accepted");
}

TEST(ValidateArgs, AlignmentIsThatOfTheProblem) {
  tileglu_problem problem = test::valid_problem();
  problem.alignment = 2;
  tileglu_args args = valid_args();
  args.a = at(kA + 2);
  EXPECT_EQ(refusal(args, problem), "accepted");
  problem.alignment = 256;
  args.a = at(kA + 128);
  EXPECT_EQ(refusal(args, problem), "a=0x100080 is not a multiple of 256 bytes");
}

}  // namespace
}  // namespace tileglu
