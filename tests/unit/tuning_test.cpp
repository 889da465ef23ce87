// SPDX-License-Identifier: Apache-2.0
// Buckets and keys of the tuning tables, and how the planner asks them.
#include "plan/tuning.hpp"

#include "plan/planner.hpp"
#include "plan/sm90_configs.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tileglu {
namespace {

const DeviceSpec kH200{.name = "NVIDIA H200", .capability_major = 9, .capability_minor = 0, .sm_count = 132};

Problem problem(std::int64_t m = 2048) {
  return {.layout = Layout::kGateUp,
          .memory = Memory::kCuda,
          .m = m,
          .n = 4864,
          .k = 896,
          .lda = 896,
          .ld_gate = 896,
          .ldy = 4864};
}

std::string name_of_row(const Candidate& candidate) {
  return config_name(kSm90Configs[static_cast<std::size_t>(candidate.row)]);
}

std::string predicted_kernel(const Problem& p) {
  return name_of_row(choose(p, kH200).value());
}

// Legal and not what the time model takes.
std::string other_kernel(const Problem& p, std::size_t place = 1) {
  return name_of_row(candidates(p, kH200).at(place));
}

DeviceSpec tuned(Tuning tuning) {
  DeviceSpec device = kH200;
  device.tuning = std::make_shared<const Tuning>(std::move(tuning));
  return device;
}

TuningTable row(const Problem& p, const std::string& kernel, double us = 50) {
  return {{tuning_key(p, kH200), {.kernel = kernel, .m = p.m, .median_us = us}}};
}

std::string chosen(const Problem& p, const DeviceSpec& device, std::string_view kernel = {}) {
  const Result<Candidate> choice = choose(p, device, kernel);
  return choice.ok() ? name_of_row(choice.value()) : choice.status().text();
}

// --- Buckets --------------------------------------------------------------------------------------------------------

TEST(TuningBucket, IsNamedByItsLargestM) {
  for (const auto& [m, bucket] : {std::pair{1, 1},
                                  {7, 7},
                                  {8, 8},
                                  {9, 16},
                                  {128, 128},
                                  {129, 136},
                                  {256, 256},
                                  {257, 288},
                                  {512, 512},
                                  {513, 544},
                                  {1024, 1024},
                                  {1025, 1152},
                                  {2048, 2048},
                                  {16384, 16384},
                                  {16385, 16512}}) {
    EXPECT_EQ(m_bucket(m), bucket) << m;
  }
  for (std::int64_t m = 1; m < 20000; ++m) {
    EXPECT_GE(m_bucket(m), m);
    EXPECT_LE(m_bucket(m), m_bucket(m + 1));
    EXPECT_EQ(m_bucket(m_bucket(m)), m_bucket(m));
  }
}

// Why a measurement holds for the whole bucket: no kernel makes another number of tiles for any m of it. Tiles that are
// lower than the step only compete below.
TEST(TuningBucket, HasOneGridOfTiles) {
  const auto tiles = [](std::int64_t m, int height) { return (m + height - 1) / height; };
  for (const KernelConfig& config : kSm90Configs) {
    const int last = config.streamed()          ? config.tile_m
                     : config.tile_m % 128 == 0 ? 16384
                     : config.tile_m % 32 == 0  ? 1024
                                                : 256;
    for (std::int64_t m = 1; m <= last; ++m) {
      ASSERT_EQ(tiles(m, config.tile_m), tiles(m_bucket(m), config.tile_m)) << config_name(config) << " m=" << m;
    }
  }
}

TEST(TuningBucket, NeighboursOfAMeasuredMAreLeftToTheModel) {
  const DeviceSpec device = tuned({.user = row(problem(2048), other_kernel(problem()), 1000), .shipped = {}});
  for (const std::int64_t m : {1921, 2000, 2048}) {
    EXPECT_EQ(chosen(problem(m), device), other_kernel(problem())) << m;
  }
  for (const std::int64_t m : {1920, 2049, 4096}) EXPECT_EQ(chosen(problem(m), device), predicted_kernel(problem(m)));
}

// A kernel takes no longer for fewer tokens.
TEST(TuningBucket, ARowForMoreTokensServesWhereItIsFasterThanThePrediction) {
  const std::string other = other_kernel(problem());
  const double predicted_us = choose(problem(1800), kH200).value().predicted_us;
  const auto chosen_with = [&](double row_us) {
    TuningTable rows = row(problem(2048), other, row_us);
    rows.merge(row(problem(4096), other_kernel(problem(), 2), 1));  // further above: not asked
    return chosen(problem(1800), tuned({.user = {}, .shipped = rows}));
  };
  EXPECT_EQ(chosen_with(0.99 * predicted_us), other);
  EXPECT_EQ(chosen_with(1.01 * predicted_us), predicted_kernel(problem(1800)));
  const DeviceSpec device = tuned({.user = {}, .shipped = row(problem(2048), other, 0.5 * predicted_us)});
  EXPECT_EQ(choose(problem(1800), device).value().measured_us, 0) << "measured for other tokens";
  EXPECT_EQ(chosen(problem(2100), device), predicted_kernel(problem(2100))) << "a row below says nothing";
}

// --- Keys -----------------------------------------------------------------------------------------------------------

TEST(TuningKey, EveryPartSeparatesRows) {
  std::set<TuningKey> keys{tuning_key(problem(), kH200)};
  const auto add = [&](const Problem& p, const DeviceSpec& device) {
    EXPECT_TRUE(keys.insert(tuning_key(p, device)).second) << keys.size();
  };
  Problem p = problem();
  p.dtype = Dtype::kFp16, add(p, kH200);
  p = problem(), p.activation = Activation::kRelu, add(p, kH200);
  p = problem(), p.layout = Layout::kSeparate, add(p, kH200);
  p = problem(), p.n = 4872, add(p, kH200);
  p = problem(), p.k = 904, add(p, kH200);
  add(problem(512), kH200);
  DeviceSpec device = kH200;
  device.name = "NVIDIA H100", add(problem(), device);
  device = kH200, device.sm_count = 114, add(problem(), device);
  TuningKey old = tuning_key(problem(), kH200);
  EXPECT_EQ(old.version, library_version());
  old.version = "0.0.9";
  EXPECT_FALSE(keys.contains(old));
}

TEST(TuningKey, StridesAndAddressesAreNoPartOfIt) {
  Problem p = problem();
  p.lda = 1024, p.ldy = 8192, p.device = 3, p.alignment = 128;
  EXPECT_EQ(tuning_key(p, kH200), tuning_key(problem(), kH200));
}

// --- The planner ----------------------------------------------------------------------------------------------------

TEST(TunedChoice, UserThenShippedThenModel) {
  const Problem p = problem();
  const std::string first = other_kernel(p, 1), second = other_kernel(p, 2);
  EXPECT_EQ(chosen(p, tuned({.user = row(p, first), .shipped = row(p, second)})), first);
  EXPECT_EQ(chosen(p, tuned({.user = {}, .shipped = row(p, second)})), second);
  EXPECT_EQ(chosen(p, tuned({})), predicted_kernel(p));
  EXPECT_EQ(chosen(p, kH200), predicted_kernel(p));
}

TEST(TunedChoice, SaysThatItWasMeasured) {
  const Problem p = problem();
  const Candidate choice = choose(p, tuned({.user = row(p, other_kernel(p), 61.5), .shipped = {}})).value();
  EXPECT_EQ(choice.measured_us, 61.5);
  EXPECT_GT(choice.predicted_us, 0);
  EXPECT_EQ(choose(p, kH200).value().measured_us, 0);
}

TEST(TunedChoice, RowsForSiluServeWhatResemblesThem) {
  Problem measured = problem();
  measured.layout = Layout::kSeparate;
  const std::string taken = other_kernel(measured, 1), exact = other_kernel(measured, 2);
  Problem p = measured;
  p.activation = Activation::kGeluTanh, p.dtype = p.dtype_y = Dtype::kFp16, p.layout = Layout::kGateUp;
  const Candidate choice = choose(p, tuned({.user = {}, .shipped = row(measured, taken)})).value();
  EXPECT_EQ(name_of_row(choice), taken);
  EXPECT_EQ(choice.measured_us, 0);
  EXPECT_EQ(chosen(p, tuned({.user = row(measured, taken), .shipped = row(p, exact)})), exact);
  p.n = 4872, p.ldy = 4872;
  EXPECT_EQ(chosen(p, tuned({.user = {}, .shipped = row(measured, taken)})), predicted_kernel(p));
}

TEST(TunedChoice, ANamedKernelOrFamilyIsNotOverruled) {
  const Problem p = problem();
  const DeviceSpec device = tuned({.user = row(p, other_kernel(p)), .shipped = row(p, other_kernel(p, 2))});
  const std::string named = other_kernel(p, 3);
  EXPECT_EQ(chosen(p, device, named), named);
  EXPECT_EQ(chosen(p, device, "paired"), chosen(p, kH200, "paired"));
}

TEST(TunedChoice, UnknownAndIllegalKernelsArePassedOver) {
  const Problem p = problem();
  const std::string good = other_kernel(p);
  std::string illegal;
  for (const Candidate& candidate : candidates(p, kH200)) {
    if (!candidate.legal.ok()) illegal = name_of_row(candidate);
  }
  ASSERT_FALSE(illegal.empty()) << "every kernel takes this layout";
  for (const std::string& bad : {std::string("paired_9x9_warp_drive"), std::string("paired"), illegal}) {
    EXPECT_EQ(chosen(p, tuned({.user = row(p, bad), .shipped = row(p, good)})), good) << bad;
    EXPECT_EQ(chosen(p, tuned({.user = row(p, bad), .shipped = row(p, bad)})), predicted_kernel(p)) << bad;
  }
}

TEST(TunedChoice, RowsOfStreamedKernelsArePassedOverWhereWeightsArePrefetched) {
  Problem p = problem();
  p.m = 1;
  const DeviceSpec device = tuned({.user = row(p, "decode_1x2x256_vector"), .shipped = {}});
  EXPECT_EQ(chosen(p, device), "decode_1x2x256_vector");
  const Candidate choice = choose(p, device, {}, {.prefetch_weights = true}).value();
  EXPECT_FALSE(kSm90Configs[static_cast<std::size_t>(choice.row)].streamed());
}

TEST(TunedChoice, NeverMakesAProblemLegal) {
  Problem p = problem();
  p.k = 892;
  const DeviceSpec device = tuned({.user = row(p, other_kernel(problem())), .shipped = {}});
  EXPECT_EQ(choose(p, device).status().code(), Code::kNotSupported);
}

TEST(TunedChoice, RowsOfOtherGpusAndVersionsAreNotAsked) {
  const Problem p = problem();
  DeviceSpec h20 = tuned({.user = row(p, other_kernel(p)), .shipped = {}});
  h20.sm_count = 78;
  DeviceSpec plain = h20;
  plain.tuning = nullptr;
  EXPECT_EQ(chosen(p, h20), chosen(p, plain));
  TuningTable old;
  TuningKey key = tuning_key(p, kH200);
  key.version = "0.0.1";
  old[key] = {.kernel = other_kernel(p), .m = p.m, .median_us = 1};
  EXPECT_EQ(chosen(p, tuned({.user = old, .shipped = old})), predicted_kernel(p));
}

}  // namespace
}  // namespace tileglu
