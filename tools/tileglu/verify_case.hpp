// SPDX-License-Identifier: Apache-2.0
// One verification: a kernel on synthetic data against fp64, beside the unfused path.
#pragma once

#include "backends/backend.hpp"
#include "check.hpp"
#include "core/problem.hpp"
#include "core/status.hpp"
#include "synthetic.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tileglu::tool {

// Data and references of one shape and dtype; the activations and layouts on it share them.
class VerifyBase {
 public:
  static Result<VerifyBase> make(const Problem& problem, const SyntheticOptions& options);
  SyntheticData& data() { return data_; }
  const reference::Preactivations& preactivations() const { return preactivations_; }
  // Of this activation; kept until the next one is asked for.
  const Yardstick& yardstick(Activation activation);
  Problem problem(Layout layout, Activation activation) const;

 private:
  SyntheticData data_;
  reference::Preactivations preactivations_;
  std::optional<Activation> activation_;
  Yardstick yardstick_;
};

struct VerifyRow {
  std::string model = {};
  Problem problem = {};
  Layout requested = Layout::kSeparate;  // problem.layout is the one that the kernel took
  std::string backend = {}, kernel = {};
  std::string status = "pass";  // pass, fail, skipped (kernel cannot do the problem), error
  std::string reason = {};
  Code code = Code::kOk;  // of skipped and error
  Verdict verdict = {};
  reference::ErrorReport unfused = {}, rounded = {};
};

struct VerifyTarget {
  PlanOptions options;
  Layout layout = Layout::kSeparate;
  Activation activation = Activation::kSilu;
  bool any_layout = true;  // weights are laid out anew if the kernel needs another layout
  Fault fault = Fault::kNone;
};
VerifyRow verify_one(VerifyBase& base, const VerifyTarget& target);

}  // namespace tileglu::tool
