// SPDX-License-Identifier: Apache-2.0
// Timing of several contenders against each other, in rounds of random order: none has the cool or the warm chip to
// itself, nor always the same one before it (what draws less power leaves its successor a higher clock).
// Every call uses the next buffer set; with enough sets no call finds its operands in the cache.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "runtime/runtime.hpp"

#include <functional>
#include <string>
#include <vector>

namespace tileglu::tool {

struct Statistics {
  double median = 0, p5 = 0, p95 = 0;
};
Statistics summarise(std::vector<double> samples);  // not empty

// One contender: enqueues one run on the stream, with the operands of buffer set `set`.
using Contestant = std::function<Status(const runtime::Stream& stream, int set)>;

struct MeasureOptions {
  Memory memory = Memory::kHost;
  int device = 0;
  int sets = 1;             // buffer sets that calls rotate over
  bool cuda_graph = false;  // a sample is one launch of a graph that goes once (or more) round all sets
  int samples = 20;         // at least
  double min_time_s = 0;    // of each contender's samples together, at least
  double warmup_s = 0;      // all contenders in turn, before the first sample
};

struct Measurement {
  double host_us = 0;              // of the thread that enqueues a call
  Status status;                   // of the first call that failed; then there are no samples
  std::vector<double> samples_us;  // per call
  int calls_per_sample = 1;
};
// One per contestant, in order.
Result<std::vector<Measurement>> measure(const std::vector<Contestant>& contestants, const MeasureOptions& options);
// Index of the one with the lowest median after a few samples; the first failure if all fail.
Result<int> fastest(const std::vector<Contestant>& contestants, MeasureOptions options);

}  // namespace tileglu::tool
