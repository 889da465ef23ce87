// SPDX-License-Identifier: Apache-2.0
#include "bench_report.hpp"

#include "bench_check.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "output.hpp"

namespace tileglu::tool {
namespace {

std::string shape_title(const ShapeResult& result) {
  const Shape& s = result.shape;
  return formatted("{}m={} n={} k={}", s.model.empty() ? "" : s.model + "  ", s.m, s.n, s.k);
}

std::vector<const BenchRow*> timed_baselines(const ShapeResult& result) {
  std::vector<const BenchRow*> found;
  for (const BenchRow& row : result.rows) {
    if (row.contender.baseline && row.timed()) found.push_back(&row);
  }
  return found;
}

Json row_json(const ShapeResult& result, const BenchRow& row, const BenchRun& run) {
  const auto if_timed = [&](double value) { return row.timed() ? Json(value) : Json(nullptr); };
  Json speedup = Json::object();
  for (const BenchRow* baseline : timed_baselines(result)) {
    if (row.timed()) speedup[baseline->contender.name] = baseline->time.median / row.time.median;
  }
  const std::string& model = result.shape.model;
  Json json{{"model", model.empty() ? Json(nullptr) : Json(model)},
            {"m", result.shape.m},
            {"n", result.shape.n},
            {"k", result.shape.k},
            {"dtype", name_of(run.settings.dtype)},
            {"activation", name_of(result.activation)},
            {"rounding", name_of(run.settings.gate.rounding)},
            {"operands", result.operands},
            {"contender", row.contender.name},
            {"backend", row.backend},
            {"config", row.config},
            {"layout", row.layout},
            {"median_us", if_timed(row.time.median)},
            {"p5_us", if_timed(row.time.p5)},
            {"p95_us", if_timed(row.time.p95)},
            {"tflops", if_timed(row.tflops)},
            {"gbps", if_timed(row.gbps)},
            {"status", row.status},
            {"reason", row.reason},
            {"relative_frobenius", row.relative_error},
            {"speedup_over", speedup}};
  if (run.ceilings) {
    json["share_of_gemm_ceiling"] = if_timed(row.tflops / run.ceilings->gemm_tflops);
    json["share_of_copy_ceiling"] = if_timed(row.gbps / run.ceilings->copy_gbps);
    json["share_of_read_ceiling"] = if_timed(row.gbps / run.ceilings->read_gbps);
  }
  if (row.contender.name == kGemmOnly) {
    json["first_algorithm_us"] = if_timed(row.first_algorithm_us > 0 ? row.first_algorithm_us : row.time.median);
  }
  json["cuda_graph"] = result.cuda_graph;
  json["buffer_sets"] = result.sets;
  json["calls_per_sample"] = row.calls_per_sample;
  json["host_us"] = if_timed(row.host_us);
  json["samples_us"] = row.samples_us;
  return json;
}

}  // namespace

std::string method_text(const BenchSettings& settings) {
  const std::string cache =
      settings.cold ? "cold cache: calls rotate over buffer sets that together exceed 3x the last-level cache"
                    : "warm cache: every call uses the same buffers";
  const std::string timing = settings.memory == Memory::kCuda
                                 ? "CUDA events around calls_per_sample calls, or around one launch of a CUDA graph of "
                                   "them where cuda_graph is true"
                                 : "monotonic clock around each call";
  return formatted(
      "Contenders interleaved, in rounds of random order, after a common warm-up of {} s; {}; {}. Data random normal, "
      "every set the same values; outputs poisoned, {} rows of each result checked against fp64 before timing. FLOPs "
      "4mnk, bytes of A, both weights and Y once. At least {} samples and {} s a contender; median, 5th and 95th "
      "percentile.",
      settings.warmup_s, cache, timing, kCheckedRows, settings.samples, settings.min_time_s);
}

std::string ceilings_text(const BenchRun& run) {
  if (!run.ceilings) return {};
  const Ceilings& c = *run.ceilings;
  return formatted("ceilings of this run: copy {:.0f} GB/s, read {:.0f} GB/s, bf16 8192^3 GEMM {:.1f} TFLOP/s\n",
                   c.copy_gbps, c.read_gbps, c.gemm_tflops);
}

std::string shape_text(const ShapeResult& result) {
  const std::vector<const BenchRow*> baselines = timed_baselines(result);
  std::vector<Table::Column> columns{{"contender", true}, {"config", true}, {"layout", true},   {"us", false},
                                     {"p5", false},       {"p95", false},   {"TFLOP/s", false}, {"GB/s", false}};
  for (const BenchRow* baseline : baselines) columns.push_back({"x " + baseline->contender.name, false});
  Table table(std::move(columns));
  std::string failures;
  for (const BenchRow& row : result.rows) {
    std::vector<std::string> cells{row.contender.name, row.config, row.layout};
    if (row.timed()) {
      for (const double us : {row.time.median, row.time.p5, row.time.p95}) cells.push_back(formatted("{:.1f}", us));
      cells.push_back(formatted("{:.4g}", row.tflops));
      cells.push_back(formatted("{:.4g}", row.gbps));
      for (const BenchRow* baseline : baselines) {
        cells.push_back(formatted("{:.2f}", baseline->time.median / row.time.median));
      }
    } else {
      cells.push_back(row.status);
      cells.resize(8 + baselines.size());
    }
    table.add(std::move(cells));
    if (!row.reason.empty()) {
      failures += formatted("  {}: {}: {}\n", row.contender.name, row.status, one_line(row.reason));
    }
  }
  const std::string cache =
      result.sets > 1 ? formatted("cold cache, {} buffer sets of {:.1f} MB", result.sets, result.set_bytes * 1e-6)
                      : std::string("warm cache");
  return formatted("\n{}  ({}{})\n{}{}", shape_title(result), cache, result.cuda_graph ? ", CUDA graph" : "",
                   table.text(), failures);
}

BenchSummary summarise(const std::vector<ShapeResult>& shapes) {
  BenchSummary summary;
  for (const ShapeResult& result : shapes) {
    for (const BenchRow& row : result.rows) {
      if (row.status == "ok") {
        ++summary.ok;
      } else if (row.status == "skipped") {
        ++summary.skipped;
      } else {
        ++summary.failed;
        if (summary.first_failure.empty()) {
          summary.first_failure =
              formatted("{} at {}: {}: {}", row.contender.name, shape_title(result), row.status, row.reason);
        }
      }
    }
  }
  return summary;
}

Json bench_document(const BenchRun& run) {
  const BenchSettings& s = run.settings;
  Json document = make_document("bench");
  document["device"] = device_name(s.memory, s.device);
  document["method"] = method_text(s);
  Json environment = software_facts();
  environment["device"] = device_facts(s.memory, s.device);
  environment["sensors_at_start"] = run.sensors_at_start;
  environment["sensors_at_end"] = sensor_reading(s.memory, s.device);
  environment["l2"] = s.cold ? "cold" : "warm";
  environment["data"] = "normal";
  environment["seed"] = s.seed;
  document["environment"] = std::move(environment);
  document["peak"] = {{"tflops", s.peak.tflops ? Json(*s.peak.tflops) : Json(nullptr)},
                      {"gbps", s.peak.gbps ? Json(*s.peak.gbps) : Json(nullptr)}};
  document["ceilings"] = nullptr;
  if (run.ceilings) {
    const Ceilings& c = *run.ceilings;
    document["ceilings"] = {{"copy_gbps", c.copy_gbps}, {"read_gbps", c.read_gbps}, {"gemm_tflops", c.gemm_tflops}};
  }
  Json rows = Json::array();
  for (const ShapeResult& result : run.shapes) {
    for (const BenchRow& row : result.rows) rows.push_back(row_json(result, row, run));
  }
  document["rows"] = std::move(rows);
  const BenchSummary summary = summarise(run.shapes);
  document["summary"] = {{"ok", summary.ok}, {"failed", summary.failed}, {"skipped", summary.skipped}};
  return document;
}

}  // namespace tileglu::tool
