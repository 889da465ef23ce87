// SPDX-License-Identifier: Apache-2.0
// Which kernels can run a problem, and which of them is taken. The model of their time is in time_model.cpp.
#include "plan/planner.hpp"

#include "core/format.hpp"
#include "core/names.hpp"
#include "plan/sm90_configs.hpp"
#include "plan/tuning.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace tileglu {
namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr int kTmaBytes = 16;  // base addresses and row strides
// TMA strides are below 2^40 bytes. "paired" steps through the weights in groups of 8 rows, which in interleaved
// layouts are 16 rows apart (sm90/tensor_map.hpp).
constexpr std::int64_t kMaxStride = (std::int64_t{1} << 39) - 8;
constexpr std::int64_t kMaxPairedStride = (std::int64_t{1} << 35) - 8;

template <class... Values>
Status declined(fmt::format_string<Values...> text, Values&&... values) {
  return {Code::kNotSupported, formatted(text, std::forward<Values>(values)...)};
}

Status device_fits(const DeviceSpec& device) {
  // Exactly 9.0: the kernels are built for sm_90a, which neither later nor earlier GPUs can load (field case C36).
  if (device.capability_major == 9 && device.capability_minor == 0) return {};
  return declined("compute capability {}.{} ({}) is not 9.0 (Hopper)", device.capability_major, device.capability_minor,
                  device.name.empty() ? "unnamed GPU" : device.name);
}

// Instead of TMA: y of any type and stride.
bool stores_by_threads(const KernelConfig& config) {
  return config.general || config.streamed();
}

// What an output may need that only some kernels do (src/backends/sm90/finish.cuh).
Status wishes_fit(const KernelConfig& config, const Problem& p) {
  if (stores_by_threads(config)) return {};
  if (p.rounding != Rounding::kOnce) return declined("rounding={} is not once", name_of(p.rounding));
  if (p.extra.addend) return declined("operands: addend");
  if (p.extra.preactivations) return declined("operands: pre-activations");
  if (size_of(p.dtype_y) != 2) return declined("dtype_y={} is not bf16 or fp16", name_of(p.dtype_y));
  if (config.family == KernelFamily::kSyncPingpong && p.activation == Activation::kSwiglu) {
    return declined("activation=swiglu changes up");
  }
  if (!config.takes_bias() && (p.extra.bias_gate || p.extra.bias_up)) return declined("operands: bias");
  if (config.family == KernelFamily::kInterleave && p.activation != Activation::kSilu) {
    return declined("activation={} is not silu", name_of(p.activation));
  }
  return {};
}

Status types_fit(const KernelConfig& config, const Problem& p) {
  if (config.family != KernelFamily::kInterleave) {
    if (size_of(p.dtype) != 2) return declined("dtype={} is not bf16 or fp16", name_of(p.dtype));
    return {};  // any layout
  }
  if (p.dtype != Dtype::kBf16) return declined("dtype={} is not bf16", name_of(p.dtype));
  if (p.dtype_y != Dtype::kBf16) return declined("dtype_y={} is not bf16", name_of(p.dtype_y));
  const Layout needed = config.granularity == 1 ? Layout::kInterleaved1 : Layout::kInterleaved8;
  if (p.layout != needed) return declined("layout={} is not {}", name_of(p.layout), name_of(needed));
  return {};
}

Status sizes_fit(const KernelConfig& config, const Problem& p) {
  struct Size {
    const char* name;
    std::int64_t value, limit;
  };
  // Weight rows are counted over 2n.
  for (const Size& size : {Size{"m", p.m, kMaxInt32}, Size{"n", p.n, kMaxInt32 / 2}, Size{"k", p.k, kMaxInt32}}) {
    if (size.value > size.limit) return declined("{}={} is above {} (32-bit sizes)", size.name, size.value, size.limit);
  }
  const std::int64_t tiles_m = p.m / config.tile_m + 1, tiles_n = 2 * p.n / config.tile_n2 + 1;
  if (config.streamed() && p.m > config.tile_m) {
    return declined("m={} is above {} tokens", p.m, config.tile_m);
  }
  if (tiles_m > kMaxInt32 / tiles_n / config.split_k)
    return declined("m={} and n={} make more than 2^31 tiles", p.m, p.n);
  if (p.k == 0) return declined("k=0 leaves nothing to multiply");
  if (p.n % 8 != 0) return declined("n={} is not a multiple of 8 (16-byte TMA rule)", p.n);
  if (p.k % 8 != 0) return declined("k={} is not a multiple of 8 (16-byte TMA rule)", p.k);
  return {};
}

Status addresses_fit(const KernelConfig& config, const Problem& p) {
  struct Stride {
    const char* name;
    std::int64_t value, limit;
  };
  const std::int64_t weights = config.family == KernelFamily::kInterleave ? kMaxStride : kMaxPairedStride;
  for (const Stride& stride : {Stride{"lda", p.lda, kMaxStride}, Stride{"ld_gate", p.ld_gate, weights},
                               Stride{"ld_up", p.ld_up, weights}, Stride{"ldy", p.ldy, kMaxStride}}) {
    if (stores_by_threads(config) && std::string_view(stride.name) == "ldy") continue;
    if (stride.value % 8 != 0) {
      return declined("{}={} is not a multiple of 8 (16-byte TMA rule)", stride.name, stride.value);
    }
    if (stride.value > stride.limit) {
      return declined("{}={} is above {} (40-bit TMA strides)", stride.name, stride.value, stride.limit);
    }
  }
  if (p.alignment < kTmaBytes) return declined("alignment={} is below {} (16-byte TMA rule)", p.alignment, kTmaBytes);
  return {};
}

