// SPDX-License-Identifier: Apache-2.0
#include "core/validate.hpp"
#include "unit/c_structs.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tileglu {
namespace {

void* at(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

constexpr std::uintptr_t kGate = 0x100000, kUp = 0x200000, kMerged = 0x300000;

// What a relayout reads and nothing else: bf16, n=64, k=128.
tileglu_problem relayout_problem() {
  tileglu_problem p = TILEGLU_PROBLEM_INIT;
  p.dtype = TILEGLU_BF16, p.memory = TILEGLU_MEMORY_HOST, p.n = 64, p.k = 128;
  return p;
}
tileglu_weights separate() {
  tileglu_weights w = TILEGLU_WEIGHTS_INIT;
  w.layout = TILEGLU_SEPARATE, w.gate = at(kGate), w.up = at(kUp);
  return w;
}
tileglu_weights merged(int layout = TILEGLU_INTERLEAVED_8) {
  tileglu_weights w = TILEGLU_WEIGHTS_INIT;
  w.layout = layout, w.gate = at(kMerged);
  return w;
}

struct Call {
  tileglu_problem problem = relayout_problem();
  tileglu_weights source = separate(), destination = merged();
};

std::string refusal(const Call& call) {
  const auto result = validate_relayout(&call.problem, &call.source, &call.destination);
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
  return result.status().text();
}

struct BadCall {
  const char* name;
  void (*spoil)(Call&);
  const char* message;
};

const BadCall kBadCalls[] = {
    {"problem_size", [](auto& c) { c.problem.struct_size = 4; }, "problem.struct_size=4 is outside"},
    {"source_size", [](auto& c) { c.source.struct_size = 39; }, "source.struct_size=39 is outside"},
    {"destination_size", [](auto& c) { c.destination.struct_size = 0; }, "destination.struct_size=0 is outside"},
    {"dtype", [](auto& c) { c.problem.dtype = 0; }, "dtype=0 is none of"},
    {"memory", [](auto& c) { c.problem.memory = 9; }, "memory=9 is none of"},
    {"device", [](auto& c) { c.problem.memory = TILEGLU_MEMORY_CUDA, c.problem.device = -1; }, "device=-1 is below 0"},
    {"n", [](auto& c) { c.problem.n = -1; }, "n=-1 is outside"},
    {"k", [](auto& c) { c.problem.k = -1; }, "k=-1 is outside"},
    {"source_layout", [](auto& c) { c.source.layout = 0; }, "source.layout=0 is none of"},
    {"destination_layout", [](auto& c) { c.destination.layout = 6; }, "destination.layout=6 is none of"},
    {"groups", [](auto& c) { c.problem.n = 63; }, "n=63 is not a multiple of 8"},
    {"source_stride", [](auto& c) { c.source.ld_up = 100; }, "source.ld_up=100 is below k=128"},
    {"destination_stride", [](auto& c) { c.destination.ld_gate = 8; }, "destination.ld_gate=8 is below k=128"},
    {"destination_ld_up", [](auto& c) { c.destination.ld_up = 128; }, "destination.ld_up=128 must be 0 in layout"},
    {"source_up_null", [](auto& c) { c.source.up = nullptr; }, "source.up is NULL and must hold 16384 bytes"},
    {"destination_null", [](auto& c) { c.destination.gate = nullptr; }, "destination.gate is NULL and must hold 32768"},
    {"destination_up", [](auto& c) { c.destination.up = at(kUp); }, "destination.up=0x200000 must be NULL in layout"},
    {"source_align", [](auto& c) { c.source.gate = at(kGate + 1); }, "source.gate=0x100001 is not a multiple of 2"},
    {"in_place", [](auto& c) { c.destination.gate = at(kGate); }, "destination.gate=0x100000 (32768 bytes) overlaps"},
    {"overlaps_up", [](auto& c) { c.destination.gate = at(kUp + 16382); }, "overlaps source.up=0x200000"},
    {"halves_same",
     [](auto& c) {
       std::swap(c.source, c.destination);
       c.destination.up = c.destination.gate;
     },
     "destination.gate=0x100000 (16384 bytes) overlaps destination.up=0x100000"},
    {"halves_shifted",
     [](auto& c) {
       std::swap(c.source, c.destination);
       c.destination.ld_gate = c.destination.ld_up = 255, c.destination.up = at(kGate + 256);
     },
     "overlaps destination.up"},
};

class RefusedRelayout : public testing::TestWithParam<BadCall> {};

TEST_P(RefusedRelayout, NamesFieldValueAndRule) {
  Call call;
  GetParam().spoil(call);
  EXPECT_NE(refusal(call).find(GetParam().message), std::string::npos) << refusal(call);
}
INSTANTIATE_TEST_SUITE_P(Each, RefusedRelayout, testing::ValuesIn(kBadCalls),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(ValidateRelayout, FillsStrides) {
  const Call call;
  const auto result = validate_relayout(&call.problem, &call.source, &call.destination);
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ(result.value().shape.n, 64);
  EXPECT_EQ(result.value().shape.k, 128);
  EXPECT_EQ(result.value().source.ld_gate, 128);
  EXPECT_EQ(result.value().source.ld_up, 128);
  EXPECT_EQ(result.value().destination.layout, Layout::kInterleaved8);
  EXPECT_EQ(result.value().destination.ld_gate, 128);
  EXPECT_EQ(result.value().destination.ld_up, 0);
}

TEST(ValidateRelayout, RefusesNullStructs) {
  const Call call;
  EXPECT_EQ(validate_relayout(nullptr, &call.source, &call.destination).status().text(), "problem is NULL");
  EXPECT_EQ(validate_relayout(&call.problem, nullptr, &call.destination).status().text(), "source is NULL");
  EXPECT_EQ(validate_relayout(&call.problem, &call.source, nullptr).status().text(), "destination is NULL");
}

// The halves of one interleaved matrix, given as two strided matrices.
TEST(ValidateRelayout, TakesHalvesThatLieInEachOthersGaps) {
  Call call;
  std::swap(call.source, call.destination);
  call.destination.ld_gate = call.destination.ld_up = 256;
  call.destination.up = at(kGate + 256);
  EXPECT_EQ(refusal(call), "accepted");
}

TEST(ValidateRelayout, EmptyWeightsNeedNoPointers) {
  for (const bool no_rows : {true, false}) {
    Call call;
    (no_rows ? call.problem.n : call.problem.k) = 0;
    call.source.gate = call.source.up = call.destination.gate = nullptr;
    EXPECT_EQ(refusal(call), "accepted");
  }
}

}  // namespace
}  // namespace tileglu
