// SPDX-License-Identifier: Apache-2.0
// A caller that fills the structs with nonsense. Whatever comes, the library answers with a status and a text, writes
// nothing it should not, and does not crash. Fixed seed. A million calls (5 s on two cores); --calls N for more.
#include "abi/hostile.hpp"

#include <gtest/gtest.h>
#include <tileglu/tileglu.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

std::int64_t hostile_calls = 1000000;

namespace {

// Rounds of one test that makes `calls` calls in a round: the four tests share the calls alike.
int rounds(int calls) {
  return static_cast<int>(hostile_calls / 4 / calls) + 1;
}

constexpr std::size_t kStructRoom = 512;  // as far as the library reads for any struct_size that it takes

// A struct at the start of room that may be read when struct_size says so.
template <class Struct>
struct alignas(64) Room {
  union {
    Struct value;
    std::array<unsigned char, kStructRoom> bytes;
  };
  Room() : bytes{} {}
};

class Caller {
 public:
  std::uint64_t number() { return random_(); }
  bool one_in(unsigned n) { return random_() % n == 0; }

  template <class T, std::size_t N>
  T any(const std::array<T, N>& values) {
    return values[random_() % N];
  }

  template <class Struct>
  void garbage(Room<Struct>& room) {
    for (unsigned char& byte : room.bytes) byte = static_cast<unsigned char>(random_());
    if (one_in(2)) room.value.struct_size = sizeof(Struct);
    if (one_in(4)) room.value.struct_size = static_cast<std::uint32_t>(random_() % kStructRoom);
  }

  void spoil_size(std::uint32_t& size) {
    if (one_in(16)) size = any(std::array<std::uint32_t, 8>{0, 1, 64, 87, 88, 96, 513, 0xFFFFFFFFU});
  }

  std::int32_t enumerator(int last) {
    if (one_in(24)) return any(std::array<std::int32_t, 5>{0, -1, last + 1, INT32_MIN, INT32_MAX});
    return 1 + static_cast<std::int32_t>(random_() % static_cast<unsigned>(last));
  }

  // Small, or such that it can only be refused: what is taken here is really run.
  std::int64_t size() {
    if (one_in(24)) return any(std::array<std::int64_t, 4>{-1, INT64_MIN, INT64_MAX, INT64_MAX / 2 + 1});
    return any(std::array<std::int64_t, 8>{0, 1, 2, 3, 7, 8, 16, 33});
  }
  std::int64_t stride() {
    if (one_in(24)) return any(std::array<std::int64_t, 4>{-1, INT64_MIN, INT64_MAX, INT64_MAX / 64});
    return any(std::array<std::int64_t, 6>{0, 0, 0, 33, 40, 64});
  }

  tileglu_problem problem(std::int32_t memory) {
    tileglu_problem p = TILEGLU_PROBLEM_INIT;
    spoil_size(p.struct_size);
    p.dtype = enumerator(3);
    p.dtype_y = one_in(2) ? 0 : enumerator(3);
    p.activation = enumerator(7);
    p.layout = enumerator(5);
    p.memory = one_in(24) ? any(std::array<std::int32_t, 5>{0, 3, -1, INT32_MIN, INT32_MAX}) : memory;
    p.device = any(std::array<std::int32_t, 5>{0, 1, -1, INT32_MIN, INT32_MAX});
    p.alignment = any(std::array<std::int32_t, 8>{0, 0, 4, 16, 64, 3, -1, INT32_MIN});
    p.m = size(), p.n = size(), p.k = size();
    p.lda = stride(), p.ld_gate = stride(), p.ldy = stride();
    p.ld_up = p.layout == TILEGLU_SEPARATE || one_in(24) ? stride() : 0;
    extend(p);
    return p;
  }

  float real() {
    if (one_in(12)) return any(std::array<float, 5>{NAN, INFINITY, -INFINITY, 3e38F, -1e-40F});
    return any(std::array<float, 5>{0, 1, 1.702F, 7, -2});
  }

  // Numbers, rounding and operands, mostly such that they fit each other.
  void extend(tileglu_problem& p) {
    if (p.activation == TILEGLU_SWIGLU || one_in(24)) p.alpha = real(), p.limit = real(), p.up_offset = real();
    p.rounding = one_in(2) ? 0 : enumerator(2);
    if (one_in(2)) p.operands = one_in(24) ? static_cast<std::uint32_t>(random_()) : random_() % 16;
    if ((p.operands & TILEGLU_ADDEND) != 0 || one_in(24)) p.layout_add = enumerator(5), p.ld_add = stride();
    if ((p.operands & TILEGLU_PREACTIVATIONS) != 0 || one_in(24)) p.layout_pre = enumerator(5), p.ld_pre = stride();
    p.reserved = one_in(64) ? 1 : 0;
  }

