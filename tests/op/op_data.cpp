// SPDX-License-Identifier: Apache-2.0
#include "op/op_data.hpp"

#include "core/float16.hpp"
#include "reference/number_format.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

namespace tileglu::test {
namespace {

constexpr unsigned char kNanByte = 0xFF;
constexpr std::int64_t kBaseAlignment = 256;
constexpr std::int64_t kGuardRows = 4, kGuardColumns = 64;
constexpr std::size_t kWorkspaceGuard = 4096;

void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}
template <class T>
T require(Result<T> result) {
  require(result.status());
  return std::move(result.value());
}

std::int64_t element_bytes(Dtype dtype) {
  return static_cast<std::int64_t>(size_of(dtype));
}

void encode(Dtype dtype, double value, unsigned char* element) {
  const auto single = static_cast<float>(value);
  const auto store = [&](auto stored) { std::memcpy(element, &stored, sizeof(stored)); };
  switch (dtype) {
    case Dtype::kBf16: return store(narrow<Bf16>(single));
    case Dtype::kFp16: return store(narrow<Fp16>(single));
    case Dtype::kFp32: return store(single);
  }
}

GuardedMatrix make_matrix(const OpCase& op, Memory memory, char which) {
  const bool single = is_single_matrix(op.layout);
  const auto unit = static_cast<std::int64_t>(std::max(size_of(op.dtype), size_of(op.result_dtype())));
  GuardedMatrix::Shape shape{.dtype = op.dtype};
  switch (which) {
    case 'a': shape = {op.dtype, op.m, op.k, op.pad.a, unit * op.misalign.a}; break;
    case 'g': shape = {op.dtype, single ? 2 * op.n : op.n, op.k, op.pad.gate, unit * op.misalign.gate}; break;
    case 'u': shape = {op.dtype, single ? 0 : op.n, op.k, op.pad.up, unit * op.misalign.up}; break;
    default: shape = {op.result_dtype(), op.m, op.n, op.pad.y, unit * op.misalign.y}; break;
  }
  return {shape, memory, which == 'y' ? reference::kPoisonByte : kNanByte};
}

std::array<GuardedMatrix, 2> make_biases(const OpCase& op, Memory memory) {
  const auto make = [&](bool present) {
    return GuardedMatrix({op.dtype, present ? 1 : 0, op.n, 0, element_bytes(op.dtype) * op.misalign_extra}, memory,
                         kNanByte);
  };
  return {make(op.extra.bias_gate), make(op.extra.bias_up)};
}

std::array<GuardedMatrix, 2> make_pair(const OpCase& op, Memory memory, bool present, Layout layout, std::int64_t pad,
                                       unsigned char fill) {
  const bool single = is_single_matrix(layout);
  const auto make = [&](std::int64_t rows) {
    return GuardedMatrix({op.dtype, rows, single ? 2 * op.n : op.n, pad, element_bytes(op.dtype) * op.misalign_extra},
                         memory, fill);
  };
  return {make(present ? op.m : 0), make(present && !single ? op.m : 0)};
}

int common_alignment(const OpCase& op) {
  const auto unit = static_cast<std::int64_t>(std::max(size_of(op.dtype), size_of(op.result_dtype())));
  int alignment = 16;
  for (const std::int64_t off : {op.misalign.a, op.misalign.gate, op.misalign.up, op.misalign.y}) {
    while (off * unit % alignment != 0) alignment /= 2;
  }
  return alignment;
}

}  // namespace

GuardedMatrix::GuardedMatrix(const Shape& shape, Memory memory, unsigned char fill)
    : ld(std::max<std::int64_t>(shape.columns + shape.pad, 1)), shape_(shape) {
  const std::int64_t guard = (kGuardRows * ld + kGuardColumns) * element_bytes(shape.dtype);
  const std::int64_t end = shape.rows > 0 ? element_offset(shape.rows - 1, shape.columns) : element_offset(0, 0);
  const std::int64_t bytes = end + guard;
  uploaded_.assign(static_cast<std::size_t>(bytes), fill);
  buffer_ = require(runtime::Buffer::make(memory, 0, uploaded_.size()));
}

// The base lies one whole guard, rounded up to the alignment, behind the start of the buffer.
std::int64_t GuardedMatrix::element_offset(std::int64_t row, std::int64_t column) const {
  const std::int64_t size = element_bytes(shape_.dtype);
  const std::int64_t guard = (kGuardRows * ld + kGuardColumns) * size;
  const std::int64_t base = (guard + kBaseAlignment - 1) / kBaseAlignment * kBaseAlignment + shape_.misalign_bytes;
  return base + (row * ld + column) * size;
}

