// SPDX-License-Identifier: Apache-2.0
// tileglu models: the shapes that --model knows.
#include "arguments.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "json_output.hpp"
#include "models.hpp"
#include "output.hpp"

#include <memory>

namespace tileglu::tool {
namespace {

struct ModelsOptions {
  CommonOptions common;
  int tp = 1;
};

// A width that does not divide is shown as such: the list is for choosing.
Result<int> list_models(const ModelsOptions& options) {
  const Dtype dtype = options.common.dtype.value_or(Dtype::kBf16);
  Table table({{"model", true},
               {"k", false},
               {"n", false},
               {"activation", true},
               {"checkpoint", true},
               {formatted("gate+up MB ({})", name_of(dtype)), false}});
  Json rows = Json::array();
  for (const Model& model : models()) {
    if (options.common.activation && model.activation != *options.common.activation) continue;
    const Result<std::int64_t> width = shard_width(model.n, options.tp);
    const std::string name(model.name);
    const std::int64_t bytes = width.ok() ? 2 * width.value() * model.k * static_cast<std::int64_t>(size_of(dtype)) : 0;
    rows.push_back({{"model", name},
                    {"k", model.k},
                    {"n", width.ok() ? Json(width.value()) : Json(nullptr)},
                    {"tp", options.tp},
                    {"activation", name_of(model.activation)},
                    {"layout", name_of(model.layout)},
                    {"dtype", name_of(dtype)},
                    {"weight_bytes", width.ok() ? Json(bytes) : Json(nullptr)},
                    {"status", width.ok() ? "ok" : "skipped"},
                    {"reason", width.status().text()}});
    table.add({name, formatted("{}", model.k),
               width.ok() ? formatted("{}", width.value()) : formatted("{}/{} no", model.n, options.tp),
               name_of(model.activation), name_of(model.layout),
               width.ok() ? formatted("{:.1f}", static_cast<double>(bytes) * 1e-6) : "-"});
  }
  if (options.common.json) {
    Json document = make_document("models");
    document["rows"] = std::move(rows);
    print_document(document);
  } else {
    print(table.text());
  }
  return kExitOk;
}

}  // namespace

void add_models(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ModelsOptions>();
  CLI::App& command = *app.add_subcommand("models", "List the model shapes that --model knows");
  add_common_options(command, options->common);
  add_integer(command, "--tp", options->tp, {.low = 1, .high = 1024}, "Ranks that n is divided among");
  command.callback([options, &action] { action = {"models", [options] { return list_models(*options); }}; });
}

}  // namespace tileglu::tool
