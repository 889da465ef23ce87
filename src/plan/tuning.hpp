// SPDX-License-Identifier: Apache-2.0
// What was measured to be the fastest kernel, by problem and GPU. Plain values: who reads and writes files of them is
// io/tuning_text.hpp and io/tuning_cache.hpp.
#pragma once

#include "core/problem.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace tileglu {

struct DeviceSpec;

// The largest m of the bucket that m >= 1 lies in. Up to 8 each m is its own; then buckets end at every multiple of 8
// up to 256, of 32 up to 1024, and of 128 beyond, which are the heights of the tiles that compete there: all m of one
// bucket make the same grid of tiles.
std::int64_t m_bucket(std::int64_t m);

// A row holds for its bucket only; between measured buckets the time model decides.
struct TuningKey {
  std::string device = {};   // "NVIDIA H200"
  int sm_count = 0;          // an H200 with some SMs taken away is another GPU
  std::string version = {};  // of the library: kernels change
  Dtype dtype = Dtype::kBf16;
  Activation activation = Activation::kSilu;
  Layout layout = Layout::kSeparate;
  std::int64_t n = 0, k = 0, m_bucket = 0;

  bool operator==(const TuningKey&) const = default;
  bool operator<(const TuningKey& o) const {
    return std::tie(device, sm_count, version, dtype, activation, layout, n, k, m_bucket) <
           std::tie(o.device, o.sm_count, o.version, o.dtype, o.activation, o.layout, o.n, o.k, o.m_bucket);
  }
};

struct TunedKernel {
  std::string kernel = {};
  std::int64_t m = 0;  // that was measured
  double median_us = 0;

  bool operator==(const TunedKernel&) const = default;
};

using TuningTable = std::map<TuningKey, TunedKernel>;

// In the order in which the planner asks them.
struct Tuning {
  TuningTable user;     // the user's cache
  TuningTable shipped;  // data/tuning
};

// "0.1.0": what rows measured with this library carry.
std::string library_version();
TuningKey tuning_key(const Problem& problem, const DeviceSpec& device);
// The key of the problem that is measured first: SiLU, bf16, separate weights. A kernel's time depends little on these,
// so that its rows serve where the others are missing.
TuningKey resembling(TuningKey key);

}  // namespace tileglu
