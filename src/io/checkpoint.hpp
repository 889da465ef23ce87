// SPDX-License-Identifier: Apache-2.0
// Hugging Face checkpoints: *.safetensors, single or sharded with an index, and the names their MLPs have.
#pragma once

#include "io/tensor.hpp"

#include <map>
#include <optional>

namespace tileglu::io {

// A tensor of a dtype that this library does not compute with (I64, F8_E4M3, ...): kept by name, so that the rest of
// the file can be used and a use of this one is refused with its dtype.
struct OtherTensor {
  std::string name;
  std::string dtype;
  std::string file;
};

// A checkpoint opened from a .safetensors file, an index.json, or a folder holding either. Files are memory-mapped and
// every header is checked: length, JSON, duplicate names, dtype, shape against bytes, bounds, overlap.
// In a folder: model.safetensors.index.json, else model.safetensors, else the only *.safetensors.
class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::filesystem::path& path);

  const TensorView* find(const std::string& name) const;
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, OtherTensor>& others() const { return others_; }
  const Metadata& metadata() const { return metadata_; }  // __metadata__ of the (first) file
  const std::string& file() const { return file_; }       // what was opened, for messages
  // Of config.json beside the file or, for a file of `tileglu pack`, of its metadata; none if neither says.
  const std::optional<std::string>& hidden_activation() const { return hidden_activation_; }

 private:
  Status add_file(const std::filesystem::path& path);
  Status add_shards(const std::filesystem::path& index);

  std::string file_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, OtherTensor> others_;
  Metadata metadata_;
  std::optional<std::string> hidden_activation_;
};

// The gated projection of one layer as it lies in the checkpoint.
struct GatedWeights {
  Layout layout = Layout::kSeparate;
  TensorView gate;  // [n,k], or the single matrix [2n,k]
  TensorView up;    // only if separate
  std::int64_t n = 0, k = 0;
};

// Names of Qwen, Llama, Mistral, Gemma (gate_proj, up_proj), Phi (gate_up_proj, gate first), Mixtral experts (w1 gate,
// w3 up; `expert` is then required), and files written by `tileglu pack` (layout from their metadata).
// Refuses missing halves, unequal shapes and dtypes, and a bias (which this library would otherwise ignore in silence).
Result<GatedWeights> find_gated_weights(const Checkpoint& checkpoint, int layer, std::optional<int> expert = {});
// Layers for which find_gated_weights can succeed, ascending.
std::vector<int> gated_layers(const Checkpoint& checkpoint);

// "silu", "swish", "gelu_pytorch_tanh", "gelu", "relu" as config.json spells them; kNotSupported for others.
Result<Activation> activation_from_config(const std::string& hidden_act);

}  // namespace tileglu::io
