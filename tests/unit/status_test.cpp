// SPDX-License-Identifier: Apache-2.0
#include "core/status.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace tileglu {
namespace {

Status pass_on(Status status, bool& reached) {
  TILEGLU_TRY(status);
  reached = true;
  return {};
}

TEST(Status, IsOkByDefaultAndHasNoText) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.text(), "");
}

TEST(Status, TryReturnsTheErrorWithItsText) {
  bool reached = false;
  const Status status = pass_on({Code::kCudaError, "what happened"}, reached);
  EXPECT_FALSE(reached);
  EXPECT_EQ(status.code(), Code::kCudaError);
  EXPECT_EQ(status.text(), "what happened");
}

TEST(Status, TryGoesOnWhenOk) {
  bool reached = false;
  EXPECT_TRUE(pass_on({}, reached).ok());
  EXPECT_TRUE(reached);
}

TEST(Result, HoldsAValueOrAStatus) {
  const Result<int> value(7);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value.value(), 7);
  EXPECT_TRUE(value.status().ok());
  const Result<int> error(Status(Code::kNotAvailable, "no GPU"));
  EXPECT_FALSE(error.ok());
  EXPECT_EQ(error.status().code(), Code::kNotAvailable);
}

TEST(Result, CarriesValuesThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  const std::unique_ptr<int> taken = std::move(result.value());
  EXPECT_EQ(*taken, 3);
}

}  // namespace
}  // namespace tileglu
