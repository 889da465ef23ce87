// SPDX-License-Identifier: Apache-2.0
// predict_us: how long one kernel takes, from tiles, waves and the three things a tile waits for. It orders
// configurations; differences of a few percent are noise to it. All numbers that describe the hardware are here.
//
//   tile time = k-blocks * max(tensor cores, shared memory, L2), and the epilogue: hidden under the other warpgroup's
//   main
//               loop in the ping-pong schedule, partly exposed in the cooperative one
//   time      = the largest of  launch + tiles of the busiest CTA,  FLOP / sustained rate,  bytes / memory bandwidth
//
// Fitted on an H200, 2026-11-30, to ten paired tiles on 14 shapes (Qwen2.5 0.5B to 72B, m 512 to 8192): rms error 5.8
// %, and the tile it picks is at most 1.2 % slower than the best of the ten (docs/performance.md).
#include "plan/planner.hpp"

#include <algorithm>

namespace tileglu {
namespace {

// Hopper: bf16 FLOP per clock and SM.
constexpr double kFlopPerClock = 4096;
// Fitted, bytes per clock and SM. Shared memory moves 128; more here because part of the reads overlap with the fill.
constexpr double kSharedBytesPerClock = 148;
constexpr double kL2BytesPerClock = 54.6;
// Fitted: share of the highest SM clock at which the model's clocks pass; it absorbs issue gaps and the power limit.
constexpr double kEffectiveClock = 0.654;
// Fitted: FLOP per microsecond and SM that the power limit leaves on long problems (687 TFLOP/s on 132 SMs).
constexpr double kSustainedFlopPerUs = 5.2e6;
// Measured read bandwidth is 4.50 TB/s; GEMMs reach a little less.
constexpr double kHbmBytesPerUs = 4.4e6;
// An H200's, for a description without a clock.
constexpr int kDefaultClockKhz = 1980000;
// Fitted: epilogue of one tile, and the part of it that the cooperative schedule does not hide. Granularity 1 adds the
// exchange inside a quad (assumed).
constexpr double kEpilogueClocksPerOutput = 0.16;
constexpr double kExchangeClocksPerOutput = 0.04;
constexpr double kEpilogueLatencyClocks = 430;
constexpr double kExposedEpilogue = 0.53;
// Fitted: launch, and the first tile's way through an empty pipeline.
constexpr double kLaunchUs = 1.4;
constexpr double kFillClocks = 1500;
constexpr int kElementBytes = 2;
constexpr int kMmaM = 64, kMmaK = 16;

double k_block_clocks(const KernelConfig& c) {
  const double tensor = 2.0 * c.tile_m * c.tile_n2 * c.tile_k / kFlopPerClock;
  // Each 64-row WGMMA reads its rows of A and all of the weight tile; TMA writes both tiles once.
  const int slices_m = c.tile_m / kMmaM, slices_k = c.tile_k / kMmaK;
  const double slice_reads = static_cast<double>(slices_m) * (kMmaM + c.tile_n2) * kMmaK * kElementBytes;
  const double slice_fill = static_cast<double>(c.tile_m + c.tile_n2) * kMmaK * kElementBytes;
  const double shared = (slice_reads + slice_fill) * slices_k / kSharedBytesPerClock;
  const double from_l2 = (static_cast<double>(c.tile_m) / c.cluster_n + static_cast<double>(c.tile_n2) / c.cluster_m) *
                         c.tile_k * kElementBytes;
  return std::max({tensor, shared, from_l2 / kL2BytesPerClock});
}

double epilogue_clocks(const KernelConfig& c) {
  const double per_output = kEpilogueClocksPerOutput + (c.granularity == 1 ? kExchangeClocksPerOutput : 0);
  return kEpilogueLatencyClocks + per_output * c.tile_m * c.tile_n2 / 2;
}

std::int64_t ceil_div(std::int64_t x, std::int64_t y) {
  return (x + y - 1) / y;
}

// Tiles that the busiest CTA of the persistent grid works off, one after the other.
std::int64_t tiles_per_cta(const KernelConfig& c, const Problem& p, const DeviceSpec& device) {
  const std::int64_t cluster_tiles =
      ceil_div(ceil_div(p.m, c.tile_m), c.cluster_m) * ceil_div(ceil_div(2 * p.n, c.tile_n2), c.cluster_n);
  const std::int64_t clusters = std::max<std::int64_t>(device.sm_count / (c.cluster_m * c.cluster_n), 1);
  return ceil_div(cluster_tiles, clusters);
}

}  // namespace

double predict_us(const KernelConfig& config, const Problem& p, const DeviceSpec& device) {
  const auto tiles = static_cast<double>(tiles_per_cta(config, p, device));
  const double main_loop = static_cast<double>(ceil_div(p.k, config.tile_k)) * k_block_clocks(config);
  const double epilogue = epilogue_clocks(config);
  const double clocks = config.schedule == Schedule::kPingpong
                            ? tiles * std::max(main_loop, (main_loop + epilogue) / 2) + epilogue
                            : tiles * (main_loop + kExposedEpilogue * epilogue);
  const double clocks_per_us =
      (device.sm_clock_khz > 0 ? device.sm_clock_khz : kDefaultClockKhz) * kEffectiveClock * 1e-3;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double sustained = 4 * m * n * k / (kSustainedFlopPerUs * std::max(device.sm_count, 1));
  const double bytes = kElementBytes * (m * k + 2 * n * k + m * n);
  return std::max({kLaunchUs + (kFillClocks + clocks) / clocks_per_us, sustained, bytes / kHbmBytesPerUs});
}

}  // namespace tileglu
