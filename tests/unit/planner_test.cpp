// SPDX-License-Identifier: Apache-2.0
// The planner on GPUs that need not be here.
#include "plan/planner.hpp"

#include "plan/sm90_configs.hpp"
#include "plan/sm90_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace tileglu {
namespace {

DeviceSpec gpu(const char* name, int major, int minor, int sm_count) {
  return {.name = name,
          .capability_major = major,
          .capability_minor = minor,
          .sm_count = sm_count,
          .l2_bytes = 50 << 20,
          .shared_memory_per_block = 227 << 10,
          .sm_clock_khz = 1980000};
}
const DeviceSpec kH200 = gpu("NVIDIA H200", 9, 0, 132);
const DeviceSpec kH20 = gpu("NVIDIA H20", 9, 0, 78);

Problem problem(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout = Layout::kInterleaved8) {
  return {.layout = layout, .memory = Memory::kCuda, .m = m, .n = n, .k = k, .lda = k, .ld_gate = k, .ldy = n};
}
const Problem kSmallK = problem(2048, 4864, 896);    // Qwen2.5-0.5B
const Problem kLargeK = problem(2048, 18944, 3584);  // Qwen2.5-7B

const KernelConfig& row_of(const Candidate& candidate) {
  return kSm90Configs[static_cast<std::size_t>(candidate.row)];
}

KernelConfig interleave_row(Schedule schedule, int granularity) {
  for (const KernelConfig& config : kSm90Configs) {
    if (config.family == KernelFamily::kInterleave && config.schedule == schedule &&
        config.granularity == granularity) {
      return config;
    }
  }
  ADD_FAILURE() << "no such row";
  return {};
}

// One that the kernel takes.
Layout layout_for(const KernelConfig& config) {
  if (config.family != KernelFamily::kInterleave) return Layout::kGateUp;
  return config.granularity == 1 ? Layout::kInterleaved1 : Layout::kInterleaved8;
}

// --- Which kernels can run ------------------------------------------------------------------------------------------

struct Declined {
  const char* name;
  void (*spoil)(Problem&);
  const char* message;
};
const Declined kDeclined[] = {
    {"dtype", [](Problem& p) { p.dtype = Dtype::kFp32; }, "dtype=fp32 is not bf16"},
    {"no_depth", [](Problem& p) { p.k = 0; }, "k=0 leaves nothing to multiply"},
    {"n", [](Problem& p) { p.n = 4868; }, "n=4868 is not a multiple of 8"},
    {"k", [](Problem& p) { p.k = 892; }, "k=892 is not a multiple of 8"},
    {"lda", [](Problem& p) { p.lda = 900; }, "lda=900 is not a multiple of 8 (16-byte TMA rule)"},
    {"ld_gate", [](Problem& p) { p.ld_gate = 897; }, "ld_gate=897 is not a multiple of 8"},
    {"lda_long", [](Problem& p) { p.lda = std::int64_t{1} << 39; }, "lda=549755813888 is above 549755813880"},
    {"ld_gate_long", [](Problem& p) { p.ld_gate = std::int64_t{1} << 39; }, "ld_gate=549755813888 is above "},
    {"alignment", [](Problem& p) { p.alignment = 8; }, "alignment=8 is below 16"},
    {"m_wide", [](Problem& p) { p.m = std::int64_t{1} << 31; }, "m=2147483648 is above 2147483647"},
    {"n_wide", [](Problem& p) { p.n = std::int64_t{1} << 30; }, "n=1073741824 is above 1073741823"},
    {"k_wide", [](Problem& p) { p.k = std::int64_t{1} << 31; }, "k=2147483648 is above 2147483647"},
    {"tiles", [](Problem& p) { p.m = p.n = (std::int64_t{1} << 30) - 8; }, "make more than 2^31 tiles"},
};
class DeclinedBySm90 : public testing::TestWithParam<Declined> {};

TEST_P(DeclinedBySm90, NamesValueAndRule) {
  Problem p = kSmallK;
  GetParam().spoil(p);
  for (const KernelConfig& config : kSm90Configs) {
    Problem fitting = p;
    fitting.layout = layout_for(config);
    if (config.streamed()) {
      if (p.n == (std::int64_t{1} << 30) - 8) continue;  // never many tiles along m
      if (p.m == kSmallK.m) fitting.m = 1;
    }
    const Status status = legal(config, fitting, kH200);
    EXPECT_EQ(status.code(), Code::kNotSupported) << config_name(config);
    EXPECT_NE(status.text().find(GetParam().message), std::string::npos) << status.text();
  }
  p.layout = Layout::kInterleaved8;
  const Result<Candidate> choice = choose(p, kH200);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.status().code(), Code::kNotSupported);
  EXPECT_NE(choice.status().text().find(GetParam().message), std::string::npos) << choice.status().text();
}
INSTANTIATE_TEST_SUITE_P(Each, DeclinedBySm90, testing::ValuesIn(kDeclined),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

// Field case C36: fused only on exactly 9.0, everything else refused by name.
TEST(Planner, TakesComputeCapabilityNineZeroOnly) {
  EXPECT_TRUE(choose(kSmallK, kH200).ok());
  for (const DeviceSpec& device :
       {gpu("NVIDIA A100", 8, 0, 108), gpu("NVIDIA L4", 8, 9, 58), gpu("NVIDIA GH300", 9, 1, 132),
        gpu("NVIDIA B200", 10, 0, 148), gpu("NVIDIA RTX 5090", 12, 0, 170), gpu("", 0, 0, 0)}) {
    const Result<Candidate> choice = choose(kSmallK, device);
    ASSERT_FALSE(choice.ok()) << device.name;
    EXPECT_EQ(choice.status().code(), Code::kNotSupported);
    const std::string number = std::to_string(device.capability_major) + "." + std::to_string(device.capability_minor);
    EXPECT_EQ(choice.status().text(), "compute capability " + number + " (" +
                                          (device.name.empty() ? "unnamed GPU" : device.name) +
                                          ") is not 9.0 (Hopper)");
  }
}

TEST(Planner, SizesAtTheLimitsAreLegal) {
  const KernelConfig config = interleave_row(Schedule::kCooperative, 8);
  EXPECT_TRUE(legal(config, problem(1, 8, 8), kH200).ok());
  EXPECT_TRUE(legal(config, problem(2147483647, 8, 8), kH200).ok());
  Problem wide = problem(1, 8, 2147483640);
  wide.lda = wide.ld_gate = (std::int64_t{1} << 39) - 8;
  EXPECT_TRUE(legal(config, wide, kH200).ok()) << legal(config, wide, kH200).text();
}

TEST(Planner, EveryKernelTakesItsLayouts) {
  for (const KernelConfig& config : kSm90Configs) {
    for (const Layout layout :
         {Layout::kSeparate, Layout::kGateUp, Layout::kUpGate, Layout::kInterleaved1, Layout::kInterleaved8}) {
      const Status status = legal(config, problem(1, 4864, 896, layout), kH200);
      const bool takes = config.family != KernelFamily::kInterleave || layout == layout_for(config);
      EXPECT_EQ(status.ok(), takes) << config_name(config) << ": " << status.text();
    }
  }
}

TEST(Planner, OnlyInterleaveIsForSiluAndBf16) {
  for (const KernelConfig& config : kSm90Configs) {
    const bool any = config.family != KernelFamily::kInterleave;
    Problem p = problem(1, 4864, 896, layout_for(config));
    p.activation = Activation::kRelu;
    EXPECT_EQ(legal(config, p, kH200).text(), any ? "" : "activation=relu is not silu");
    p.activation = Activation::kSilu;
    p.dtype = p.dtype_y = Dtype::kFp16;
    EXPECT_EQ(legal(config, p, kH200).text(), any ? "" : "dtype=fp16 is not bf16");
  }
}

// What the threads of a kernel store can be anything; the other kernels say which wish they cannot grant.
TEST(Planner, GeneralAndStreamedKernelsTakeEveryWish) {
  const Declined wishes[] = {
      {"fp32", [](Problem& p) { p.dtype_y = Dtype::kFp32; }, "dtype_y=fp32 is not bf16"},
      {"ldy", [](Problem& p) { p.ldy = 4865; }, "ldy=4865 is not a multiple of 8"},
      {"rounding", [](Problem& p) { p.rounding = Rounding::kUnfused; }, "rounding=unfused is not once"},
      {"addend", [](Problem& p) { p.extra.addend = true; }, "operands: addend"},
      {"pre", [](Problem& p) { p.extra.preactivations = true; }, "operands: pre-activations"},
  };
  for (const Declined& wish : wishes) {
    for (const KernelConfig& config : kSm90Configs) {
      Problem p = problem(1, 4864, 896, layout_for(config));
      wish.spoil(p);
      const bool takes = config.general || config.streamed();
      EXPECT_EQ(legal(config, p, kH200).text().find(wish.message) == std::string::npos, takes) << config_name(config);
    }
    Problem p = problem(300, 4864, 896, Layout::kGateUp);
    wish.spoil(p);
    const Result<Candidate> choice = choose(p, kH200);
    ASSERT_TRUE(choice.ok()) << choice.status().text();
    EXPECT_TRUE(row_of(choice.value()).general);
  }
}

TEST(Planner, BiasAndSwigluAreDeclinedByName) {
  for (const KernelConfig& config : kSm90Configs) {
    Problem p = problem(1, 4864, 896, layout_for(config));
    p.extra.bias_up = true;
    EXPECT_EQ(legal(config, p, kH200).text(), config.takes_bias() ? "" : "operands: bias") << config_name(config);
    p.extra.bias_up = false;
    p.activation = Activation::kSwiglu;
    const bool takes = config.family != KernelFamily::kInterleave && config.family != KernelFamily::kSyncPingpong;
    EXPECT_EQ(legal(config, p, kH200).ok(), takes) << config_name(config);
  }
}

TEST(Planner, StreamedTakeOnlyTheTokensTheyAreFor) {
  for (const KernelConfig& config : kSm90Configs) {
    if (!config.streamed()) continue;
    EXPECT_TRUE(legal(config, problem(config.tile_m, 4864, 896), kH200).ok());
    const std::string tokens = std::to_string(config.tile_m);
    EXPECT_EQ(legal(config, problem(config.tile_m + 1, 4864, 896), kH200).text(),
              "m=" + std::to_string(config.tile_m + 1) + " is above " + tokens + " tokens");
  }
}

TEST(Planner, BatchInvarianceLeavesOutWhatDependsOnTheBatch) {
  for (const std::int64_t m : {1, 5, 64, 300, 5000}) {
    const Result<Candidate> choice =
        choose(problem(m, 4864, 896, Layout::kGateUp), kH200, {}, {.batch_invariant = true});
    ASSERT_TRUE(choice.ok()) << choice.status().text();
    EXPECT_TRUE(batch_invariant(row_of(choice.value())).ok());
  }
  for (const KernelConfig& config : kSm90Configs) {
    const bool invariant =
        !config.shared && config.split_k == 1 && !config.streamed() && config.family != KernelFamily::kInterleave;
    EXPECT_EQ(batch_invariant(config).ok(), invariant) << config_name(config);
  }
  EXPECT_EQ(choose(kSmallK, kH200, "interleave", {.batch_invariant = true}).status().code(), Code::kNotSupported);
}

TEST(Planner, StreamedComeLastWhereWeightsArePrefetched) {
  constexpr PlanFlags kPrefetch{.prefetch_weights = true};
  bool streamed = false;
  for (const std::int64_t m : {1, 4, 8}) {
    const Problem p = problem(m, 4864, 896);
    streamed |= row_of(choose(p, kH200).value()).streamed();
    EXPECT_FALSE(row_of(choose(p, kH200, {}, kPrefetch).value()).streamed());
    EXPECT_EQ(candidates(p, kH200, {}, kPrefetch).size(), candidates(p, kH200).size());
  }
  EXPECT_TRUE(streamed) << "nothing to come last";
  EXPECT_TRUE(choose(problem(1, 4864, 896), kH200, "decode_1x2x512_vector", kPrefetch).ok()) << "by name";
}

TEST(Planner, PairedLooksAtTheStrideOfUp) {
  Problem p = problem(512, 4864, 896, Layout::kSeparate);
  p.ld_up = 900;
  EXPECT_EQ(choose(p, kH200, "paired").status().text(), "ld_up=900 is not a multiple of 8 (16-byte TMA rule)");
  p.ld_up = std::int64_t{1} << 35;
  EXPECT_EQ(choose(p, kH200, "paired").status().text(), "ld_up=34359738368 is above 34359738360 (40-bit TMA strides)");
  p.ld_up = (std::int64_t{1} << 35) - 8;
  EXPECT_TRUE(choose(p, kH200, "paired").ok());
}

TEST(Planner, LayoutAndGranularityBelongTogether) {
  for (const auto& [layout, granularity] : {std::pair{Layout::kInterleaved1, 1}, {Layout::kInterleaved8, 8}}) {
    const Result<Candidate> choice = choose(problem(512, 4864, 896, layout), kH200, "interleave");
    ASSERT_TRUE(choice.ok()) << choice.status().text();
    EXPECT_EQ(row_of(choice.value()).granularity, granularity);
  }
}

// --- Names ----------------------------------------------------------------------------------------------------------

TEST(KernelNames, AreUniqueAndSpellTheConfiguration) {
  std::set<std::string> names;
  for (const KernelConfig& config : kSm90Configs) EXPECT_TRUE(names.insert(config_name(config)).second);
  EXPECT_EQ(
      config_name({.schedule = Schedule::kPingpong, .tile_m = 128, .tile_n2 = 128, .cluster_m = 2, .granularity = 8}),
      "interleave_128x128_pingpong_c2x1_g8");
  EXPECT_EQ(
      config_name({.family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .split_k = 4}),
      "decode_64x128_cooperative_c1x1_k4");
}

TEST(Planner, TakesAFamilyOrOneConfiguration) {
  EXPECT_EQ(candidates(kSmallK, kH200).size(), kSm90Configs.size());
  for (const KernelConfig& config : kSm90Configs) {
    const std::string name = config_name(config);
    const Problem p = problem(config.streamed() ? config.tile_m : 2048, 4864, 896, layout_for(config));
    const Result<Candidate> choice = choose(p, kH200, name);
    ASSERT_TRUE(choice.ok()) << choice.status().text();
    EXPECT_EQ(config_name(row_of(choice.value())), name);
    EXPECT_TRUE(choose(p, kH200, family_name(config.family)).ok());
  }
}

TEST(Planner, AnUnknownNameListsTheKnownOnes) {
  for (const char* wrong : {"interleav", "interleave_", "interleave_128x128", "cublas", "INTERLEAVE"}) {
    const Result<Candidate> choice = choose(kSmallK, kH200, wrong);
    ASSERT_FALSE(choice.ok()) << wrong;
    EXPECT_EQ(choice.status().code(), Code::kInvalidArgument);
    EXPECT_NE(choice.status().text().find("kernel=" + std::string(wrong) + " is not known"), std::string::npos);
    EXPECT_NE(choice.status().text().find("interleave, "), std::string::npos);
    for (const KernelConfig& config : kSm90Configs) {
      EXPECT_NE(choice.status().text().find(config_name(config)), std::string::npos) << choice.status().text();
    }
  }
}

TEST(Planner, ANamedKernelThatCannotRunSaysWhy) {
  const std::string name = config_name(interleave_row(Schedule::kPingpong, 1));
  const Result<Candidate> choice = choose(kSmallK, kH200, name);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.status().code(), Code::kNotSupported);
  EXPECT_EQ(choice.status().text(), "layout=interleaved_8 is not interleaved_1");
}

