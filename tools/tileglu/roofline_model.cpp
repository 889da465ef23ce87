// SPDX-License-Identifier: Apache-2.0
#include "roofline_model.hpp"

#include "bench_shape.hpp"

#include <algorithm>

namespace tileglu::tool {
namespace {

struct NamedPath {
  std::string_view contender;
  std::optional<Path> path;
};
constexpr NamedPath kUnfused[] = {{"torch_eager", Path::kTwoGemms},       {"cublas_two_gemms", Path::kTwoGemms},
                                  {"cpu_two_gemms", Path::kTwoGemms},     {"two_gemms_silu_mul", Path::kTwoGemms},
                                  {"two_gemms_act_mul", Path::kTwoGemms}, {"torch_merged", Path::kMerged},
                                  {"cublas_merged", Path::kMerged},       {"torch_gemm_only", Path::kProducts},
                                  {"cublas_gemm_only", Path::kProducts}};

struct Sheet {
  std::string_view gpu;
  double tflops, gbps;
};
constexpr Sheet kSheets[] = {{"h100", 989.4, 3350}, {"h200", 989.4, 4800}, {"h20", 148, 4000}};

}  // namespace

const char* name_of(Path path) {
  switch (path) {
    case Path::kFused: return "fused";
    case Path::kMerged: return "merged";
    case Path::kTwoGemms: return "two_gemms";
    case Path::kProducts: return "gemm_only";
  }
  return "";
}

std::optional<Path> path_of(std::string_view contender) {
  for (const NamedPath& named : kUnfused) {
    if (named.contender == contender) return named.path;
  }
  if (contender.starts_with("torch_")) return {};
  return Path::kFused;
}

double path_bytes(Path path, const Shape& shape, Dtype dtype) {
  const auto mk = static_cast<double>(shape.m) * static_cast<double>(shape.k);
  const auto mn = static_cast<double>(shape.m) * static_cast<double>(shape.n);
  const double fused = bytes_moved(shape, dtype, dtype);
  const auto element = static_cast<double>(size_of(dtype));
  switch (path) {
    case Path::kFused: return fused;
    case Path::kMerged: return fused + element * 4 * mn;           // writes and reads [m,2n]
    case Path::kTwoGemms: return fused + element * (mk + 6 * mn);  // A again; gate, up and act(gate), written and read
    case Path::kProducts: return fused + element * mn;             // [m,2n] in place of Y
  }
  return fused;
}

double intensity(Path path, const Shape& shape, Dtype dtype) {
  return flops(shape) / path_bytes(path, shape, dtype);
}

double attainable_tflops(double intensity, const Roof& roof) {
  return std::min(roof.tflops, intensity * roof.gbps * 1e-3);
}

std::optional<double> predicted_speedup(Path baseline, double baseline_us, const Shape& shape, Dtype dtype,
                                        const Roof& roof) {
  const double saved = path_bytes(baseline, shape, dtype) - path_bytes(Path::kFused, shape, dtype);
  const double left_us = baseline_us - saved / roof.gbps * 1e-3;
  if (left_us <= 0) return {};
  return baseline_us / left_us;
}

std::optional<Roof> data_sheet(std::string_view gpu) {
  for (const Sheet& sheet : kSheets) {
    if (sheet.gpu == gpu) return Roof{sheet.tflops, sheet.gbps, "data sheet of " + std::string(gpu)};
  }
  return {};
}

}  // namespace tileglu::tool