 private:
  std::mt19937_64 random_{20261130};
};

void expect_sane(tileglu_status status) {
  ASSERT_GE(static_cast<int>(status), TILEGLU_OK);
  ASSERT_LE(static_cast<int>(status), TILEGLU_INTERNAL_ERROR);
  ASSERT_NE(status, TILEGLU_INTERNAL_ERROR) << tileglu_last_error();
  if (status == TILEGLU_OK) return;
  const std::string text = tileglu_last_error();
  ASSERT_FALSE(text.empty());
  ASSERT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST(HostileCaller, RandomBytesInEveryStruct) {
  Caller caller;
  tileglu_handle* handle = nullptr;
  ASSERT_EQ(tileglu_create(&handle), TILEGLU_OK);
  Room<tileglu_problem> problem;
  Room<tileglu_args> args;
  Room<tileglu_weights> source, destination;
  std::array<char, 40> reason{};
  for (int i = 0; i < rounds(4); ++i) {
    caller.garbage(problem), caller.garbage(args), caller.garbage(source), caller.garbage(destination);
    tileglu_plan* plan = nullptr;
    expect_sane(tileglu_plan_create(&problem.value, nullptr, &plan));
    tileglu_plan_destroy(plan);
    expect_sane(tileglu_can_implement(&problem.value, nullptr, reason.data(), reason.size()));
    ASSERT_LT(std::strlen(reason.data()), reason.size());
    expect_sane(tileglu_run(handle, &problem.value, nullptr, &args.value));
    expect_sane(tileglu_relayout(&problem.value, &source.value, &destination.value, nullptr));
    if (HasFatalFailure()) break;
  }
  tileglu_destroy(handle);
}

// Problems that are nearly right, planned only: any memory, backend and kernel name.
TEST(HostileCaller, NearlyRightProblemsAndOptions) {
  Caller caller;
  int made = 0, refused = 0;
  for (int i = 0; i < rounds(1); ++i) {
    Room<tileglu_problem> problem;
    Room<tileglu_options> options;
    problem.value = caller.problem(TILEGLU_MEMORY_CUDA);
    options.value = TILEGLU_OPTIONS_INIT;
    caller.spoil_size(options.value.struct_size);
    options.value.backend = caller.one_in(2) ? 0 : static_cast<std::int32_t>(caller.number() % 6) - 1;
    options.value.kernel = caller.any(std::array<const char*, 7>{nullptr, "", "interleave", "interleave_", "x\n",
                                                                 "\xff\xfe", "interleave_128x128_pingpong_c2x1_g8"});
    tileglu_plan* plan = nullptr;
    const tileglu_status status = tileglu_plan_create(&problem.value, &options.value, &plan);
    expect_sane(status);
    ASSERT_EQ(plan != nullptr, status == TILEGLU_OK);
    ++(plan != nullptr ? made : refused);
    ASSERT_FALSE(plan != nullptr && std::string(tileglu_plan_describe(plan)).empty());
    tileglu_plan_destroy(plan);
  }
  EXPECT_GT(made, 500);
  EXPECT_GT(refused, 500);
}

// Memory that operands are taken from. Every operand here spans at most 2 * 33 * 64 * 4 bytes.
class Arena {
 public:
  void* pointer(Caller& caller) {
    if (caller.one_in(32)) return nullptr;
    const std::size_t slot = caller.number() % kSlots;
    const std::size_t shift = caller.one_in(32) ? caller.number() % 64 : 0;
    return bytes_.data() + kGuard + slot * kSlotBytes + shift;
  }
  bool guards_intact() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != kByte || bytes_[bytes_.size() - 1 - i] != kByte) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 4096, kSlotBytes = 20480, kSlots = 12;
  static constexpr unsigned char kByte = 0x3C;  // 0x3C3C is an ordinary number in bf16, fp16 and fp32
  std::vector<unsigned char> storage_ =
      std::vector<unsigned char>(2 * kGuard + (kSlots + 1) * kSlotBytes + 4096, kByte);

  struct View {
    unsigned char* first;
    std::size_t length;
    unsigned char* data() const { return first; }
    std::size_t size() const { return length; }
    unsigned char& operator[](std::size_t i) const { return first[i]; }
  };
  View bytes_ = [this] {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    const std::uintptr_t page = (address + 4095) / 4096 * 4096;
    return View{storage_.data() + (page - address), storage_.size() - 4096};
  }();
};

// Mostly the pointers that the problem has.
void give_operands(Caller& caller, Arena& arena, const tileglu_problem& p, tileglu_args& args) {
  const auto given = [&](std::uint32_t bit, bool second, std::int32_t layout) {
    const bool wanted = (p.operands & bit) != 0 && (!second || layout == TILEGLU_SEPARATE);
    return wanted != caller.one_in(32) ? arena.pointer(caller) : nullptr;
  };
  args.bias_gate = given(TILEGLU_BIAS_GATE, false, 0), args.bias_up = given(TILEGLU_BIAS_UP, false, 0);
  args.add_gate = given(TILEGLU_ADDEND, false, 0), args.add_up = given(TILEGLU_ADDEND, true, p.layout_add);
  args.pre_gate = given(TILEGLU_PREACTIVATIONS, false, 0);
  args.pre_up = given(TILEGLU_PREACTIVATIONS, true, p.layout_pre);
}

TEST(HostileCaller, NearlyRightRunsOnTheHost) {
  Caller caller;
  Arena arena;
  tileglu_handle* handle = nullptr;
  ASSERT_EQ(tileglu_create(&handle), TILEGLU_OK);
  int done = 0, refused = 0;
  std::vector<unsigned char> workspace(1 << 20);
  for (int i = 0; i < rounds(1) && !HasFatalFailure(); ++i) {
    Room<tileglu_problem> problem;
    Room<tileglu_args> args;
    problem.value = caller.problem(TILEGLU_MEMORY_HOST);
    // Real products on one problem in eight; the rest ends at k = 0, which every machine can run.
    if (problem.value.memory != TILEGLU_MEMORY_HOST || !caller.one_in(8)) problem.value.k = 0;
    args.value = TILEGLU_ARGS_INIT;
    caller.spoil_size(args.value.struct_size);
    args.value.reserved = caller.one_in(64) ? 1 : 0;
    args.value.a = arena.pointer(caller), args.value.gate = arena.pointer(caller), args.value.y = arena.pointer(caller);
    args.value.up = problem.value.layout == TILEGLU_SEPARATE || caller.one_in(24) ? arena.pointer(caller) : nullptr;
    give_operands(caller, arena, problem.value, args.value);
    args.value.workspace =
        reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(workspace.data()) + 255) / 256 * 256);
    args.value.workspace_bytes = caller.one_in(16) ? 0 : workspace.size() - 256;
    const tileglu_status status = tileglu_run(handle, &problem.value, nullptr, &args.value);
    expect_sane(status);
    ++(status == TILEGLU_OK ? done : refused);
  }
  EXPECT_TRUE(arena.guards_intact());
  EXPECT_GT(done, 500);
  EXPECT_GT(refused, 500);
  tileglu_destroy(handle);
}

