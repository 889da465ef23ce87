// SPDX-License-Identifier: Apache-2.0
#include "synthetic.hpp"

#include "core/format.hpp"
#include "library.hpp"
#include "random_data.hpp"
#include "reference/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace tileglu::tool {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kAlignment = 16;
constexpr auto kPoison = std::byte{reference::kPoisonByte};

std::size_t matrix_bytes(std::int64_t rows, std::int64_t ld, Dtype dtype) {
  return static_cast<std::size_t>(rows * ld) * size_of(dtype);
}

struct Part {
  NormalMatrix matrix;
  std::size_t offset = 0;  // bytes
};

// In place for host memory, through a staging copy otherwise.
Status fill_and_upload(const std::vector<Part>& parts, const std::vector<runtime::Buffer>& targets, Memory memory) {
  const std::size_t bytes = targets.front().size();
  if (memory == Memory::kCuda) TILEGLU_TRY(check_host_memory(bytes, "the random data"));
  std::vector<std::byte> staging(memory == Memory::kCuda ? bytes : 0, kPoison);
  TILEGLU_TRY(targets.front().fill(reference::kPoisonByte));
  auto* base = memory == Memory::kCuda ? staging.data() : static_cast<std::byte*>(targets.front().data());
  for (const Part& part : parts) fill_normal(part.matrix, base + part.offset);
  const std::size_t first = memory == Memory::kCuda ? 0 : 1;
  for (std::size_t set = first; set < targets.size(); ++set) TILEGLU_TRY(targets[set].upload(base, bytes));
  return {};
}

Result<std::vector<runtime::Buffer>> make_buffers(const Problem& problem, std::size_t bytes, int count) {
  std::vector<runtime::Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    Result<runtime::Buffer> buffer = runtime::Buffer::make(problem.memory, problem.device, bytes);
    if (!buffer.ok()) return buffer.status();
    buffers.push_back(buffer.value());
  }
  return buffers;
}

}  // namespace

