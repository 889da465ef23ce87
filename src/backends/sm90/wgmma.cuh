// SPDX-License-Identifier: Apache-2.0
// WGMMA m64nNk16, both operands in shared memory, fp32 accumulators in registers; bf16 or fp16. Written out, since
// CuTe's headers of all widths take longer to compile than a kernel.
//
// Accumulators of a thread (PTX ISA, "wgmma ... m64nNk16, D fragment"): d[4j + 2h + i] is row 16 * warp + lane / 4 +
// 8h, column 8j + 2 * (lane % 4) + i.
#pragma once

#include <cstdint>

namespace tileglu::sm90 {

// Descriptor of a K-major operand in rows of 128 bytes with the 128-byte swizzle. The upper half is the same for all:
// the swizzle, and 1024 bytes between groups of 8 rows; the lower half is address / 16. A step of 16 elements along k
// adds kStepK, 64 rows add kStepRows64.
inline constexpr std::uint32_t kDescriptorHigh = std::uint32_t{1} << 30 | 1024 / 16;
__device__ __forceinline__ std::uint32_t descriptor_low(std::uint32_t shared_address) {
  constexpr std::uint32_t kLeading = std::uint32_t{1} << 16;  // not used with a swizzle; 1 by convention
  return kLeading | (shared_address & 0x3FFFF) >> 4;
}
inline constexpr int kStepK = 16 * 2 / 16;
inline constexpr int kStepRows64 = 64 * 128 / 16;

template <int N, bool IsBf16>
struct Wgmma;

// The registers' numbers and operands, four at a time.
// clang-format off
#define TILEGLU_NUMBERS_4 "%0, %1, %2, %3"
#define TILEGLU_OPERANDS_4 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define TILEGLU_NUMBERS_8 TILEGLU_NUMBERS_4 ", %4, %5, %6, %7"
#define TILEGLU_OPERANDS_8 TILEGLU_OPERANDS_4, "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define TILEGLU_NUMBERS_12 TILEGLU_NUMBERS_8 ", %8, %9, %10, %11"
#define TILEGLU_OPERANDS_12 TILEGLU_OPERANDS_8, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
#define TILEGLU_NUMBERS_16 TILEGLU_NUMBERS_12 ", %12, %13, %14, %15"
#define TILEGLU_OPERANDS_16 TILEGLU_OPERANDS_12, "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define TILEGLU_NUMBERS_20 TILEGLU_NUMBERS_16 ", %16, %17, %18, %19"
#define TILEGLU_OPERANDS_20 TILEGLU_OPERANDS_16, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
#define TILEGLU_NUMBERS_24 TILEGLU_NUMBERS_20 ", %20, %21, %22, %23"
#define TILEGLU_OPERANDS_24 TILEGLU_OPERANDS_20, "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define TILEGLU_NUMBERS_28 TILEGLU_NUMBERS_24 ", %24, %25, %26, %27"
#define TILEGLU_OPERANDS_28 TILEGLU_OPERANDS_24, "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
#define TILEGLU_NUMBERS_32 TILEGLU_NUMBERS_28 ", %28, %29, %30, %31"
#define TILEGLU_OPERANDS_32 TILEGLU_OPERANDS_28, "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define TILEGLU_NUMBERS_36 TILEGLU_NUMBERS_32 ", %32, %33, %34, %35"
#define TILEGLU_OPERANDS_36 TILEGLU_OPERANDS_32, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define TILEGLU_NUMBERS_40 TILEGLU_NUMBERS_36 ", %36, %37, %38, %39"
#define TILEGLU_OPERANDS_40 TILEGLU_OPERANDS_36, "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define TILEGLU_NUMBERS_44 TILEGLU_NUMBERS_40 ", %40, %41, %42, %43"
#define TILEGLU_OPERANDS_44 TILEGLU_OPERANDS_40, "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43])
#define TILEGLU_NUMBERS_48 TILEGLU_NUMBERS_44 ", %44, %45, %46, %47"
#define TILEGLU_OPERANDS_48 TILEGLU_OPERANDS_44, "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define TILEGLU_NUMBERS_52 TILEGLU_NUMBERS_48 ", %48, %49, %50, %51"
#define TILEGLU_OPERANDS_52 TILEGLU_OPERANDS_48, "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51])
#define TILEGLU_NUMBERS_56 TILEGLU_NUMBERS_52 ", %52, %53, %54, %55"
#define TILEGLU_OPERANDS_56 TILEGLU_OPERANDS_52, "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define TILEGLU_NUMBERS_60 TILEGLU_NUMBERS_56 ", %56, %57, %58, %59"
#define TILEGLU_OPERANDS_60 TILEGLU_OPERANDS_56, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59])
#define TILEGLU_NUMBERS_64 TILEGLU_NUMBERS_60 ", %60, %61, %62, %63"
#define TILEGLU_OPERANDS_64 TILEGLU_OPERANDS_60, "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define TILEGLU_NUMBERS_68 TILEGLU_NUMBERS_64 ", %64, %65, %66, %67"
#define TILEGLU_OPERANDS_68 TILEGLU_OPERANDS_64, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
#define TILEGLU_NUMBERS_72 TILEGLU_NUMBERS_68 ", %68, %69, %70, %71"
#define TILEGLU_OPERANDS_72 TILEGLU_OPERANDS_68, "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define TILEGLU_NUMBERS_76 TILEGLU_NUMBERS_72 ", %72, %73, %74, %75"
#define TILEGLU_OPERANDS_76 TILEGLU_OPERANDS_72, "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75])
#define TILEGLU_NUMBERS_80 TILEGLU_NUMBERS_76 ", %76, %77, %78, %79"
#define TILEGLU_OPERANDS_80 TILEGLU_OPERANDS_76, "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define TILEGLU_NUMBERS_84 TILEGLU_NUMBERS_80 ", %80, %81, %82, %83"
#define TILEGLU_OPERANDS_84 TILEGLU_OPERANDS_80, "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83])
#define TILEGLU_NUMBERS_88 TILEGLU_NUMBERS_84 ", %84, %85, %86, %87"
#define TILEGLU_OPERANDS_88 TILEGLU_OPERANDS_84, "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define TILEGLU_NUMBERS_92 TILEGLU_NUMBERS_88 ", %88, %89, %90, %91"
#define TILEGLU_OPERANDS_92 TILEGLU_OPERANDS_88, "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91])
#define TILEGLU_NUMBERS_96 TILEGLU_NUMBERS_92 ", %92, %93, %94, %95"
#define TILEGLU_OPERANDS_96 TILEGLU_OPERANDS_92, "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define TILEGLU_NUMBERS_100 TILEGLU_NUMBERS_96 ", %96, %97, %98, %99"
#define TILEGLU_OPERANDS_100 TILEGLU_OPERANDS_96, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99])
#define TILEGLU_NUMBERS_104 TILEGLU_NUMBERS_100 ", %100, %101, %102, %103"
#define TILEGLU_OPERANDS_104 TILEGLU_OPERANDS_100, "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define TILEGLU_NUMBERS_108 TILEGLU_NUMBERS_104 ", %104, %105, %106, %107"
#define TILEGLU_OPERANDS_108 TILEGLU_OPERANDS_104, "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107])
#define TILEGLU_NUMBERS_112 TILEGLU_NUMBERS_108 ", %108, %109, %110, %111"
#define TILEGLU_OPERANDS_112 TILEGLU_OPERANDS_108, "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define TILEGLU_NUMBERS_116 TILEGLU_NUMBERS_112 ", %112, %113, %114, %115"
#define TILEGLU_OPERANDS_116 TILEGLU_OPERANDS_112, "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115])
#define TILEGLU_NUMBERS_120 TILEGLU_NUMBERS_116 ", %116, %117, %118, %119"
#define TILEGLU_OPERANDS_120 TILEGLU_OPERANDS_116, "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define TILEGLU_NUMBERS_124 TILEGLU_NUMBERS_120 ", %120, %121, %122, %123"
#define TILEGLU_OPERANDS_124 TILEGLU_OPERANDS_120, "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123])
#define TILEGLU_NUMBERS_128 TILEGLU_NUMBERS_124 ", %124, %125, %126, %127"
#define TILEGLU_OPERANDS_128 TILEGLU_OPERANDS_124, "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
// width, its half (registers a thread), and the three numbers after those
#define TILEGLU_WGMMA_OF(width, registers, a, b, p, type, is_bf16)                                                      \
  template <>                                                                                                          \
  struct Wgmma<width, is_bf16> {                                                                                       \
    __device__ __forceinline__ static void issue(float (&d)[registers], std::uint32_t low_a, std::uint32_t low_b,      \
                                                 int accumulate) {                                                     \
      constexpr std::uint64_t kHigh = std::uint64_t{kDescriptorHigh} << 32;                                            \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p ", 0;\n"                                                    \
                   "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32." type "." type                                 \
                   " {" TILEGLU_NUMBERS_##registers "}, %" #a ", %" #b ", p, 1, 1, 0, 0;\n}\n"                         \
                   : TILEGLU_OPERANDS_##registers                                                                      \
                   : "l"(kHigh | low_a), "l"(kHigh | low_b), "r"(accumulate));                                         \
    }                                                                                                                  \
  };
