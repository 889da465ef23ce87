// SPDX-License-Identifier: Apache-2.0
// Arithmetic intensity of the gated projection by the way it is computed, and what a roof lets it reach.
#pragma once

#include "options.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tileglu::tool {

// How the work is split into kernels, which decides what goes through device memory.
enum class Path {
  kFused,     // one kernel: A, both weights, Y
  kMerged,    // one GEMM over 2n, then one kernel that reads [m,2n] and writes Y
  kTwoGemms,  // two GEMMs that each read A, a kernel for act(gate), one for the product
  kProducts,  // the GEMM over 2n alone; its result is [m,2n]
};
inline constexpr std::array kPaths{Path::kFused, Path::kMerged, Path::kTwoGemms, Path::kProducts};
const char* name_of(Path path);
// The path of a contender of `bench` or of the study; none for what a compiler or another library decides.
std::optional<Path> path_of(std::string_view contender);

struct Roof {
  double tflops = 0, gbps = 0;
  std::string source = {};
  double ridge() const { return tflops * 1e3 / gbps; }  // FLOP per byte
};

// Bytes through device memory if nothing stays in a cache between kernels.
double path_bytes(Path path, const Shape& shape, Dtype dtype);
double intensity(Path path, const Shape& shape, Dtype dtype);
double attainable_tflops(double intensity, const Roof& roof);
// Speed-up over a baseline of `baseline_us` if the bytes that the fused kernel does not move were all that it saves, at
// the roof's bandwidth; none if they would take longer than the baseline does, as they stayed in a cache then.
std::optional<double> predicted_speedup(Path baseline, double baseline_us, const Shape& shape, Dtype dtype,
                                        const Roof& roof);

// Data sheet figures, dense bf16: "h100" "h200" "h20".
std::optional<Roof> data_sheet(std::string_view gpu);

}  // namespace tileglu::tool
