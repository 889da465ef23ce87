// SPDX-License-Identifier: Apache-2.0
// TuneBench over the kernels of one backend: results held against fp64 as verify and bench do, times taken as bench
// takes them (cold cache, interleaved, in a CUDA graph where launches would show).
#pragma once

#include "bench_check.hpp"
#include "library.hpp"
#include "synthetic.hpp"
#include "tune_loop.hpp"

namespace tileglu::tool {

class KernelBench final : public TuneBench {
 public:
  struct Settings {
    BackendId backend = BackendId::kSm90;
    std::uint64_t seed = 1;
    std::string wrong_kernel = {};  // tests: its result is spoiled before the check
  };
  explicit KernelBench(Settings settings) : settings_(std::move(settings)) {}

  double now_s() override;
  Status begin(const Problem& problem) override;
  Status verify(const std::string& kernel) override;
  Result<std::vector<Measurement>> race(const std::vector<std::string>& kernels, bool thorough) override;

 private:
  Operands operands(int set, void* y, const runtime::Stream& stream) const;

  Settings settings_;
  Problem problem_;
  SyntheticData data_;
  std::vector<runtime::Buffer> y_;  // one a buffer set
  ResultCheck check_;
};

}  // namespace tileglu::tool
