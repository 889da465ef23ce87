// SPDX-License-Identifier: Apache-2.0
#include "io/model_config.hpp"

#include "io/checkpoint.hpp"
#include "io/files.hpp"

namespace tileglu::io {
namespace {

using test::expect_refused;
using test::TemporaryFolder;
using test::write_file;

TEST(ModelConfig, ActivationAsTransformersReadsIt) {
  const std::vector<std::pair<std::string, std::optional<std::string>>> cases = {
      {R"({"hidden_act":"silu","text_config":{"hidden_act":"gelu"}})", "silu"},
      {R"({"hidden_act":"gelu","hidden_activation":"gelu_pytorch_tanh"})", "gelu_pytorch_tanh"},
      {R"({"hidden_act":"gelu","hidden_activation":null})", "gelu"},
      {R"({"hidden_act":"gelu","hidden_activation":null,"model_type":"gemma"})", "gelu_pytorch_tanh"},
      {R"({"text_config":{"hidden_act":"silu"},"vision_config":{"hidden_act":"gelu"}})", "silu"},
      {R"({"model_type":"llama"})", std::nullopt},
  };
  const TemporaryFolder folder;
  EXPECT_EQ(read_hidden_activation(folder.path()).value(), std::nullopt);
  for (const auto& [text, expected] : cases) {
    write_file(folder / "config.json", text);
    const auto activation = read_hidden_activation(folder.path());
    ASSERT_TRUE(activation.ok()) << activation.status().text();
    EXPECT_EQ(activation.value(), expected) << text;
  }
}

TEST(ModelConfig, GarbageIsRefusedByName) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not a JSON object"},
      {"[1]", "not a JSON object"},
      {"{\"hidden_act\":", "not valid JSON"},
      {R"({"hidden_act":3})", "\"hidden_act\" is not a string"},
      {R"({"hidden_act":"silu","hidden_act":"gelu"})", "\"hidden_act\" twice"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "Git LFS pointer"},
  };
  for (const auto& [text, part] : cases) {
    write_file(folder / "config.json", text);
    expect_refused(read_hidden_activation(folder.path()).status(), {(folder / "config.json").string(), part});
  }
}

TEST(ModelConfig, NamesOfActivations) {
  EXPECT_EQ(activation_from_config("silu").value(), Activation::kSilu);
  EXPECT_EQ(activation_from_config("swish").value(), Activation::kSilu);
  EXPECT_EQ(activation_from_config("gelu_pytorch_tanh").value(), Activation::kGeluTanh);
  EXPECT_EQ(activation_from_config("gelu").value(), Activation::kGeluErf);
  EXPECT_EQ(activation_from_config("relu").value(), Activation::kRelu);
  expect_refused(activation_from_config("quick_gelu").status(), {"hidden_act=\"quick_gelu\"", "silu"},
                 Code::kNotSupported);
  expect_refused(activation_from_config("").status(), {"hidden_act=\"\""}, Code::kNotSupported);
}

}  // namespace
}  // namespace tileglu::io
