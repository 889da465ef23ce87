// SPDX-License-Identifier: Apache-2.0
// The host half of the runtime, which every build has.
#include "runtime/runtime.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace tileglu::runtime {
namespace {

TEST(HostBuffer, HoldsWhatWasUploaded) {
  Result<Buffer> made = Buffer::make(Memory::kHost, 0, 100);
  ASSERT_TRUE(made.ok()) << made.status().text();
  const Buffer& buffer = made.value();
  EXPECT_EQ(buffer.size(), 100U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096, 0U);
  ASSERT_TRUE(buffer.fill(0x7E).ok());
  const std::array<unsigned char, 3> in{1, 2, 3};
  ASSERT_TRUE(buffer.upload(in.data(), 3, 97).ok());
  std::array<unsigned char, 4> out{};
  ASSERT_TRUE(buffer.download(out.data(), 4, 96).ok());
  EXPECT_EQ(out, (std::array<unsigned char, 4>{0x7E, 1, 2, 3}));
}

TEST(HostBuffer, RefusesToPassItsEnd) {
  Result<Buffer> made = Buffer::make(Memory::kHost, 0, 100);
  ASSERT_TRUE(made.ok());
  std::array<unsigned char, 200> bytes{};
  EXPECT_FALSE(made.value().upload(bytes.data(), 101).ok());
  EXPECT_FALSE(made.value().upload(bytes.data(), 4, 97).ok());
  EXPECT_FALSE(made.value().download(bytes.data(), SIZE_MAX, 2).ok());
  EXPECT_TRUE(made.value().download(bytes.data(), 0, 100).ok());
}

TEST(HostBuffer, MayBeEmptyAndSaysWhenMemoryIsShort) {
  EXPECT_TRUE(Buffer::make(Memory::kHost, 0, 0).ok());
#if defined(__SANITIZE_ADDRESS__)  // whose allocator ends the process when asked for too much
  constexpr std::size_t kTooMuch[] = {SIZE_MAX};
#else
  constexpr std::size_t kTooMuch[] = {std::size_t{1} << 62, SIZE_MAX};
#endif
  for (const std::size_t bytes : kTooMuch) {
    const Result<Buffer> made = Buffer::make(Memory::kHost, 0, bytes);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::kOutOfMemory);
  }
}

TEST(HostClock, RunsForward) {
  Result<Stream> stream = Stream::make(Memory::kHost, 0);
  Result<Event> start = Event::make(Memory::kHost, 0), end = Event::make(Memory::kHost, 0);
  ASSERT_TRUE(stream.ok() && start.ok() && end.ok());
  EXPECT_EQ(stream.value().handle(), nullptr);
  ASSERT_TRUE(start.value().record(stream.value()).ok());
  ASSERT_TRUE(stream.value().synchronize().ok());
  ASSERT_TRUE(end.value().record(stream.value()).ok());
  const Result<double> us = end.value().microseconds_since(start.value());
  ASSERT_TRUE(us.ok());
  EXPECT_GE(us.value(), 0);
}

TEST(Cuda, IsThereOrSaysWhyNot) {
  const Status status = cuda_status();
  if (status.ok()) {
    EXPECT_GT(device_count(), 0);
    EXPECT_TRUE(device_spec(0).ok());
    return;
  }
  EXPECT_EQ(status.code(), Code::kNotAvailable);
  EXPECT_GT(status.text().size(), 10U);
  EXPECT_EQ(device_count(), 0);
  EXPECT_FALSE(device_spec(0).ok());
  EXPECT_FALSE(Buffer::make(Memory::kCuda, 0, 16).ok());
  EXPECT_FALSE(Stream::make(Memory::kCuda, 0).ok());
}

}  // namespace
}  // namespace tileglu::runtime
