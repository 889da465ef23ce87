// SPDX-License-Identifier: Apache-2.0
// Opening single and sharded checkpoints, and field case C31: truncated, fake and inconsistent files.
#include "io/checkpoint.hpp"

#include "io/files.hpp"

namespace tileglu::io {
namespace {

using test::expect_refused;
using test::NamedMatrix;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using test::write_matrices;

const std::string kGate = "model.layers.0.mlp.gate_proj.weight";
const std::string kUp = "model.layers.0.mlp.up_proj.weight";
const std::string kShard1 = "model-00001-of-00002.safetensors";
const std::string kShard2 = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string index_of(const std::vector<std::pair<std::string, std::string>>& weight_map) {
  std::string text = R"({"metadata":{"total_size":1},"weight_map":{)";
  for (const auto& [tensor, shard] : weight_map) text += '"' + tensor + R"(":")" + shard + "\",";
  text.back() = '}';
  return text + "}";
}

// Gate and up in two shards.
void write_sharded(const TemporaryFolder& folder) {
  write_matrices(folder / kShard1, {{kGate}}, {{"format", "pt"}});
  write_matrices(folder / kShard2, {{"unused"}, {kUp}});
  write_file(folder / kIndex, index_of({{kGate, kShard1}, {kUp, kShard2}}));
}

Status open_status(const std::filesystem::path& path) {
  return Checkpoint::open(path).status();
}

TEST(Checkpoint, OpensAFileItsFolderAndAnIndex) {
  const TemporaryFolder folder;
  write_matrices(folder / "some.safetensors", {{kGate}, {kUp}});
  for (const auto& path : {folder / "some.safetensors", folder.path()}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().text();
    EXPECT_EQ(checkpoint.value().tensors().size(), 2U);
    EXPECT_EQ(checkpoint.value().hidden_activation(), std::nullopt);
  }
  write_sharded(folder);
  for (const auto& path : {folder / kIndex, folder.path()}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().text();
    EXPECT_EQ(checkpoint.value().tensors().size(), 2U);  // not "unused", which the index does not name
    EXPECT_EQ(checkpoint.value().metadata(), (Metadata{{"format", "pt"}}));
    EXPECT_EQ(test::elements<std::uint16_t>(*checkpoint.value().find(kGate)), test::pattern(24, 1));
    EXPECT_EQ(test::elements<std::uint16_t>(*checkpoint.value().find(kUp)), test::pattern(24, 2));
    EXPECT_EQ(checkpoint.value().find("unused"), nullptr);
  }
}

TEST(Checkpoint, FolderWithoutIndexPrefersModelSafetensors) {
  const TemporaryFolder folder;
  expect_refused(open_status(folder.path()), {folder.path().string(), "holds no .safetensors file"});
  write_matrices(folder / kShard1, {{kGate}});
  write_matrices(folder / kShard2, {{kUp}});
  expect_refused(open_status(folder.path()), {"holds 2 .safetensors files", kShard1, kShard2, "name one"});
  write_matrices(folder / "model.safetensors", {{kGate}, {kUp}});
  EXPECT_TRUE(open_status(folder.path()).ok());
  expect_refused(open_status(folder / "absent.safetensors"), {"absent.safetensors", "cannot open", "No such file"});
  expect_refused(open_status(folder / "weights.bin"), {"extension \".bin\""});
}

TEST(Checkpoint, IndexIsChecked) {
  const TemporaryFolder folder;
  write_sharded(folder);
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"", {"not a JSON object"}},
      {"{", {"not valid JSON"}},
      {"{}", {"no object \"weight_map\""}},
      {R"({"weight_map":[]})", {"no object \"weight_map\""}},
      {R"({"weight_map":{}})", {"\"weight_map\" is empty"}},
      {R"({"weight_map":{"t":1}})", {"tensor \"t\"", "not a string"}},
      {R"({"weight_map":{"t":")" + kShard1 + R"(","t":")" + kShard2 + "\"}}", {"the key \"t\" twice"}},
      {index_of({{kGate, "../" + kShard1}}), {kGate, "\"../model", "not a file below this folder"}},
      {index_of({{kGate, "a/../../" + kShard1}}), {kGate, "not a file below this folder"}},
      {index_of({{kGate, (folder / kShard1).string()}}), {kGate, "not a file below this folder"}},
      {index_of({{kGate, "."}}), {"/.: is a folder"}},
      {index_of({{kGate, ""}}), {kGate, "not a file below this folder"}},
      {index_of({{kGate, "a\\u0000b"}}), {kGate, "\"a\\x00b\"", "not a file below this folder"}},
      {index_of({{kGate, kShard2}}), {kIndex, kGate, "is not in the shard", kShard2}},
  };
  for (const auto& [text, parts] : cases) {
    SCOPED_TRACE(text);
    write_file(folder / kIndex, text);
    expect_refused(open_status(folder.path()), parts);
  }
}

