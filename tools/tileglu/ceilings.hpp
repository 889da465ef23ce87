// SPDX-License-Identifier: Apache-2.0
// What the device reaches in this run, for comparison with what kernels reach.
#pragma once

#include "core/status.hpp"

namespace tileglu::tool {

struct Ceilings {
  double copy_gbps = 0;    // cudaMemcpyAsync from device to device, bytes read plus bytes written
  double read_gbps = 0;    // a kernel that only reads (read_bandwidth.cu)
  double gemm_tflops = 0;  // bf16 8192 x 8192 x 8192, the fastest algorithm that cuBLASLt's heuristic offers
};
// In builds without CUDA: kNotAvailable.
Result<Ceilings> measure_ceilings(int device);

}  // namespace tileglu::tool