void GuardedMatrix::set(std::int64_t row, std::int64_t column, double value) {
  encode(shape_.dtype, value, &uploaded_[static_cast<std::size_t>(element_offset(row, column))]);
}

void GuardedMatrix::upload() {
  require(buffer_.upload(uploaded_.data(), uploaded_.size()));
}

void GuardedMatrix::download() {
  now_.resize(uploaded_.size());
  require(buffer_.download(now_.data(), now_.size()));
}

void* GuardedMatrix::address() const {
  return static_cast<unsigned char*>(buffer_.data()) + element_offset(0, 0);
}

bool GuardedMatrix::outside_intact() const {
  const auto size = static_cast<std::size_t>(element_bytes(shape_.dtype));
  const auto length = static_cast<std::size_t>(shape_.columns) * size;
  std::size_t from = 0;
  for (std::int64_t row = 0; row < shape_.rows; ++row) {
    const auto begin = static_cast<std::size_t>(element_offset(row, 0));
    if (std::memcmp(&uploaded_[from], &now_[from], begin - from) != 0) return false;
    from = begin + length;
  }
  return std::memcmp(&uploaded_[from], &now_[from], now_.size() - from) == 0;
}

std::vector<unsigned char> GuardedMatrix::elements() const {
  const std::int64_t size = element_bytes(shape_.dtype);
  std::vector<unsigned char> result;
  result.reserve(static_cast<std::size_t>(shape_.rows * shape_.columns * size));
  for (std::int64_t row = 0; row < shape_.rows; ++row) {
    const auto begin = now_.begin() + element_offset(row, 0);
    result.insert(result.end(), begin, begin + shape_.columns * size);
  }
  return result;
}

bool GuardedMatrix::elements_intact() const {
  const auto size = static_cast<std::size_t>(element_bytes(shape_.dtype));
  for (std::int64_t row = 0; row < shape_.rows; ++row) {
    const auto begin = static_cast<std::size_t>(element_offset(row, 0));
    if (std::memcmp(&uploaded_[begin], &now_[begin], static_cast<std::size_t>(shape_.columns) * size) != 0)
      return false;
  }
  return true;
}

OpData::OpData(const OpCase& op, Memory memory)
    : op_(op),
      memory_(memory),
      a_(make_matrix(op, memory, 'a')),
      gate_(make_matrix(op, memory, 'g')),
      up_(make_matrix(op, memory, 'u')),
      y_(make_matrix(op, memory, 'y')),
      bias_(make_biases(op, memory)),
      add_(make_pair(op, memory, op.extra.addend, op.layout_add, op.pad_add, kNanByte)),
      pre_(make_pair(op, memory, op.extra.preactivations, op.layout_pre, op.pad_pre, reference::kPoisonByte)),
      alignment_(common_alignment(op)),
      stream_(require(runtime::Stream::make(memory, 0))) {
  fill(op);
  fill_extra();
  for (GuardedMatrix* matrix : matrices()) matrix->upload();
}

void OpData::fill(const OpCase& op) {
  std::mt19937_64 generator(op.seed);
  std::normal_distribution<double> normal;
  const auto value = [&](const std::vector<double>& given, std::int64_t index, double deviation, double mean) {
    return given.empty() ? normal(generator) * deviation + mean : given[static_cast<std::size_t>(index)];
  };
  const double k = static_cast<double>(op.k);
  const HalfRows gate_half = gate_rows(op.layout, op.n), up_half = up_rows(op.layout, op.n);
  GuardedMatrix& up_matrix = is_single_matrix(op.layout) ? gate_ : up_;
  for (std::int64_t i = 0; i < op.m * op.k; ++i) a_.set(i / op.k, i % op.k, value(op.a, i, op.input_scale, 0));
  for (std::int64_t i = 0; i < op.n * op.k; ++i) {
    gate_.set(gate_half.row(i / op.k), i % op.k, value(op.gate, i, 1 / std::sqrt(k), 0));
    up_matrix.set(up_half.row(i / op.k), i % op.k, value(op.up, i, 1 / std::sqrt(k), 0.5 / k));
  }
}

