// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tileglu::tool {

// Reads `bytes` (a multiple of 16) from `data` once, with `blocks_per_sm` blocks on each SM. `sink` is written only if
// all words together make an unlikely number: it keeps the compiler from leaving the reads out.
cudaError_t read_all(const void* data, std::size_t bytes, int blocks_per_sm, unsigned* sink, cudaStream_t stream);

}  // namespace tileglu::tool
