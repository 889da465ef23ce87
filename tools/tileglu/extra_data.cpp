// SPDX-License-Identifier: Apache-2.0
#include "extra_data.hpp"

#include "core/layout.hpp"
#include "random_data.hpp"
#include "reference/metrics.hpp"

#include <vector>

namespace tileglu::tool {
namespace {

std::byte* behind(const runtime::Buffer& buffer, std::size_t bytes) {
  return static_cast<std::byte*>(buffer.data()) + bytes;
}

// Bytes of one of two separate matrices.
std::size_t half_bytes(const Problem& p, std::int64_t ld) {
  return static_cast<std::size_t>(p.m * ld) * size_of(p.dtype);
}

Status fill(const Problem& p, std::int64_t elements, std::uint64_t seed, runtime::Buffer& buffer) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(p.dtype);
  Result<runtime::Buffer> made = runtime::Buffer::make(p.memory, p.device, bytes);
  TILEGLU_TRY(made.status());
  buffer = made.value();
  std::vector<std::byte> values(bytes);
  fill_normal({.dtype = p.dtype, .rows = 1, .columns = elements, .ld = elements, .seed = seed}, values.data());
  return buffer.upload(values.data(), bytes);
}

}  // namespace

std::size_t ExtraData::pair_bytes(Layout layout, std::int64_t ld) const {
  return half_bytes(problem_, ld) * (is_single_matrix(layout) ? 1 : 2);
}

Result<ExtraData> ExtraData::make(const Problem& p, std::uint64_t seed) {
  ExtraData data;
  data.problem_ = p;
  if (p.extra.bias_gate || p.extra.bias_up) TILEGLU_TRY(fill(p, 2 * p.n, seed, data.bias_));
  if (p.extra.addend) {
    const auto elements = static_cast<std::int64_t>(data.pair_bytes(p.layout_add, p.ld_add) / size_of(p.dtype));
    TILEGLU_TRY(fill(p, elements, seed + 1, data.add_));
  }
  if (p.extra.preactivations) {
    Result<runtime::Buffer> made = runtime::Buffer::make(p.memory, p.device, data.pair_bytes(p.layout_pre, p.ld_pre));
    TILEGLU_TRY(made.status());
    data.pre_ = made.value();
  }
  return data;
}

void ExtraData::give(Operands& operands) const {
  const Problem& p = problem_;
  const std::size_t bias_bytes = static_cast<std::size_t>(p.n) * size_of(p.dtype);
  if (p.extra.bias_gate) operands.bias_gate = bias_.data();
  if (p.extra.bias_up) operands.bias_up = behind(bias_, bias_bytes);
  if (p.extra.addend) {
    operands.add_gate = add_.data();
    if (!is_single_matrix(p.layout_add)) operands.add_up = behind(add_, half_bytes(p, p.ld_add));
  }
  if (p.extra.preactivations) {
    operands.pre_gate = pre_.data();
    if (!is_single_matrix(p.layout_pre)) operands.pre_up = behind(pre_, half_bytes(p, p.ld_pre));
  }
}

Status ExtraData::poison() const {
  return problem_.extra.preactivations ? pre_.fill(reference::kPoisonByte) : Status{};
}

Result<reference::Preactivations> ExtraData::saved() const {
  const Problem& p = problem_;
  std::vector<std::byte> host(pre_.size());
  TILEGLU_TRY(pre_.download(host.data(), host.size()));
  reference::Preactivations saved;
  for (const bool is_up : {false, true}) {
    std::vector<double>& values = is_up ? saved.up : saved.gate;
    values.resize(static_cast<std::size_t>(p.m * p.n));
    const ColumnHalf<const std::byte*> half = column_half<const std::byte*>(
        p.layout_pre, p.n, p.ld_pre, host.data(), host.data() + half_bytes(p, p.ld_pre), is_up);
    for (std::int64_t i = 0; i < p.m * p.n; ++i) {
      values[static_cast<std::size_t>(i)] = load(p.dtype, half.base, half.index(i / p.n, i % p.n));
    }
  }
  return saved;
}

}  // namespace tileglu::tool
