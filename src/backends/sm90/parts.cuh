// SPDX-License-Identifier: Apache-2.0
// Tiles that are cut along k (plan/work_split.hpp): accumulators on their way from the CTA that summed a part of a tile
// to the one that collects it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tileglu::sm90 {

// In the workspace. `values`: one part for each CTA. `flags`: one for each CTA and warpgroup that shares a tile; it
// equals `ticket` once that warpgroup's values are complete. A ticket is never the same for two launches, and the
// reader clears the flag again, so that neither what was in the workspace before nor the replay of a graph can pass for
// a part.
struct Parts {
  float4* values;
  unsigned long long* flags;
  unsigned long long ticket;
};

inline constexpr std::size_t kFlagBytes = sizeof(unsigned long long);

// A thread's first value in a CTA's part; the next one of the same thread is 128 further, so that a warp's lie
// together.
template <class T>
__device__ __forceinline__ float4* values_of(const Parts& parts, int cta) {
  constexpr std::int64_t kValues = T::kPartFloats / 4;
  return parts.values + cta * kValues + T::sharer() * (kValues / T::kSharers) + threadIdx.x % 128;
}
template <class T>
__device__ __forceinline__ unsigned long long* flag_of(const Parts& parts, int cta) {
  return parts.flags + cta * T::kSharers + T::sharer();
}

template <class T, class Synchronize>
__device__ __forceinline__ void give_part(const Parts& parts, int cta, const typename T::Accumulators& d,
                                          const Synchronize& synchronize) {
  float4* values = values_of<T>(parts, cta);
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
    for (int i = 0; i < T::kWidth / 2; i += 4, values += 128) {
      __stcg(values, make_float4(d[block][i], d[block][i + 1], d[block][i + 2], d[block][i + 3]));
    }
  }
  __threadfence();
  synchronize();
  if (threadIdx.x % 128 == 0) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(flag_of<T>(parts, cta)), "l"(parts.ticket) : "memory");
  }
}

template <class T, class Synchronize>
__device__ __forceinline__ void take_part(const Parts& parts, int cta, typename T::Accumulators& d,
                                          const Synchronize& synchronize) {
  const bool leader = threadIdx.x % 128 == 0;
  unsigned long long* flag = flag_of<T>(parts, cta);
  if (leader) {
    unsigned long long seen;
    do {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
    } while (seen != parts.ticket);
  }
  synchronize();
  const float4* values = values_of<T>(parts, cta);
#pragma unroll
  for (int block = 0; block < T::kBlocks; ++block) {
#pragma unroll
    for (int i = 0; i < T::kWidth / 2; i += 4, values += 128) {
      const float4 v = __ldcg(values);
      d[block][i] += v.x;
      d[block][i + 1] += v.y;
      d[block][i + 2] += v.z;
      d[block][i + 3] += v.w;
    }
  }
  synchronize();
  if (leader) *flag = 0;
}

}  // namespace tileglu::sm90
