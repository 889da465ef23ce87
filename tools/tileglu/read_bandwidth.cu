// SPDX-License-Identifier: Apache-2.0
#include "read_bandwidth.hpp"

namespace tileglu::tool {
namespace {

constexpr int kThreads = 512;
constexpr int kInFlight = 8;  // 16-byte loads of a thread

__global__ void __launch_bounds__(kThreads) read_kernel(const uint4* data, std::size_t count, unsigned* sink) {
  const std::size_t step = std::size_t{gridDim.x} * kThreads;
  unsigned sum = 0;
  std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  for (; i + (kInFlight - 1) * step < count; i += kInFlight * step) {
    uint4 values[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) values[j] = __ldcs(data + i + j * step);
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) sum ^= values[j].x ^ values[j].y ^ values[j].z ^ values[j].w;
  }
  for (; i < count; i += step) sum ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
  if (sum == 0x9E3779B9) *sink = sum;
}

}  // namespace

cudaError_t read_all(const void* data, std::size_t bytes, int blocks_per_sm, unsigned* sink, cudaStream_t stream) {
  int device = 0, sm_count = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>(sm_count * blocks_per_sm);
  read_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const uint4*>(data), bytes / sizeof(uint4), sink);
  return cudaGetLastError();
}

}  // namespace tileglu::tool
