// SPDX-License-Identifier: Apache-2.0
// One gated projection of a checkpoint on one input: computed, and if asked checked against fp64 and timed beside the
// unfused path.
#pragma once

#include "backends/backend.hpp"
#include "reference/metrics.hpp"
#include "selection.hpp"
#include "staged_weights.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tileglu::tool {

struct LayerRequest {
  Place place;
  PlanOptions options;
  Activation activation = Activation::kSilu;
  SwigluNumbers swiglu = {};
  Rounding rounding = Rounding::kOnce;
  std::optional<Dtype> dtype_y;  // none: the weights'
  std::optional<Layout> repack;
  bool convert_input = false;  // allow a conversion that rounds
  bool check = false;
  int runs = 5;  // timed runs of a check
};

struct LayerResult {
  int layer = 0;
  std::optional<int> expert;
  Problem problem;
  std::string backend, kernel, describe;
  bool weights_in_place = false;
  double fused_us = 0;
  std::optional<double> repack_us;
  // Of a check:
  std::optional<double> unfused_us;
  std::string unfused_kernel, unfused_reason;  // why there is no time
  std::optional<reference::ErrorReport> error;
  std::optional<reference::ErrorReport> unfused_error;         // gate, up, act and product rounded, emulated from fp64
  std::optional<reference::ErrorReport> unfused_kernel_error;  // what unfused_kernel computed
  bool pass = true;
  std::string reason;
  std::vector<std::byte> y;  // [m,n] of y_dtype
  Dtype y_dtype = Dtype::kBf16;
};

// Refuses an input whose depth or dtype does not fit, naming both sides.
Result<LayerResult> run_layer(const Selected& selected, const io::TensorView& x, const LayerRequest& request);

}  // namespace tileglu::tool
