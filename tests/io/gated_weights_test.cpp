// SPDX-License-Identifier: Apache-2.0
// Which tensors are a layer's gate and up matrices, under every family's names; C26 (order of halves) for the loaders.
#include "io/checkpoint.hpp"
#include "io/files.hpp"
#include "io/packed_file.hpp"

namespace tileglu::io {
namespace {

using test::elements;
using test::entry;
using test::expect_refused;
using test::NamedMatrix;
using test::pattern;
using test::TemporaryFolder;
using test::write_matrices;

Result<Checkpoint> checkpoint_of(const std::vector<NamedMatrix>& matrices, const Metadata& metadata = {}) {
  const TemporaryFolder folder;  // the mapping outlives it
  write_matrices(folder / "model.safetensors", matrices, metadata);
  return Checkpoint::open(folder.path());
}

Status refusal(const std::vector<NamedMatrix>& matrices, int layer = 0, std::optional<int> expert = {},
               const Metadata& metadata = {}) {
  const auto checkpoint = checkpoint_of(matrices, metadata);
  if (!checkpoint.ok()) return checkpoint.status();
  return find_gated_weights(checkpoint.value(), layer, expert).status();
}

TEST(GatedWeights, SeparateNamesOfEveryFamily) {
  for (const std::string prefix : {"model.", "", "language_model.model.", "model.language_model.", "some.model."}) {
    for (const auto& [gate, up] : {std::pair{"mlp.gate_proj", "mlp.up_proj"}, {"feed_forward.w1", "feed_forward.w3"}}) {
      const std::string layer = prefix + "layers.7.";
      // up is written first, so that an order in the file cannot be mistaken for the meaning of the names
      const auto checkpoint =
          checkpoint_of({{layer + up + ".weight"}, {layer + gate + ".weight"}, {layer + "mlp.gate.weight"}});
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().text();
      const auto weights = find_gated_weights(checkpoint.value(), 7);
      ASSERT_TRUE(weights.ok()) << weights.status().text();
      EXPECT_EQ(weights.value().layout, Layout::kSeparate);
      EXPECT_EQ(weights.value().n, 4);
      EXPECT_EQ(weights.value().k, 6);
      EXPECT_EQ(elements<std::uint16_t>(weights.value().up), pattern(24, 1));
      EXPECT_EQ(elements<std::uint16_t>(weights.value().gate), pattern(24, 2));
      EXPECT_EQ(gated_layers(checkpoint.value()), std::vector<int>{7});
    }
  }
}

TEST(GatedWeights, MergedIsGateFirst) {
  const auto checkpoint = checkpoint_of({{"model.layers.0.mlp.gate_up_proj.weight", {10, 6}}});
  const auto weights = find_gated_weights(checkpoint.value(), 0);
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  EXPECT_EQ(weights.value().layout, Layout::kGateUp);
  EXPECT_EQ(weights.value().n, 5);
  EXPECT_EQ(weights.value().k, 6);
  EXPECT_EQ(weights.value().up.data, nullptr);
}

TEST(GatedWeights, Experts) {
  for (const auto& [group, gate, up] : {std::tuple{"block_sparse_moe.experts.", ".w1.weight", ".w3.weight"},
                                        {"mlp.experts.", ".gate_proj.weight", ".up_proj.weight"}}) {
    std::vector<NamedMatrix> matrices;
    for (const char* const expert : {"0", "1", "10"}) {
      matrices.push_back({std::string("model.layers.3.") + group + expert + gate});
      matrices.push_back({std::string("model.layers.3.") + group + expert + up});
    }
    const auto checkpoint = checkpoint_of(matrices);
    const auto weights = find_gated_weights(checkpoint.value(), 3, 1);
    ASSERT_TRUE(weights.ok()) << weights.status().text();
    EXPECT_EQ(elements<std::uint16_t>(weights.value().gate), pattern(24, 3));
    EXPECT_EQ(elements<std::uint16_t>(weights.value().up), pattern(24, 4));
    EXPECT_EQ(elements<std::uint16_t>(find_gated_weights(checkpoint.value(), 3, 10).value().gate), pattern(24, 5));
    EXPECT_EQ(gated_layers(checkpoint.value()), std::vector<int>{3});
    expect_refused(find_gated_weights(checkpoint.value(), 3).status(), {"layer=3", "experts 0 to 10", "named"});
    expect_refused(find_gated_weights(checkpoint.value(), 3, 2).status(), {"layer=3", "expert=2", "0 to 10"});
    expect_refused(find_gated_weights(checkpoint.value(), 3, -1).status(), {"expert=-1"});
  }
  expect_refused(refusal({{"layers.0.mlp.gate_proj.weight"}, {"layers.0.mlp.up_proj.weight"}}, 0, 4),
                 {"layer=0 has no experts, but expert=4"});
}

TEST(GatedWeights, Packed) {
  const Metadata metadata = make_packed_metadata({.layout = Layout::kInterleaved8});
  const auto checkpoint = checkpoint_of(
      {{packed_tensor_name(0), {32, 6}}, {packed_tensor_name(1, 5), {16, 6}}, {packed_tensor_name(2), {24, 6}}},
      metadata);
  const auto dense = find_gated_weights(checkpoint.value(), 0);
  ASSERT_TRUE(dense.ok()) << dense.status().text();
  EXPECT_EQ(dense.value().layout, Layout::kInterleaved8);
  EXPECT_EQ(dense.value().n, 16);
  EXPECT_EQ(find_gated_weights(checkpoint.value(), 1, 5).value().n, 8);
  expect_refused(find_gated_weights(checkpoint.value(), 2).status(), {"layers.2.gate_up", "[24, 6]", "multiple of 16"});
  EXPECT_EQ(gated_layers(checkpoint.value()), (std::vector<int>{0, 1}));
  expect_refused(refusal({{packed_tensor_name(0), {32, 6}}}), {"layers.0.gate_up", "no tileglu_format"});
}

TEST(GatedWeights, LayersAscending) {
  std::vector<NamedMatrix> matrices;
  for (const char* const layer : {"0", "2", "10", "11"}) {
    matrices.push_back({std::string("model.layers.") + layer + ".mlp.gate_proj.weight"});
    if (layer != std::string("11")) matrices.push_back({std::string("model.layers.") + layer + ".mlp.up_proj.weight"});
  }
  const auto checkpoint = checkpoint_of(matrices);
  EXPECT_EQ(gated_layers(checkpoint.value()), (std::vector<int>{0, 2, 10}));
  expect_refused(find_gated_weights(checkpoint.value(), 1).status(), {"layer=1 has no gated", "layers 0 to 11"});
  expect_refused(find_gated_weights(checkpoint.value(), -1).status(), {"layer=-1"});
  expect_refused(refusal({{"model.layers.00.mlp.gate_up_proj.weight"}}), {"no gated projection"});
  expect_refused(refusal({{"lm_head.weight"}}), {"model.safetensors", "no gated projection under any known name"});
}

TEST(GatedWeights, LanguageModelBeforeOthers) {
  std::vector<NamedMatrix> matrices = {{"model.layers.0.mlp.gate_proj.weight", {8, 6}},
                                       {"model.layers.0.mlp.up_proj.weight", {8, 6}},
                                       {"mtp.layers.0.mlp.gate_proj.weight"},
                                       {"mtp.layers.0.mlp.up_proj.weight"}};
  const auto checkpoint = checkpoint_of(matrices);
  const auto weights = find_gated_weights(checkpoint.value(), 0);
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  EXPECT_EQ(weights.value().n, 8);
}

TEST(GatedWeights, AmbiguousIsRefused) {
  const std::string layer = "model.layers.0.mlp.";
  expect_refused(
      refusal({{layer + "gate_proj.weight"}, {layer + "up_proj.weight"}, {layer + "gate_up_proj.weight", {8, 6}}}),
      {"layer=0 is ambiguous", layer + "gate_proj", layer + "gate_up_proj"});
  expect_refused(refusal({{"a.layers.0.mlp.gate_up_proj.weight"}, {"b.layers.0.mlp.gate_up_proj.weight"}}),
                 {"ambiguous", "a.layers.0", "b.layers.0"});
}

TEST(GatedWeights, ShapesThatAreNoMatrices) {
  const std::string layer = "model.layers.0.mlp.";
  expect_refused(refusal({{layer + "gate_up_proj.weight", {7, 6}}}),
                 {"gate_up_proj.weight", "[7, 6]", "multiple of 2"});
  expect_refused(refusal({{layer + "gate_up_proj.weight", {8}}}), {"[8] is not 2-D"});
  expect_refused(refusal({{layer + "gate_proj.weight", {2, 2, 2}}, {layer + "up_proj.weight"}}), {"is not 2-D"});
  expect_refused(refusal({{layer + "gate_proj.weight", {0, 6}}, {layer + "up_proj.weight", {0, 6}}}),
                 {"[0, 6] is empty"});
  expect_refused(refusal({{layer + "experts.gate_up_proj", {2, 8, 6}}}, 0, 1),
                 {layer + "experts.gate_up_proj", "all experts in one tensor"}, Code::kNotSupported);
}

// Each would change the result if it were ignored.
TEST(GatedWeights, SiblingsAreRefusedByName) {
  const std::string layer = "model.layers.0.mlp.";
  for (const std::string sibling :
       {"gate_proj.bias", "up_proj.bias", "gate_proj.weight_scale", "up_proj.weight_scale_inv", "gate_proj.qweight",
        "up_proj.lora_A.weight", "gate_proj.weight.absmax"}) {
    const Status status = refusal({{layer + "gate_proj.weight"}, {layer + "up_proj.weight"}, {layer + sibling}});
    const bool bias = sibling.ends_with(".bias");
    expect_refused(status, {"model.safetensors", layer + sibling, bias ? "a bias" : "quantised"}, Code::kNotSupported);
  }
  expect_refused(refusal({{layer + "gate_up_proj.weight"}, {layer + "gate_up_proj.bias"}}), {"gate_up_proj.bias"},
                 Code::kNotSupported);
  expect_refused(refusal({{layer + "gate_proj.qweight"}, {layer + "up_proj.qweight"}}), {"gate_proj.qweight"},
                 Code::kNotSupported);
  expect_refused(refusal({{"layers.0.gate_up", {16, 6}}, {"layers.0.gate_up.bias"}}, 0, {}, make_packed_metadata({})),
                 {"layers.0.gate_up.bias"}, Code::kNotSupported);
  EXPECT_TRUE(refusal({{layer + "gate_proj.weight"}, {layer + "up_proj.weight"}, {layer + "down_proj.bias"}}).ok());
}

TEST(GatedWeights, OtherDtypesAreRefusedByName) {
  const TemporaryFolder folder;
  const std::string header = R"({"layers.0.mlp.gate_proj.weight":)" + entry("F8_E4M3", "[2,2]", 0, 4) +
                             R"(,"layers.0.mlp.up_proj.weight":)" + entry("F8_E4M3", "[2,2]", 4, 8) +
                             R"(,"layers.1.mlp.gate_proj.weight":)" + entry("F16", "[1,2]", 8, 12) +
                             R"(,"layers.1.mlp.up_proj.weight":)" + entry("F16", "[1,2]", 12, 16) + "}";
  test::write_file(folder / "model.safetensors", test::safetensors_bytes(header, 16));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().text();
  expect_refused(find_gated_weights(checkpoint.value(), 0).status(), {"layers.0.mlp.gate_proj.weight", "F8_E4M3"},
                 Code::kNotSupported);
  EXPECT_TRUE(find_gated_weights(checkpoint.value(), 1).ok());
  EXPECT_EQ(gated_layers(checkpoint.value()), std::vector<int>{1});
}

}  // namespace
}  // namespace tileglu::io
