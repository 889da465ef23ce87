// SPDX-License-Identifier: Apache-2.0
#include "io/packed_file.hpp"

#include "io/checkpoint.hpp"
#include "io/files.hpp"

namespace tileglu::io {
namespace {

using test::expect_refused;
using test::TemporaryFolder;

TEST(PackedFile, MetadataRoundTrips) {
  for (const Layout layout : {Layout::kGateUp, Layout::kUpGate, Layout::kInterleaved1, Layout::kInterleaved8}) {
    const PackedInfo info{.layout = layout, .tp_rank = 2, .tp_size = 4, .hidden_act = "silu"};
    const auto read = read_packed_metadata(make_packed_metadata(info), "x");
    ASSERT_TRUE(read.ok()) << read.status().text();
    ASSERT_TRUE(read.value().has_value());
    EXPECT_EQ(read.value()->layout, layout);
    EXPECT_EQ(read.value()->tp_rank, 2);
    EXPECT_EQ(read.value()->tp_size, 4);
    EXPECT_EQ(read.value()->hidden_act, "silu");
  }
}

TEST(PackedFile, OtherFilesAreNotPacked) {
  const auto read = read_packed_metadata({{"format", "pt"}}, "x");
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read.value().has_value());
}

TEST(PackedFile, UnknownMetadataIsRefused) {
  const std::vector<std::pair<Metadata, std::string>> cases = {
      {{{"tileglu_format", "2"}}, "tileglu_format=\"2\""},
      {{{"tileglu_format", "1"}}, "no tileglu_layout"},
      {{{"tileglu_format", "1"}, {"tileglu_layout", "interleaved_9"}}, "tileglu_layout=\"interleaved_9\""},
      {{{"tileglu_format", "1"}, {"tileglu_layout", "separate"}}, "tileglu_layout=\"separate\""},
      {{{"tileglu_format", "1"}, {"tileglu_layout", "gate_up"}, {"tileglu_tp_rank", "x"}}, "tileglu_tp_rank=\"x\""},
      {{{"tileglu_format", "1"}, {"tileglu_layout", "gate_up"}, {"tileglu_tp_rank", "1"}}, "tileglu_tp_rank=\"1\""},
      {{{"tileglu_format", "1"}, {"tileglu_layout", "gate_up"}, {"tileglu_tp_size", "0"}}, "tileglu_tp_size=0"},
  };
  for (const auto& [metadata, part] : cases) {
    expect_refused(read_packed_metadata(metadata, "dir/x").status(), {"dir/x: ", part});
  }
}

TEST(PackedFile, CarriesItsActivation) {
  const TemporaryFolder folder;
  test::write_file(folder / "config.json", R"({"hidden_act":"relu"})");  // of something else
  test::write_matrices(folder / "packed.safetensors", {{packed_tensor_name(0), {16, 4}}},
                       make_packed_metadata({.hidden_act = "gelu_pytorch_tanh"}));
  const auto checkpoint = Checkpoint::open(folder / "packed.safetensors");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().text();
  EXPECT_EQ(checkpoint.value().hidden_activation(), "gelu_pytorch_tanh");
}

}  // namespace
}  // namespace tileglu::io
