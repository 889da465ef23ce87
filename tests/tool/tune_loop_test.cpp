// SPDX-License-Identifier: Apache-2.0
// The loop of tune over kernels that are made up, with a clock that is set by hand.
#include "tileglu/tune_loop.hpp"

#include "core/format.hpp"
#include "io/files.hpp"
#include "io/tuning_cache.hpp"
#include "tileglu/progress.hpp"
#include "tileglu/tune_report.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>

namespace tileglu::tool {
namespace {

class FakeBench final : public TuneBench {
 public:
  struct Race {
    std::vector<std::string> kernels;
    bool thorough;
  };
  std::map<std::string, double> us;       // of a call, on a steady machine
  std::set<std::string> wrong, crashing;  // fail the verification, fail when timed
  std::set<std::int64_t> no_memory;       // problems by m that cannot be set up
  double clock_s = 0, slowdown = 1;       // slowdown: by how much each race is slower than the one before
  std::function<void()> on_race = [] {};
  std::vector<std::int64_t> begun;
  std::vector<std::string> verified;
  std::vector<Race> races;

  double now_s() override { return clock_s; }
  Status begin(const Problem& problem) override {
    begun.push_back(problem.m);
    clock_s += 1;
    return no_memory.contains(problem.m) ? Status(Code::kOutOfMemory, "no memory") : Status();
  }
  Status verify(const std::string& kernel) override {
    verified.push_back(kernel);
    clock_s += 1;
    return wrong.contains(kernel) ? Status(Code::kInternalError, "wrong result") : Status();
  }
  Result<std::vector<Measurement>> race(const std::vector<std::string>& kernels, bool thorough) override {
    races.push_back({kernels, thorough});
    on_race();
    clock_s += 1;
    std::vector<Measurement> measured;
    for (const std::string& kernel : kernels) {
      measured.emplace_back();
      if (crashing.contains(kernel))
        measured.back().status = {Code::kCudaError, "launch failed"};
      else
        measured.back().samples_us = {us.at(kernel) * heat_};
    }
    heat_ *= slowdown;
    return measured;
  }

 private:
  double heat_ = 1;
};

class TuneLoop : public testing::Test {
 protected:
  void add_problem(std::int64_t m, const std::vector<std::string>& kernels) {
    TuneProblem problem{.shape = {.m = m, .n = 64, .k = 64}};
    problem.problem.m = m;
    problem.key = {.device = "GPU", .sm_count = 1, .version = "1", .n = 64, .k = 64, .m_bucket = m_bucket(m)};
    for (const std::string& kernel : kernels) problem.candidates.push_back({.kernel = kernel});
    problems.push_back(std::move(problem));
  }

  TuneEnd tune() {
    TuneControl with = control;
    if (!with.stop) with.stop = [] { return false; };
    with.keep = [this](const TuningTable& rows) {
      for (const auto& [key, tuned] : rows) kept.insert_or_assign(key, tuned);
      return Status();
    };
    with.progress = [this](const Progress& p) { progress.push_back(p); };
    mark_known(problems, known);
    const Result<TuneEnd> end = tune_all(problems, bench, with);
    EXPECT_TRUE(end.ok()) << end.status().text();
    return end.value();
  }

