// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"

#include "core/format.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace tileglu::tool {
namespace {

constexpr auto kGelu = Activation::kGeluTanh;
constexpr auto kMerged = Layout::kGateUp;

constexpr std::array kModels{
    Model{.name = "qwen2.5-0.5b", .k = 896, .n = 4864},
    Model{.name = "qwen2.5-1.5b", .k = 1536, .n = 8960},
    Model{.name = "qwen2.5-3b", .k = 2048, .n = 11008},
    Model{.name = "qwen2.5-7b", .k = 3584, .n = 18944},
    Model{.name = "qwen2.5-14b", .k = 5120, .n = 13824},
    Model{.name = "qwen2.5-32b", .k = 5120, .n = 27648},
    Model{.name = "qwen2.5-72b", .k = 8192, .n = 29568},
    Model{.name = "qwen3-0.6b", .k = 1024, .n = 3072},
    Model{.name = "qwen3-1.7b", .k = 2048, .n = 6144},
    Model{.name = "qwen3-4b", .k = 2560, .n = 9728},
    Model{.name = "qwen3-8b", .k = 4096, .n = 12288},
    Model{.name = "qwen3-14b", .k = 5120, .n = 17408},
    Model{.name = "qwen3-32b", .k = 5120, .n = 25600},
    Model{.name = "qwen3.5-27b", .k = 5120, .n = 17408},
    Model{.name = "qwen3-30b-a3b-expert", .k = 2048, .n = 768},
    Model{.name = "qwen3-235b-a22b-expert", .k = 4096, .n = 1536},
    Model{.name = "llama-3.2-1b", .k = 2048, .n = 8192},
    Model{.name = "llama-3.2-3b", .k = 3072, .n = 8192},
    Model{.name = "llama-3-8b", .k = 4096, .n = 14336},
    Model{.name = "llama-3.1-8b", .k = 4096, .n = 14336},
    Model{.name = "llama-3-70b", .k = 8192, .n = 28672},
    Model{.name = "llama-3.1-70b", .k = 8192, .n = 28672},
    Model{.name = "llama-3.3-70b", .k = 8192, .n = 28672},
    Model{.name = "llama-3.1-405b", .k = 16384, .n = 53248},
    Model{.name = "mistral-7b", .k = 4096, .n = 14336},
    Model{.name = "mistral-large", .k = 12288, .n = 28672},
    Model{.name = "mixtral-8x7b-expert", .k = 4096, .n = 14336},
    Model{.name = "mixtral-8x22b-expert", .k = 6144, .n = 16384},
    Model{.name = "gemma-2-2b", .k = 2304, .n = 9216, .activation = kGelu},
    Model{.name = "gemma-2-9b", .k = 3584, .n = 14336, .activation = kGelu},
    Model{.name = "gemma-2-27b", .k = 4608, .n = 36864, .activation = kGelu},
    Model{.name = "gemma-3-1b", .k = 1152, .n = 6912, .activation = kGelu},
    Model{.name = "gemma-3-4b", .k = 2560, .n = 10240, .activation = kGelu},
    Model{.name = "gemma-3-12b", .k = 3840, .n = 15360, .activation = kGelu},
    Model{.name = "gemma-3-27b", .k = 5376, .n = 21504, .activation = kGelu},
    Model{.name = "phi-3-mini", .k = 3072, .n = 8192, .layout = kMerged},
    Model{.name = "phi-3.5-mini", .k = 3072, .n = 8192, .layout = kMerged},
    Model{.name = "phi-3-medium", .k = 5120, .n = 17920, .layout = kMerged},
    Model{.name = "phi-4-mini", .k = 3072, .n = 8192, .layout = kMerged},
    Model{.name = "phi-4", .k = 5120, .n = 17920, .layout = kMerged},
    Model{.name = "deepseek-v3-dense", .k = 7168, .n = 18432},
    Model{.name = "deepseek-v3-expert", .k = 7168, .n = 2048},
    Model{.name = "smollm2-135m", .k = 576, .n = 1536},
};

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::span<const Model> models() {
  return kModels;
}

Result<Model> find_model(std::string_view name) {
  for (const Model& model : kModels) {
    if (same_name(model.name, name)) return model;
  }
  return Status(
      Code::kInvalidArgument,
      formatted("--model={}: unknown; one of the {} names that 'tileglu models' lists", name, kModels.size()));
}

Result<std::int64_t> shard_width(std::int64_t n, int tp) {
  if (tp < 1 || n % tp != 0) {
    return Status(Code::kInvalidArgument,
                  formatted("--tp={}: n={} is not divisible by it (the rest is {})", tp, n, tp < 1 ? n : n % tp));
  }
  return n / tp;
}

}  // namespace tileglu::tool
