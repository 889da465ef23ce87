// SPDX-License-Identifier: Apache-2.0
// relayout_cuda: one kernel that copies each of the 2n weight rows to its place, in the widest units that both sides
// are aligned to. 64-bit offsets; the grid strides over both axes.
#include "core/layout.hpp"
#include "pack/relayout.hpp"
#include "runtime/device_guard.hpp"

#include <algorithm>

namespace tileglu {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxGrid = 65535;
constexpr std::int64_t kMaxBlocks = 16384;

// One half (gate or up) on one side, in units.
struct HalfView {
  char* base;
  HalfRows rows;
  std::int64_t stride;
};

struct Arguments {
  HalfView source[2], destination[2];
  std::int64_t n, units;  // rows of a half, units in a row
};

template <class Unit>
__global__ void __launch_bounds__(kThreads) copy_rows(const __grid_constant__ Arguments p) {
  const std::int64_t row_step = std::int64_t{gridDim.y} * blockDim.y;
  const std::int64_t unit_step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < 2 * p.n; row += row_step) {
    const bool up = row >= p.n;
    const std::int64_t i = up ? row - p.n : row;
    const HalfView& from = up ? p.source[1] : p.source[0];
    const HalfView& to = up ? p.destination[1] : p.destination[0];
    const Unit* source = reinterpret_cast<const Unit*>(from.base) + from.rows.row(i) * from.stride;
    Unit* destination = reinterpret_cast<Unit*>(to.base) + to.rows.row(i) * to.stride;
#pragma unroll 1
    for (std::int64_t u = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < p.units; u += unit_step) {
      destination[u] = source[u];
    }
  }
}

HalfView half_view(const RelayoutShape& shape, const WeightsView& weights, bool up) {
  const bool from_up = up && !is_single_matrix(weights.layout);
  return {.base = static_cast<char*>(from_up ? weights.up : weights.gate),
          .rows = up ? up_rows(weights.layout, shape.n) : gate_rows(weights.layout, shape.n),
          .stride = (from_up ? weights.ld_up : weights.ld_gate) * static_cast<std::int64_t>(size_of(shape.dtype))};
}

// The largest of 16, 8, 4, 2 and 1 bytes that divides every address, stride and row.
std::int64_t unit_bytes(const Arguments& p) {
  std::int64_t bits = 16 | p.units;
  for (const HalfView* half : {&p.source[0], &p.source[1], &p.destination[0], &p.destination[1]}) {
    bits |= static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(half->base)) | half->stride;
  }
  return bits & -bits;
}

const void* kernel_of(std::int64_t unit) {
  switch (unit) {
    case 16: return reinterpret_cast<const void*>(&copy_rows<uint4>);
    case 8: return reinterpret_cast<const void*>(&copy_rows<uint2>);
    case 4: return reinterpret_cast<const void*>(&copy_rows<std::uint32_t>);
    case 2: return reinterpret_cast<const void*>(&copy_rows<std::uint16_t>);
    default: return reinterpret_cast<const void*>(&copy_rows<std::uint8_t>);
  }
}

Status launch(Arguments arguments, std::int64_t unit, void* stream) {
  int wide = 1;
  while (wide < kThreads && wide < arguments.units) wide *= 2;
  const int tall = kThreads / wide;
  const std::int64_t across = std::min(kMaxBlocks, (arguments.units + wide - 1) / wide);
  const std::int64_t needed = (2 * arguments.n + tall - 1) / tall;
  const std::int64_t down = std::min({std::max<std::int64_t>(1, kMaxBlocks / across), needed, kMaxGrid});
  void* parameters[] = {&arguments};
  return runtime::cuda_check(
      cudaLaunchKernel(kernel_of(unit), dim3(static_cast<unsigned>(across), static_cast<unsigned>(down)),
                       dim3(static_cast<unsigned>(wide), static_cast<unsigned>(tall)), parameters, 0,
                       static_cast<cudaStream_t>(stream)),
      "launching the relayout kernel");
}

}  // namespace

Status relayout_cuda(const RelayoutShape& shape, const WeightsView& source, const WeightsView& destination, int device,
                     void* stream) {
  if (shape.n == 0 || shape.k == 0) return {};
  const runtime::DeviceGuard guard(device);
  TILEGLU_TRY(guard.status());
  const runtime::RelaxedCapture relaxed;  // the kernel is loaded on its first use
  // In bytes first; then in the unit that they allow.
  Arguments arguments{.source = {half_view(shape, source, false), half_view(shape, source, true)},
                      .destination = {half_view(shape, destination, false), half_view(shape, destination, true)},
                      .n = shape.n,
                      .units = shape.k * static_cast<std::int64_t>(size_of(shape.dtype))};
  const std::int64_t unit = unit_bytes(arguments);
  arguments.units /= unit;
  for (HalfView* half :
       {&arguments.source[0], &arguments.source[1], &arguments.destination[0], &arguments.destination[1]}) {
    half->stride /= unit;
  }
  return launch(arguments, unit, stream);
}

}  // namespace tileglu
