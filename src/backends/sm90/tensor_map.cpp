// SPDX-License-Identifier: Apache-2.0
#include "backends/sm90/tensor_map.hpp"

#include "core/format.hpp"
#include "core/layout.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

namespace tileglu::sm90 {
namespace {

using Encoder = decltype(&cuTensorMapEncodeTiled);

Encoder find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Encoder>(function) : nullptr;
}

Encoder encoder() {
  static const Encoder found = find_encoder();
  return found;
}

CUtensorMapSwizzle swizzle_of(int box_columns) {
  if (box_columns == 64) return CU_TENSOR_MAP_SWIZZLE_128B;
  return box_columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_32B;
}

// Sizes and box, innermost first; strides of all but the innermost dimension, in elements.
template <std::size_t Rank>
Status encode_16bit(const void* base, const std::array<std::int64_t, Rank>& sizes,
                    const std::array<std::int64_t, Rank - 1>& strides, const std::array<int, Rank>& box,
                    CUtensorMap& map) {
  std::array<cuuint64_t, Rank> map_sizes{};
  std::array<cuuint64_t, Rank - 1> map_strides{};
  std::array<cuuint32_t, Rank> map_box{}, element_strides{};
  std::ranges::transform(sizes, map_sizes.begin(), [](auto size) { return static_cast<cuuint64_t>(size); });
  std::ranges::transform(strides, map_strides.begin(), [](auto stride) { return static_cast<cuuint64_t>(stride) * 2; });
  std::ranges::transform(box, map_box.begin(), [](auto side) { return static_cast<cuuint32_t>(side); });
  element_strides.fill(1);
  const CUresult result =
      encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, Rank, const_cast<void*>(base), map_sizes.data(),
                map_strides.data(), map_box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle_of(box[0]), CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return {};
  return {Code::kCudaError,
          formatted("cuTensorMapEncodeTiled gave {} for sizes ({}), strides ({}) elements, box ({}) at {}",
                    static_cast<int>(result), joined(sizes), joined(strides), joined(box), base)};
}

HalfView half_view(const HalfRows& rows, const void* base, std::int64_t ld, const Problem& problem) {
  const bool grouped = rows.group == 8;
  return {.base = static_cast<const char*>(base) + rows.first * ld * static_cast<std::int64_t>(size_of(problem.dtype)),
          .n = problem.n,
          .k = problem.k,
          .row_stride = grouped ? ld : rows.pitch * ld,
          .group_stride = grouped ? rows.pitch * ld : 8 * rows.pitch * ld};
}

}  // namespace

Status load_encoder() {
  if (encoder() != nullptr) return {};
  return {Code::kNotAvailable, "the CUDA driver has no cuTensorMapEncodeTiled (needs a driver for CUDA 12.0 or newer)"};
}

Status encode(const MatrixView& view, CUtensorMap& map) {
  return encode_16bit<2>(view.base, {view.columns, view.rows}, {view.stride}, {view.box_columns, view.box_rows}, map);
}

HalfView gate_half(const Problem& problem, const Operands& operands) {
  return half_view(gate_rows(problem.layout, problem.n), operands.gate, problem.ld_gate, problem);
}

HalfView up_half(const Problem& problem, const Operands& operands) {
  const bool single = is_single_matrix(problem.layout);
  return half_view(up_rows(problem.layout, problem.n), single ? operands.gate : operands.up,
                   single ? problem.ld_gate : problem.ld_up, problem);
}

Status encode_half(const HalfView& half, int rows, CUtensorMap& map) {
  return encode_16bit<3>(half.base, {half.k, 8, half.n / 8}, {half.row_stride, half.group_stride}, {64, 8, rows / 8},
                         map);
}

}  // namespace tileglu::sm90