// From a generator of its own, so that the other operands do not depend on which of these there are.
void OpData::fill_extra() {
  std::mt19937_64 generator(op_.seed + 1000);
  std::normal_distribution<double> normal;
  for (const bool is_up : {false, true}) {
    if (is_up ? op_.extra.bias_up : op_.extra.bias_gate) {
      for (std::int64_t j = 0; j < op_.n; ++j) bias_[is_up ? 1 : 0].set(0, j, normal(generator));
    }
    if (!op_.extra.addend) continue;
    const HalfRows columns = is_up ? up_rows(op_.layout_add, op_.n) : gate_rows(op_.layout_add, op_.n);
    GuardedMatrix& matrix = add_[is_up && !is_single_matrix(op_.layout_add) ? 1 : 0];
    for (std::int64_t i = 0; i < op_.m * op_.n; ++i) {
      matrix.set(i / op_.n, columns.row(i % op_.n), normal(generator));
    }
  }
}

std::vector<GuardedMatrix*> OpData::matrices() {
  return {&a_, &gate_, &up_, &y_, &bias_[0], &bias_[1], &add_[0], &add_[1], &pre_[0], &pre_[1]};
}

Operands OpData::operands() const {
  const auto given = [](bool present, const GuardedMatrix& matrix) { return present ? matrix.address() : nullptr; };
  const bool second_add = op_.extra.addend && !is_single_matrix(op_.layout_add);
  const bool second_pre = op_.extra.preactivations && !is_single_matrix(op_.layout_pre);
  return {.a = a_.address(),
          .gate = gate_.address(),
          .up = given(!is_single_matrix(op_.layout), up_),
          .y = y_.address(),
          .stream = stream(),
          .bias_gate = given(op_.extra.bias_gate, bias_[0]),
          .bias_up = given(op_.extra.bias_up, bias_[1]),
          .add_gate = given(op_.extra.addend, add_[0]),
          .add_up = given(second_add, add_[1]),
          .pre_gate = given(op_.extra.preactivations, pre_[0]),
          .pre_up = given(second_pre, pre_[1])};
}

std::vector<unsigned char> OpData::saved(bool is_up) const {
  if (!op_.extra.preactivations) return {};
  const bool single = is_single_matrix(op_.layout_pre);
  const std::vector<unsigned char> all = pre_[is_up && !single ? 1 : 0].elements();
  const std::int64_t columns = single ? 2 * op_.n : op_.n, size = element_bytes(op_.dtype);
  const HalfRows half = is_up ? up_rows(op_.layout_pre, op_.n) : gate_rows(op_.layout_pre, op_.n);
  std::vector<unsigned char> result;
  for (std::int64_t i = 0; i < op_.m * op_.n; ++i) {
    const auto element = all.begin() + (i / op_.n * columns + half.row(i % op_.n)) * size;
    result.insert(result.end(), element, element + size);
  }
  return result;
}

void* OpData::workspace(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  workspace_ = require(runtime::Buffer::make(memory_, 0, bytes + kWorkspaceGuard));
  require(workspace_.fill(kNanByte));
  return workspace_.data();
}

void OpData::download() {
  require(stream_.synchronize());
  for (GuardedMatrix* matrix : matrices()) matrix->download();
  if (workspace_.size() == 0) return;
  std::vector<unsigned char> guard(kWorkspaceGuard);
  require(workspace_.download(guard.data(), guard.size(), workspace_.size() - guard.size()));
  workspace_intact_ = std::all_of(guard.begin(), guard.end(), [](unsigned char byte) { return byte == kNanByte; });
}

bool OpData::guards_intact() const {
  for (const GuardedMatrix* input : {&a_, &gate_, &up_, &bias_[0], &bias_[1], &add_[0], &add_[1]}) {
    if (!input->outside_intact() || !input->elements_intact()) return false;
  }
  return y_.outside_intact() && pre_[0].outside_intact() && pre_[1].outside_intact() && workspace_intact_;
}

std::vector<double> decode(Dtype dtype, const std::vector<unsigned char>& bytes) {
  const reference::Decoder decoder(dtype);
  std::vector<double> values(bytes.size() / size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = decoder(bytes.data(), static_cast<std::int64_t>(i));
  return values;
}

std::vector<unsigned char> encode(Dtype dtype, const std::vector<double>& values) {
  std::vector<unsigned char> bytes(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) encode(dtype, values[i], &bytes[i * size_of(dtype)]);
  return bytes;
}

}  // namespace tileglu::test
