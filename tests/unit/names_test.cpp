// SPDX-License-Identifier: Apache-2.0
#include "core/names.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tileglu {
namespace {

// Every value from first to last has a name of its own that leads back to it.
template <class Enum, class Parse>
void expect_round_trip(Enum first, Enum last, Parse parse) {
  std::set<std::string> seen;
  for (int v = static_cast<int>(first); v <= static_cast<int>(last); ++v) {
    const std::string name = name_of(static_cast<Enum>(v));
    EXPECT_TRUE(seen.insert(name).second) << name << " names two values";
    EXPECT_EQ(parse(name), static_cast<Enum>(v)) << name;
  }
  for (const char* wrong : {"", "?", "BF16", "silu ", "cp", "cpux"}) EXPECT_FALSE(parse(wrong)) << wrong;
}

TEST(Names, GoBothWays) {
  expect_round_trip(Dtype::kBf16, Dtype::kFp32, dtype_named);
  expect_round_trip(Activation::kSilu, Activation::kSwiglu, activation_named);
  expect_round_trip(Layout::kSeparate, Layout::kInterleaved8, layout_named);
  expect_round_trip(BackendId::kAuto, BackendId::kCpu, backend_named);
}

TEST(Names, AreThoseOfTheCommandLine) {
  EXPECT_STREQ(name_of(Dtype::kBf16), "bf16");
  EXPECT_STREQ(name_of(Activation::kGeluTanh), "gelu_tanh");
  EXPECT_STREQ(name_of(Layout::kInterleaved8), "interleaved_8");
  EXPECT_STREQ(name_of(Memory::kHost), "host");
  EXPECT_STREQ(name_of(Memory::kCuda), "cuda");
  EXPECT_STREQ(name_of(BackendId::kCublas), "cublas");
}

TEST(Names, OfAValueOutsideTheEnumerationIsAQuestionMark) {
  EXPECT_STREQ(name_of(static_cast<Dtype>(99)), "?");
}

}  // namespace
}  // namespace tileglu
