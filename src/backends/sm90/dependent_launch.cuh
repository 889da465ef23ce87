// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch: every kernel is launched as a dependent of the one before it in the stream, so that
// its start overlaps that one's end. It reads and writes nothing before it has waited, weights aside if the caller
// allows it.
#pragma once

#include <cuda_runtime.h>

namespace tileglu::sm90 {

// Until the grid before this one in the stream has ended and its writes are visible; at once if this one was not
// launched as its dependent.
__device__ __forceinline__ void wait_for_previous_grid() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
// The next grid may take the places that this one's CTAs leave.
__device__ __forceinline__ void let_next_grid_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// To be one of cudaLaunchConfig_t::attrs.
inline cudaLaunchAttribute dependent_launch() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

}  // namespace tileglu::sm90
