// SPDX-License-Identifier: Apache-2.0
#include "io/gated_names.hpp"

#include "core/format.hpp"
#include "io/message.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace tileglu::io {
namespace {

constexpr std::array kNamings = {
    Naming{.group = "mlp.", .gate = "gate_proj", .up = "up_proj"},                   // Qwen, Llama, Mistral, Gemma
    Naming{.group = "mlp.", .gate = "gate_up_proj", .up = ""},                       // Phi
    Naming{.group = "feed_forward.", .gate = "w1", .up = "w3"},                      // Meta's and Mistral's own files
    Naming{.group = "block_sparse_moe.experts.#.", .gate = "w1", .up = "w3"},        // Mixtral
    Naming{.group = "mlp.experts.#.", .gate = "gate_proj", .up = "up_proj"},         // Qwen-MoE
    Naming{.group = "", .gate = "gate_up", .up = "", .weight = "", .packed = true},  // packed_tensor_name()
    Naming{.group = "experts.#.", .gate = "gate_up", .up = "", .weight = "", .packed = true},
    Naming{.group = "mlp.experts.", .gate = "gate_up_proj", .up = "", .weight = "", .stacked = true},
    Naming{.group = "feed_forward.experts.", .gate = "gate_up_proj", .up = "", .weight = "", .stacked = true},
};
// Prefixes of the language model; it is preferred where others (a vision tower, a draft head) have gated layers, too.
constexpr std::array<std::string_view, 4> kLanguagePrefixes = {"", "model.", "language_model.model.",
                                                               "model.language_model."};

// Takes a number without sign and leading zeros from the front; nothing else is a layer or expert.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || number < 0 || text[0] == '-' || (text[0] == '0' && length > 1)) return std::nullopt;
  text.remove_prefix(length);
  return number;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Whether `rest` (what follows "layers.L.") is a part of this naming or something that belongs to one.
bool matches(std::string_view rest, const Naming& naming, int& expert) {
  std::string_view group = naming.group;
  if (const std::size_t mark = group.find('#'); mark != std::string_view::npos) {
    if (!take(rest, group.substr(0, mark))) return false;
    const std::optional<int> number = take_number(rest);
    if (!number) return false;
    expert = *number;
    group.remove_prefix(mark + 1);
  }
  if (!take(rest, group)) return false;
  const auto is_part = [&](std::string_view part) {
    return !part.empty() && rest.starts_with(part) && (rest.size() == part.size() || rest[part.size()] == '.');
  };
  return is_part(naming.gate) || is_part(naming.up);
}

// Only the last "layers." of a name counts: one tensor speaks of one pair.
void add_candidates(const std::string& name, std::set<Candidate>& candidates) {
  constexpr std::string_view kLayers = "layers.";
  std::size_t at = name.rfind(kLayers);
  while (at != std::string::npos && at > 0 && name[at - 1] != '.') at = name.rfind(kLayers, at - 1);
  if (at == std::string::npos) return;
  std::string_view rest = std::string_view(name).substr(at + kLayers.size());
  const std::optional<int> layer = take_number(rest);
  if (!layer || !take(rest, ".")) return;
  for (std::size_t i = 0; i < kNamings.size(); ++i) {
    int expert = -1;
    if (!matches(rest, kNamings[i], expert)) continue;
    candidates.insert({.layer = *layer, .prefix = name.substr(0, at), .naming = i, .expert = expert});
  }
}

// Keeps the language model's, if any.
void prefer_language_model(std::vector<Candidate>& found) {
  const auto is_language = [](const Candidate& candidate) {
    return std::find(kLanguagePrefixes.begin(), kLanguagePrefixes.end(), candidate.prefix) != kLanguagePrefixes.end();
  };
  if (std::any_of(found.begin(), found.end(), is_language)) {
    std::erase_if(found, [&](const Candidate& candidate) { return !is_language(candidate); });
  }
}

Status no_such_layer(const std::set<Candidate>& candidates, const std::string& file, int layer) {
  if (candidates.empty()) return file_error(file, "has no gated projection under any known name");
  return file_error(file, formatted("layer={} has no gated projection; layers {} to {} have", layer,
                                    candidates.begin()->layer, candidates.rbegin()->layer));
}

// Reduces the candidates of one layer to those of the expert that was asked for.
Status choose_expert(std::vector<Candidate>& found, const std::string& file, int layer, std::optional<int> expert) {
  std::set<int> experts;
  for (const Candidate& candidate : found) {
    if (candidate.names().of_expert()) experts.insert(candidate.expert);
  }
  std::erase_if(found, [&](const Candidate& candidate) {
    if (candidate.names().stacked) return false;
    return expert ? candidate.expert != *expert : candidate.names().of_expert();
  });
  if (!found.empty()) return {};
  if (experts.empty()) return file_error(file, formatted("layer={} has no experts, but expert={}", layer, *expert));
  const std::string range = formatted("{} to {}", *experts.begin(), *experts.rbegin());
  if (!expert) return file_error(file, formatted("layer={} has experts {}; one has to be named", layer, range));
  return file_error(file, formatted("layer={} has no expert={}, only {}", layer, *expert, range));
}

}  // namespace

const Naming& Candidate::names() const {
  return kNamings[naming];
}

std::string Candidate::base(std::string_view part) const {
  std::string group(names().group);
  if (const std::size_t mark = group.find('#'); mark != std::string::npos) {
    group.replace(mark, 1, std::to_string(expert));
  }
  return formatted("{}layers.{}.{}{}", prefix, layer, group, part);
}

std::set<Candidate> all_candidates(const Checkpoint& checkpoint) {
  std::set<Candidate> candidates;
  for (const auto& [name, tensor] : checkpoint.tensors()) add_candidates(name, candidates);
  for (const auto& [name, tensor] : checkpoint.others()) add_candidates(name, candidates);
  return candidates;
}

Result<Candidate> choose_candidate(const std::set<Candidate>& candidates, const std::string& file, int layer,
                                   std::optional<int> expert) {
  std::vector<Candidate> found;
  for (auto at = candidates.lower_bound({.layer = layer}); at != candidates.end() && at->layer == layer; ++at) {
    found.push_back(*at);
  }
  if (found.empty()) return no_such_layer(candidates, file, layer);
  prefer_language_model(found);
  TILEGLU_TRY(choose_expert(found, file, layer, expert));
  if (found.size() == 1) return found[0];
  return file_error(file,
                    formatted("layer={} is ambiguous: {} and {}", layer, quote(found[0].base(found[0].names().gate)),
                              quote(found[1].base(found[1].names().gate))));
}

}  // namespace tileglu::io
