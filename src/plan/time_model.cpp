// SPDX-License-Identifier: Apache-2.0
// predict_us: how long one kernel takes. It orders configurations; differences of a few percent are noise to it.
//
//   compute = tiles of the busiest worker * (k-blocks * k_block_us + tile_us) + exchange_us if tiles are cut along k
//   memory  = bytes / gbps
//   time    = launch + the 4-norm of compute and memory, which get in each other's way where they are alike; at least
//             FLOP / the rate that the power limit leaves
//
// The four numbers of each kernel come from sm90_times.hpp; those that belong to the device are here.
#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"
#include "plan/sm90_times.hpp"
#include "plan/work_split.hpp"

#include <algorithm>
#include <cmath>

namespace tileglu {
namespace {

// Launch, and the way through an empty pipeline.
constexpr double kLaunchUs = 2.2;
// FLOP per microsecond and SM that the power limit leaves on long problems (715 TFLOP/s on 132 SMs).
constexpr double kSustainedFlopPerUs = 5.42e6;
// The device that kSm90Times was measured on.
constexpr int kMeasuredClockKhz = 1980000;
constexpr int kElementBytes = 2;
// Decode tiles were measured up to here; beyond, tiles with tokens as rows are faster.
constexpr std::int64_t kMostDecodeTokens = 768;
// For a row without measured times: slower than any other.
constexpr KernelTimes kUnmeasured{.kernel = {}, .k_block_us = 5, .tile_us = 10, .exchange_us = 10, .gbps = 500};

const KernelTimes& times_of(const KernelConfig& config) {
  static const auto by_row = [] {
    std::array<const KernelTimes*, kSm90Configs.size()> found;
    for (std::size_t row = 0; row < found.size(); ++row) {
      const std::string name = config_name(kSm90Configs[row]);
      const auto* times = std::ranges::find(kSm90Times, name, &KernelTimes::kernel);
      found[row] = times == kSm90Times.end() ? &kUnmeasured : times;
    }
    return found;
  }();
  const auto* row = std::ranges::find(kSm90Configs, config);
  return row == kSm90Configs.end() ? kUnmeasured : *by_row[static_cast<std::size_t>(row - kSm90Configs.begin())];
}

// Tiles that the busiest worker of the persistent grid does, one after the other; shared tiles in fractions.
double tiles_of_a_worker(const WorkSplit& work) {
  const double shared = static_cast<double>(work.shared_tiles) / work.workers;
  return shared + static_cast<double>(ceil_div(work.tiles - work.shared_tiles, work.workers));
}

double compute_us(const KernelConfig& config, const KernelTimes& times, const Problem& p, int sm_count) {
  if (config.streamed()) return times.tile_us;  // never at work longer than the memory
  const WorkSplit work = split_of(config, p, sm_count);
  const auto k_blocks = static_cast<double>(ceil_div(p.k, config.tile_k));
  return tiles_of_a_worker(work) * (k_blocks * times.k_block_us + times.tile_us) +
         (work.shared_tiles > 0 ? times.exchange_us : 0);
}

}  // namespace

double predict_us(const KernelConfig& config, const Problem& p, const DeviceSpec& device) {
  const bool measured = config.family != KernelFamily::kDecode || p.m <= kMostDecodeTokens;
  const KernelTimes& times = measured ? times_of(config) : kUnmeasured;
  const int sm_count = std::max(device.sm_count, 1);
  const double slower = device.sm_clock_khz > 0 ? static_cast<double>(kMeasuredClockKhz) / device.sm_clock_khz : 1;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double compute = compute_us(config, times, p, sm_count) * slower;
  const double memory = kElementBytes * (m * k + 2 * n * k + m * n) / times.gbps * 1e-3;
  const double both = std::sqrt(std::hypot(compute * compute, memory * memory));
  return kLaunchUs + std::max(both, 4 * m * n * k / (kSustainedFlopPerUs * sm_count));
}

}  // namespace tileglu
