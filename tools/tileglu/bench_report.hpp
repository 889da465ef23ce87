// SPDX-License-Identifier: Apache-2.0
// What bench prints and writes.
#pragma once

#include "bench_shape.hpp"
#include "ceilings.hpp"
#include "json_output.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tileglu::tool {

struct BenchRun {
  BenchSettings settings = {};
  std::optional<Ceilings> ceilings = {};
  Json sensors_at_start = {};
  std::vector<ShapeResult> shapes = {};
};

std::string method_text(const BenchSettings& settings);
std::string ceilings_text(const BenchRun& run);
std::string shape_text(const ShapeResult& result);
Json bench_document(const BenchRun& run);

// Rows by status; everything but ok and skipped makes the run fail.
struct BenchSummary {
  int ok = 0, failed = 0, skipped = 0;
  std::string first_failure;
};
BenchSummary summarise(const std::vector<ShapeResult>& shapes);

}  // namespace tileglu::tool
