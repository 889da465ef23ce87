// SPDX-License-Identifier: Apache-2.0
// Who takes part in a benchmark: the names of the contract, what they stand for, and one of them made ready to run.
#pragma once

#include "gemm_only.hpp"
#include "library.hpp"
#include "options.hpp"
#include "synthetic.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tileglu::tool {

inline constexpr const char* kPlannersChoice = "tileglu";
inline constexpr const char* kGemmOnly = "cublas_gemm_only";

struct Contender {
  std::string name = {};
  std::vector<PlanOptions> options = {};  // tried in order; none for cublas_gemm_only
  std::vector<Layout> layouts = {};       // tried in order, for each of the options
  bool baseline = false;                  // others are compared with it
  bool required = false;                  // asked for by name: that it cannot run here is an error, not a skip
};

struct ContenderRequest {
  std::vector<std::string> names;  // --contenders
  CommonOptions common;            // --kernel and --backend
  std::optional<Layout> layout;
  Memory memory = Memory::kHost;
};
// kInvalidArgument for a name nobody knows, kNotAvailable for one whose backend is missing here.
Result<std::vector<Contender>> resolve_contenders(const ContenderRequest& request);

// A contender planned for one shape.
class Entrant {
 public:
  static Result<Entrant> make(const Contender& contender, SyntheticData& data);

  Layout layout() const { return layout_; }
  std::string backend() const { return call_ ? call_->backend() : "cublas"; }
  std::string config() const;
  std::string describe() const { return call_ ? call_->describe() : config(); }
  // Writes y, or for cublas_gemm_only its own product.
  Status run(const Operands& operands) const;

  bool is_gemm_only() const { return gemm_.has_value(); }
  const GemmOnlyCall& gemm() const { return *gemm_; }
  int algorithm() const { return algorithm_; }
  void set_algorithm(int algorithm) { algorithm_ = algorithm; }

 private:
  Layout layout_ = Layout::kSeparate;
  std::optional<Call> call_;
  std::optional<GemmOnlyCall> gemm_;
  int algorithm_ = 0;
};

}  // namespace tileglu::tool
