// SPDX-License-Identifier: Apache-2.0
// Compares with the Python packages safetensors, numpy and ml_dtypes: same bits both ways, same verdict on odd files.
#include "io/files.hpp"
#include "io/safetensors.hpp"

#include <cstdio>
#include <cstdlib>

namespace tileglu::io {
namespace {

using test::entry;
using test::safetensors_bytes;
using test::TemporaryFolder;

// Output of cross_check.py; nothing if it failed.
std::optional<std::string> run_python(const std::string& arguments) {
  const std::string command = std::string("'" TILEGLU_TEST_PYTHON "' '" TILEGLU_CROSS_CHECK "' ") + arguments;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  char buffer[4096];
  for (std::size_t size; (size = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, size);
  if (pclose(pipe) != 0) return std::nullopt;
  return output;
}

class Python : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(TILEGLU_TEST_PYTHON).empty() || !run_python("probe 2>/dev/null")) {
      GTEST_SKIP() << "TILEGLU_TEST_PYTHON='" TILEGLU_TEST_PYTHON "' has no safetensors, numpy and ml_dtypes";
    }
  }
  const TemporaryFolder folder_;
};

TEST_F(Python, ReadsWhatWeWrite) {
  test::write_matrices(
      folder_ / "all.safetensors",
      {{"half", {3, 5}, Dtype::kFp16}, {"brain", {2, 7}, Dtype::kBf16}, {"full", {4, 2}, Dtype::kFp32}},
      {{"source", "c++"}});
  for (const auto& [name, shape] : {std::pair{"half", std::vector<std::int64_t>{3, 5}}, {"full", {4, 2}}}) {
    const auto tensor = read_tensor(folder_ / "all.safetensors", name);
    ASSERT_TRUE(tensor.ok()) << tensor.status().text();
    const TensorSource source{.name = "",
                              .dtype = tensor.value().dtype,
                              .shape = shape,
                              .data = tensor.value().data,
                              .bytes = tensor.value().bytes};
    ASSERT_TRUE(write_tensors(folder_ / (std::string(name) + ".npy"), {source}).ok());
  }
  EXPECT_TRUE(run_python("read '" + folder_.path().string() + "'"));
}

TEST_F(Python, WritesWhatWeRead) {
  ASSERT_TRUE(run_python("write '" + folder_.path().string() + "'"));
  std::uint16_t seed = 0;
  for (const auto& [name, count, dtype] :
       {std::tuple{"half", 15, Dtype::kFp16}, {"brain", 14, Dtype::kBf16}, {"full", 16, Dtype::kFp32}}) {
    const auto expected = test::pattern(static_cast<std::size_t>(count), ++seed);
    for (const auto& tensor :
         {read_tensor(folder_ / "all.safetensors", name), read_tensor(folder_ / (std::string(name) + ".npy"))}) {
      ASSERT_TRUE(tensor.ok()) << tensor.status().text();
      EXPECT_EQ(tensor.value().dtype, dtype) << tensor.value().file;
      EXPECT_EQ(test::elements<std::uint16_t>(tensor.value()), expected) << tensor.value().file;
    }
  }
  for (const char* const name : {"brain_again.npy", "version1.npy", "version2.npy", "version3.npy"}) {
    const auto tensor = read_tensor(folder_ / name);
    EXPECT_TRUE(tensor.ok()) << tensor.status().text();
  }
  EXPECT_EQ(read_safetensors(folder_ / "all.safetensors").value().metadata, (Metadata{{"source", "python"}}));
}

