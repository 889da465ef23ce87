// SPDX-License-Identifier: Apache-2.0
// The gate and up matrices of a layer, and the checks that nothing beside them (a bias, scales of quantised weights, an
// adapter) would be ignored in silence.
#include "core/format.hpp"
#include "core/layout.hpp"
#include "core/names.hpp"
#include "io/gated_names.hpp"
#include "io/message.hpp"
#include "io/packed_file.hpp"
#include "io/safetensors.hpp"

namespace tileglu::io {
namespace {

// "gate_proj.bias", "gate_proj.weight_scale", "gate_proj.lora_A.weight": anything below the base but the matrix itself.
Status refuse_siblings(const Checkpoint& checkpoint, const std::string& base, const std::string& weight) {
  const auto scan = [&](const auto& tensors) -> Status {
    for (auto at = tensors.lower_bound(base + '.'); at != tensors.end() && at->first.starts_with(base + '.'); ++at) {
      if (at->first == weight) continue;
      const char* const rule = at->first == base + ".bias"
                                   ? "a bias of the gated projection is not supported"
                                   : "quantised or adapted weights of the gated projection are not supported";
      return tensor_error(at->second.file, at->first, rule, Code::kNotSupported);
    }
    return {};
  };
  TILEGLU_TRY(scan(checkpoint.tensors()));
  return scan(checkpoint.others());
}

Result<TensorView> find_matrix(const Checkpoint& checkpoint, const Candidate& candidate, std::string_view part) {
  const std::string base = candidate.base(part);
  const std::string weight = base + std::string(candidate.names().weight);
  TILEGLU_TRY(refuse_siblings(checkpoint, base, weight));
  if (const auto other = checkpoint.others().find(weight); other != checkpoint.others().end()) {
    return unsupported_dtype(other->second);
  }
  const TensorView* const tensor = checkpoint.find(weight);
  if (tensor == nullptr) return tensor_error(checkpoint.file(), weight, "is missing beside the other half");
  if (tensor->shape.size() != 2 || tensor->bytes == 0) {
    const char* const rule = tensor->shape.size() != 2 ? "is not 2-D" : "is empty";
    return tensor_error(tensor->file, weight, formatted("shape {} {}", shape_text(tensor->shape), rule));
  }
  return *tensor;
}

Result<GatedWeights> find_separate(const Checkpoint& checkpoint, const Candidate& candidate) {
  Result<TensorView> gate = find_matrix(checkpoint, candidate, candidate.names().gate);
  if (!gate.ok()) return gate.status();
  Result<TensorView> up = find_matrix(checkpoint, candidate, candidate.names().up);
  if (!up.ok()) return up.status();
  const TensorView &g = gate.value(), &u = up.value();
  if (g.shape != u.shape) {
    return tensor_error(
        u.file, u.name,
        formatted("shape {} differs from {} of {}", shape_text(u.shape), shape_text(g.shape), quote(g.name)));
  }
  if (g.dtype != u.dtype) {
    return tensor_error(u.file, u.name,
                        formatted("dtype {} differs from {} of {}", name_of(u.dtype), name_of(g.dtype), quote(g.name)));
  }
  return GatedWeights{.layout = Layout::kSeparate, .gate = g, .up = u, .n = g.shape[0], .k = g.shape[1]};
}

Result<GatedWeights> find_merged(const Checkpoint& checkpoint, const Candidate& candidate) {
  const Result<TensorView> merged = find_matrix(checkpoint, candidate, candidate.names().gate);
  if (!merged.ok()) return merged.status();
  const TensorView& matrix = merged.value();
  Layout layout = Layout::kGateUp;
  if (candidate.names().packed) {
    const Result<std::optional<PackedInfo>> info = read_packed_metadata(checkpoint.metadata(), matrix.file);
    if (!info.ok()) return info.status();
    if (!info.value()) {
      return tensor_error(matrix.file, matrix.name, "is named as in a packed file, but the file has no tileglu_format");
    }
    layout = info.value()->layout;
  }
  const std::int64_t unit = layout == Layout::kInterleaved8 ? 16 : 2;
  if (matrix.shape[0] % unit != 0) {
    return tensor_error(matrix.file, matrix.name,
                        formatted("shape {}: the rows are not a multiple of {}, as gate and "
                                  "up in one matrix are",
                                  shape_text(matrix.shape), unit));
  }
  return GatedWeights{.layout = layout, .gate = matrix, .up = {}, .n = matrix.shape[0] / 2, .k = matrix.shape[1]};
}

Result<GatedWeights> resolve(const Checkpoint& checkpoint, const Candidate& candidate) {
  if (candidate.names().stacked) {
    return tensor_error(checkpoint.file(), candidate.base(candidate.names().gate),
                        "all experts in one tensor are not supported, only one matrix an expert", Code::kNotSupported);
  }
  return candidate.names().up.empty() ? find_merged(checkpoint, candidate) : find_separate(checkpoint, candidate);
}

Result<GatedWeights> find_among(const std::set<Candidate>& candidates, const Checkpoint& checkpoint, int layer,
                                std::optional<int> expert) {
  const Result<Candidate> candidate = choose_candidate(candidates, checkpoint.file(), layer, expert);
  if (!candidate.ok()) return candidate.status();
  return resolve(checkpoint, candidate.value());
}

}  // namespace

Result<GatedWeights> find_gated_weights(const Checkpoint& checkpoint, int layer, std::optional<int> expert) {
  return find_among(all_candidates(checkpoint), checkpoint, layer, expert);
}

std::vector<int> gated_layers(const Checkpoint& checkpoint) {
  const std::set<Candidate> candidates = all_candidates(checkpoint);
  std::vector<int> layers;
  for (const Candidate& candidate : candidates) {
    if (!layers.empty() && layers.back() == candidate.layer) continue;
    const std::optional<int> expert = candidate.expert < 0 ? std::nullopt : std::optional(candidate.expert);
    if (find_among(candidates, checkpoint, candidate.layer, expert).ok()) layers.push_back(candidate.layer);
  }
  return layers;
}

}  // namespace tileglu::io
