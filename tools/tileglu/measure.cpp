// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

namespace tileglu::tool {
namespace {

constexpr int kMaxSamples = 2000;
constexpr double kSampleUs = 200;  // a GPU sample holds enough calls to be at least this long
constexpr int kMaxCallsPerSample = 512;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Race {
 public:
  Race(const std::vector<Contestant>& contestants, const MeasureOptions& options, runtime::Stream stream)
      : contestants_(contestants),
        options_(options),
        stream_(std::move(stream)),
        results_(contestants.size()),
        graphs_(contestants.size()),
        order_(contestants.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  Status run() {
    for (std::size_t i = 0; i < contestants_.size(); ++i) prepare(i);
    TILEGLU_TRY(stream_.synchronize());
    warm_up();
    for (int round = 0; round < kMaxSamples && !enough(); ++round) TILEGLU_TRY(sample_round());
    return {};
  }
  std::vector<Measurement> take() { return std::move(results_); }

 private:
  bool on_gpu() const { return options_.memory == Memory::kCuda; }
  bool alive(std::size_t i) const { return results_[i].status.ok(); }
  void fail(std::size_t i, Status status) {
    results_[i].status = std::move(status);
    results_[i].samples_us.clear();
  }

  Status calls(std::size_t i, int count) {
    for (int call = 0; call < count; ++call) TILEGLU_TRY(contestants_[i](stream_, next_set_++ % options_.sets));
    return {};
  }

  // Loads what loads lazily, finds the number of calls a sample needs, captures the graph.
  void prepare(std::size_t i) {
    constexpr int kPilotCalls = 3;
    Status status = calls(i, 1);
    double pilot_us = 0;
    if (status.ok()) status = timed([&] { return calls(i, kPilotCalls); }, pilot_us);
    if (status.ok()) status = time_host(i);
    if (!status.ok()) return fail(i, std::move(status));
    const double call_us = std::max(pilot_us / kPilotCalls, 0.1);
    int& count = results_[i].calls_per_sample;
    if (on_gpu()) count = std::clamp(static_cast<int>(std::ceil(kSampleUs / call_us)), 1, kMaxCallsPerSample);
    if (!options_.cuda_graph) return;
    count = (count + options_.sets - 1) / options_.sets * options_.sets;
    next_set_ = 0;
    Result<runtime::Graph> graph = runtime::Graph::capture(stream_, [&] { return calls(i, count); });
    if (!graph.ok()) return fail(i, graph.status());
    graphs_[i] = graph.value();
  }

  // Few enough calls that the queue does not fill.
  Status time_host(std::size_t i) {
    constexpr int kCalls = 32;
    const double begin = seconds_now();
    TILEGLU_TRY(calls(i, kCalls));
    results_[i].host_us = (seconds_now() - begin) * 1e6 / kCalls;
    return stream_.synchronize();
  }

  Status one_sample(std::size_t i) {
    return options_.cuda_graph ? graphs_[i].launch(stream_) : calls(i, results_[i].calls_per_sample);
  }

  Status timed(const std::function<Status()>& body, double& microseconds) {
    Result<runtime::Event> start = runtime::Event::make(options_.memory, options_.device);
    Result<runtime::Event> stop = runtime::Event::make(options_.memory, options_.device);
    TILEGLU_TRY(start.status());
    TILEGLU_TRY(stop.status());
    TILEGLU_TRY(start.value().record(stream_));
    TILEGLU_TRY(body());
    TILEGLU_TRY(stop.value().record(stream_));
    TILEGLU_TRY(stream_.synchronize());
    const Result<double> elapsed = stop.value().microseconds_since(start.value());
    if (elapsed.ok()) microseconds = elapsed.value();
    return elapsed.status();
  }

  void warm_up() {
    for (const double end = seconds_now() + options_.warmup_s; seconds_now() < end;) {
      for (std::size_t i = 0; i < contestants_.size(); ++i) {
        if (!alive(i)) continue;
        Status status = one_sample(i);
        if (status.ok()) status = stream_.synchronize();
        if (!status.ok()) fail(i, std::move(status));
      }
      if (std::none_of(results_.begin(), results_.end(), [](const Measurement& r) { return r.status.ok(); })) return;
    }
  }

  bool enough() const {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (!alive(i)) continue;
      const Measurement& result = results_[i];
      double total_us = 0;
      for (const double sample : result.samples_us) total_us += sample * result.calls_per_sample;
      if (static_cast<int>(result.samples_us.size()) < options_.samples || total_us < options_.min_time_s * 1e6) {
        return false;
      }
    }
    return true;
  }

  // All samples of a round are enqueued before any is waited for, behind one untimed call: the GPU then never waits for
  // the host, and a start event is not followed by a gap.
  Status sample_round() {
    struct Span {
      std::size_t contestant;
      runtime::Event start, stop;
    };
    std::vector<Span> spans;
    std::shuffle(order_.begin(), order_.end(), random_);
    for (const std::size_t i : order_) {
      if (!alive(i)) continue;
      if (spans.empty() && on_gpu()) TILEGLU_TRY(one_sample(i));
      Result<runtime::Event> start = runtime::Event::make(options_.memory, options_.device);
      Result<runtime::Event> stop = runtime::Event::make(options_.memory, options_.device);
      TILEGLU_TRY(start.status());
      TILEGLU_TRY(stop.status());
      TILEGLU_TRY(start.value().record(stream_));
      if (Status status = one_sample(i); !status.ok()) {
        fail(i, std::move(status));
        continue;
      }
      TILEGLU_TRY(stop.value().record(stream_));
      spans.push_back({.contestant = i, .start = start.value(), .stop = stop.value()});
    }
    TILEGLU_TRY(stream_.synchronize());
    for (const Span& span : spans) {
      const Result<double> elapsed = span.stop.microseconds_since(span.start);
      TILEGLU_TRY(elapsed.status());
      Measurement& result = results_[span.contestant];
      if (result.status.ok()) result.samples_us.push_back(elapsed.value() / result.calls_per_sample);
    }
    return {};
  }

  const std::vector<Contestant>& contestants_;
  MeasureOptions options_;
  runtime::Stream stream_;
  std::vector<Measurement> results_;
  std::vector<runtime::Graph> graphs_;
  std::vector<std::size_t> order_;  // of a round
  std::mt19937 random_;
  int next_set_ = 0;
};

}  // namespace

Statistics summarise(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double q) {
    const double position = q * static_cast<double>(samples.size() - 1);
    const auto low = static_cast<std::size_t>(position);
    const std::size_t high = std::min(low + 1, samples.size() - 1);
    return samples[low] + (samples[high] - samples[low]) * (position - static_cast<double>(low));
  };
  return {.median = quantile(0.5), .p5 = quantile(0.05), .p95 = quantile(0.95)};
}

Result<std::vector<Measurement>> measure(const std::vector<Contestant>& contestants, const MeasureOptions& options) {
  Result<runtime::Stream> stream = runtime::Stream::make(options.memory, options.device);
  if (!stream.ok()) return stream.status();
  Race race(contestants, options, stream.value());
  TILEGLU_TRY(race.run());
  return race.take();
}

Result<int> fastest(const std::vector<Contestant>& contestants, MeasureOptions options) {
  options.samples = 7;
  options.min_time_s = 0;
  options.warmup_s = 0;
  const Result<std::vector<Measurement>> measured = measure(contestants, options);
  if (!measured.ok()) return measured.status();
  int best = -1;
  double best_us = 0;
  Status failure(Code::kNotSupported, "nothing to choose from");
  for (std::size_t i = 0; i < measured.value().size(); ++i) {
    const Measurement& measurement = measured.value()[i];
    if (!measurement.status.ok()) {
      failure = measurement.status;
      continue;
    }
    const double median = summarise(measurement.samples_us).median;
    if (best < 0 || median < best_us) best = static_cast<int>(i), best_us = median;
  }
  if (best < 0) return failure;
  return best;
}

}  // namespace tileglu::tool
