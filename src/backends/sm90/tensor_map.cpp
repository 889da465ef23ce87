// SPDX-License-Identifier: Apache-2.0
#include "backends/sm90/tensor_map.hpp"

#include "core/format.hpp"
#include "core/layout.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

namespace tileglu::sm90 {
namespace {

// The driver's functions, found once per process.
struct Driver {
  decltype(&cuTensorMapEncodeTiled) encode = nullptr;
  decltype(&cuTensorMapReplaceAddress) replace_address = nullptr;
};

void* find(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : nullptr;
}

const Driver& driver() {
  static const Driver found{
      .encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(find("cuTensorMapEncodeTiled")),
      .replace_address = reinterpret_cast<decltype(&cuTensorMapReplaceAddress)>(find("cuTensorMapReplaceAddress"))};
  return found;
}

// Stands for the address until set_base().
const void* const kPlaceholder = reinterpret_cast<const void*>(std::uintptr_t{4096});

CUtensorMapSwizzle swizzle_of(int box_columns) {
  if (box_columns == 64) return CU_TENSOR_MAP_SWIZZLE_128B;
  if (box_columns == 32) return CU_TENSOR_MAP_SWIZZLE_64B;
  return box_columns == 16 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_NONE;
}

// Sizes and box, innermost first; strides of all but the innermost dimension, in elements.
template <std::size_t Rank>
Status encode_16bit(const std::array<std::int64_t, Rank>& sizes, const std::array<std::int64_t, Rank - 1>& strides,
                    const std::array<int, Rank>& box, CUtensorMap& map) {
  if (driver().encode == nullptr || driver().replace_address == nullptr) {
    return {Code::kNotAvailable,
            "the CUDA driver has no cuTensorMapEncodeTiled (needs a driver for CUDA 12.0 or newer)"};
  }
  std::array<cuuint64_t, Rank> map_sizes{};
  std::array<cuuint64_t, Rank - 1> map_strides{};
  std::array<cuuint32_t, Rank> map_box{}, element_strides{};
  std::ranges::transform(sizes, map_sizes.begin(), [](auto size) { return static_cast<cuuint64_t>(size); });
  std::ranges::transform(strides, map_strides.begin(), [](auto stride) { return static_cast<cuuint64_t>(stride) * 2; });
  std::ranges::transform(box, map_box.begin(), [](auto side) { return static_cast<cuuint32_t>(side); });
  element_strides.fill(1);
  const CUresult result =
      driver().encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, Rank, const_cast<void*>(kPlaceholder), map_sizes.data(),
                      map_strides.data(), map_box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                      swizzle_of(box[0]), CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return {};
  return {Code::kCudaError, formatted("cuTensorMapEncodeTiled gave {} for sizes ({}), strides ({}) elements, box ({})",
                                      static_cast<int>(result), joined(sizes), joined(strides), joined(box))};
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

Status encode(const MatrixView& view, CUtensorMap& map) {
  return encode_16bit<2>({view.columns, view.rows}, {view.stride}, {view.box_columns, view.box_rows}, map);
}

Status encode(const SlicesView& view, int rows, CUtensorMap& map) {
  const std::int64_t slices = (view.columns - view.slice_columns) / 8 + 1;
  return encode_16bit<3>({view.slice_columns, slices, view.rows}, {8, view.stride}, {64, 1, rows}, map);
}

HalfView gate_half(const Problem& problem, const Operands& operands) {
  return half_view(gate_rows(problem.layout, problem.n), operands.gate, problem.ld_gate, problem);
}

HalfView up_half(const Problem& problem, const Operands& operands) {
  const bool single = is_single_matrix(problem.layout);
  return half_view(up_rows(problem.layout, problem.n), single ? operands.gate : operands.up,
                   single ? problem.ld_gate : problem.ld_up, problem);
}

Status encode_half(const HalfView& half, int rows, bool grouped, CUtensorMap& map) {
  if (grouped) {
    return encode_16bit<3>({half.k, 8, half.n / 8}, {half.row_stride, half.group_stride}, {64, 8, rows / 8}, map);
  }
  return encode_16bit<3>({half.k, half.n, 1}, {half.row_stride, half.group_stride}, {64, rows, 1}, map);
}

Status set_base(CUtensorMap& map, const void* base) {
  const CUresult result = driver().replace_address(&map, const_cast<void*>(base));
  if (result == CUDA_SUCCESS) return {};
  return {Code::kCudaError, formatted("cuTensorMapReplaceAddress gave {} for {}", static_cast<int>(result), base)};
}

}  // namespace tileglu::sm90
