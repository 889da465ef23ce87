// SPDX-License-Identifier: Apache-2.0
// What the library (loader.cpp) and the module libtileglu_cpu.so (backend.cpp) agree on: one exported symbol, and a tag
// that tells whether both were built from the same headers by the same compiler.
#pragma once

#include "backends/backend.hpp"

#include <build_info.hpp>

namespace tileglu::cpu {

struct Module {
  const char* tag;  // first, so that it can be read whatever follows
  std::span<const std::string> (*kernels)();
  Result<std::unique_ptr<Plan>> (*plan)(const Problem& problem, const PlanOptions& options);
};

inline constexpr char kModuleFile[] = "libtileglu_cpu.so";
inline constexpr char kModuleSymbol[] = "tileglu_cpu_module";  // a const Module
// The number counts changes of what crosses the border: Module, Plan, Problem, Operands, PlanOptions, Status.
inline constexpr char kModuleTag[] = "tileglu " TILEGLU_BUILD_VERSION ", " TILEGLU_BUILD_COMPILER ", interface 2";

}  // namespace tileglu::cpu
