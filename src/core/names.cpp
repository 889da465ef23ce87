// SPDX-License-Identifier: Apache-2.0
// One table per enumeration; both directions read it.
#include "core/names.hpp"

#include <array>
#include <utility>

namespace tileglu {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, const char*>, N>;

constexpr Names<Dtype, 3> kDtypes{{{Dtype::kBf16, "bf16"}, {Dtype::kFp16, "fp16"}, {Dtype::kFp32, "fp32"}}};
constexpr Names<Activation, 7> kActivations{{
    {Activation::kSilu, "silu"},
    {Activation::kGeluTanh, "gelu_tanh"},
    {Activation::kGeluErf, "gelu_erf"},
    {Activation::kRelu, "relu"},
    {Activation::kSigmoid, "sigmoid"},
    {Activation::kIdentity, "identity"},
    {Activation::kSwiglu, "swiglu"},
}};
constexpr Names<Layout, 5> kLayouts{{
    {Layout::kSeparate, "separate"},
    {Layout::kGateUp, "gate_up"},
    {Layout::kUpGate, "up_gate"},
    {Layout::kInterleaved1, "interleaved_1"},
    {Layout::kInterleaved8, "interleaved_8"},
}};
constexpr Names<Memory, 2> kMemories{{{Memory::kHost, "host"}, {Memory::kCuda, "cuda"}}};
constexpr Names<Rounding, 2> kRoundings{{{Rounding::kOnce, "once"}, {Rounding::kUnfused, "unfused"}}};
constexpr Names<BackendId, 4> kBackends{{
    {BackendId::kAuto, "auto"},
    {BackendId::kSm90, "sm90"},
    {BackendId::kCublas, "cublas"},
    {BackendId::kCpu, "cpu"},
}};

template <class Enum, std::size_t N>
const char* name_in(const Names<Enum, N>& names, Enum value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return "?";
}

template <class Enum, std::size_t N>
std::optional<Enum> value_in(const Names<Enum, N>& names, std::string_view text) {
  for (const auto& [value, name] : names) {
    if (text == name) return value;
  }
  return std::nullopt;
}

}  // namespace

const char* name_of(Dtype dtype) {
  return name_in(kDtypes, dtype);
}
const char* name_of(Activation activation) {
  return name_in(kActivations, activation);
}
const char* name_of(Layout layout) {
  return name_in(kLayouts, layout);
}
const char* name_of(Memory memory) {
  return name_in(kMemories, memory);
}
const char* name_of(BackendId backend) {
  return name_in(kBackends, backend);
}
const char* name_of(Rounding rounding) {
  return name_in(kRoundings, rounding);
}

std::optional<Dtype> dtype_named(std::string_view name) {
  return value_in(kDtypes, name);
}
std::optional<Activation> activation_named(std::string_view name) {
  return value_in(kActivations, name);
}
std::optional<Layout> layout_named(std::string_view name) {
  return value_in(kLayouts, name);
}
std::optional<BackendId> backend_named(std::string_view name) {
  return value_in(kBackends, name);
}
std::optional<Rounding> rounding_named(std::string_view name) {
  return value_in(kRoundings, name);
}

}  // namespace tileglu