const KernelConfig& config_of(const Candidate& candidate) {
  return kSm90Configs[static_cast<std::size_t>(candidate.row)];
}

// A kernel that could run, but gains nothing where others do.
bool is_behind(const KernelConfig& config, PlanFlags flags) {
  return flags.prefetch_weights && config.streamed();
}

bool is_named(const KernelConfig& config, std::string_view kernel) {
  return kernel.empty() || kernel == family_name(config.family) || kernel == config_name(config);
}

Status unknown(std::string_view kernel) {
  std::string names;
  for (const KernelConfig& config : kSm90Configs) {
    const char* family = family_name(config.family);
    if (names.find(formatted("{},", family)) == std::string::npos) names += formatted("{}, ", family);
  }
  for (const KernelConfig& config : kSm90Configs) names += config_name(config) + ", ";
  names.resize(names.size() - 2);
  return {Code::kInvalidArgument, formatted("kernel={} is not known to backend=sm90; known: {}", kernel, names)};
}

// Each reason once, with the kernels it holds for unless it holds for all.
Status none_legal(const std::vector<Candidate>& list) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const Candidate& candidate : list) {
    const std::string& text = candidate.legal.text();
    auto found = std::ranges::find(reasons, text, [](const auto& reason) { return reason.first; });
    if (found == reasons.end()) found = reasons.insert(reasons.end(), {text, {}});
    found->second.push_back(config_name(config_of(candidate)));
  }
  std::string text;
  for (const auto& [reason, kernels] : reasons) {
    text += text.empty() ? reason : "; " + reason;
    if (reasons.size() > 1) text += formatted(" ({})", joined(kernels));
  }
  return {Code::kNotSupported, text};
}

// The row for this bucket of m, or else for the least one above that was measured; nullptr if there is none.
const TuningTable::value_type* row_from(const TuningTable& table, const TuningKey& key) {
  const auto row = table.lower_bound(key);
  if (row == table.end()) return nullptr;
  TuningKey same = row->first;
  same.m_bucket = key.m_bucket;
  return same == key ? &*row : nullptr;
}

// The legal candidate that was measured to be the fastest, for this very problem or for the one that it resembles; or
// that took less for more tokens than the model expects of any; else list.end().
std::vector<Candidate>::iterator measured(std::vector<Candidate>& list, const Problem& problem,
                                          const DeviceSpec& device, PlanFlags flags) {
  const TuningKey exact = tuning_key(problem, device), like = resembling(exact);
  const TuningTable &user = device.tuning->user, &shipped = device.tuning->shipped;
  const double predicted_us = list.front().predicted_us;
  for (const bool is_above : {false, true}) {
    for (const auto& [table, key] : {std::pair{&user, exact}, {&shipped, exact}, {&user, like}, {&shipped, like}}) {
      const auto* row = row_from(*table, key);
      if (row == nullptr || (row->first.m_bucket > key.m_bucket) != is_above) continue;
      if (is_above && row->second.median_us >= predicted_us) continue;
      const auto found = std::ranges::find_if(list, [&](const Candidate& candidate) {
        const KernelConfig& config = config_of(candidate);
        return candidate.legal.ok() && !is_behind(config, flags) && config_name(config) == row->second.kernel;
      });
      if (found == list.end()) continue;
      if (row->first == exact) found->measured_us = row->second.median_us;
      return found;
    }
  }
  return list.end();
}

}  // namespace

Status legal(const KernelConfig& config, const Problem& problem, const DeviceSpec& device) {
  TILEGLU_TRY(device_fits(device));
  TILEGLU_TRY(types_fit(config, problem));
  TILEGLU_TRY(wishes_fit(config, problem));
  TILEGLU_TRY(sizes_fit(config, problem));
  return addresses_fit(config, problem);
}

Status batch_invariant(const KernelConfig& config) {
  if (config.family == KernelFamily::kInterleave) return declined("batch_invariant: outputs of rows share reciprocals");
  if (config.streamed()) return declined("batch_invariant: sums in another order");
  if (config.shared || config.split_k > 1) return declined("batch_invariant: cuts tiles along k");
  return {};
}

std::vector<Candidate> candidates(const Problem& problem, const DeviceSpec& device, std::string_view kernel,
                                  PlanFlags flags) {
  std::vector<Candidate> list;
  for (std::size_t row = 0; row < kSm90Configs.size(); ++row) {
    const KernelConfig& config = kSm90Configs[row];
    if (!is_named(config, kernel)) continue;
    Candidate candidate{.row = static_cast<int>(row), .legal = legal(config, problem, device)};
    if (flags.batch_invariant && candidate.legal.ok()) candidate.legal = batch_invariant(config);
    if (candidate.legal.ok()) candidate.predicted_us = predict_us(config, problem, device);
    list.push_back(std::move(candidate));
  }
  std::ranges::stable_sort(list, {}, [&](const Candidate& candidate) {
    return std::tuple(!candidate.legal.ok(), is_behind(config_of(candidate), flags), candidate.predicted_us);
  });
  return list;
}

Result<Candidate> choose(const Problem& problem, const DeviceSpec& device, std::string_view kernel, PlanFlags flags) {
  std::vector<Candidate> list = candidates(problem, device, kernel, flags);
  if (list.empty()) return unknown(kernel);
  if (!list.front().legal.ok()) return none_legal(list);
  if (kernel.empty() && device.tuning != nullptr) {
    if (const auto tuned = measured(list, problem, device, flags); tuned != list.end()) return std::move(*tuned);
  }
  return std::move(list.front());
}

}  // namespace tileglu
