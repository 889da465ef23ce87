// SPDX-License-Identifier: Apache-2.0
#include "bench_shape.hpp"

#include "bench_check.hpp"
#include "core/format.hpp"
#include "core/names.hpp"

#include <algorithm>
#include <cmath>

namespace tileglu::tool {
namespace {

constexpr double kCachesToExceed = 3;
constexpr int kMaxSets = 1024;
// Decode, and calls shorter than this on a device that reaches kGraphFlops.
constexpr std::int64_t kGraphTokens = 128;
constexpr double kGraphCallUs = 50, kGraphFlops = 700e12;

class ShapeBench {
 public:
  ShapeBench(const Problem& problem, const BenchSettings& settings) : problem_(problem), settings_(settings) {}

  Status prepare(int sets) {
    Result<SyntheticData> data = SyntheticData::make(problem_, {.seed = settings_.seed, .sets = sets});
    if (!data.ok()) return data.status();
    data_ = std::move(data.value());
    for (int set = 0; set < sets; ++set) {
      Result<runtime::Buffer> y = runtime::Buffer::make(problem_.memory, problem_.device, output_bytes());
      if (!y.ok()) return y.status();
      y_.push_back(y.value());
    }
    Result<ResultCheck> check = ResultCheck::make(problem_, data_);
    if (!check.ok()) return check.status();
    check_ = std::move(check.value());
    return {};
  }

  // Plans, picks an algorithm, checks. Leaves the row's status at "ok" if it may be timed.
  void admit(BenchRow& row) {
    Result<Entrant> entrant = Entrant::make(row.contender, data_);
    if (!entrant.ok()) {
      const bool refused = entrant.status().code() == Code::kNotSupported;
      row.status = refused && !row.contender.required ? "skipped" : "error";
      row.reason = entrant.status().text();
      entrants_.emplace_back();
      return;
    }
    entrants_.emplace_back(std::move(entrant.value()));
    Entrant& admitted = *entrants_.back();
    row.backend = admitted.backend();
    row.layout = name_of(admitted.layout());
    row.describe = admitted.describe();
    Status status = admitted.is_gemm_only() ? pick_algorithm(admitted) : Status();
    if (status.ok()) status = check(admitted, row);
    row.config = admitted.config();
    if (!status.ok()) {
      row.status = "error";
      row.reason = status.text();
    }
  }

  // Times all rows that are still "ok". cublas_gemm_only runs a second time with the heuristic's first choice.
  Status time(std::vector<BenchRow>& rows, const MeasureOptions& options) {
    std::vector<Contestant> contestants;
    std::vector<std::pair<BenchRow*, bool>> owners;  // and whether it is the first algorithm
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].status != "ok") continue;
      const Entrant& entrant = *entrants_[i];
      contestants.push_back(contestant(entrant, rows[i].contender.name));
      owners.emplace_back(&rows[i], false);
      if (!entrant.is_gemm_only() || entrant.algorithm() == 0) continue;
      first_algorithm_ = entrant;
      first_algorithm_->set_algorithm(0);
      contestants.push_back(contestant(*first_algorithm_, rows[i].contender.name));
      owners.emplace_back(&rows[i], true);
    }
    if (contestants.empty()) return {};
    Result<std::vector<Measurement>> measured = measure(contestants, options);
    if (!measured.ok()) return measured.status();
    for (std::size_t i = 0; i < owners.size(); ++i) {
      auto [row, first] = owners[i];
      Measurement& measurement = measured.value()[i];
      if (first) {
        if (measurement.status.ok()) row->first_algorithm_us = summarise(measurement.samples_us).median;
      } else {
        take(*row, measurement);
      }
    }
    return {};
  }

 private:
  // Room for y, and for the product of the activation-free GEMM.
  std::size_t output_bytes() const {
    constexpr std::int64_t kPadding = 16;  // of the product's rows, elements
    return static_cast<std::size_t>(problem_.m * (2 * problem_.ldy + kPadding)) * size_of(problem_.dtype_y);
  }

  Operands operands(const Entrant& entrant, int set, void* stream) const {
    Operands operands = data_.operands(entrant.layout(), set);
    operands.y = y_[static_cast<std::size_t>(set)].data();
    operands.stream = stream;
    return operands;
  }

  Contestant contestant(const Entrant& entrant, const std::string& name) const {
    const bool fails = !name.empty() && name == settings_.error_contender;
    return [this, &entrant, fails](const runtime::Stream& stream, int set) -> Status {
      if (fails) return {Code::kCudaError, "injected failure"};
      return entrant.run(operands(entrant, set, stream.handle()));
    };
  }

  Status pick_algorithm(Entrant& entrant) const {
    std::vector<Entrant> variants(static_cast<std::size_t>(entrant.gemm().algorithms()), entrant);
    std::vector<Contestant> contestants;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      variants[i].set_algorithm(static_cast<int>(i));
      contestants.push_back(contestant(variants[i], {}));
    }
    const Result<int> best = fastest(contestants, {.memory = problem_.memory,
                                                   .device = problem_.device,
                                                   .sets = static_cast<int>(y_.size()),
                                                   .cuda_graph = settings_.cuda_graph});
    if (!best.ok()) return best.status();
    entrant.set_algorithm(best.value());
    return {};
  }

  Status check(const Entrant& entrant, BenchRow& row) const {
    TILEGLU_TRY(y_.front().fill(reference::kPoisonByte));
    Result<runtime::Stream> stream = runtime::Stream::make(problem_.memory, problem_.device);
    if (!stream.ok()) return stream.status();
    TILEGLU_TRY(entrant.run(operands(entrant, 0, stream.value().handle())));
    TILEGLU_TRY(stream.value().synchronize());
    const std::int64_t ld = entrant.is_gemm_only() ? entrant.gemm().product_ld() : problem_.ldy;
    std::vector<std::byte> host(static_cast<std::size_t>(problem_.m * ld) * size_of(problem_.dtype_y));
    TILEGLU_TRY(y_.front().download(host.data(), host.size()));
    const Fault fault = row.contender.name == settings_.wrong_contender ? Fault::kStripe : Fault::kNone;
    const ResultCheck::Outcome outcome = entrant.is_gemm_only() ? check_.product(entrant.layout(), ld, host)
                                                                : check_.output(entrant.config(), host, fault);
    row.relative_error = outcome.relative_error;
    row.reason = outcome.reason;
    if (!row.reason.empty()) row.status = "wrong";
    return {};
  }

  void take(BenchRow& row, Measurement& measurement) const {
    if (!measurement.status.ok() || measurement.samples_us.empty()) {
      row.status = "error";
      row.reason = measurement.status.ok() ? "no sample" : measurement.status.text();
      return;
    }
    row.calls_per_sample = measurement.calls_per_sample;
    row.host_us = measurement.host_us;
    row.samples_us = std::move(measurement.samples_us);
    row.time = summarise(row.samples_us);
    const Shape shape{.m = problem_.m, .n = problem_.n, .k = problem_.k};
    row.tflops = flops(shape) / row.time.median * 1e-6;
    row.gbps = bytes_moved(shape, problem_.dtype, problem_.dtype_y) / row.time.median * 1e-3;
    const auto flag = [&](double rate, std::optional<double> peak, const char* unit) {
      if (!peak || rate <= *peak || (!settings_.cold && unit == std::string("GB/s"))) return;
      row.status = "above_peak";
      row.reason = formatted("{:.4g} {} is more than the device's peak of {:.4g}", rate, unit, *peak);
    };
    flag(row.gbps, settings_.peak.gbps, "GB/s");
    flag(row.tflops, settings_.peak.tflops, "TFLOP/s");
  }

  Problem problem_;
  const BenchSettings& settings_;
  SyntheticData data_;
  std::vector<runtime::Buffer> y_;
  ResultCheck check_;
  std::vector<std::optional<Entrant>> entrants_;
  std::optional<Entrant> first_algorithm_;
};

}  // namespace

