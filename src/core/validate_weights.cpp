// SPDX-License-Identifier: Apache-2.0
#include "core/c_struct.hpp"
#include "core/checks.hpp"
#include "core/format.hpp"
#include "core/validate.hpp"

#include <array>

namespace tileglu {
namespace {

using checks::invalid;

struct Matrix {
  std::string name;
  ByteRange range;
  std::int64_t pitch;  // bytes between rows
  std::int64_t row;    // bytes of a row
};

using Matrices = std::array<Matrix, 2>;  // gate, up; the second of no bytes if there is one matrix

Matrices matrices_of(const RelayoutShape& shape, const WeightsView& view, const std::string& prefix) {
  const auto element = static_cast<std::int64_t>(size_of(shape.dtype));
  const std::int64_t gate_rows = is_single_matrix(view.layout) ? 2 * shape.n : shape.n;
  const std::int64_t up_rows = is_single_matrix(view.layout) ? 0 : shape.n;
  const auto make = [&](const char* name, const void* base, std::int64_t rows, std::int64_t ld) {
    const std::int64_t bytes = extent_bytes(rows, shape.k, ld, element).value_or(0);
    // A stride beyond kMaxBytes belongs to a matrix of at most one row or of no columns.
    return Matrix{.name = prefix + name,
                  .range = {base, bytes},
                  .pitch = rows > 1 && bytes > 0 ? ld * element : 0,
                  .row = shape.k * element};
  };
  return {make("gate", view.gate, gate_rows, view.ld_gate), make("up", view.up, up_rows, view.ld_up)};
}

Result<WeightsView> read_weights(const tileglu_weights* weights, const char* name, const RelayoutShape& shape) {
  const Result<tileglu_weights> read = read_struct(weights, name, kWeightsV1);
  if (!read.ok()) return read.status();
  const tileglu_weights& c = read.value();
  const std::string prefix = std::string(name) + ".";
  TILEGLU_TRY(checks::in_range((prefix + "layout").c_str(), c.layout, Layout::kSeparate, Layout::kInterleaved8));
  WeightsView view{
      .layout = static_cast<Layout>(c.layout), .gate = c.gate, .up = c.up, .ld_gate = c.ld_gate, .ld_up = c.ld_up};
  const auto element = static_cast<std::int64_t>(size_of(shape.dtype));
  TILEGLU_TRY(
      checks::resolve_weight_strides({view.layout, shape.n, shape.k, element}, prefix, view.ld_gate, view.ld_up));
  if (is_single_matrix(view.layout) && view.up != nullptr) {
    return invalid("{}up={} must be NULL in layout {} (one matrix with base gate)", prefix, view.up,
                   name_of(view.layout));
  }
  for (const Matrix& matrix : matrices_of(shape, view, prefix)) {
    if (matrix.range.bytes == 0) continue;
    if (matrix.range.first == nullptr) {
      return invalid("{} is NULL and must hold {} bytes", matrix.name, matrix.range.bytes);
    }
    TILEGLU_TRY(checks::aligned(matrix.name.c_str(), matrix.range.first, size_of(shape.dtype)));
  }
  return view;
}

// Two matrices of equal stride may lie in each other's gaps, as the halves of an interleaved matrix do.
bool rows_collide(const Matrix& x, const Matrix& y) {
  if (!overlap(x.range, y.range)) return false;
  if (x.pitch != y.pitch || x.pitch == 0) return true;
  const auto a = reinterpret_cast<std::uintptr_t>(x.range.first);
  const auto b = reinterpret_cast<std::uintptr_t>(y.range.first);
  const auto offset = static_cast<std::int64_t>((a < b ? b - a : a - b) % static_cast<std::uintptr_t>(x.pitch));
  return offset < x.row || x.pitch - offset < x.row;
}

Status check_apart(const Matrix& x, const Matrix& y) {
  if (!rows_collide(x, y)) return {};
  return invalid("{}={} ({} bytes) overlaps {}={} ({} bytes)", x.name, x.range.first, x.range.bytes, y.name,
                 y.range.first, y.range.bytes);
}

}  // namespace

Result<RelayoutCall> validate_relayout(const tileglu_problem* problem, const tileglu_weights* source,
                                       const tileglu_weights* destination) {
  const Result<tileglu_problem> read = read_struct(problem, "problem", kProblemV1);
  if (!read.ok()) return read.status();
  const tileglu_problem& c = read.value();
  TILEGLU_TRY(checks::in_range("dtype", c.dtype, Dtype::kBf16, Dtype::kFp32));
  TILEGLU_TRY(checks::in_range("memory", c.memory, Memory::kHost, Memory::kCuda));
  TILEGLU_TRY(checks::size_in_range("n", c.n));
  TILEGLU_TRY(checks::size_in_range("k", c.k));
  RelayoutCall call{.shape = {.dtype = static_cast<Dtype>(c.dtype), .n = c.n, .k = c.k},
                    .source = {},
                    .destination = {},
                    .memory = static_cast<Memory>(c.memory),
                    .device = c.memory == TILEGLU_MEMORY_HOST ? 0 : c.device};
  if (call.device < 0) return invalid("device={} is below 0 (a CUDA ordinal)", call.device);
  Result<WeightsView> from = read_weights(source, "source", call.shape);
  if (!from.ok()) return from.status();
  Result<WeightsView> to = read_weights(destination, "destination", call.shape);
  if (!to.ok()) return to.status();
  call.source = from.value();
  call.destination = to.value();
  const Matrices sources = matrices_of(call.shape, call.source, "source.");
  const Matrices targets = matrices_of(call.shape, call.destination, "destination.");
  for (const Matrix& target : targets) {
    for (const Matrix& matrix : sources) TILEGLU_TRY(check_apart(target, matrix));
  }
  TILEGLU_TRY(check_apart(targets[0], targets[1]));
  return call;
}

}  // namespace tileglu
