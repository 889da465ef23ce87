// SPDX-License-Identifier: Apache-2.0
#include "tune_report.hpp"

#include "core/format.hpp"
#include "core/names.hpp"
#include "output.hpp"

namespace tileglu::tool {
namespace {

// What the time model would have taken, if it was timed.
const TuneCandidate* predicted(const TuneProblem& problem) {
  if (problem.status != "tuned" || problem.candidates.front().status != "ok") return nullptr;
  return &problem.candidates.front();
}

Json candidate_json(const TuneCandidate& candidate) {
  const bool timed = candidate.status == "ok" && candidate.median_us > 0;
  return {{"kernel", candidate.kernel},
          {"predicted_us", candidate.predicted_us},
          {"median_us", timed ? Json(candidate.median_us) : Json(nullptr)},
          {"status", candidate.status},
          {"reason", candidate.reason}};
}

}  // namespace

TuneSummary summarise(const std::vector<TuneProblem>& problems) {
  TuneSummary summary;
  const auto note = [&](const std::string& failure) {
    if (summary.first_failure.empty()) summary.first_failure = failure;
  };
  for (const TuneProblem& problem : problems) {
    if (problem.status == "tuned") ++summary.tuned;
    if (problem.status == "known") ++summary.known;
    if (problem.status == "duplicate") ++summary.duplicate;
    if (problem.status == "refused") ++summary.refused;
    if (problem.status == "not_reached") ++summary.not_reached;
    for (const TuneCandidate& candidate : problem.candidates) {
      if (candidate.status != "failed") continue;
      ++summary.failed_candidates;
      note(formatted("{}: {}: {}", title_of(problem), candidate.kernel, candidate.reason));
    }
    if (problem.status == "failed") {
      ++summary.failed;
      note(formatted("{}: {}", title_of(problem), problem.reason));
    }
  }
  return summary;
}

Json tune_rows(const std::vector<TuneProblem>& problems) {
  Json rows = Json::array();
  for (const TuneProblem& problem : problems) {
    Json candidates = Json::array();
    for (const TuneCandidate& candidate : problem.candidates) candidates.push_back(candidate_json(candidate));
    const std::string& model = problem.shape.model;
    rows.push_back({{"model", model.empty() ? Json(nullptr) : Json(model)},
                    {"m", problem.shape.m},
                    {"m_bucket", problem.key.m_bucket},
                    {"n", problem.shape.n},
                    {"k", problem.shape.k},
                    {"dtype", name_of(problem.key.dtype)},
                    {"activation", name_of(problem.key.activation)},
                    {"layout", name_of(problem.key.layout)},
                    {"status", problem.status},
                    {"reason", problem.reason},
                    {"kernel", problem.kernel.empty() ? Json(nullptr) : Json(problem.kernel)},
                    {"median_us", problem.median_us > 0 ? Json(problem.median_us) : Json(nullptr)},
                    {"candidates", std::move(candidates)}});
  }
  return rows;
}

std::string tune_table(const std::vector<TuneProblem>& problems) {
  Table table({{"model", true},
               {"m", false},
               {"n", false},
               {"k", false},
               {"status", true},
               {"kernel", true},
               {"us", false},
               {"the model's choice", true},
               {"us", false}});
  std::string failures;
  for (const TuneProblem& problem : problems) {
    const auto us = [](double value) { return value > 0 ? formatted("{:.1f}", value) : std::string("-"); };
    const TuneCandidate* model = predicted(problem);
    table.add({problem.shape.model.empty() ? "-" : problem.shape.model, formatted("{}", problem.shape.m),
               formatted("{}", problem.shape.n), formatted("{}", problem.shape.k), problem.status,
               problem.kernel.empty() ? "-" : problem.kernel, us(problem.median_us),
               model == nullptr ? "-" : model->kernel, us(model == nullptr ? 0 : model->median_us)});
    if (!problem.reason.empty()) failures += formatted("  {}: {}\n", title_of(problem), one_line(problem.reason));
    for (const TuneCandidate& candidate : problem.candidates) {
      if (candidate.status != "failed") continue;
      failures += formatted("  {}: {}: {}\n", title_of(problem), candidate.kernel, one_line(candidate.reason));
    }
  }
  return table.text() + failures;
}

}  // namespace tileglu::tool
