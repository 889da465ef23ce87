// SPDX-License-Identifier: Apache-2.0
// Names of enumeration values, as the command line, JSON and error texts spell them.
#pragma once

#include "core/problem.hpp"

#include <optional>
#include <string_view>

namespace tileglu {

const char* name_of(Dtype dtype);            // bf16 fp16 fp32
const char* name_of(Activation activation);  // silu gelu_tanh gelu_erf relu sigmoid identity swiglu
const char* name_of(Layout layout);          // separate gate_up up_gate interleaved_1 interleaved_8
const char* name_of(Memory memory);          // host cuda
const char* name_of(BackendId backend);      // auto sm90 cublas cpu
const char* name_of(Rounding rounding);      // once unfused

std::optional<Dtype> dtype_named(std::string_view name);
std::optional<Activation> activation_named(std::string_view name);
std::optional<Layout> layout_named(std::string_view name);
std::optional<BackendId> backend_named(std::string_view name);
std::optional<Rounding> rounding_named(std::string_view name);

}  // namespace tileglu
