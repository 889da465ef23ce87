// SPDX-License-Identifier: Apache-2.0
// tileglu info: what this build and this machine can do, and what the planner would choose for a shape.
#include "arguments.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "environment.hpp"
#include "io/tuning_cache.hpp"
#include "library.hpp"
#include "output.hpp"
#include "runtime/runtime.hpp"

#include <memory>

namespace tileglu::tool {
namespace {

struct InfoOptions {
  CommonOptions common;
  ShapeOptions shape;
  std::optional<Layout> layout;
};

Json backend_json(const Backend& backend, const std::string& kernel) {
  const Status available = backend.available();
  Json kernels = Json::array();
  for (const std::string& name : backend.kernels()) {
    if (kernel.empty() || kernel == "all" || kernel_matches(name, kernel)) kernels.push_back(name);
  }
  return {{"backend", backend.name},
          {"available", available.ok()},
          {"reason", available.text()},
          {"kernels", std::move(kernels)}};
}

std::vector<const Backend*> chosen_backends(BackendId id) {
  if (id != BackendId::kAuto) return {find_backend(id)};
  return {backends().begin(), backends().end()};
}

// Only where a shape was given.
Result<Json> plans_json(const InfoOptions& options) {
  Json rows = Json::array();
  if (!options.shape.given()) return rows;
  const Result<std::vector<Shape>> shapes = resolve_shapes(options.shape, {512});
  if (!shapes.ok()) return shapes.status();
  const Result<Memory> memory = resolve_memory(options.common);
  if (!memory.ok()) return memory.status();
  const Dtype dtype = options.common.dtype.value_or(Dtype::kBf16);
  for (const Shape& shape : shapes.value()) {
    const Layout layout = options.layout.value_or(Layout::kSeparate);
    const Problem problem = contiguous({.dtype = dtype,
                                        .dtype_y = dtype,
                                        .activation = options.common.activation.value_or(shape.activation),
                                        .layout = layout,
                                        .memory = memory.value(),
                                        .device = options.common.device},
                                       shape);
    const Result<Call> call = Call::plan(problem, {.backend = options.common.backend, .kernel = options.common.kernel});
    rows.push_back({{"model", shape.model.empty() ? Json(nullptr) : Json(shape.model)},
                    {"m", shape.m},
                    {"n", shape.n},
                    {"k", shape.k},
                    {"dtype", name_of(dtype)},
                    {"activation", name_of(problem.activation)},
                    {"layout", name_of(layout)},
                    {"backend", call.ok() ? Json(call.value().backend()) : Json(nullptr)},
                    {"kernel", call.ok() ? Json(call.value().kernel()) : Json(nullptr)},
                    {"describe", call.ok() ? Json(call.value().describe()) : Json(nullptr)},
                    {"status", call.ok() ? "ok" : "refused"},
                    {"reason", call.ok() ? "" : call.status().text()}});
  }
  return rows;
}

Json devices_json() {
  Json devices = Json::array();
  for (int device = 0; device < runtime::device_count(); ++device) {
    Json facts = device_facts(Memory::kCuda, device);
    facts["sensors"] = sensor_reading(Memory::kCuda, device);
    devices.push_back(std::move(facts));
  }
  return devices;
}

Json tuning_json() {
  const std::filesystem::path path = io::tuning_cache_path();
  const std::shared_ptr<const Tuning>& tuning = io::process_tuning();
  return {{"file", path.empty() ? Json(nullptr) : Json(path.string())},
          {"rows", tuning == nullptr ? 0 : tuning->user.size()},
          {"shipped_rows", tuning == nullptr ? 0 : tuning->shipped.size()}};
}

std::string text_of(const Json& document) {
  std::string text = document["build"].get<std::string>() + "\n";
  text += formatted("processor: {}, {} cores\n", document["processor"]["name"].get<std::string>(),
                    document["processor"]["cores"].get<int>());
  for (const Json& device : document["devices"]) text += "gpu: " + device.dump() + "\n";
  if (document["devices"].empty()) text += "gpu: none: " + document["cuda"].get<std::string>() + "\n";
  const Json& tuning = document["tuning"];
  text += formatted("tuning: {} rows in {}, {} in the library\n", tuning["rows"].get<int>(), tuning["file"].dump(),
                    tuning["shipped_rows"].get<int>());
  for (const Json& backend : document["backends"]) {
    const bool available = backend["available"].get<bool>();
    text += formatted("backend {}: {}\n", backend["backend"].get<std::string>(),
                      available ? "available" : "not available: " + backend["reason"].get<std::string>());
    for (const Json& kernel : backend["kernels"]) text += "  " + kernel.get<std::string>() + "\n";
  }
  for (const Json& plan : document["plans"]) {
    text += formatted("m={} n={} k={}: {}\n", plan["m"].get<std::int64_t>(), plan["n"].get<std::int64_t>(),
                      plan["k"].get<std::int64_t>(),
                      one_line(plan[plan["status"] == "ok" ? "describe" : "reason"].get<std::string>()));
  }
  return text;
}

Result<int> info(const InfoOptions& options) {
  Json document = make_document("info");
  document["build"] = tileglu_build_info();
  document["software"] = software_facts();
  document["processor"] = device_facts(Memory::kHost, 0);
  document["cuda"] = runtime::cuda_status().text();
  document["devices"] = devices_json();
  document["tuning"] = tuning_json();
  Json rows = Json::array();
  for (const Backend* backend : chosen_backends(options.common.backend)) {
    rows.push_back(backend_json(*backend, options.common.kernel));
  }
  document["backends"] = std::move(rows);
  Result<Json> plans = plans_json(options);
  if (!plans.ok()) return plans.status();
  document["plans"] = std::move(plans.value());
  if (options.common.json) {
    print_document(document);
  } else {
    print(text_of(document));
  }
  return kExitOk;
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App& command =
      *app.add_subcommand("info", "Show backends, kernels and devices; with a shape also the plan for it");
  add_common_options(command, options->common);
  add_shape_options(command, options->shape, 0);
  add_layout_option(command, options->layout, "Layout of the weights");
  command.callback([options, &action] { action = {"info", [options] { return info(*options); }}; });
}

}  // namespace tileglu::tool
