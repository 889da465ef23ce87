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

// How the gate is computed.
struct VerifyGate {
  Activation activation = Activation::kSilu;
  SwigluNumbers swiglu = {};
  Rounding rounding = Rounding::kOnce;

  bool operator==(const VerifyGate&) const = default;
};

// Data and references of one shape, dtype and set of operands; the gates and layouts on it share them.
class VerifyBase {
 public:
  static Result<VerifyBase> make(const Problem& problem, const SyntheticOptions& options);
  SyntheticData& data() { return data_; }
  const reference::Preactivations& preactivations() const { return preactivations_; }
  // Of this gate; kept until the next one is asked for.
  const Yardstick& yardstick(const VerifyGate& gate);
  Problem problem(Layout layout, const VerifyGate& gate) const;

 private:
  SyntheticData data_;
  reference::Preactivations preactivations_;
  std::optional<VerifyGate> gate_;
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
  VerifyGate gate = {};
  bool any_layout = true;  // weights are laid out anew if the kernel needs another layout
  Fault fault = Fault::kNone;
};
VerifyRow verify_one(VerifyBase& base, const VerifyTarget& target);

}  // namespace tileglu::tool
