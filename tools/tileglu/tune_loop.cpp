// SPDX-License-Identifier: Apache-2.0
#include "tune_loop.hpp"

#include "core/format.hpp"

#include <algorithm>
#include <map>

namespace tileglu::tool {
namespace {

// Heats are small, so that a stop is heard soon; the best so far runs in each, so that all can be compared.
constexpr std::size_t kHeat = 8;
// Who runs in the thorough race: the best few, if they are this near to the best.
constexpr std::size_t kFinalists = 4;
constexpr double kNearBest = 1.05;
// Closer than a second run would tell apart: the one that was predicted to be faster wins.
constexpr double kTie = 1.005;

class Tuner {
 public:
  Tuner(std::vector<TuneProblem>& problems, TuneBench& bench, const TuneControl& control)
      : problems_(problems), bench_(bench), control_(control), start_s_(bench.now_s()) {
    for (const TuneProblem& problem : problems) {
      if (problem.status != "not_reached") continue;
      steps_ += steps_of(problem);
      ++total_;
    }
  }

  Result<TuneEnd> run() {
    for (TuneProblem& problem : problems_) {
      if (problem.status != "not_reached") continue;
      if (control_.stop()) return TuneEnd::kStopped;
      if (control_.budget_s > 0 && elapsed_s() >= control_.budget_s) return TuneEnd::kBudgetSpent;
      if (!tune(problem)) return TuneEnd::kStopped;
      if (problem.status == "tuned") TILEGLU_TRY(keep(problem));
      ++done_;
      steps_done_ = steps_before_ += steps_of(problem);
      report(problem.status == "tuned"
                 ? formatted("{}: {} {:.1f} us", title_of(problem), problem.kernel, problem.median_us)
                 : formatted("{}: {}", title_of(problem), problem.reason));
    }
    return TuneEnd::kDone;
  }

 private:
  Status keep(const TuneProblem& problem) const {
    const TunedKernel tuned{.kernel = problem.kernel, .m = problem.shape.m, .median_us = problem.median_us};
    return control_.keep({{problem.key, tuned}});
  }

  // A verification and a race each.
  static std::size_t steps_of(const TuneProblem& problem) { return 2 * problem.candidates.size(); }

  double elapsed_s() const { return bench_.now_s() - start_s_; }

  void report(std::string what) const {
    if (!control_.progress) return;
    Progress progress{.done = done_,
                      .total = total_,
                      .share = static_cast<double>(steps_done_) / static_cast<double>(steps_),
                      .what = std::move(what)};
    const double elapsed = elapsed_s();
    if (progress.share > 0) progress.left_s = elapsed * (1 - progress.share) / progress.share;
    if (control_.budget_s > 0) {
      const double budget_left = std::max(control_.budget_s - elapsed, 0.0);
      if (progress.left_s < 0 || progress.left_s > budget_left) progress.left_s = budget_left;
    }
    control_.progress(progress);
  }

  // False if it was stopped; the problem is then as if it had not been begun.
  bool tune(TuneProblem& problem) {
    report(title_of(problem));
    if (const Status status = bench_.begin(problem.problem); !status.ok()) {
      problem.status = "failed";
      problem.reason = status.text();
      return true;
    }
    std::vector<TuneCandidate*> passed;
    if (verify(problem, passed) && heats(problem, passed) && final_race(problem, passed)) return true;
    for (TuneCandidate& candidate : problem.candidates) {
      if (candidate.status == "ok") candidate.status = "not_tried", candidate.median_us = 0;
    }
    return false;
  }

  bool verify(TuneProblem& problem, std::vector<TuneCandidate*>& passed) {
    for (TuneCandidate& candidate : problem.candidates) {
      if (control_.stop()) return false;
      report(formatted("{}: verifying {}", title_of(problem), candidate.kernel));
      if (const Status status = bench_.verify(candidate.kernel); status.ok()) {
        candidate.status = "ok";
        passed.push_back(&candidate);
      } else {
        fail(candidate, status);
      }
      ++steps_done_;
    }
    return true;
  }

