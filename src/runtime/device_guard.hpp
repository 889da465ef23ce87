// SPDX-License-Identifier: Apache-2.0
// For code that calls the CUDA runtime: errors as Status, and guards that leave the caller's thread as it was.
// No fmt: CUDA sources include this.
#pragma once

#include "core/status.hpp"

#include <cuda_runtime_api.h>

namespace tileglu::runtime {

// OK, or the error of the named call. Reading the runtime's last error here keeps a refused launch or allocation from
// turning up again in somebody else's later call (field case C01).
inline Status cuda_check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  const Code code = error == cudaErrorMemoryAllocation ? Code::kOutOfMemory : Code::kCudaError;
  return {code, std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")"};
}

// Makes `device` current for a scope and puts the caller's device back afterwards. It always calls cudaSetDevice, also
// where the device is current already: that is what gives a new thread a context, which driver calls need.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) noexcept {
    error_ = cudaGetDevice(&previous_);
    if (error_ != cudaSuccess) return;
    error_ = cudaSetDevice(device);
    switched_ = error_ == cudaSuccess && previous_ != device;
  }
  ~DeviceGuard() {
    if (switched_) cudaSetDevice(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  Status status() const { return cuda_check(error_, "cudaSetDevice"); }

 private:
  cudaError_t error_ = cudaSuccess;
  int previous_ = 0;
  bool switched_ = false;
};

// Lets this thread load modules and create handles while one of its streams is being captured: a plan made by the first
// call inside a capture (field case C20). Nothing of that work is recorded into the graph.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { exchanged_ = cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess; }
  ~RelaxedCapture() {
    if (exchanged_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool exchanged_ = false;
};

}  // namespace tileglu::runtime
