// SPDX-License-Identifier: Apache-2.0
// The loop of tune: of each problem the candidates are verified, those that pass race each other, the fastest is kept.
// It sees kernels and the clock only through TuneBench, so that tests drive it without a GPU.
#pragma once

#include "measure.hpp"
#include "options.hpp"
#include "plan/tuning.hpp"
#include "progress.hpp"

#include <functional>
#include <string>
#include <vector>

namespace tileglu::tool {

struct TuneCandidate {
  std::string kernel = {};
  double predicted_us = 0;
  std::string status = "not_tried";  // not_tried, ok, failed
  std::string reason = {};           // of failed
  double median_us = 0;              // only if ok
};

struct TuneProblem {
  Shape shape = {};
  Problem problem = {};
  TuningKey key = {};
  std::vector<TuneCandidate> candidates = {};  // the legal ones, best predicted first
  // not_reached, refused (no legal candidate), known (the file has its bucket already), duplicate (of one before it, in
  // the same bucket), tuned, failed
  std::string status = "not_reached";
  std::string reason = {};  // of refused, duplicate and failed
  std::string kernel = {};  // of known and tuned
  double median_us = 0;
};

// One problem at a time.
class TuneBench {
 public:
  virtual ~TuneBench() = default;
  virtual double now_s() = 0;
  // Data and references of the problem that the following calls are about.
  virtual Status begin(const Problem& problem) = 0;
  // OK, or why the kernel must not win.
  virtual Status verify(const std::string& kernel) = 0;
  // The kernels timed against each other; one measurement each, in order. `thorough`: enough samples to publish.
  virtual Result<std::vector<Measurement>> race(const std::vector<std::string>& kernels, bool thorough) = 0;
};

struct TuneControl {
  double budget_s = 0;                                  // no further problem is begun after this time; 0: no limit
  std::function<bool()> stop = {};                      // asked before each verification and each race
  std::function<Status(const TuningTable&)> keep = {};  // stores a finished problem
  std::function<void(const Progress&)> progress = {};   // counts problems
};

enum class TuneEnd { kDone, kStopped, kBudgetSpent };

// Marks what is known or duplicate.
void mark_known(std::vector<TuneProblem>& problems, const TuningTable& known);
// Fills in status and result of each problem that is not_reached. An error is keep's.
Result<TuneEnd> tune_all(std::vector<TuneProblem>& problems, TuneBench& bench, const TuneControl& control);

std::string title_of(const TuneProblem& problem);

}  // namespace tileglu::tool