TEST(HostileCaller, NearlyRightRelayoutsOnTheHost) {
  Caller caller;
  Arena arena;
  int done = 0, refused = 0;
  for (int i = 0; i < rounds(1) && !HasFatalFailure(); ++i) {
    Room<tileglu_problem> problem;
    problem.value = caller.problem(TILEGLU_MEMORY_HOST);
    if (problem.value.memory != TILEGLU_MEMORY_HOST) problem.value.n = 0;
    std::array<Room<tileglu_weights>, 2> weights;
    for (Room<tileglu_weights>& w : weights) {
      w.value = TILEGLU_WEIGHTS_INIT;
      caller.spoil_size(w.value.struct_size);
      w.value.layout = caller.enumerator(5);
      w.value.gate = arena.pointer(caller);
      w.value.ld_gate = caller.stride();
      if (w.value.layout == TILEGLU_SEPARATE || caller.one_in(24)) {
        w.value.up = arena.pointer(caller), w.value.ld_up = caller.stride();
      }
    }
    const tileglu_status status = tileglu_relayout(&problem.value, &weights[0].value, &weights[1].value, nullptr);
    expect_sane(status);
    ++(status == TILEGLU_OK ? done : refused);
  }
  EXPECT_TRUE(arena.guards_intact());
  EXPECT_GT(done, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
