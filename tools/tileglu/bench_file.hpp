// SPDX-License-Identifier: Apache-2.0
// Reads what bench and the study write: rows of contenders, and the ceilings of the run.
#pragma once

#include "options.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tileglu::tool {

struct MeasuredRow {
  Shape shape;
  Dtype dtype = Dtype::kBf16;
  std::string contender, config;
  std::string launch = {};  // graph, stream, host; empty if the file does not say
  double median_us = 0;
};

struct BenchFile {
  std::string device;
  std::optional<double> gemm_tflops, read_gbps;  // ceilings measured in that run
  std::vector<MeasuredRow> rows;                 // those with a time
};

// kInvalidArgument, naming the file and the row, for what is no such file.
Result<BenchFile> read_bench_file(const std::filesystem::path& path);

}  // namespace tileglu::tool
