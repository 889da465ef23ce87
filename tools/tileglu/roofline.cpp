// SPDX-License-Identifier: Apache-2.0
// tileglu roofline: arithmetic intensity unfused and fused, the ridge, and where measured contenders lie.
#include "arguments.hpp"
#include "bench_file.hpp"
#include "bench_shape.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "environment.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "roofline_model.hpp"
#include "runtime/runtime.hpp"

#include <algorithm>
#include <memory>
#include <tuple>

namespace tileglu::tool {
namespace {

struct RooflineOptions {
  CommonOptions common;
  ShapeOptions shape;
  std::vector<std::string> bench;
  std::string gpu;
  std::optional<double> peak_tflops, peak_gbps;
};

struct TypedShape {
  Shape shape;
  Dtype dtype = Dtype::kBf16;
  auto key() const { return std::tuple(shape.model, shape.m, shape.n, shape.k, dtype); }
};

Result<std::vector<BenchFile>> read_files(const std::vector<std::string>& paths) {
  std::vector<BenchFile> files;
  for (const std::string& path : paths) {
    Result<BenchFile> file = read_bench_file(path);
    if (!file.ok()) return file.status();
    files.push_back(std::move(file.value()));
  }
  return files;
}

Result<std::vector<TypedShape>> shapes_of(const RooflineOptions& options, const std::vector<BenchFile>& files) {
  std::vector<TypedShape> found;
  for (const BenchFile& file : files) {
    for (const MeasuredRow& row : file.rows) {
      const TypedShape shape{row.shape, row.dtype};
      const auto same = [&](const TypedShape& other) { return other.key() == shape.key(); };
      if (std::none_of(found.begin(), found.end(), same)) found.push_back(shape);
    }
  }
  if (!options.shape.given() && !options.bench.empty()) return found;
  const Result<std::vector<Shape>> named = resolve_shapes(options.shape, {1, 64, 512, 2048, 8192});
  if (!named.ok()) return named.status();
  for (const Shape& shape : named.value()) found.push_back({shape, options.common.dtype.value_or(Dtype::kBf16)});
  return found;
}

// What was measured is preferred to what a data sheet says, and this machine's GPU is asked last. None on a machine
// without a GPU if nothing is named: intensities need no roof.
Result<std::optional<Roof>> choose_roof(const RooflineOptions& options, const std::vector<BenchFile>& files) {
  std::optional<Roof> roof;
  if (!options.gpu.empty()) {
    roof = data_sheet(options.gpu);
    if (!roof) return bad_argument("--gpu", options.gpu, "must be one of h100, h200, h20");
  }
  for (const BenchFile& file : files) {
    if (!roof && file.gemm_tflops && file.read_gbps) {
      roof = Roof{*file.gemm_tflops, *file.read_gbps, "measured on " + file.device};
    }
  }
  if (!roof) {
    const Peak peak = device_peak(runtime::cuda_status().ok() ? Memory::kCuda : Memory::kHost, options.common.device,
                                  options.common.dtype.value_or(Dtype::kBf16));
    if (peak.tflops && peak.gbps) roof = Roof{*peak.tflops, *peak.gbps, "peak of this machine's GPU"};
  }
  if (options.peak_tflops && options.peak_gbps)
    return std::optional<Roof>({*options.peak_tflops, *options.peak_gbps, "given"});
  if (options.peak_tflops || options.peak_gbps) {
    return Status(Code::kInvalidArgument, "--peak-tflops and --peak-gbps go together");
  }
  return roof;
}

Json shape_json(const Shape& shape, Dtype dtype) {
  return {{"model", shape.model.empty() ? Json(nullptr) : Json(shape.model)},
          {"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"dtype", name_of(dtype)}};
}

Json intensity_row(const TypedShape& typed, const std::optional<Roof>& roof) {
  Json row = shape_json(typed.shape, typed.dtype);
  row["flops"] = flops(typed.shape);
  const double fused = intensity(Path::kFused, typed.shape, typed.dtype);
  for (const Path path : kPaths) {
    const double value = intensity(path, typed.shape, typed.dtype);
    row["paths"][name_of(path)] = {{"bytes", path_bytes(path, typed.shape, typed.dtype)},
                                   {"intensity", value},
                                   {"fused_is_higher_by", fused / value - 1},
                                   {"bound", roof ? Json(value < roof->ridge() ? "memory" : "compute") : Json(nullptr)},
                                   {"attainable_tflops", roof ? Json(attainable_tflops(value, *roof)) : Json(nullptr)}};
  }
  const auto crosses = [&](Path path) {
    return roof && intensity(path, typed.shape, typed.dtype) < roof->ridge() && fused >= roof->ridge();
  };
  row["crosses_ridge_from"] = Json::array();
  for (const Path path : {Path::kMerged, Path::kTwoGemms}) {
    if (crosses(path)) row["crosses_ridge_from"].push_back(name_of(path));
  }
  return row;
}

Json point_json(const MeasuredRow& row, const std::optional<Roof>& roof) {
  Json point = shape_json(row.shape, row.dtype);
  const std::optional<Path> path = path_of(row.contender);
  const double tflops = flops(row.shape) / row.median_us * 1e-6;
  point["contender"] = row.contender;
  point["config"] = row.config;
  point["launch"] = row.launch;
  point["path"] = path ? Json(name_of(*path)) : Json(nullptr);
  point["median_us"] = row.median_us;
  point["tflops"] = tflops;
  point["intensity"] = path ? Json(intensity(*path, row.shape, row.dtype)) : Json(nullptr);
  point["share_of_attainable"] =
      path && roof ? Json(tflops / attainable_tflops(intensity(*path, row.shape, row.dtype), *roof)) : Json(nullptr);
  return point;
}

// Measured speed-up over the one that saved bytes predict, of each fused contender over each unfused one.
void add_fusion(const BenchFile& file, const Roof& roof, Json& fusion) {
  for (const MeasuredRow& row : file.rows) {
    if (path_of(row.contender) != Path::kFused) continue;
    for (const MeasuredRow& baseline : file.rows) {
      const std::optional<Path> path = path_of(baseline.contender);
      const bool same = TypedShape{row.shape, row.dtype}.key() == TypedShape{baseline.shape, baseline.dtype}.key();
      if (!same || baseline.launch != row.launch || (path != Path::kMerged && path != Path::kTwoGemms)) continue;
      const double measured = baseline.median_us / row.median_us;
      const auto predicted = predicted_speedup(*path, baseline.median_us, row.shape, row.dtype, roof);
      Json entry = shape_json(row.shape, row.dtype);
      entry["contender"] = row.contender, entry["baseline"] = baseline.contender, entry["launch"] = row.launch;
      entry["saved_bytes"] = path_bytes(*path, row.shape, row.dtype) - path_bytes(Path::kFused, row.shape, row.dtype);
      entry["measured_speedup"] = measured;
      entry["predicted_speedup"] = predicted ? Json(*predicted) : Json(nullptr);
      entry["efficiency"] = predicted ? Json(measured / *predicted) : Json(nullptr);
      entry["reason"] =
          predicted ? "" : "the saved bytes alone would take longer than the baseline: they stay in the cache";
      fusion.push_back(std::move(entry));
    }
  }
}

Json document_of(const std::vector<TypedShape>& shapes, const std::vector<BenchFile>& files,
                 const std::optional<Roof>& roof) {
  Json document = make_document("roofline");
  document["roof"] = nullptr;
  if (roof) {
    document["roof"] = {
        {"tflops", roof->tflops}, {"gbps", roof->gbps}, {"ridge", roof->ridge()}, {"source", roof->source}};
  }
  document["rows"] = Json::array(), document["points"] = Json::array(), document["fusion"] = Json::array();
  for (const TypedShape& shape : shapes) document["rows"].push_back(intensity_row(shape, roof));
  for (const BenchFile& file : files) {
    for (const MeasuredRow& row : file.rows) document["points"].push_back(point_json(row, roof));
    if (roof) add_fusion(file, *roof, document["fusion"]);
  }
  return document;
}

std::string text_of(const Json& document) {
  Table table({{"model", true},
               {"m", false},
               {"n", false},
               {"k", false},
               {"FLOP/B fused", false},
               {"merged", false},
               {"two GEMMs", false},
               {"fused higher by", false},
               {"bound fused", true},
               {"unfused", true},
               {"attainable TFLOP/s", false}});
  for (const Json& row : document["rows"]) {
    const Json &fused = row["paths"]["fused"], &merged = row["paths"]["merged"], &two = row["paths"]["two_gemms"];
    const auto number = [](const Json& value) { return formatted("{:.1f}", value.get<double>()); };
    const auto word = [](const Json& value) { return value.is_null() ? std::string("-") : value.get<std::string>(); };
    table.add({word(row["model"]), formatted("{}", row["m"].get<std::int64_t>()),
               formatted("{}", row["n"].get<std::int64_t>()), formatted("{}", row["k"].get<std::int64_t>()),
               number(fused["intensity"]), number(merged["intensity"]), number(two["intensity"]),
               formatted("{:.0f} %", merged["fused_is_higher_by"].get<double>() * 100), word(fused["bound"]),
               word(merged["bound"]), fused["attainable_tflops"].is_null() ? "-" : number(fused["attainable_tflops"])});
  }
  const Json& roof = document["roof"];
  if (roof.is_null()) return table.text() + "no roof: --gpu takes data sheet figures, --bench those of a run\n";
  return table.text() + formatted("roof: {:.1f} TFLOP/s, {:.0f} GB/s, ridge {:.1f} FLOP/B ({})\n",
                                  roof["tflops"].get<double>(), roof["gbps"].get<double>(), roof["ridge"].get<double>(),
                                  roof["source"].get<std::string>());
}

Result<int> roofline(const RooflineOptions& options) {
  const Result<std::vector<BenchFile>> files = read_files(options.bench);
  if (!files.ok()) return files.status();
  const Result<std::vector<TypedShape>> shapes = shapes_of(options, files.value());
  if (!shapes.ok()) return shapes.status();
  const Result<std::optional<Roof>> roof = choose_roof(options, files.value());
  if (!roof.ok()) return roof.status();
  const Json document = document_of(shapes.value(), files.value(), roof.value());
  if (options.common.json) {
    print_document(document);
  } else {
    print(text_of(document));
  }
  return kExitOk;
}

}  // namespace

void add_roofline(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RooflineOptions>();
  CLI::App& command = *app.add_subcommand("roofline", "Arithmetic intensity unfused and fused, and what was reached");
  add_common_options(command, options->common);
  add_shape_options(command, options->shape, 1);
  add_text_list(command, "--bench", options->bench,
                "Files of 'bench --output' or of the study: their shapes and points");
  command.add_option("--gpu", options->gpu, "Roof from a data sheet: h100, h200, h20")->type_name("NAME");
  const NumberRange peaks{.low = 1e-9, .high = 1e9};
  add_number(command, "--peak-tflops", options->peak_tflops, peaks, "Roof of arithmetic, with --peak-gbps");
  add_number(command, "--peak-gbps", options->peak_gbps, peaks, "Roof of memory, with --peak-tflops");
  command.callback([options, &action] { action = {"roofline", [options] { return roofline(*options); }}; });
}

}  // namespace tileglu::tool
