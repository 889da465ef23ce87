// SPDX-License-Identifier: Apache-2.0
#include "plan/work_split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tileglu {
namespace {

std::vector<WorkItem> items_of(const WorkSplit& work, int worker) {
  std::vector<WorkItem> items;
  WorkCursor<true> cursor(work, worker);
  for (WorkItem item{}; cursor.next(item);) items.push_back(item);
  return items;
}

struct Case {
  int tiles, k_blocks, workers;
};

class WorkSplits : public testing::TestWithParam<Case> {
 protected:
  WorkSplit split(bool share) const {
    return WorkSplit::make(GetParam().tiles, GetParam().k_blocks, GetParam().workers, share);
  }
};

TEST_P(WorkSplits, EveryBlockOfEveryTileOnce) {
  for (const bool share : {false, true}) {
    const WorkSplit work = split(share);
    std::vector<std::vector<int>> seen(static_cast<std::size_t>(work.tiles),
                                       std::vector<int>(static_cast<std::size_t>(work.k_blocks)));
    for (int worker = 0; worker < work.workers; ++worker) {
      for (const WorkItem& item : items_of(work, worker)) {
        ASSERT_LT(item.k_begin, item.k_end);
        for (int k = item.k_begin; k < item.k_end; ++k) {
          ++seen[static_cast<std::size_t>(item.tile)][static_cast<std::size_t>(k)];
        }
      }
    }
    for (const auto& tile : seen) {
      EXPECT_TRUE(std::ranges::all_of(tile, [](int times) { return times == 1; }));
    }
  }
}

// What the kernel relies on: a worker gives at most one part, as its first item; the collector is told of each giver,
// in the order of k, and has a higher index than all of them.
TEST_P(WorkSplits, PartsFindTheirCollector) {
  const WorkSplit work = split(true);
  for (int worker = 0; worker < work.workers; ++worker) {
    const std::vector<WorkItem> items = items_of(work, worker);
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_TRUE(!items[i].is_part() || i == 0);
      if (!items[i].needs_parts(work.k_blocks)) continue;
      int k = items[i].k_end;
      work.for_each_part(worker, items[i].tile, [&](int giver) {
        EXPECT_LT(giver, worker);
        const WorkItem part = items_of(work, giver).front();
        EXPECT_EQ(part.tile, items[i].tile);
        EXPECT_EQ(part.k_begin, k);
        EXPECT_TRUE(part.is_part());
        k = part.k_end;
      });
      EXPECT_EQ(k, work.k_blocks);
    }
  }
}

TEST_P(WorkSplits, SharesAreEvenAndPartsNotTiny) {
  const WorkSplit work = split(true);
  if (work.shared_tiles == 0) return;
  const double even = static_cast<double>(work.shared_tiles) * work.k_blocks / work.workers;
  for (int share = 0; share < work.workers; ++share) {
    const int blocks = work.share_begin(share + 1) - work.share_begin(share);
    EXPECT_NEAR(blocks, even, 2 * WorkSplit::kShortestPart);
    const int begin = work.share_begin(share) % work.k_blocks;
    EXPECT_TRUE(begin == 0 || (begin >= WorkSplit::kShortestPart && work.k_blocks - begin >= WorkSplit::kShortestPart));
  }
}

INSTANTIATE_TEST_SUITE_P(All, WorkSplits,
                         testing::Values(Case{1, 1, 1}, Case{1, 56, 14}, Case{76, 14, 132}, Case{152, 14, 132},
                                         Case{148, 56, 132}, Case{132, 56, 132}, Case{133, 56, 132}, Case{263, 56, 66},
                                         Case{408, 14, 132}, Case{5, 3, 7}, Case{1, 128, 132}, Case{131, 8, 132},
                                         Case{7, 1, 3}, Case{1000, 128, 66}));

TEST(WorkSplit, WholeTilesOnlyWhereTheWavesAreFull) {
  EXPECT_EQ(WorkSplit::make(264, 56, 132, true).shared_tiles, 0);
  EXPECT_EQ(WorkSplit::make(265, 56, 132, true).shared_tiles, 133);
  EXPECT_EQ(WorkSplit::make(100, 56, 132, true).shared_tiles, 100);
  EXPECT_EQ(WorkSplit::make(265, 56, 132, false).shared_tiles, 0);
}

constexpr KernelConfig kNarrowing{
    .family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 256};

