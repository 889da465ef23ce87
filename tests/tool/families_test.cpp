// SPDX-License-Identifier: Apache-2.0
// Families of kernels, which `bench` lets take part by their names alone.
#include "backends/backend.hpp"
#include "tileglu/options.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tileglu::tool {
namespace {

TEST(Families, AreTheNamesBeforeTheNumbers) {
  EXPECT_EQ(family_of("decode_16x128_cooperative_c1x1"), "decode");
  EXPECT_EQ(family_of("sync_pingpong_128x192_pingpong_c2x1"), "sync_pingpong");
  EXPECT_EQ(family_of("fp32_merged"), "");
  EXPECT_EQ(family_of("merged_"), "");
  EXPECT_EQ(family_of(""), "");
}

TEST(Families, OfEveryBackend) {
  std::set<std::string> found;
  for (const Backend* backend : backends()) {
    for (const std::string& kernel : backend->kernels()) {
      const std::string family(family_of(kernel));
      EXPECT_EQ(kernel_matches(kernel, family), !family.empty()) << kernel;
      if (!family.empty()) found.insert(std::string(backend->name) + " " + family);
    }
  }
  std::set<std::string> expected;
  for (const Backend* backend : backends()) {
    if (backend->id != BackendId::kSm90 || backend->kernels().empty()) continue;
    for (const char* family : {"decode", "interleave", "paired", "sync_pingpong"}) {
      expected.insert(std::string(backend->name) + " " + family);
    }
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace tileglu::tool