double flops(const Shape& shape) {
  return 4.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

double bytes_moved(const Shape& shape, Dtype dtype, Dtype dtype_y) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  return static_cast<double>(size_of(dtype)) * (m * k + 2 * n * k) + static_cast<double>(size_of(dtype_y)) * m * n;
}

int sets_past_cache(double set_bytes, Memory memory, int device) {
  const auto cache = static_cast<double>(last_cache_bytes(memory, device));
  return std::clamp(static_cast<int>(std::ceil(kCachesToExceed * cache / set_bytes)), 2, kMaxSets);
}

bool needs_graph(const Shape& shape) {
  return shape.m <= kGraphTokens || flops(shape) / kGraphFlops * 1e6 < kGraphCallUs;
}

Result<ShapeResult> bench_shape(const Shape& shape, Activation activation, const std::vector<Contender>& contenders,
                                const BenchSettings& settings) {
  const Result<Problem> with_operands = with_gate(settings.gate, contiguous({.dtype = settings.dtype,
                                                                             .dtype_y = settings.dtype_y,
                                                                             .activation = activation,
                                                                             .memory = settings.memory,
                                                                             .device = settings.device},
                                                                            shape));
  if (!with_operands.ok()) return with_operands.status();
  const Problem& problem = with_operands.value();
  ShapeResult result{.shape = shape, .activation = activation, .cuda_graph = settings.cuda_graph};
  result.operands = operand_names(problem);
  result.set_bytes = bytes_moved(shape, settings.dtype, settings.dtype_y);
  if (settings.cold) result.sets = sets_past_cache(result.set_bytes, settings.memory, settings.device);
  ShapeBench bench(problem, settings);
  TILEGLU_TRY(bench.prepare(result.sets));
  for (const Contender& contender : contenders) {
    result.rows.push_back({.contender = contender});
    bench.admit(result.rows.back());
  }
  const Status timed = bench.time(result.rows, {.memory = settings.memory,
                                                .device = settings.device,
                                                .sets = result.sets,
                                                .cuda_graph = settings.cuda_graph,
                                                .samples = settings.samples,
                                                .min_time_s = settings.min_time_s,
                                                .warmup_s = settings.warmup_s});
  for (BenchRow& row : result.rows) {
    if (timed.ok() || row.status != "ok") continue;
    row.status = "error";
    row.reason = timed.text();
  }
  return result;
}

}  // namespace tileglu::tool
