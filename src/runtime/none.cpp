// SPDX-License-Identifier: Apache-2.0
// The runtime of a build without CUDA: host memory works, every GPU request is answered with kNotAvailable.
#include "core/format.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace tileglu::runtime {
namespace {

constexpr std::size_t kPageBytes = 4096;

Status no_cuda() {
  return {Code::kNotAvailable, "this build has no CUDA (configure with nvcc and the CUTLASS headers)"};
}

Status host_only(Memory memory) {
  return memory == Memory::kHost ? Status() : no_cuda();
}

Status inside(std::size_t bytes, std::size_t offset, std::size_t size) {
  if (offset <= size && bytes <= size - offset) return {};
  return {Code::kInvalidArgument,
          formatted("{} bytes at offset {} pass the end of a buffer of {}", bytes, offset, size)};
}

}  // namespace

Status cuda_status() {
  return no_cuda();
}
int device_count() {
  return 0;
}
Result<DeviceSpec> device_spec(int) {
  return no_cuda();
}
std::string driver_description() {
  return "none";
}
Result<DeviceSensors> device_sensors(int) {
  return no_cuda();
}

Result<Buffer> Buffer::make(Memory memory, int device, std::size_t bytes) {
  TILEGLU_TRY(host_only(memory));
  const std::size_t pages = bytes / kPageBytes + 1;
  void* data = pages > SIZE_MAX / kPageBytes ? nullptr : std::aligned_alloc(kPageBytes, pages * kPageBytes);
  if (data == nullptr) return Status(Code::kOutOfMemory, formatted("no host memory for {} bytes", bytes));
  Buffer buffer;
  buffer.data_ = std::shared_ptr<void>(data, std::free);
  buffer.size_ = bytes;
  buffer.memory_ = memory;
  buffer.device_ = device;
  return buffer;
}

Status Buffer::upload(const void* host, std::size_t bytes, std::size_t offset) const {
  TILEGLU_TRY(inside(bytes, offset, size_));
  if (bytes > 0) std::memcpy(static_cast<unsigned char*>(data()) + offset, host, bytes);
  return {};
}

Status Buffer::download(void* host, std::size_t bytes, std::size_t offset) const {
  TILEGLU_TRY(inside(bytes, offset, size_));
  if (bytes > 0) std::memcpy(host, static_cast<const unsigned char*>(data()) + offset, bytes);
  return {};
}

Status Buffer::fill(unsigned char byte) const {
  if (size_ > 0) std::memset(data(), byte, size_);
  return {};
}

Status Buffer::fill_async(unsigned char byte, const Stream&) const {
  return fill(byte);
}

Result<Stream> Stream::make(Memory memory, int) {
  TILEGLU_TRY(host_only(memory));
  return Stream();
}

Status Stream::synchronize() const {
  return {};
}

Result<Event> Event::make(Memory memory, int) {
  TILEGLU_TRY(host_only(memory));
  return Event();
}

Status Event::record(const Stream&) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  host_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return {};
}

Result<double> Event::microseconds_since(const Event& start) const {
  return static_cast<double>(host_ns_ - start.host_ns_) * 1e-3;
}

Result<Graph> Graph::capture(const Stream&, const std::function<Status()>&) {
  return no_cuda();
}

Status Graph::launch(const Stream&) const {
  return no_cuda();
}

Status fill_zero_rows(const Problem& problem, void* y, void*) {
  TILEGLU_TRY(host_only(problem.memory));
  const auto element = static_cast<std::int64_t>(size_of(problem.dtype_y));
  auto* row = static_cast<unsigned char*>(y);
  for (std::int64_t i = 0; i < problem.m; ++i) {
    std::memset(row + i * problem.ldy * element, 0, static_cast<std::size_t>(problem.n * element));
  }
  return {};
}

}  // namespace tileglu::runtime
