// SPDX-License-Identifier: Apache-2.0
// tileglu pack: the weights of a checkpoint in the row order that a kernel wants, whole or one tensor-parallel slice.
#include "arguments.hpp"
#include "commands.hpp"
#include "core/format.hpp"
#include "core/layout.hpp"
#include "core/names.hpp"
#include "io/packed_file.hpp"
#include "json_output.hpp"
#include "models.hpp"
#include "output.hpp"
#include "packing.hpp"

#include <memory>

namespace tileglu::tool {
namespace {

struct PackOptions {
  CommonOptions common;
  WeightsOptions weights;
  std::optional<Layout> layout;
  std::string output;
  std::optional<int> tp, rank;
};

// --layout, else what the named kernel reads, else blocks of 8, which the hardware likes best.
Result<Layout> target_layout(const PackOptions& options) {
  std::optional<Layout> of_kernel;
  if (!options.common.kernel.empty()) {
    if (options.common.kernel.ends_with("_g1")) of_kernel = Layout::kInterleaved1;
    if (options.common.kernel.ends_with("_g8")) of_kernel = Layout::kInterleaved8;
    if (!of_kernel) {
      return bad_argument("--kernel", options.common.kernel, "does not name a configuration that reads packed weights");
    }
    if (options.layout && options.layout != of_kernel) {
      return bad_argument("--layout", name_of(*options.layout),
                          formatted("--kernel={} reads {}", options.common.kernel, name_of(*of_kernel)));
    }
  }
  const Layout layout = options.layout.value_or(of_kernel.value_or(Layout::kInterleaved8));
  if (is_single_matrix(layout)) return layout;
  return bad_argument("--layout", name_of(layout), "a packed file holds one matrix a layer; see 'tileglu unpack'");
}

Status check_slice(const PackOptions& options) {
  if (options.tp.has_value() != options.rank.has_value()) {
    return options.tp ? bad_argument("--tp", *options.tp, "needs --rank as well, which is not taken for 0")
                      : bad_argument("--rank", *options.rank, "needs --tp as well");
  }
  if (options.tp && *options.rank >= *options.tp) {
    return bad_argument("--rank", *options.rank,
                        formatted("must be from 0 to {}, one less than --tp", *options.tp - 1));
  }
  return {};
}

// As config.json spells it.
Result<std::optional<std::string>> hidden_act(const PackOptions& options, const io::Checkpoint& checkpoint) {
  if (!options.common.activation) return checkpoint.hidden_activation();
  switch (*options.common.activation) {
    case Activation::kSilu: return std::optional<std::string>("silu");
    case Activation::kGeluTanh: return std::optional<std::string>("gelu_pytorch_tanh");
    case Activation::kGeluErf: return std::optional<std::string>("gelu");
    case Activation::kRelu: return std::optional<std::string>("relu");
    case Activation::kSigmoid:
    case Activation::kIdentity:
    case Activation::kSwiglu: break;
  }
  return bad_argument("--activation", name_of(*options.common.activation),
                      "has no name in config.json to be stored under");
}

// Refuses a second packing into the same layout, and a slice of a slice.
Result<io::PackedInfo> packed_info(const PackOptions& options, const io::Checkpoint& checkpoint, Layout layout) {
  const Result<std::optional<io::PackedInfo>> source =
      io::read_packed_metadata(checkpoint.metadata(), checkpoint.file());
  if (!source.ok()) return source.status();
  io::PackedInfo info{.layout = layout, .tp_rank = options.rank.value_or(0), .tp_size = options.tp.value_or(1)};
  if (const std::optional<io::PackedInfo>& packed = source.value()) {
    if (packed->layout == layout && (packed->tp_size > 1 || !options.tp)) {
      return bad_argument("--weights", checkpoint.file(), formatted("is packed as {} already", name_of(layout)));
    }
    if (packed->tp_size > 1 && options.tp) {
      return bad_argument(
          "--tp", *options.tp,
          formatted("{} already is slice {} of {}", checkpoint.file(), packed->tp_rank, packed->tp_size));
    }
    if (packed->tp_size > 1) {
      info.tp_rank = packed->tp_rank;
      info.tp_size = packed->tp_size;
    }
  }
  Result<std::optional<std::string>> act = hidden_act(options, checkpoint);
  if (!act.ok()) return act.status();
  info.hidden_act = std::move(act.value());
  return info;
}

Json document_of(const PackOptions& options, const io::PackedInfo& info, const std::vector<PackedLayer>& layers) {
  Json document = make_document("pack");
  document["output"] = options.output;
  document["layout"] = name_of(info.layout);
  document["tp_rank"] = info.tp_rank;
  document["tp_size"] = info.tp_size;
  document["hidden_act"] = info.hidden_act ? Json(*info.hidden_act) : Json(nullptr);
  Json rows = Json::array();
  for (const PackedLayer& layer : layers) {
    rows.push_back({{"layer", layer.layer},
                    {"expert", layer.expert ? Json(*layer.expert) : Json(nullptr)},
                    {"tensor", io::packed_tensor_name(layer.layer, layer.expert)},
                    {"n", layer.n},
                    {"k", layer.k},
                    {"dtype", name_of(layer.dtype)},
                    {"layout_before", name_of(layer.from)}});
  }
  document["rows"] = std::move(rows);
  return document;
}

Result<int> pack(const PackOptions& options) {
  TILEGLU_TRY(check_slice(options));
  const Result<Layout> layout = target_layout(options);
  if (!layout.ok()) return layout.status();
  const Result<Place> place = packing_place(options.common);
  if (!place.ok()) return place.status();
  const Result<io::Checkpoint> checkpoint = io::Checkpoint::open(options.weights.path);
  if (!checkpoint.ok()) return Status(checkpoint.status().code(), "--weights: " + checkpoint.status().text());
  const Result<std::vector<Selected>> selected = select_weights(checkpoint.value(), options.weights);
  if (!selected.ok()) return selected.status();
  const Result<io::PackedInfo> info = packed_info(options, checkpoint.value(), layout.value());
  if (!info.ok()) return info.status();

  const Slice slice{.rank = options.rank.value_or(0), .size = options.tp.value_or(1)};
  std::vector<PackedLayer> layers;
  std::vector<io::TensorSource> tensors;
  for (const Selected& chosen : selected.value()) {
    TILEGLU_TRY(check_dtype(chosen, options.common.dtype));
    Result<PackedLayer> layer = lay_out(chosen, slice, layout.value(), place.value());
    if (!layer.ok()) return layer.status();
    layers.push_back(std::move(layer.value()));
  }
  for (const PackedLayer& layer : layers) {
    tensors.push_back({.name = io::packed_tensor_name(layer.layer, layer.expert),
                       .dtype = layer.dtype,
                       .shape = {2 * layer.n, layer.k},
                       .data = layer.bytes.data(),
                       .bytes = layer.bytes.size()});
  }
  const Status written = io::write_tensors(options.output, tensors, io::make_packed_metadata(info.value()));
  if (!written.ok()) return Status(Code::kInvalidArgument, "--output: " + written.text());
  if (options.common.json) {
    print_document(document_of(options, info.value(), layers));
  } else {
    print(formatted("{}: {} layer(s) as {}, slice {} of {}\n", options.output, layers.size(),
                    name_of(info.value().layout), info.value().tp_rank, info.value().tp_size));
  }
  return kExitOk;
}

}  // namespace

void add_pack(CLI::App& app, Action& action) {
  const auto options = std::make_shared<PackOptions>();
  CLI::App& command = *app.add_subcommand("pack", "Lay weights out for a kernel, once and for all");
  add_common_options(command, options->common);
  add_weights_options(command, options->weights);
  add_layout_option(command, options->layout, "Layout to write (default: interleaved_8, or what --kernel reads)");
  command.add_option("--output", options->output, "A .safetensors file")->type_name("FILE")->required();
  add_integer(command, "--tp", options->tp, {.low = 1, .high = 1024}, "Ranks that n is divided among; with --rank");
  add_integer(command, "--rank", options->rank, {.low = 0, .high = 1023}, "Rank whose rows are written; with --tp");
  command.callback([options, &action] { action = {"pack", [options] { return pack(*options); }}; });
}

}  // namespace tileglu::tool
