// SPDX-License-Identifier: Apache-2.0
// Compiles simd-inl.hpp once for each instruction set. The target pragmas come after all other headers, so that nothing
// shared with the rest of the program is compiled for more than the baseline.
#include "backends/cpu/simd.hpp"

#include "core/activation.hpp"
#include "core/float16.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define TILEGLU_SIMD_NAMESPACE baseline
#define TILEGLU_SIMD_LANES 4
#include "backends/cpu/simd-inl.hpp"
#undef TILEGLU_SIMD_NAMESPACE
#undef TILEGLU_SIMD_LANES

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#define TILEGLU_SIMD_NAMESPACE avx2
#define TILEGLU_SIMD_LANES 8
#include "backends/cpu/simd-inl.hpp"
#undef TILEGLU_SIMD_NAMESPACE
#undef TILEGLU_SIMD_LANES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,prefer-vector-width=512")
#define TILEGLU_SIMD_NAMESPACE avx512
#define TILEGLU_SIMD_LANES 16
#include "backends/cpu/simd-inl.hpp"
#undef TILEGLU_SIMD_NAMESPACE
#undef TILEGLU_SIMD_LANES
#pragma GCC pop_options
#endif

namespace tileglu::cpu {
namespace {

constexpr Simd kBaseline = baseline::make_simd("baseline", [] { return true; });
#if defined(__x86_64__)
constexpr Simd kAvx2 = avx2::make_simd("avx2", [] {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
});
constexpr Simd kAvx512 = avx512::make_simd("avx512", [] {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
});
constexpr std::array<const Simd*, 3> kAll = {&kAvx512, &kAvx2, &kBaseline};
#else
constexpr std::array<const Simd*, 1> kAll = {&kBaseline};
#endif

}  // namespace

std::span<const Simd* const> all_simd() {
  return kAll;
}

const Simd& best_simd() {
  return **std::find_if(kAll.begin(), kAll.end(), [](const Simd* simd) { return simd->supported(); });
}

}  // namespace tileglu::cpu