TEST(Columns, AsFewAsNeedNoMoreWaves) {
  for (const std::int64_t m : {1, 64, 65, 200}) {
    for (std::int64_t n = 8; n < 40000; n += 8 * (1 + n / 100)) {
      const Problem p{.m = m, .n = n, .k = 64};
      for (const int sm_count : {1, 78, 132}) {
        const int columns = tile_columns(kNarrowing, p, sm_count);
        ASSERT_TRUE(columns % 8 == 0 && columns > 0 && columns <= 128 && columns <= n) << n;
        const auto waves = [&](int wide) {
          return ceil_div(cluster_tiles_m(kNarrowing, p) * tiles_n(p, wide), sm_count);
        };
        EXPECT_EQ(waves(columns), waves(128)) << n;
        EXPECT_TRUE(columns == 8 || waves(columns - 8) > waves(128)) << n;
      }
    }
  }
}

TEST(Columns, OfRealModels) {
  const auto columns = [](std::int64_t n) { return tile_columns(kNarrowing, {.m = 64, .n = n, .k = 64}, 132); };
  EXPECT_EQ(columns(4864), 40);
  EXPECT_EQ(columns(8960), 72);
  EXPECT_EQ(columns(18944), 72);  // two full waves
  EXPECT_EQ(columns(29568), 112);
  KernelConfig whole = kNarrowing;
  whole.shared = true;
  EXPECT_EQ(tile_columns(whole, {.m = 64, .n = 4864, .k = 64}, 132), 128);
}

TEST(Rows, TilesAlongMHaveAsManyEach) {
  KernelConfig config = kNarrowing;
  for (config.cluster_m = 1; config.cluster_m <= 2; ++config.cluster_m) {
    for (std::int64_t m = 1; m < 2000; ++m) {
      const Problem p{.m = m, .n = 8, .k = 64};
      const int rows = tile_rows(config, p);
      const std::int64_t tiles = cluster_tiles_m(config, p) * config.cluster_m;
      ASSERT_TRUE(rows > 0 && rows <= config.tile_m) << m;
      ASSERT_GE(rows * tiles, m);
      ASSERT_LT(rows * tiles - m, tiles) << "the boxes reach further past the last row than they must; m=" << m;
      ASSERT_LT(rows * (tiles - config.cluster_m), m) << "a cluster without a row; m=" << m;
    }
  }
}

TEST(Rows, OfRealSizes) {
  const auto rows = [](std::int64_t m) { return tile_rows(kNarrowing, {.m = m, .n = 8, .k = 64}); };
  EXPECT_EQ(rows(1), 1);
  EXPECT_EQ(rows(64), 64);
  EXPECT_EQ(rows(65), 33);
  EXPECT_EQ(rows(96), 48);
  EXPECT_EQ(rows(300), 60);
  KernelConfig shared = kNarrowing;
  shared.shared = true;
  EXPECT_EQ(tile_rows(shared, {.m = 96, .n = 8, .k = 64}), 64);
}

TEST(Columns, SharedTilesHaveFewWorkersEach) {
  const KernelConfig shared{
      .family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .shared = true};
  EXPECT_EQ(split_of(shared, {.m = 64, .n = 608, .k = 4096}, 132).workers, 10 * WorkSplit::kMostParts);
  EXPECT_EQ(split_of(shared, {.m = 64, .n = 608, .k = 128}, 132).workers, 10);
}

// As many clusters of four as fit in the GPCs decide how narrow the tiles are; each does one of them, however many.
TEST(Clusters, ThatDivideKDoOneTile) {
  const KernelConfig quad{
      .family = KernelFamily::kDecode, .schedule = Schedule::kCooperative, .tile_m = 64, .tile_n2 = 128, .split_k = 4};
  EXPECT_EQ(most_workers(quad, 132), 28);
  EXPECT_EQ(most_workers(quad, 3), 1);
  EXPECT_EQ(tile_columns(quad, {.m = 64, .n = 608, .k = 4096}, 132), 24);
  for (const std::int64_t n : {608, 1792, 4864, 20000}) {
    const Problem p{.m = 64, .n = n, .k = 4096};
    const WorkSplit work = split_of(quad, p, 132);
    EXPECT_EQ(work.tiles, tiles_n(p, tile_columns(quad, p, 132)));
    EXPECT_EQ(work.workers, work.tiles);
    EXPECT_EQ(work.shared_tiles, 0);
  }
}

// Positions are counted in 32 bits.
TEST(WorkSplit, DepthsThatWouldOverflowAreNotShared) {
  EXPECT_EQ(WorkSplit::make(263, 1 << 25, 132, true).shared_tiles, 0);
}

}  // namespace
}  // namespace tileglu
