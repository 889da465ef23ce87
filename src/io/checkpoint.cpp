// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint.hpp"

#include "core/format.hpp"
#include "io/mapped_file.hpp"
#include "io/message.hpp"
#include "io/model_config.hpp"
#include "io/packed_file.hpp"
#include "io/safetensors.hpp"
#include "io/shard_index.hpp"

#include <algorithm>
#include <system_error>

namespace tileglu::io {
namespace {

namespace fs = std::filesystem;
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";

bool is_index(const fs::path& path) {
  return path.extension() == ".json";
}

// The index or .safetensors file to open in a folder.
Result<fs::path> choose_in_folder(const fs::path& folder) {
  std::error_code error;
  for (const char* const name : {kIndexName, kSingleName}) {
    if (fs::exists(folder / name, error)) return folder / name;
  }
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") names.push_back(entry->path().filename());
  }
  if (error) return file_error(display(folder), "cannot list: " + error.message());
  if (names.size() == 1) return folder / names[0];
  if (names.empty()) return file_error(display(folder), formatted("holds no .safetensors file and no {}", kIndexName));
  std::sort(names.begin(), names.end());
  return file_error(display(folder),
                    formatted("holds {} .safetensors files ({} ... {}) and neither {} nor {}; name one", names.size(),
                              printable(names.front()), printable(names.back()), kIndexName, kSingleName));
}

Result<fs::path> choose_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return choose_in_folder(path);
  if (path.extension() == ".safetensors" || is_index(path)) return path;
  return file_error(display(path),
                    formatted("extension {} is not .safetensors or .index.json", quote(path.extension().native())));
}

// The contents of every shard that the index names, by the shard's name.
Result<std::map<std::string, SafetensorsFile>> read_shards(const std::map<std::string, std::string>& shard_of,
                                                           const fs::path& folder, const std::string& index_file) {
  std::map<std::string, SafetensorsFile> shards;
  for (const auto& [tensor, shard] : shard_of) {
    if (shards.contains(shard)) continue;
    std::error_code error;
    if (!fs::exists(folder / shard, error)) {
      return tensor_error(index_file, tensor, formatted("its shard {} is absent", quote(shard)));
    }
    Result<SafetensorsFile> contents = read_safetensors(folder / shard);
    if (!contents.ok()) return contents.status();
    shards.emplace(shard, std::move(contents.value()));
  }
  return shards;
}

template <class Tensor>
const Tensor* find_sorted(const std::vector<Tensor>& tensors, const std::string& name) {
  const auto found = std::lower_bound(tensors.begin(), tensors.end(), name,
                                      [](const Tensor& tensor, const std::string& key) { return tensor.name < key; });
  return found == tensors.end() || found->name != name ? nullptr : &*found;
}

}  // namespace

Status Checkpoint::add_file(const fs::path& path) {
  Result<SafetensorsFile> contents = read_safetensors(path);
  if (!contents.ok()) return contents.status();
  for (TensorView& tensor : contents.value().tensors) tensors_.emplace(tensor.name, std::move(tensor));
  for (OtherTensor& tensor : contents.value().others) others_.emplace(tensor.name, std::move(tensor));
  metadata_ = std::move(contents.value().metadata);
  return {};
}

// The index decides: a tensor that lies in several shards comes from the one named, one that it does not name is left
// out, as in transformers.
Status Checkpoint::add_shards(const fs::path& index) {
  const Result<MappedFile> mapped = map_file(index);
  if (!mapped.ok()) return mapped.status();
  const Result<std::map<std::string, std::string>> shard_of = parse_shard_index(mapped.value().text(), file_);
  if (!shard_of.ok()) return shard_of.status();
  const Result<std::map<std::string, SafetensorsFile>> shards =
      read_shards(shard_of.value(), index.parent_path(), file_);
  if (!shards.ok()) return shards.status();
  for (const auto& [name, shard] : shard_of.value()) {
    const SafetensorsFile& contents = shards.value().at(shard);
    if (const TensorView* const tensor = find_sorted(contents.tensors, name)) {
      tensors_.emplace(name, *tensor);
    } else if (const OtherTensor* const other = find_sorted(contents.others, name)) {
      others_.emplace(name, *other);
    } else {
      return tensor_error(file_, name, formatted("is not in the shard {} that the index names", quote(shard)));
    }
  }
  metadata_ = shards.value().begin()->second.metadata;
  return {};
}

Result<Checkpoint> Checkpoint::open(const fs::path& path) {
  const Result<fs::path> chosen = choose_file(path);
  if (!chosen.ok()) return chosen.status();
  const fs::path& file = chosen.value();
  Checkpoint checkpoint;
  checkpoint.file_ = display(file);
  TILEGLU_TRY(is_index(file) ? checkpoint.add_shards(file) : checkpoint.add_file(file));

  const Result<std::optional<PackedInfo>> packed = read_packed_metadata(checkpoint.metadata_, checkpoint.file_);
  if (!packed.ok()) return packed.status();
  if (packed.value()) {
    checkpoint.hidden_activation_ = packed.value()->hidden_act;
    return checkpoint;
  }
  Result<std::optional<std::string>> activation = read_hidden_activation(file.parent_path());
  if (!activation.ok()) return activation.status();
  checkpoint.hidden_activation_ = std::move(activation.value());
  return checkpoint;
}

const TensorView* Checkpoint::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace tileglu::io