TEST(Planner, DifferentReasonsAreGivenWithTheirKernels) {
  const std::string text = choose(problem(64, 4864, 896, Layout::kSeparate), kH200, "interleave").status().text();
  EXPECT_NE(text.find("layout=separate is not interleaved_8 (interleave_"), std::string::npos) << text;
  EXPECT_NE(text.find("; layout=separate is not interleaved_1 (interleave_"), std::string::npos) << text;
}

// --- Which kernel is taken ------------------------------------------------------------------------------------------

TEST(Planner, BestLegalCandidateComesFirst) {
  for (const Problem& p : {kSmallK, kLargeK, problem(1, 4864, 896)}) {
    const std::vector<Candidate> list = candidates(p, kH200);
    ASSERT_TRUE(list.front().legal.ok());
    for (std::size_t i = 1; i < list.size(); ++i) {
      EXPECT_GE(list[i - 1].legal.ok(), list[i].legal.ok());
      if (list[i].legal.ok()) {
        EXPECT_LE(list[i - 1].predicted_us, list[i].predicted_us);
      } else {
        EXPECT_EQ(list[i].predicted_us, 0);
      }
    }
    EXPECT_EQ(choose(p, kH200).value().row, list.front().row);
  }
}

// Winners of benchmarks/h200/kernels.json, by the time model alone: the vector kernel for one token where n is
// small, mma.sync for four, weights as rows in tiles that narrow up to 64, tokens as rows from 2048 on, in wide tiles
// at large m and k.
TEST(Planner, TakesTheKernelsThatWonOnAnH200) {
  const auto picked = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return row_of(choose(problem(m, n, k, Layout::kGateUp), kH200).value());
  };
  EXPECT_EQ(picked(1, 2904, 6784).family, KernelFamily::kVector);
  EXPECT_EQ(picked(4, 4864, 896).family, KernelFamily::kMma);
  EXPECT_EQ(config_name(picked(64, 18944, 3584)), "decode_64x128_cooperative_c1x1");
  EXPECT_EQ(picked(2048, 11008, 2048).family, KernelFamily::kPaired);
  EXPECT_EQ(picked(8192, 29568, 8192).family, KernelFamily::kPaired);
  EXPECT_GE(picked(8192, 29568, 8192).tile_n2, 160);
}

