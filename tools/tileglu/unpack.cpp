// SPDX-License-Identifier: Apache-2.0
// tileglu unpack: a packed file back to gate_proj and up_proj, bit for bit.
#include "commands.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "io/packed_file.hpp"
#include "json_output.hpp"
#include "output.hpp"
#include "packing.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace tileglu::tool {
namespace {

struct UnpackOptions {
  CommonOptions common;
  WeightsOptions weights;
  std::string output;
};

std::string tensor_name(const PackedLayer& layer, const char* half) {
  return layer.expert ? formatted("model.layers.{}.mlp.experts.{}.{}.weight", layer.layer, *layer.expert, half)
                      : formatted("model.layers.{}.mlp.{}.weight", layer.layer, half);
}

Result<io::PackedInfo> read_info(const io::Checkpoint& checkpoint) {
  const Result<std::optional<io::PackedInfo>> info = io::read_packed_metadata(checkpoint.metadata(), checkpoint.file());
  if (!info.ok()) return info.status();
  if (info.value()) return *info.value();
  return bad_argument("--weights", checkpoint.file(), "was not written by 'tileglu pack'; there is nothing to unpack");
}

std::vector<io::TensorSource> tensors_of(const std::vector<PackedLayer>& layers) {
  std::vector<io::TensorSource> tensors;
  for (const PackedLayer& layer : layers) {
    const std::size_t half = layer.bytes.size() / 2;
    const auto add = [&](const char* name, std::size_t offset) {
      tensors.push_back({.name = tensor_name(layer, name),
                         .dtype = layer.dtype,
                         .shape = {layer.n, layer.k},
                         .data = layer.bytes.data() + offset,
                         .bytes = half});
    };
    add("gate_proj", 0);
    add("up_proj", half);
  }
  return tensors;
}

Result<int> unpack(const UnpackOptions& options) {
  const Result<Place> place = packing_place(options.common);
  if (!place.ok()) return place.status();
  const Result<io::Checkpoint> checkpoint = io::Checkpoint::open(options.weights.path);
  if (!checkpoint.ok()) return Status(checkpoint.status().code(), "--weights: " + checkpoint.status().text());
  const Result<io::PackedInfo> info = read_info(checkpoint.value());
  if (!info.ok()) return info.status();
  WeightsOptions weights = options.weights;
  weights.layer_given = true;  // all, unless one is named
  const Result<std::vector<Selected>> selected = select_weights(checkpoint.value(), weights);
  if (!selected.ok()) return selected.status();
  std::vector<PackedLayer> layers;
  for (const Selected& chosen : selected.value()) {
    TILEGLU_TRY(check_dtype(chosen, options.common.dtype));
    Result<PackedLayer> layer = lay_out(chosen, {}, Layout::kSeparate, place.value());
    if (!layer.ok()) return layer.status();
    layers.push_back(std::move(layer.value()));
  }
  io::Metadata metadata{{"format", "pt"},
                        {"tp_rank", std::to_string(info.value().tp_rank)},
                        {"tp_size", std::to_string(info.value().tp_size)}};
  if (info.value().hidden_act) metadata.emplace_back("hidden_act", *info.value().hidden_act);
  const std::vector<io::TensorSource> tensors = tensors_of(layers);
  const Status written = io::write_tensors(options.output, tensors, metadata);
  if (!written.ok()) return Status(Code::kInvalidArgument, "--output: " + written.text());
  if (options.common.json) {
    Json document = make_document("unpack");
    document["output"] = options.output;
    document["layout_before"] = name_of(info.value().layout);
    document["tp_rank"] = info.value().tp_rank;
    document["tp_size"] = info.value().tp_size;
    Json rows = Json::array();
    for (const io::TensorSource& tensor : tensors) {
      rows.push_back(
          {{"tensor", tensor.name}, {"n", tensor.shape[0]}, {"k", tensor.shape[1]}, {"dtype", name_of(tensor.dtype)}});
    }
    document["rows"] = std::move(rows);
    print_document(document);
  } else {
    print(formatted("{}: {} layer(s) from {}\n", options.output, layers.size(), name_of(info.value().layout)));
  }
  return kExitOk;
}

}  // namespace

void add_unpack(CLI::App& app, Action& action) {
  const auto options = std::make_shared<UnpackOptions>();
  CLI::App& command = *app.add_subcommand("unpack", "Turn a packed file back into gate_proj and up_proj");
  add_common_options(command, options->common);
  add_weights_options(command, options->weights);
  command.add_option("--output", options->output, "A .safetensors file")->type_name("FILE")->required();
  command.callback([options, &action] { action = {"unpack", [options] { return unpack(*options); }}; });
}

}  // namespace tileglu::tool
