// SPDX-License-Identifier: Apache-2.0
#include "io/model_config.hpp"

#include "core/format.hpp"
#include "io/checkpoint.hpp"
#include "io/json_text.hpp"
#include "io/mapped_file.hpp"
#include "io/message.hpp"

#include <algorithm>
#include <array>

namespace tileglu::io {
namespace {

using nlohmann::json;

struct ConfigName {
  std::string_view name;
  Activation activation;
};
// Keys of ACT2FN in transformers that this library has.
constexpr std::array kConfigNames = {
    ConfigName{"silu", Activation::kSilu},
    ConfigName{"swish", Activation::kSilu},
    ConfigName{"gelu_pytorch_tanh", Activation::kGeluTanh},
    ConfigName{"gelu_new", Activation::kGeluTanh},
    ConfigName{"gelu_fast", Activation::kGeluTanh},
    ConfigName{"gelu", Activation::kGeluErf},
    ConfigName{"gelu_python", Activation::kGeluErf},
    ConfigName{"relu", Activation::kRelu},
    ConfigName{"sigmoid", Activation::kSigmoid},
    ConfigName{"linear", Activation::kIdentity},
};

Result<std::optional<std::string>> text_field(const json& config, const char* key, const std::string& file) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::optional<std::string>();
  if (!found->is_string()) return file_error(file, formatted("{} is not a string", quote(key)));
  return std::optional(found->get<std::string>());
}

Result<std::optional<std::string>> activation_of(const json& config, const std::string& file) {
  Result<std::optional<std::string>> hidden_activation = text_field(config, "hidden_activation", file);
  if (!hidden_activation.ok() || hidden_activation.value()) return hidden_activation;
  Result<std::optional<std::string>> hidden_act = text_field(config, "hidden_act", file);
  if (!hidden_act.ok()) return hidden_act;
  // The first Gemma was published with "gelu" for what it had been trained with; transformers overrules it, too.
  const auto model_type = config.find("model_type");
  if (model_type != config.end() && *model_type == "gemma" && hidden_act.value() == "gelu") {
    return std::optional<std::string>("gelu_pytorch_tanh");
  }
  return hidden_act;
}

}  // namespace

Result<std::optional<std::string>> read_hidden_activation(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<std::string>();
  const Result<MappedFile> mapped = map_file(path);
  if (!mapped.ok()) return mapped.status();
  const std::string file = display(path);
  const Result<json> config = parse_json_object(mapped.value().text(), file, "file");
  if (!config.ok()) return config.status();
  Result<std::optional<std::string>> activation = activation_of(config.value(), file);
  if (!activation.ok() || activation.value()) return activation;
  const auto text_config = config.value().find("text_config");
  if (text_config == config.value().end() || !text_config->is_object()) return activation;
  return activation_of(*text_config, file);
}

Result<Activation> activation_from_config(const std::string& hidden_act) {
  const auto* const found = std::find_if(kConfigNames.begin(), kConfigNames.end(),
                                         [&](const ConfigName& known) { return known.name == hidden_act; });
  if (found != kConfigNames.end()) return found->activation;
  std::string known;
  for (const ConfigName& name : kConfigNames) known.append(known.empty() ? "" : " ").append(name.name);
  return Status(Code::kNotSupported,
                formatted("hidden_act={} is not supported (supported: {})", quote(hidden_act), known));
}

}  // namespace tileglu::io