  FakeBench bench;
  std::vector<TuneProblem> problems;
  TuningTable known, kept;
  TuneControl control;
  std::vector<Progress> progress;
};

TEST_F(TuneLoop, KeepsTheFastest) {
  bench.us = {{"a", 30}, {"b", 10}, {"c", 20}};
  add_problem(512, {"a", "b", "c"});
  EXPECT_EQ(tune(), TuneEnd::kDone);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.begin()->second, (TunedKernel{.kernel = "b", .m = 512, .median_us = 10}));
  EXPECT_EQ(problems[0].status, "tuned");
  EXPECT_EQ(bench.verified, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(TuneLoop, VerifiesBeforeItTimes) {
  bench.us = {{"a", 30}, {"liar", 1}, {"c", 20}};
  bench.wrong = {"liar"};
  add_problem(512, {"a", "liar", "c"});
  EXPECT_EQ(tune(), TuneEnd::kDone);
  EXPECT_EQ(kept.begin()->second.kernel, "c");
  for (const FakeBench::Race& race : bench.races) {
    EXPECT_EQ(std::count(race.kernels.begin(), race.kernels.end(), "liar"), 0);
  }
  EXPECT_EQ(problems[0].candidates[1].status, "failed");
  EXPECT_EQ(problems[0].candidates[1].reason, "wrong result");
  const TuneSummary summary = summarise(problems);
  EXPECT_EQ(summary.failed_candidates, 1);
  EXPECT_NE(summary.first_failure.find("liar: wrong result"), std::string::npos);
}

TEST_F(TuneLoop, OneThatFailsWhenTimedCannotWin) {
  bench.us = {{"a", 30}, {"crash", 1}, {"c", 20}};
  bench.crashing = {"crash"};
  add_problem(512, {"crash", "a", "c"});
  tune();
  EXPECT_EQ(kept.begin()->second.kernel, "c");
  EXPECT_EQ(problems[0].candidates[0].reason, "launch failed");
}

TEST_F(TuneLoop, NothingIsKeptIfNonePasses) {
  bench.us = {{"a", 1}, {"b", 1}};
  bench.wrong = {"a"};
  bench.crashing = {"b"};
  add_problem(512, {"a", "b"});
  add_problem(1024, {"a"});
  EXPECT_EQ(tune(), TuneEnd::kDone);
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(problems[0].status, "failed");
  EXPECT_EQ(problems[1].status, "failed");
}

TEST_F(TuneLoop, AProblemThatCannotBeSetUpDoesNotEndTheRun) {
  bench.us = {{"a", 1}};
  bench.no_memory = {512};
  add_problem(512, {"a"});
  add_problem(1024, {"a"});
  EXPECT_EQ(tune(), TuneEnd::kDone);
  EXPECT_EQ(problems[0].reason, "no memory");
  EXPECT_EQ(problems[1].status, "tuned");
}

TEST_F(TuneLoop, WithinHalfAPercentThePredictedOneWins) {
  bench.us = {{"a", 100.4}, {"b", 100}, {"c", 101}};
  add_problem(512, {"c", "a", "b"});
  tune();
  EXPECT_EQ(kept.begin()->second.kernel, "a");
}

// Many kernels on a machine that slows down from heat to heat: what is fast late must not lose to what was slow early.
TEST_F(TuneLoop, HeatsAreComparedByTheOneThatRunsInAll) {
  std::vector<std::string> kernels;
  for (int i = 0; i < 40; ++i) {
    kernels.push_back(formatted("k{}", i));
    bench.us[kernels.back()] = 100 - i;
  }
  bench.slowdown = 1.3;
  add_problem(512, kernels);
  tune();
  EXPECT_EQ(kept.begin()->second.kernel, "k39");
  for (const FakeBench::Race& race : bench.races) EXPECT_LE(race.kernels.size(), 8U);
  EXPECT_TRUE(bench.races.back().thorough);
  EXPECT_LE(bench.races.back().kernels.size(), 4U);
  EXPECT_EQ(std::count_if(bench.races.begin(), bench.races.end(), [](const auto& r) { return r.thorough; }), 1);
}

// --- Again and again ------------------------------------------------------------------------------------------------

TEST_F(TuneLoop, GoesOnWhereItWas) {
  bench.us = {{"a", 1}};
  for (const std::int64_t m : {256, 512, 1024}) add_problem(m, {"a"});
  const std::vector<TuneProblem> fresh = problems;
  int races = 0;
  bench.on_race = [&] { ++races; };
  control.stop = [&] { return races == 3; };  // in the second problem, before its final
  EXPECT_EQ(tune(), TuneEnd::kStopped);
  EXPECT_EQ(kept.size(), 1U);
  EXPECT_EQ(problems[0].status, "tuned");
  EXPECT_EQ(problems[1].status, "not_reached");
  EXPECT_EQ(problems[1].candidates[0].status, "not_tried");
  EXPECT_EQ(problems[2].status, "not_reached");

  known = kept;
  problems = fresh;
  bench.begun.clear();
  control.stop = {};
  EXPECT_EQ(tune(), TuneEnd::kDone);
  EXPECT_EQ(bench.begun, (std::vector<std::int64_t>{512, 1024}));
  EXPECT_EQ(problems[0].status, "known");
  EXPECT_EQ(problems[0].kernel, "a");
  EXPECT_EQ(kept.size(), 3U);

  known = kept;
  problems = fresh;
  bench.begun.clear();
  EXPECT_EQ(tune(), TuneEnd::kDone);
  EXPECT_TRUE(bench.begun.empty());
  problems = fresh;
  known.clear();
  tune();
  EXPECT_EQ(bench.begun.size(), 3U);
}

TEST_F(TuneLoop, ABucketIsTunedOnce) {
  bench.us = {{"a", 7}};
  for (const std::int64_t m : {500, 512, 513}) add_problem(m, {"a"});
  tune();
  EXPECT_EQ(bench.begun, (std::vector<std::int64_t>{500, 513}));
  EXPECT_EQ(problems[1].status, "duplicate");
  EXPECT_EQ(problems[1].reason, "in the bucket of m=500");
  EXPECT_EQ(kept.size(), 2U);
}

TEST_F(TuneLoop, BudgetEndsBetweenProblems) {
  bench.us = {{"a", 1}};
  for (const std::int64_t m : {256, 512, 1024}) add_problem(m, {"a"});
  control.budget_s = 5;  // a problem takes 4: set up, verified, timed twice
  EXPECT_EQ(tune(), TuneEnd::kBudgetSpent);
  EXPECT_EQ(kept.size(), 2U);
  EXPECT_EQ(problems[2].status, "not_reached");
}

TEST_F(TuneLoop, ARefusedProblemIsLeftAlone) {
  add_problem(512, {});
  problems[0].status = "refused";
  EXPECT_EQ(tune(), TuneEnd::kDone);
  EXPECT_TRUE(bench.begun.empty());
  EXPECT_EQ(problems[0].status, "refused");
}

TEST_F(TuneLoop, AResultThatCannotBeKeptEndsTheRun) {
  bench.us = {{"a", 1}};
  add_problem(512, {"a"});
  const Result<TuneEnd> end =
      tune_all(problems, bench,
               {.stop = [] { return false; },
                .keep = [](const TuningTable&) { return Status(Code::kInvalidArgument, "disk full"); }});
  EXPECT_EQ(end.status().text(), "disk full");
}

TEST_F(TuneLoop, ProgressGrowsToTheEnd) {
  bench.us = {{"a", 1}, {"b", 2}};
  bench.wrong = {"b"};
  for (const std::int64_t m : {256, 512, 1024}) add_problem(m, {"a", "b"});
  tune();
  double last = 0;
  for (const Progress& p : progress) {
    EXPECT_GE(p.share, last);
    last = p.share;
    EXPECT_EQ(p.total, 3);
  }
  EXPECT_EQ(progress.front().left_s, -1);
  EXPECT_EQ(progress.back().share, 1);
  EXPECT_EQ(progress.back().left_s, 0);
  EXPECT_EQ(progress.back().done, 3);
}

// --- Signals and files ----------------------------------------------------------------------------------------------

// A real signal in the middle of a race, and the real cache file: what was finished is in it, and the next run goes on.
TEST_F(TuneLoop, ASignalKeepsWhatIsFinished) {
  const io::test::TemporaryFolder folder;
  const auto path = folder / "tuning.json";
  bench.us = {{"a", 1}};
  for (const int number : {SIGINT, SIGTERM}) {
    std::filesystem::remove(path);
    problems.clear();
    for (const std::int64_t m : {256, 512, 1024}) add_problem(m, {"a"});
    int races = 0;
    bench.on_race = [&] {
      if (++races == 3) std::raise(number);
    };
    const auto run = [&] {
      const StopRequest request;
      mark_known(problems, io::read_tuning(path).value());
      return tune_all(problems, bench,
                      {.stop = [] { return StopRequest::signal() != 0; },
                       .keep = [&](const TuningTable& rows) { return io::add_tuning(path, rows); }})
          .value();
    };
    EXPECT_EQ(run(), TuneEnd::kStopped);
    EXPECT_EQ(StopRequest::signal(), number);
    EXPECT_EQ(races, 3) << "the race that runs is the last";
    EXPECT_EQ(io::read_tuning(path).value().size(), 1U);
    EXPECT_EQ(run(), TuneEnd::kDone);
    EXPECT_EQ(problems[0].status, "tuned");
    EXPECT_EQ(io::read_tuning(path).value().size(), 3U);
  }
}

TEST(StopRequest, ASecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopRequest request;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopRequest, LeavesTheHandlersAsTheyWere) {
  static volatile std::sig_atomic_t seen = 0;
  const auto before = std::signal(SIGTERM, [](int) { seen = 1; });
  { const StopRequest request; }
  std::raise(SIGTERM);
  std::signal(SIGTERM, before);
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace tileglu::tool
