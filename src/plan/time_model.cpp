// SPDX-License-Identifier: Apache-2.0
// predict_us: how long one kernel takes. It orders configurations; differences of a few percent are noise to it.
//
//   worker = tiles of the busiest one * (steps along k * step_us + tile_us) + parts it collects * part_us;
//            the more SMs idle, the less
//   L2     = bytes of A and of the weights that all tiles load / the rate of L2; streamed kernels have none to wait for
//   memory = bytes of A, weights and y once / gbps
//   time   = launch + norm(norm(worker, L2), memory): they get in each other's way where they are alike; at least
//            FLOP / the rate that the power limit leaves
//
// The four numbers of each kernel come from sm90_times.hpp; those that belong to the device are here, where
// scripts/fit_times.py, which fits the former, reads them.
#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"
#include "plan/sm90_times.hpp"
#include "plan/work_split.hpp"

#include <algorithm>
#include <cmath>

namespace tileglu {
namespace {

// Launch and the way through an empty pipeline, which streamed kernels have not; more of it the more SMs take part.
constexpr double kLaunchUs = 1.8, kLaunchStreamedUs = 1.3, kLaunchAllSmsUs = 0.6;
constexpr double kL2BytesPerUs = 12.0e6;
// Times the traffic, where rows of the weights do not begin on the grid of lines (128 bytes), or even of sectors (32).
constexpr double kOffLine = 1.5, kOffSector = 2.0;
constexpr std::int64_t kLine = 64, kSector = 16;  // elements
// What a worker would save if it had the GPU to itself: L2, memory and power are then its own. A narrow decode tile
// saves as much less as it is narrower.
constexpr double kAloneDecode = 0.5, kAlonePrefill = 0.25;
constexpr double kNorm = 2.8, kL2Norm = 6;
// How far the last wave of a streamed kernel's blocks takes the time of a whole one.
constexpr double kWholeWaves = 0.75;
// FLOP per microsecond and SM that the power limit leaves on long problems (715 TFLOP/s on 132 SMs).
constexpr double kSustainedFlopPerUs = 5.42e6;
// The device that kSm90Times was measured on.
constexpr int kMeasuredClockKhz = 1980000;
constexpr int kElementBytes = 2;
// Decode tiles were measured up to here; beyond, tiles with tokens as rows are faster.
constexpr std::int64_t kMostDecodeTokens = 768;
// For a row without measured times: slower than any other.
constexpr KernelTimes kUnmeasured{.kernel = {}, .step_us = 5, .tile_us = 10, .part_us = 10, .gbps = 500};

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

struct Load {
  double tiles;  // of the busiest worker, one after the other; shared tiles in fractions; less what idle SMs leave it
  double steps;  // along k
  double parts;  // that the collector of a shared tile takes
  double l2_bytes;
  double sms;  // share of them that take part
};

// Blocks of a streamed kernel that fit on an SM, by their registers (38, 48, 88, 126 and 112 a thread).
int slots_of(const KernelConfig& config) {
  if (config.family == KernelFamily::kVector) return config.tile_k == 256 ? 12 : 10;
  return config.tile_m == 8 && config.tile_k == 512 ? 5 : 4;
}

// A block has a warp's outputs for mma, four times as many for vector. Blocks of the next launch take the slots that
// the one before leaves, and wait in them for its end. Where they have more than half of the slots, some come later.
Load load_of_streamed(const KernelConfig& config, const Problem& p, int sm_count) {
  const int outputs = config.tile_n2 / 2 * (config.family == KernelFamily::kMma ? 1 : 4);
  const auto blocks = static_cast<double>(ceil_div(p.n, outputs));
  const double waves = blocks / (sm_count * slots_of(config) * 0.5);
  return {.tiles = std::max(1.0, kWholeWaves * std::ceil(waves) + (1 - kWholeWaves) * waves),
          .steps = static_cast<double>(ceil_div(p.k, config.tile_k)),
          .parts = 0,
          .l2_bytes = 0,
          .sms = std::min(1.0, blocks / sm_count)};
}

Load load_of(const KernelConfig& config, const Problem& p, int sm_count) {
  if (config.streamed()) return load_of_streamed(config, p, sm_count);
  const WorkSplit work = split_of(config, p, sm_count);
  const std::int64_t most_at_once = most_workers(config, sm_count);
  const double waves =
      static_cast<double>(work.shared_tiles) / work.workers +
      static_cast<double>(ceil_div(work.tiles - work.shared_tiles, std::min<std::int64_t>(work.workers, most_at_once)));
  const auto most = static_cast<double>(most_at_once);
  const double busy = config.shared ? work.workers / most : work.tiles / (waves * most);
  const int columns = tile_columns(config, p, sm_count);
  const double alone =
      config.family == KernelFamily::kDecode ? kAloneDecode * 2 * columns / config.tile_n2 : kAlonePrefill;
  const int rows = config.cluster_m * tile_rows(config, p) + 2 * columns;
  return {.tiles = waves * (1 - alone * (1 - busy)),
          .steps = static_cast<double>(ceil_div(work.k_blocks, config.split_k)),
          .parts = work.shared_tiles > 0 ? std::max(1.0, static_cast<double>(work.workers) / work.tiles) : 0,
          .l2_bytes = static_cast<double>(kElementBytes * config.tile_k) * work.k_blocks * work.tiles * rows,
          .sms = std::min(1.0, work.workers / most)};
}

double off_grid(std::int64_t stride) {
  if (stride % kLine == 0) return 1;
  return stride % kSector == 0 ? kOffLine : kOffSector;
}

double norm(double x, double y, double power) {
  return std::pow(std::pow(x, power) + std::pow(y, power), 1 / power);
}

}  // namespace

double predict_us(const KernelConfig& config, const Problem& p, const DeviceSpec& device) {
  const bool measured = config.family != KernelFamily::kDecode || p.m <= kMostDecodeTokens;
  const KernelTimes& times = measured ? times_of(config) : kUnmeasured;
  const int sm_count = std::max(device.sm_count, 1);
  const double slower = device.sm_clock_khz > 0 ? static_cast<double>(kMeasuredClockKhz) / device.sm_clock_khz : 1;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const Load load = load_of(config, p, sm_count);
  const double worker = load.tiles * (load.steps * times.step_us + times.tile_us) + load.parts * times.part_us;
  const double l2 = load.l2_bytes * off_grid(p.ld_gate) / kL2BytesPerUs;
  const double memory = kElementBytes * (m * k + 2 * n * k + m * n) / times.gbps * 1e-3;
  const double both = norm(norm(worker, l2, kL2Norm) * slower, memory, kNorm);
  const double launch = (config.streamed() ? kLaunchStreamedUs : kLaunchUs) + kLaunchAllSmsUs * load.sms;
  return launch + std::max(both, 4 * m * n * k / (kSustainedFlopPerUs * sm_count));
}

}  // namespace tileglu