// A row without measured times would never be picked. Kernel-2's
// are not measured yet: it is taken by name only.
TEST(TimeModel, KnowsTheTimesOfEveryKernelButKernel2) {
  for (const KernelConfig& config : kSm90Configs) {
    const bool known =
        std::ranges::any_of(kSm90Times, [&](const KernelTimes& times) { return times.kernel == config_name(config); });
    EXPECT_EQ(known, config.family != KernelFamily::kInterleave) << config_name(config);
  }
  EXPECT_EQ(kSm90Times.size(),
            std::ranges::count_if(
                kSm90Configs, [](const KernelConfig& config) { return config.family != KernelFamily::kInterleave; }))
      << "times of a kernel that is not there";
}

TEST(TimeModel, IsNearWhatAnH200Needs) {
  // Activation-free cuBLAS GEMMs of the same shapes: 58.5, 803 and 2825 us.
  EXPECT_NEAR(choose(kSmallK, kH200).value().predicted_us, 58.5, 15);
  EXPECT_NEAR(choose(kLargeK, kH200).value().predicted_us, 803, 120);
  EXPECT_NEAR(choose(problem(2048, 29568, 8192), kH200).value().predicted_us, 2825, 400);
}

TEST(TimeModel, IsBoundedByBytesAtSmallM) {
  const Problem p = problem(1, 29568, 8192);
  const double floor_us = 2.0 * 2 * 29568 * 8192 / 4.5e6;
  const double predicted = choose(p, kH200).value().predicted_us;
  EXPECT_GE(predicted, floor_us);
}