#define TILEGLU_WGMMA(width, registers, a, b, p)                 \
  TILEGLU_WGMMA_OF(width, registers, a, b, p, "bf16", true)      \
  TILEGLU_WGMMA_OF(width, registers, a, b, p, "f16", false)
TILEGLU_WGMMA(8, 4, 4, 5, 6)
TILEGLU_WGMMA(16, 8, 8, 9, 10)
TILEGLU_WGMMA(24, 12, 12, 13, 14)
TILEGLU_WGMMA(32, 16, 16, 17, 18)
TILEGLU_WGMMA(48, 24, 24, 25, 26)
TILEGLU_WGMMA(64, 32, 32, 33, 34)
TILEGLU_WGMMA(72, 36, 36, 37, 38)
TILEGLU_WGMMA(80, 40, 40, 41, 42)
TILEGLU_WGMMA(96, 48, 48, 49, 50)
TILEGLU_WGMMA(112, 56, 56, 57, 58)
TILEGLU_WGMMA(128, 64, 64, 65, 66)
TILEGLU_WGMMA(144, 72, 72, 73, 74)
TILEGLU_WGMMA(160, 80, 80, 81, 82)
TILEGLU_WGMMA(176, 88, 88, 89, 90)
TILEGLU_WGMMA(192, 96, 96, 97, 98)
TILEGLU_WGMMA(208, 104, 104, 105, 106)
TILEGLU_WGMMA(224, 112, 112, 113, 114)
TILEGLU_WGMMA(240, 120, 120, 121, 122)
TILEGLU_WGMMA(256, 128, 128, 129, 130)
// clang-format on
#undef TILEGLU_WGMMA
#undef TILEGLU_WGMMA_OF

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int InFlight>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(InFlight) : "memory");
}
// The same value in all threads of a warp, said so that the compiler knows it. The tensor cores take their descriptors
// from uniform registers: computed in others, they are copied before each WGMMA, which then waits for the one before.
__device__ __forceinline__ int uniform(int value) {
  return __shfl_sync(0xFFFFFFFFU, value, 0);
}
// The same value, so that the compiler does not know it: what is made of it is made where it is used, and not kept in
// registers across what lies between.
__device__ __forceinline__ int again(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ int lane_here() {
  return again(static_cast<int>(threadIdx.x) % 32);
}
// Keeps the compiler from moving accesses to accumulators across the WGMMAs that are in flight.
template <int N>
__device__ __forceinline__ void wgmma_hold(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

}  // namespace tileglu::sm90
