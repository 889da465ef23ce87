// SPDX-License-Identifier: Apache-2.0
// Inputs of a test in CUDA memory: random normal A and weights in every layout, and what a right result is, from fp64
// sums. Made once, used for all kernels.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "reference/metrics.hpp"
#include "reference/reference.hpp"
#include "runtime/runtime.hpp"

#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

namespace tileglu::gpu {

// Ends the test with the text of the error.
inline void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}
template <class T>
T require(Result<T> result) {
  require(result.status());
  return std::move(result.value());
}

struct InputShape {
  Dtype dtype = Dtype::kBf16;
  std::int64_t m = 0, n = 0, k = 0;
  double scale = 1;  // standard deviation of A
  int device = 0;

  auto operator<=>(const InputShape&) const = default;
};

// What is compared: m rows of which every row_step-th counts.
struct YardstickOptions {
  std::int64_t m = 0;
  Activation activation = Activation::kSilu;
  Dtype dtype_y = Dtype::kBf16;
  std::int64_t row_step = 1;

  auto operator<=>(const YardstickOptions&) const = default;
};

// A right result, and the errors of implementations that round where they must and do all else exactly.
struct Yardstick {
  std::int64_t row_step = 1;
  std::vector<double> exact;       // fp64, unrounded
  reference::ErrorReport fused;    // one rounding, at the end
  reference::ErrorReport unfused;  // gate and up rounded first, to the type of A
  reference::ErrorReport eager;    // act(gate) rounded as well
  double measured_eager = 0;       // of two_gemms_silu_mul on the GPU, once it has run
  double rounding = 0;             // the error of one rounding to the type of A
  double noise = 0;                // accumulation_noise
};

// What fp32 accumulation over k, and an activation of a few ulp, may add to a relative error.
double accumulation_noise(std::int64_t k);

// From the fp64 sums of the rows that count.
Yardstick make_yardstick(const reference::Preactivations& sums, const Problem& problem,
                         const YardstickOptions& options);

class Inputs {
 public:
  explicit Inputs(const InputShape& shape);
  // The same object for the same shape; kept until the process ends.
  static std::shared_ptr<Inputs> shared(const InputShape& shape);

  const InputShape& shape() const { return shape_; }
  // The problem on these inputs, all contiguous; m at most shape().m.
  Problem problem(Layout layout, std::int64_t m) const;
  Operands operands(Layout layout);  // a, gate, up
  Yardstick& yardstick(const YardstickOptions& options);
  // Replaces A by other values.
  void refill_a(unsigned seed);

 private:
  using Bytes = std::vector<unsigned char>;
  struct Weights {
    runtime::Buffer gate, up;
  };

  Bytes normal(std::int64_t rows, double deviation, double mean, unsigned seed) const;
  runtime::Buffer upload(const Bytes& host) const;

  InputShape shape_;
  Bytes host_gate_, host_up_;
  runtime::Buffer a_;
  std::map<Layout, Weights> weights_;
  std::map<YardstickOptions, Yardstick> yardsticks_;
};

}  // namespace tileglu::gpu
