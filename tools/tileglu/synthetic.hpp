// SPDX-License-Identifier: Apache-2.0
// Operands of random normal data for verify and bench: A ~ N(0,1) * scale, gate ~ N(0,1)/sqrt(k), up ~ N(0,1)/sqrt(k) +
// 0.5/k, so that gate and up are not exchangeable. Outputs are poisoned and lie between guards.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "extra_data.hpp"
#include "runtime/runtime.hpp"

#include <map>
#include <vector>

namespace tileglu::tool {

struct SyntheticOptions {
  std::uint64_t seed = 1;
  double a_scale = 1;
  int sets = 1;  // copies of A and of the weights, for rotation past the cache; they hold the same values
};

class SyntheticData {
 public:
  // dtype, memory, device, m, n, k, lda, ld_gate and the extra operands are read from `problem`; ld_gate is the row
  // stride of every layout.
  static Result<SyntheticData> make(const Problem& problem, const SyntheticOptions& options);
  // Lays the weights out in this way too, in every set; nothing to do the second time.
  Status add_layout(Layout layout);
  // A, the weights and the extra operands of one set in a layout that was added; kSeparate always is.
  Operands operands(Layout layout, int set) const;
  // The problem with its layout and weight strides as these operands have them.
  Problem problem(Layout layout) const;
  const ExtraData& extra(int set) const { return extra_[static_cast<std::size_t>(set)]; }

 private:
  bool shares_separate(Layout layout) const;

  Problem problem_;
  std::size_t up_offset_ = 0;  // bytes from gate to up in kSeparate: a multiple of 16, so that both are aligned
  std::vector<runtime::Buffer> a_;
  std::vector<ExtraData> extra_;
  std::map<Layout, std::vector<runtime::Buffer>> weights_;  // by layout, then by set
};

// Y of one problem between two guards.
class GuardedOutput {
 public:
  static Result<GuardedOutput> make(const Problem& problem);
  Status poison() const;
  void* y() const;
  // Copies Y and its guards to the host.
  Status download();
  std::byte* host_y();
  // After download(): whether the guards and what lies between the rows still hold the poison.
  bool guards_intact() const;

 private:
  Problem problem_;
  runtime::Buffer buffer_;
  std::vector<std::byte> host_;
};

// Refuses to start what the machine has no memory for, before the kernel would end the process.
Status check_host_memory(std::size_t bytes, const std::string& what);

}  // namespace tileglu::tool