TEST(TimeModel, GrowsWithEachSizeAndShrinksWithMoreSms) {
  for (const KernelConfig& config : kSm90Configs) {
    if (config.streamed()) continue;  // at most a few tokens
    double last = 0;
    // Of few shared tiles each has many parts to collect; with more rows there are fewer.
    for (std::int64_t m = config.shared ? 1024 : 1; m <= 16384; m *= 2) {
      const double now = predict_us(config, problem(m, 4864, 896), kH200);
      // Wider tiles for more rows gain a little where SMs are idle: the model's noise is larger.
      EXPECT_GE(now, 0.99 * last) << config_name(config) << " m=" << m;
      last = now;
    }
    EXPECT_GT(predict_us(config, problem(2048, 9728, 896), kH200), predict_us(config, kSmallK, kH200));
    EXPECT_GT(predict_us(config, problem(2048, 4864, 1792), kH200), predict_us(config, kSmallK, kH200));
    EXPECT_GT(predict_us(config, kSmallK, kH20), predict_us(config, kSmallK, kH200)) << config_name(config);
  }
}

TEST(TimeModel, SurvivesASpecWithoutFacts) {
  const DeviceSpec bare{.name = "bare", .capability_major = 9, .capability_minor = 0};
  const Result<Candidate> choice = choose(kLargeK, bare);
  ASSERT_TRUE(choice.ok());
  EXPECT_GT(choice.value().predicted_us, 0);
  EXPECT_LT(choice.value().predicted_us, 1e9);
}

}  // namespace
}  // namespace tileglu