// The demo's folder, with two layers: what the script writes is what the checkpoint reader finds.
TEST_F(Python, PreparedFolderIsACheckpoint) {
  const auto prepared = folder_ / "prepared";
  ASSERT_TRUE(run_python("prepare '" TILEGLU_PREPARE_SCRIPT "' '" + prepared.string() + "'"));
  const auto checkpoint = Checkpoint::open(prepared);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().text();
  EXPECT_EQ(gated_layers(checkpoint.value()), (std::vector<int>{0, 1}));
  EXPECT_EQ(checkpoint.value().hidden_activation(), "silu");
  const auto weights = find_gated_weights(checkpoint.value(), 1);
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  EXPECT_EQ(weights.value().n, 1536);
  EXPECT_EQ(weights.value().k, 576);
  const auto input = read_tensor(prepared / "inputs.safetensors", "layers.1.x");
  ASSERT_TRUE(input.ok()) << input.status().text();
  EXPECT_EQ(input.value().shape, (std::vector<std::int64_t>{64, 576}));
}

struct Odd {
  std::string header;
  std::size_t data_bytes;
  bool stricter = false;  // we refuse what Python accepts
};

std::vector<Odd> odd_files() {
  const std::string good = entry("F32", "[2]", 0, 8);
  const auto one = [](const std::string& fields) { return R"({"a":)" + fields + "}"; };
  const auto two = [&](const std::string& second) { return R"({"a":)" + good + R"(,"b":)" + second + "}"; };
  return {
      {"{}", 0},
      {"{}", 1},
      {"", 0},
      {one(good), 8},
      {one(good), 7},
      {one(good), 9},
      {" " + one(good) + "\n ", 8},
      {one(good) + std::string(2, '\0'), 8},
      {"\xef\xbb\xbf" + one(good), 8},
      {two(entry("F32", "[2]", 8, 16)), 16},
      {two(entry("F32", "[2]", 9, 17)), 17},
      {two(entry("F32", "[2]", 4, 12)), 12},
      {two(entry("F32", "[0]", 4, 4)), 8},
      {two(entry("F32", "[0]", 8, 8)), 8},
      {one(entry("F32", "[]", 0, 4)), 4},
      {one(entry("F32", "[3]", 0, 8)), 8},
      {one(entry("F32", "[-2]", 0, 8)), 8},
      {one(entry("F32", "[2.0]", 0, 8)), 8},
      {one(entry("F32", "[4611686018427387904]", 0, 0)), 0},
      {one(entry("F64", "[1]", 0, 8)), 8},
      {one(entry("F8_E8M0", "[8]", 0, 8)), 8},
      {one(entry("F4", "[16]", 0, 8)), 8},
      {one(entry("F4", "[3]", 0, 2)), 2},
      {one(entry("F6_E2M3", "[4]", 0, 3)), 3},
      {one(entry("C64", "[1]", 0, 8)), 8},
      {one(entry("Q4_1", "[2]", 0, 8)), 8},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), 8},
      {one(R"({"dtype":"F32","shape":[2]})"), 8},
      {R"({"__metadata__":null,"a":)" + good + "}", 8},
      {R"({"__metadata__":{"k":1},"a":)" + good + "}", 8},
      {R"({"__metadata__":{"k":"v"},"a":)" + good + "}", 8},
      {one(good.substr(0, good.size() - 1) + R"(,"x":1})"), 8, true},
      {R"({"a":)" + good + R"(,"a":)" + good + "}", 8, true},
  };
}

TEST_F(Python, SameVerdictOnOddFiles) {
  const std::vector<Odd> files = odd_files();
  std::string arguments, ours;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto path = folder_ / (std::to_string(i) + ".safetensors");
    test::write_file(path, safetensors_bytes(files[i].header, files[i].data_bytes));
    const bool accepted = read_safetensors(path).ok();
    EXPECT_FALSE(accepted && files[i].stricter) << files[i].header;
    arguments += " '" + path.string() + "'";
    ours += std::to_string(i) + (accepted || files[i].stricter ? " accepted\n" : " refused\n");
  }
  const auto verdicts = run_python("judge" + arguments);
  ASSERT_TRUE(verdicts.has_value());
  std::string theirs;
  std::size_t at = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::size_t end = verdicts->find('\n', at);
    theirs += std::to_string(i) + " " + verdicts->substr(at, end - at) + "\n";
    at = end + 1;
  }
  EXPECT_EQ(ours, theirs);
}

}  // namespace
}  // namespace tileglu::io
