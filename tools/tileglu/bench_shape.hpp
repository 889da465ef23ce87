// SPDX-License-Identifier: Apache-2.0
// The benchmark of one shape: contenders planned, checked against fp64, then timed against each other.
#pragma once

#include "contenders.hpp"
#include "environment.hpp"
#include "gate_options.hpp"
#include "measure.hpp"

#include <string>
#include <vector>

namespace tileglu::tool {

struct BenchSettings {
  Memory memory = Memory::kHost;
  int device = 0;
  Dtype dtype = Dtype::kBf16;
  Dtype dtype_y = Dtype::kBf16;
  GateOptions gate = {};
  std::uint64_t seed = 1;
  bool cold = true;  // rotate buffers past the cache
  bool cuda_graph = false;
  int samples = 20;
  double min_time_s = 0.3, warmup_s = 0.3;
  Peak peak = {};                    // rates above are flagged
  std::string wrong_contender = {};  // tests: its result is spoiled before the check
  std::string error_contender = {};  // tests: its runs fail
};

struct BenchRow {
  Contender contender = {};
  std::string backend = {}, config = {}, layout = {}, describe = {};
  std::string status = "ok";  // ok, skipped, error, wrong, above_peak
  std::string reason = {};
  double relative_error = 0;  // of the checked rows
  std::vector<double> samples_us = {};
  int calls_per_sample = 1;
  double host_us = 0;    // of the thread that enqueues a call
  Statistics time = {};  // only if ok or above_peak
  double tflops = 0, gbps = 0;
  double first_algorithm_us = 0;  // cublas_gemm_only: what the heuristic would have taken
  bool timed() const { return status == "ok" || status == "above_peak"; }
};

struct ShapeResult {
  Shape shape = {};
  Activation activation = Activation::kSilu;
  std::string operands = {};  // operand_names()
  int sets = 1;
  double set_bytes = 0;
  bool cuda_graph = false;
  std::vector<BenchRow> rows = {};
};

Result<ShapeResult> bench_shape(const Shape& shape, Activation activation, const std::vector<Contender>& contenders,
                                const BenchSettings& settings);

// The contract's counts: 4mnk, and bytes of A, both weights and Y touched once.
double flops(const Shape& shape);
double bytes_moved(const Shape& shape, Dtype dtype, Dtype dtype_y);

// Buffer sets of this many bytes that a rotation past the cache needs.
int sets_past_cache(double set_bytes, Memory memory, int device);
// Whether launches from the host would show on a GPU, so that calls are timed in a CUDA graph.
bool needs_graph(const Shape& shape);

}  // namespace tileglu::tool
