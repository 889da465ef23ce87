// SPDX-License-Identifier: Apache-2.0
// How a persistent kernel divides its output tiles among its workers (a CTA, or a cluster of them). Most tiles are done
// whole, one worker after the other taking the next. Where that would leave a part of the last wave idle, the first
// `shared_tiles` are cut along k into equal shares instead (stream-K; Osama et al., arXiv:2301.03598): a worker adds up
// its part of a tile, and the worker that has the tile's first k-blocks collects the other parts.
//
// Shares are dealt in reverse: the collector has a higher index than those it waits for. CTAs start in the order of
// their index, so that it never waits for one that cannot start before it ends.
#pragma once

#include "core/layout.hpp"
#include "core/problem.hpp"
#include "plan/kernel_config.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tileglu {

struct WorkItem {
  int tile;
  int k_begin, k_end;  // k-blocks

  TILEGLU_HOST_DEVICE bool is_part() const { return k_begin > 0; }  // for another's tile
  TILEGLU_HOST_DEVICE bool needs_parts(int k_blocks) const { return k_begin == 0 && k_end < k_blocks; }  // of others
};

struct WorkSplit {
  int tiles = 0, k_blocks = 0, workers = 1;
  int shared_tiles = 0;

  // Shorter pieces of a tile are not worth their way through memory, nor are more workers for a tile whose collector
  // takes their parts one after the other.
  static constexpr int kShortestPart = 4, kMostParts = 4;

  // With whole tiles only, or with the ragged last wave (and the wave before it, so that parts stay large) shared.
  static constexpr WorkSplit make(int tiles, int k_blocks, int workers, bool share) {
    const int rest = tiles % workers;
    const int shared = rest == 0 ? 0 : rest + (tiles >= workers ? workers : 0);
    const bool countable = static_cast<std::int64_t>(shared) * k_blocks <= std::numeric_limits<int>::max();
    return {.tiles = tiles, .k_blocks = k_blocks, .workers = workers, .shared_tiles = share && countable ? shared : 0};
  }

  // Where share `share` of the k-blocks of all shared tiles begins, counted through the tiles; share 0..workers.
  TILEGLU_HOST_DEVICE int share_begin(int share) const {
    const auto even = static_cast<int>(static_cast<std::int64_t>(shared_tiles) * k_blocks * share / workers);
    const int k = even % k_blocks;
    if (k < kShortestPart) return even - k;
    return k_blocks - k < kShortestPart ? even - k + k_blocks : even;
  }
  // Also the worker of a share.
  TILEGLU_HOST_DEVICE int share_of(int worker) const { return workers - 1 - worker; }

  // Calls visitor(worker) for each worker that has a later part of the shared tile whose first part `collector` has.
  template <class Visitor>
  TILEGLU_HOST_DEVICE void for_each_part(int collector, int tile, const Visitor& visitor) const {
    const int tile_end = (tile + 1) * k_blocks;
    for (int share = share_of(collector) + 1; share_begin(share) < tile_end; ++share) {
      if (share_begin(share) < share_begin(share + 1)) visitor(share_of(share));  // not an empty share
    }
  }
};

constexpr std::int64_t ceil_div(std::int64_t x, std::int64_t y) {
  return (x + y - 1) / y;
}

// Tiles of a cluster along m, and of a CTA along n.
constexpr std::int64_t cluster_tiles_m(const KernelConfig& c, const Problem& p) {
  return ceil_div(p.m, static_cast<std::int64_t>(c.tile_m) * c.cluster_m);
}
constexpr std::int64_t tiles_n(const Problem& p, int columns) {
  return ceil_div(p.n, columns);
}

// Rows of A in a tile. A kernel that may leave a part of its tile unused gives each tile as many: a TMA box that
// reaches past the last row takes longer than one that ends there.
constexpr int tile_rows(const KernelConfig& c, const Problem& p) {
  if (!c.narrows()) return c.tile_m;
  return static_cast<int>(ceil_div(p.m, cluster_tiles_m(c, p) * c.cluster_m));
}

// CTAs, or clusters of them, that a device runs at a time. A cluster lies in one GPC, whose SMs come in pairs: clusters
// of more leave some over (an H200 was measured to run 29 clusters of four, and not 31).
constexpr std::int64_t most_workers(const KernelConfig& c, int sm_count) {
  const std::int64_t usable = c.cluster_size() > 2 ? sm_count * std::int64_t{7} / 8 : sm_count;
  const std::int64_t most = usable / c.cluster_size();
  return most > 0 ? most : 1;
}

// Output columns of a tile, a multiple of 8. A kernel that may leave a part of its tile unused takes as few as still
// need no more waves, so that every SM reads alike.
constexpr int tile_columns(const KernelConfig& c, const Problem& p, int sm_count) {
  const int most = c.tile_n2 / 2;
  if (!c.narrows()) return most;
  const std::int64_t workers = most_workers(c, sm_count), tiles_m = cluster_tiles_m(c, p);
  const std::int64_t waves = ceil_div(tiles_m * tiles_n(p, most), workers);
  const std::int64_t most_n = waves * workers / tiles_m;
  return static_cast<int>(8 * ceil_div(p.n, 8 * most_n));
}

// The work of a kernel's persistent grid; p fits the kernel (planner.hpp).
constexpr WorkSplit split_of(const KernelConfig& c, const Problem& p, int sm_count) {
  const std::int64_t tiles = cluster_tiles_m(c, p) * tiles_n(p, tile_columns(c, p, sm_count));
  const std::int64_t k_blocks = ceil_div(p.k, c.tile_k);
  const std::int64_t most = most_workers(c, sm_count);
  // A cluster that divides k does one tile and ends.
  if (c.split_k > 1) {
    return WorkSplit::make(static_cast<int>(tiles), static_cast<int>(k_blocks), static_cast<int>(tiles), false);
  }
  // Workers beyond the number of tiles need a share that is worth it.
  const std::int64_t parts =
      std::min<std::int64_t>(ceil_div(k_blocks, WorkSplit::kShortestPart), WorkSplit::kMostParts);
  const std::int64_t useful = c.shared ? tiles * parts : tiles;
  const std::int64_t workers = useful < most ? useful : most;
  return WorkSplit::make(static_cast<int>(tiles), static_cast<int>(k_blocks), static_cast<int>(workers), c.shared);
}

// The items of one worker, in the order of their execution: its share of the shared tiles (if Shared), then whole
// tiles.
template <bool Shared>
struct WorkCursor {
  WorkSplit split;
  int position = 0, end = 0;  // in the worker's share
  int next_tile;

  TILEGLU_HOST_DEVICE WorkCursor(const WorkSplit& work, int worker)
      : split(work), next_tile(work.shared_tiles + worker) {
    if constexpr (Shared) {
      position = work.share_begin(work.share_of(worker));
      end = work.share_begin(work.share_of(worker) + 1);
    }
  }

  TILEGLU_HOST_DEVICE bool next(WorkItem& item) {
    if (Shared && position < end) {
      item.tile = position / split.k_blocks;
      item.k_begin = position % split.k_blocks;
      const int rest = item.k_begin + end - position;
      item.k_end = rest < split.k_blocks ? rest : split.k_blocks;
      position += item.k_end - item.k_begin;
      return true;
    }
    item = {next_tile, 0, split.k_blocks};
    next_tile += split.workers;
    return item.tile < split.tiles;
  }
};

}  // namespace tileglu
