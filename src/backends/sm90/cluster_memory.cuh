// SPDX-License-Identifier: Apache-2.0
// Shared memory of the other CTAs of a cluster.
#pragma once

#include <cstdint>

namespace tileglu::sm90 {

// 16 bytes from where `address` (of shared memory) lies in CTA `rank`.
__device__ __forceinline__ float4 load_from_cta(std::uint32_t address, int rank) {
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(there)
               : "memory");
  return v;
}

}  // namespace tileglu::sm90
