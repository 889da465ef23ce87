// SPDX-License-Identifier: Apache-2.0
// read_tensor and write_tensors: round trips, and which tensor of a file is meant.
#include "io/tensor.hpp"

#include "io/files.hpp"

namespace tileglu::io {
namespace {

using test::elements;
using test::entry;
using test::expect_refused;
using test::TemporaryFolder;
using test::write_matrices;

TEST(Tensor, SafetensorsRoundTripIsBitwise) {
  const TemporaryFolder folder;
  const Metadata metadata = {{"a", "1"}, {"b", "zwei \xe2\x82\xac \"quoted\""}};
  write_matrices(folder / "x.safetensors",
                 {{"half", {3, 5}, Dtype::kFp16}, {"brain", {2, 7}, Dtype::kBf16}, {"full", {4, 2}, Dtype::kFp32}},
                 metadata);
  std::uint16_t seed = 0;
  for (const auto& [name, count, dtype] :
       {std::tuple{"half", 15, Dtype::kFp16}, {"brain", 14, Dtype::kBf16}, {"full", 16, Dtype::kFp32}}) {
    const auto tensor = read_tensor(folder / "x.safetensors", name);
    ASSERT_TRUE(tensor.ok()) << tensor.status().text();
    EXPECT_EQ(tensor.value().dtype, dtype);
    EXPECT_EQ(elements<std::uint16_t>(tensor.value()), test::pattern(static_cast<std::size_t>(count), ++seed));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.value().data) % size_of(dtype), 0U) << name;
    EXPECT_EQ(tensor.value().file, (folder / "x.safetensors").string());
  }
}

TEST(Tensor, NpyRoundTripIsBitwise) {
  const TemporaryFolder folder;
  for (const Dtype dtype : {Dtype::kFp16, Dtype::kFp32}) {
    write_matrices(folder / "x.npy", {{"ignored", {3, 4}, dtype}});
    const auto tensor = read_tensor(folder / "x.npy");
    ASSERT_TRUE(tensor.ok()) << tensor.status().text();
    EXPECT_EQ(tensor.value().dtype, dtype);
    EXPECT_EQ(tensor.value().shape, (std::vector<std::int64_t>{3, 4}));
    EXPECT_EQ(elements<std::uint16_t>(tensor.value()), test::pattern(6 * size_of(dtype), 1));
  }
}

TEST(Tensor, ViewOutlivesTheFile) {
  const TemporaryFolder folder;
  write_matrices(folder / "x.safetensors", {{"x", {3, 5}}});
  const auto tensor = read_tensor(folder / "x.safetensors");
  write_matrices(folder / "x.safetensors", {{"y", {100, 100}}});  // replaced by rename: the mapping keeps the old bytes
  EXPECT_EQ(elements<std::uint16_t>(tensor.value()), test::pattern(15, 1));
}

TEST(Tensor, OneDimensionIsOneRow) {
  const TemporaryFolder folder;
  write_matrices(folder / "x.safetensors", {{"x", {5}}});
  write_matrices(folder / "x.npy", {{"x", {5}, Dtype::kFp32}});
  for (const char* const name : {"x.safetensors", "x.npy"}) {
    const auto tensor = read_tensor(folder / name);
    ASSERT_TRUE(tensor.ok()) << tensor.status().text();
    EXPECT_EQ(tensor.value().shape, (std::vector<std::int64_t>{1, 5}));
  }
}

TEST(Tensor, RefusesToGuess) {
  const TemporaryFolder folder;
  write_matrices(folder / "two.safetensors", {{"a"}, {"b"}});
  expect_refused(read_tensor(folder / "two.safetensors").status(), {"two.safetensors", "2 tensors (\"a\", \"b\")"});
  expect_refused(read_tensor(folder / "two.safetensors", "c").status(), {"no tensor \"c\"", "2: \"a\", \"b\""});
  write_matrices(folder / "none.safetensors", {});
  expect_refused(read_tensor(folder / "none.safetensors").status(), {"holds 0 tensors"});
  write_matrices(folder / "cube.safetensors", {{"cube", {2, 2, 2}}});
  expect_refused(read_tensor(folder / "cube.safetensors").status(), {"\"cube\"", "[2, 2, 2] has 3 dimensions"});
  write_matrices(folder / "x.npy", {{"x", {2, 2}, Dtype::kFp32}});
  expect_refused(read_tensor(folder / "x.npy", "x").status(), {"x.npy", "no tensor \"x\""});
  expect_refused(read_tensor(folder / "x.bin").status(), {"x.bin", "extension \".bin\""});
  expect_refused(write_text(folder / "many.safetensors", ""), {}, Code::kOk);
}

TEST(Tensor, RefusesOtherDtypesOnUse) {
  const TemporaryFolder folder;
  const std::string ids = entry("I64", "[1,2]", 0, 16);
  test::write_file(folder / "one.safetensors", test::safetensors_bytes(R"({"ids":)" + ids + "}", 16));
  const std::vector<std::string> parts = {"tensor \"ids\"", "dtype I64 is not supported", "BF16, F16, F32"};
  expect_refused(read_tensor(folder / "one.safetensors").status(), parts, Code::kNotSupported);
  const std::string both = R"({"ids":)" + ids + R"(,"x":)" + entry("F16", "[1,1]", 16, 18) + "}";
  test::write_file(folder / "both.safetensors", test::safetensors_bytes(both, 18));
  expect_refused(read_tensor(folder / "both.safetensors", "ids").status(), parts, Code::kNotSupported);
  expect_refused(read_tensor(folder / "both.safetensors").status(), {"2 tensors"});
  EXPECT_TRUE(read_tensor(folder / "both.safetensors", "x").ok());
}

TEST(Tensor, WriteRefusesWhatItCannotKeep) {
  const TemporaryFolder folder;
  const std::uint16_t values[4] = {};
  const TensorSource good{.name = "y", .dtype = Dtype::kBf16, .shape = {2, 2}, .data = values, .bytes = 8};
  TensorSource wrong = good;
  wrong.shape = {2, 3};
  expect_refused(write_tensors(folder / "y.safetensors", {wrong}), {"tensor \"y\"", "need 12 bytes"});
  expect_refused(write_tensors(folder / "y.safetensors", {good, good}), {"\"y\"", "already taken"});
  wrong = good;
  wrong.name = "__metadata__";
  expect_refused(write_tensors(folder / "y.safetensors", {wrong}), {"reserved"});
  wrong.name = "\xff";
  expect_refused(write_tensors(folder / "y.safetensors", {wrong}), {"not UTF-8"});
  expect_refused(write_tensors(folder / "y.npy", {good}), {"y.npy", "numpy has no bf16"}, Code::kNotSupported);
  expect_refused(write_tensors(folder / "y.npy", {good, good}), {"one tensor, not 2"});
  expect_refused(write_tensors(folder / "y.npz", {good}), {"extension \".npz\""});
  wrong = good;
  wrong.dtype = Dtype::kFp16;
  wrong.shape = {3};
  expect_refused(write_tensors(folder / "y.npy", {wrong}), {"[3] needs 6 bytes, found 8"});
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace tileglu::io
