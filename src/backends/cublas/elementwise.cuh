// SPDX-License-Identifier: Apache-2.0
// What the element-wise kernels of the unfused path share: conversions, and a grid that strides over both axes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tileglu::cublas {

inline __device__ float to_float(float x) {
  return x;
}
inline __device__ float to_float(__half x) {
  return __half2float(x);
}
inline __device__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <class T>
__device__ T from_float(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    return x;
  }
}

inline constexpr int kThreads = 256;  // of a block

struct Grid {
  dim3 blocks, threads;
};
// Threads (x, y) start at item x of row y and stride by the whole grid, so no size meets a limit of the grid (C02).
inline Grid grid_over(std::int64_t rows, std::int64_t items, int sm_count) {
  constexpr std::int64_t kMaxGrid = 65535;
  constexpr std::int64_t kBlocksPerSm = 32;  // four times what is resident: even loads without millions of blocks
  int wide = 1;
  while (wide < kThreads && wide < items) wide *= 2;
  const int tall = kThreads / wide;
  const std::int64_t blocks = std::min(kMaxGrid, kBlocksPerSm * sm_count);
  const std::int64_t across = std::min(blocks, (items + wide - 1) / wide);
  const std::int64_t down = std::min(std::max<std::int64_t>(1, blocks / across), (rows + tall - 1) / tall);
  return {.blocks = dim3(static_cast<unsigned>(across), static_cast<unsigned>(down)),
          .threads = dim3(static_cast<unsigned>(wide), static_cast<unsigned>(tall))};
}

}  // namespace tileglu::cublas
