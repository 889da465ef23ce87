// SPDX-License-Identifier: Apache-2.0
// The CTAs of a cluster that divide k of a tile: they wait for each other, and read each other's shared memory.
#pragma once

#include <cute/arch/cluster_sm90.hpp>
#include <cutlass/arch/barrier.h>

#include <cstdint>

namespace tileglu::sm90 {

// Where `shared` lies in CTA `rank` of the cluster.
__device__ __forceinline__ std::uint32_t in_cta(std::uint32_t shared, int rank) {
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared), "r"(rank));
  return there;
}

__device__ __forceinline__ float4 load_cluster(std::uint32_t address) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// Of the consumers of `Ctas` CTAs, on a barrier in each that one arrival of each CTA completes. What those who arrive
// have done to their shared memory, all consumers of a CTA having synchronised before, is seen after the wait.
template <int Ctas>
class ClusterMeeting {
 public:
  __device__ explicit ClusterMeeting(std::uint64_t& barrier) : barrier_(cute::cast_smem_ptr_to_uint(&barrier)) {}

  __device__ __forceinline__ void arrive() const {
    const int consumer = static_cast<int>(threadIdx.x) - 128;
    if (consumer >= Ctas) return;
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_cta(barrier_, consumer))
                 : "memory");
  }
  __device__ __forceinline__ void wait() {
    asm volatile(
        "{\n.reg .pred done;\nwait:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra wait;\n}\n" ::"r"(barrier_),
        "r"(phase_)
        : "memory");
    phase_ ^= 1;
  }

 private:
  std::uint32_t barrier_, phase_ = 0;
};

}  // namespace tileglu::sm90