TEST(Checkpoint, ConfigIsReadBesideTheFile) {
  const TemporaryFolder folder;
  write_matrices(folder / "model.safetensors", {{kGate}, {kUp}});
  write_file(folder / "config.json", R"({"hidden_act":"silu"})");
  EXPECT_EQ(Checkpoint::open(folder / "model.safetensors").value().hidden_activation(), "silu");
  write_file(folder / "config.json", "{garbage");
  expect_refused(open_status(folder.path()), {(folder / "config.json").string(), "not valid JSON"});
}

// --- C31
// --------------------------------------------------------------------------------------------------------------

constexpr std::int64_t kN = 1024, kK = 768;  // 1.5 MiB a matrix in bf16

TEST(FieldCaseC31, FileCutByOneByteAndByOneMegabyte) {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  write_matrices(path, {{kGate, {kN, kK}}, {kUp, {kN, kK}}});
  ASSERT_TRUE(open_status(path).ok());
  const std::uintmax_t whole = std::filesystem::file_size(path);
  for (const std::uintmax_t cut : {1U, 1U << 20U}) {
    std::filesystem::resize_file(path, whole - cut);
    expect_refused(open_status(path), {path.string(), kUp, "truncated", "expected " + std::to_string(whole) + " bytes",
                                       "found " + std::to_string(whole - cut)});
  }
}

TEST(FieldCaseC31, ShardCutByOneByte) {
  const TemporaryFolder folder;
  write_sharded(folder);
  const std::uintmax_t whole = std::filesystem::file_size(folder / kShard2);
  std::filesystem::resize_file(folder / kShard2, whole - 1);
  expect_refused(open_status(folder.path()),
                 {(folder / kShard2).string(), kUp, std::to_string(whole), std::to_string(whole - 1)});
}

TEST(FieldCaseC31, GitLfsPointer) {
  const TemporaryFolder folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 988097824\n";
  write_file(folder / "model.safetensors", pointer);
  const std::string found = "found " + std::to_string(pointer.size()) + " bytes";
  expect_refused(open_status(folder.path()), {"model.safetensors", "Git LFS pointer, not the file itself", found,
                                              "expected 988097824 bytes", "sha256:4d7a", "git lfs pull"});
  write_file(folder / kIndex, pointer);
  expect_refused(open_status(folder.path()), {kIndex, "Git LFS pointer"});
  write_file(folder / "x.npy", pointer);
  expect_refused(read_tensor(folder / "x.npy").status(), {"x.npy", "Git LFS pointer"});
}

TEST(FieldCaseC31, HeaderLengthOf2To63) {
  const TemporaryFolder folder;
  write_matrices(folder / "model.safetensors", {{kGate}, {kUp}});
  std::string bytes = read_file(folder / "model.safetensors");
  bytes.replace(0, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f");
  write_file(folder / "model.safetensors", bytes);
  expect_refused(open_status(folder.path()), {"model.safetensors", "header length 9223372036854775807"});
}

TEST(FieldCaseC31, OverlappingOffsets) {
  const TemporaryFolder folder;
  const std::string header = "{\"" + kGate + "\":" + test::entry("BF16", "[4,2]", 0, 16) + ",\"" + kUp +
                             "\":" + test::entry("BF16", "[4,2]", 8, 24) + "}";
  write_file(folder / "model.safetensors", test::safetensors_bytes(header, 24));
  expect_refused(open_status(folder.path()), {"model.safetensors", kUp, "[8, 24] overlap", kGate, "[0, 16]"});
}

TEST(FieldCaseC31, AbsentShard) {
  const TemporaryFolder folder;
  write_sharded(folder);
  std::filesystem::remove(folder / kShard2);
  expect_refused(open_status(folder.path()), {kIndex, kUp, "\"" + kShard2 + "\" is absent"});
}

TEST(FieldCaseC31, HalvesThatDoNotFit) {
  struct Case {
    std::vector<NamedMatrix> matrices;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {{{kGate, {16, 6}}}, {kUp, "missing"}},
      {{{kUp, {16, 6}}}, {kGate, "missing"}},
      {{{kGate, {16, 6}}, {kUp, {8, 6}}}, {kUp, "[8, 6] differs from [16, 6]", kGate}},
      {{{kGate, {16, 6}}, {kUp, {16, 5}}}, {kUp, "[16, 5] differs from [16, 6]", kGate}},
      {{{kGate, {16, 6}}, {kUp, {16, 6}, Dtype::kFp16}}, {kUp, "dtype fp16 differs from bf16", kGate}},
  };
  for (const Case& wrong : cases) {
    const TemporaryFolder folder;
    write_matrices(folder / "model.safetensors", wrong.matrices);
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().text();
    const auto weights = find_gated_weights(checkpoint.value(), 0);
    ASSERT_FALSE(weights.ok());
    expect_refused(weights.status(), wrong.parts);
    expect_refused(weights.status(), {"model.safetensors"});
    EXPECT_TRUE(gated_layers(checkpoint.value()).empty());
  }
}

}  // namespace
}  // namespace tileglu::io