Result<SyntheticData> SyntheticData::make(const Problem& problem, const SyntheticOptions& options) {
  SyntheticData data;
  data.problem_ = problem;
  const std::size_t a_bytes = matrix_bytes(problem.m, problem.lda, problem.dtype);
  data.up_offset_ =
      (matrix_bytes(problem.n, problem.ld_gate, problem.dtype) + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t w_bytes = 2 * data.up_offset_;
  const auto sets = static_cast<std::size_t>(problem.memory == Memory::kHost ? options.sets : 1);
  TILEGLU_TRY(check_host_memory((a_bytes + w_bytes) * sets, "operands"));
  Result<std::vector<runtime::Buffer>> a = make_buffers(problem, a_bytes, options.sets);
  if (!a.ok()) return a.status();
  Result<std::vector<runtime::Buffer>> weights = make_buffers(problem, w_bytes, options.sets);
  if (!weights.ok()) return weights.status();

  const double inverse_k = problem.k > 0 ? 1.0 / static_cast<double>(problem.k) : 0;
  NormalMatrix matrix{.dtype = problem.dtype,
                      .rows = problem.m,
                      .columns = problem.k,
                      .ld = problem.lda,
                      .scale = options.a_scale,
                      .seed = 3 * options.seed};
  TILEGLU_TRY(fill_and_upload({{.matrix = matrix}}, a.value(), problem.memory));
  NormalMatrix gate = matrix;
  gate.rows = problem.n;
  gate.ld = problem.ld_gate;
  gate.scale = std::sqrt(inverse_k);
  gate.seed = 3 * options.seed + 1;
  NormalMatrix up = gate;
  up.shift = 0.5 * inverse_k;
  up.seed = 3 * options.seed + 2;
  TILEGLU_TRY(
      fill_and_upload({{.matrix = gate}, {.matrix = up, .offset = data.up_offset_}}, weights.value(), problem.memory));
  for (int set = 0; set < options.sets; ++set) {
    Result<ExtraData> extra = ExtraData::make(problem, 3 * options.seed + 1000);
    if (!extra.ok()) return extra.status();
    data.extra_.push_back(std::move(extra.value()));
  }
  data.a_ = std::move(a.value());
  data.weights_[Layout::kSeparate] = std::move(weights.value());
  return data;
}

// Halves without a gap between them are a merged matrix as well.
bool SyntheticData::shares_separate(Layout layout) const {
  return layout == Layout::kSeparate ||
         (layout == Layout::kGateUp && up_offset_ == matrix_bytes(problem_.n, problem_.ld_gate, problem_.dtype));
}

Status SyntheticData::add_layout(Layout layout) {
  if (shares_separate(layout) || weights_.contains(layout)) return {};
  const std::size_t sets = a_.size();
  const std::size_t bytes = matrix_bytes(2 * problem_.n, problem_.ld_gate, problem_.dtype);
  if (problem_.memory == Memory::kHost) TILEGLU_TRY(check_host_memory(bytes * sets, "weights in a second layout"));
  Result<std::vector<runtime::Buffer>> targets = make_buffers(problem_, bytes, static_cast<int>(sets));
  if (!targets.ok()) return targets.status();
  Result<runtime::Stream> stream = runtime::Stream::make(problem_.memory, problem_.device);
  if (!stream.ok()) return stream.status();
  for (std::size_t set = 0; set < sets; ++set) {
    TILEGLU_TRY(targets.value()[set].fill(reference::kPoisonByte));
    auto* gate = static_cast<std::byte*>(weights_.at(Layout::kSeparate)[set].data());
    const WeightsView from{.layout = Layout::kSeparate,
                           .gate = gate,
                           .up = gate + up_offset_,
                           .ld_gate = problem_.ld_gate,
                           .ld_up = problem_.ld_gate};
    const WeightsView to{.layout = layout, .gate = targets.value()[set].data(), .ld_gate = problem_.ld_gate};
    TILEGLU_TRY(relayout(problem_, from, to, stream.value().handle()));
  }
  TILEGLU_TRY(stream.value().synchronize());
  weights_[layout] = std::move(targets.value());
  return {};
}

Operands SyntheticData::operands(Layout layout, int set) const {
  const auto index = static_cast<std::size_t>(set);
  const auto& buffers = weights_.at(shares_separate(layout) ? Layout::kSeparate : layout);
  auto* gate = static_cast<std::byte*>(buffers[index].data());
  Operands operands{.a = a_[index].data(), .gate = gate};
  if (layout == Layout::kSeparate) operands.up = gate + up_offset_;
  extra_[index].give(operands);
  return operands;
}

Problem SyntheticData::problem(Layout layout) const {
  Problem problem = problem_;
  problem.layout = layout;
  problem.ld_up = layout == Layout::kSeparate ? problem.ld_gate : 0;
  return problem;
}

Result<GuardedOutput> GuardedOutput::make(const Problem& problem) {
  GuardedOutput output;
  output.problem_ = problem;
  const std::size_t bytes = matrix_bytes(problem.m, problem.ldy, problem.dtype_y) + 2 * kGuardBytes;
  TILEGLU_TRY(check_host_memory(problem.memory == Memory::kHost ? 2 * bytes : bytes, "the output"));
  Result<runtime::Buffer> buffer = runtime::Buffer::make(problem.memory, problem.device, bytes);
  if (!buffer.ok()) return buffer.status();
  output.buffer_ = buffer.value();
  return output;
}

Status GuardedOutput::poison() const {
  return buffer_.fill(reference::kPoisonByte);
}

void* GuardedOutput::y() const {
  return static_cast<std::byte*>(buffer_.data()) + kGuardBytes;
}

Status GuardedOutput::download() {
  host_.resize(buffer_.size());
  return buffer_.download(host_.data(), host_.size());
}

std::byte* GuardedOutput::host_y() {
  return host_.data() + kGuardBytes;
}

bool GuardedOutput::guards_intact() const {
  const auto poisoned = [&](std::size_t begin, std::size_t end) {
    return std::all_of(host_.begin() + static_cast<std::ptrdiff_t>(begin),
                       host_.begin() + static_cast<std::ptrdiff_t>(end), [](std::byte b) { return b == kPoison; });
  };
  const std::size_t pitch = matrix_bytes(1, problem_.ldy, problem_.dtype_y);
  const std::size_t row = matrix_bytes(1, problem_.n, problem_.dtype_y);
  for (std::int64_t i = 0; i < problem_.m; ++i) {
    const std::size_t begin = kGuardBytes + static_cast<std::size_t>(i) * pitch;
    if (!poisoned(begin + row, begin + pitch)) return false;
  }
  return poisoned(0, kGuardBytes) && poisoned(host_.size() - kGuardBytes, host_.size());
}

Status check_host_memory(std::size_t bytes, const std::string& what) {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    std::size_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) {
      if (bytes <= kib * 1024) return {};
      return {Code::kInvalidArgument,
              formatted("{} need {:.1f} GiB of host memory and {:.1f} GiB are available; take a smaller shape", what,
                        static_cast<double>(bytes) / (1 << 30), static_cast<double>(kib) / (1 << 20))};
    }
    std::getline(file, unit);
  }
  return {};
}

}  // namespace tileglu::tool
