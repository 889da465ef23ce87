// SPDX-License-Identifier: Apache-2.0
// The little of a device runtime that the library, the tool and the tests share: device facts, buffers on the host or a
// GPU, streams, events and graphs. cuda.cpp implements it over the CUDA runtime; none.cpp (builds without CUDA) answers
// every GPU request with kNotAvailable.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "plan/device_spec.hpp"

#include <functional>
#include <memory>

namespace tileglu::runtime {

// OK if at least one GPU can be used; else kNotAvailable and why (no CUDA in this build, no driver, driver older than
// the runtime, no device). Asked once per process, then cached.
Status cuda_status();
int device_count();                          // 0 unless cuda_status() is OK
Result<DeviceSpec> device_spec(int device);  // cached per device
std::string driver_description();            // "driver 580.95.05, CUDA 13.0" or "none"

// What the GPU reports of itself at this moment; 0 for what it does not report.
struct DeviceSensors {
  int sm_clock_mhz = 0, memory_clock_mhz = 0;
  double power_watts = 0;
};
Result<DeviceSensors> device_sensors(int device);

class Stream;

// Memory on the host (page-aligned) or on a GPU.
class Buffer {
 public:
  Buffer() = default;
  static Result<Buffer> make(Memory memory, int device, std::size_t bytes);
  void* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  // Synchronous; offset and size in bytes, inside the buffer.
  Status upload(const void* host, std::size_t bytes, std::size_t offset = 0) const;
  Status download(void* host, std::size_t bytes, std::size_t offset = 0) const;
  Status fill(unsigned char byte) const;
  // The same, enqueued on `stream` (of this buffer's device); what flushes the L2 between timed calls.
  Status fill_async(unsigned char byte, const Stream& stream) const;

 private:
  std::shared_ptr<void> data_;
  std::size_t size_ = 0;
  Memory memory_ = Memory::kHost;
  int device_ = 0;
};

// A CUDA stream, or nothing for host memory (handle() is then null and work is done when the call returns).
class Stream {
 public:
  static Result<Stream> make(Memory memory, int device);
  void* handle() const { return handle_.get(); }
  Status synchronize() const;

 private:
  std::shared_ptr<void> handle_;
  Memory memory_ = Memory::kHost;
  int device_ = 0;
};

// A point in a stream's time; for host memory a monotonic clock reading.
class Event {
 public:
  static Result<Event> make(Memory memory, int device);
  Status record(const Stream& stream);
  // Microseconds from `start` to this event; both must have completed.
  Result<double> microseconds_since(const Event& start) const;

 private:
  std::shared_ptr<void> handle_;
  Memory memory_ = Memory::kHost;
  std::int64_t host_ns_ = 0;
};

// A captured CUDA graph.
class Graph {
 public:
  static Result<Graph> capture(const Stream& stream, const std::function<Status()>& body);
  Status launch(const Stream& stream) const;

 private:
  std::shared_ptr<void> handle_;
};

// Zeros the m rows of n elements of Y, leaving what lies between the rows; enqueued on `stream` for CUDA memory (can be
// captured). What a problem with k = 0 comes to.
Status fill_zero_rows(const Problem& problem, void* y, void* stream);

}  // namespace tileglu::runtime