  // Leaves in `passed` those that ran, with their times relative to the best so far put on one scale.
  bool heats(TuneProblem& problem, std::vector<TuneCandidate*>& passed) {
    TuneCandidate* best = nullptr;
    for (std::size_t next = 0; next < passed.size();) {
      std::vector<TuneCandidate*> heat;
      if (best != nullptr) heat.push_back(best);
      const std::size_t first = next;
      while (heat.size() < kHeat && next < passed.size()) heat.push_back(passed[next++]);
      if (control_.stop()) return false;
      report(formatted("{}: timing {} kernels", title_of(problem), heat.size()));
      const double scale_to = best != nullptr ? best->median_us : 0;
      race(heat, false);
      if (best != nullptr && best->status == "ok") {
        const double scale = scale_to / best->median_us;
        for (TuneCandidate* candidate : heat) candidate->median_us *= scale;
      }
      for (TuneCandidate* candidate : heat) {
        const bool beaten = best == nullptr || best->status != "ok" || candidate->median_us < best->median_us;
        if (candidate->status == "ok" && beaten) best = candidate;
      }
      steps_done_ += next - first;
    }
    std::erase_if(passed, [](const TuneCandidate* candidate) { return candidate->status != "ok"; });
    return true;
  }

  bool final_race(TuneProblem& problem, std::vector<TuneCandidate*>& passed) {
    std::vector<TuneCandidate*> finalists = passed;
    std::ranges::stable_sort(finalists, {}, &TuneCandidate::median_us);
    if (finalists.size() > kFinalists) finalists.resize(kFinalists);
    std::erase_if(finalists, [limit = finalists.empty() ? 0 : kNearBest * finalists.front()->median_us](
                                 const TuneCandidate* candidate) { return candidate->median_us > limit; });
    if (control_.stop()) return false;
    report(formatted("{}: final of {} kernels", title_of(problem), finalists.size()));
    if (!finalists.empty()) race(finalists, true);
    double best_us = 0;
    for (const TuneCandidate* candidate : finalists) {
      if (candidate->status == "ok" && (best_us == 0 || candidate->median_us < best_us)) best_us = candidate->median_us;
    }
    problem.status = "failed";
    problem.reason = formatted("none of {} kernels passed", problem.candidates.size());
    for (const TuneCandidate& candidate : problem.candidates) {
      const bool finalist = std::ranges::find(finalists, &candidate) != finalists.end();
      if (!finalist || candidate.status != "ok" || candidate.median_us > kTie * best_us) continue;
      problem.status = "tuned";
      problem.reason.clear();
      problem.kernel = candidate.kernel;
      problem.median_us = candidate.median_us;
      break;
    }
    return true;
  }

  void race(const std::vector<TuneCandidate*>& runners, bool thorough) {
    std::vector<std::string> kernels;
    for (const TuneCandidate* runner : runners) kernels.push_back(runner->kernel);
    const Result<std::vector<Measurement>> measured = bench_.race(kernels, thorough);
    for (std::size_t i = 0; i < runners.size(); ++i) {
      if (!measured.ok()) {
        fail(*runners[i], measured.status());
      } else if (const Measurement& m = measured.value()[i]; m.status.ok() && !m.samples_us.empty()) {
        runners[i]->median_us = summarise(m.samples_us).median;
      } else {
        fail(*runners[i], m.status.ok() ? Status(Code::kInternalError, "no sample") : m.status);
      }
    }
  }

  static void fail(TuneCandidate& candidate, const Status& status) {
    candidate.status = "failed";
    candidate.reason = status.text();
    candidate.median_us = 0;
  }

  std::vector<TuneProblem>& problems_;
  TuneBench& bench_;
  const TuneControl& control_;
  double start_s_;
  int done_ = 0, total_ = 0;
  std::size_t steps_ = 0, steps_done_ = 0, steps_before_ = 0;
};

}  // namespace

void mark_known(std::vector<TuneProblem>& problems, const TuningTable& known) {
  std::map<TuningKey, std::int64_t> first_m;
  for (TuneProblem& problem : problems) {
    if (problem.status != "not_reached") continue;
    if (const auto row = known.find(problem.key); row != known.end()) {
      problem.status = "known";
      problem.kernel = row->second.kernel;
      problem.median_us = row->second.median_us;
    } else if (const auto [first, is_new] = first_m.try_emplace(problem.key, problem.shape.m); !is_new) {
      problem.status = "duplicate";
      problem.reason = formatted("in the bucket of m={}", first->second);
    }
  }
}

Result<TuneEnd> tune_all(std::vector<TuneProblem>& problems, TuneBench& bench, const TuneControl& control) {
  return Tuner(problems, bench, control).run();
}

std::string title_of(const TuneProblem& problem) {
  const Shape& s = problem.shape;
  return formatted("{}m={} n={} k={}", s.model.empty() ? "" : s.model + " ", s.m, s.n, s.k);
}

}  // namespace tileglu::tool
