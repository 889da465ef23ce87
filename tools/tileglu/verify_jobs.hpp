// SPDX-License-Identifier: Apache-2.0
// What one call of verify goes through: shapes and types (one set of data each), and on each of them layouts and gates.
#pragma once

#include "check.hpp"
#include "gate_options.hpp"
#include "options.hpp"
#include "verify_case.hpp"

namespace tileglu::tool {

struct VerifyOptions {
  CommonOptions common;
  ShapeOptions shape;
  GateOptions gate;
  std::optional<Layout> layout;
  std::uint64_t seed = 1;
  double a_scale = 1;
  bool all = false;
  Fault fault = Fault::kNone;
};

struct VerifyJob {
  std::string model = {};
  Problem problem = {};  // shape, dtype, strides, extra operands
  std::vector<Layout> layouts = {};
  std::vector<VerifyGate> gates = {};
};

Result<std::vector<VerifyJob>> make_jobs(const VerifyOptions& options, Memory memory);

}  // namespace tileglu::tool
