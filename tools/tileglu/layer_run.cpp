// SPDX-License-Identifier: Apache-2.0
#include "layer_run.hpp"

#include "check.hpp"
#include "core/format.hpp"
#include "core/names.hpp"
#include "library.hpp"
#include "measure.hpp"
#include "output.hpp"
#include "random_data.hpp"

#include <algorithm>

namespace tileglu::tool {
namespace {

std::string shape_of(const io::TensorView& tensor) {
  return formatted("[{}, {}]", tensor.shape[0], tensor.shape[1]);
}

Status check_input(const Selected& selected, const io::TensorView& x, bool convert_input) {
  const io::GatedWeights& w = selected.weights;
  if (x.shape[1] != w.k) {
    return {Code::kInvalidArgument,
            formatted("--input: {} has shape {}, but the weights of layer {} are [{}, {}]: its columns must be k={}",
                      x.file, shape_of(x), selected.layer, w.n, w.k, w.k)};
  }
  if (widens(x.dtype, w.gate.dtype) || convert_input) return {};
  return {Code::kInvalidArgument,
          formatted("--input: {} is {} and the weights of layer {} are {}, which does not hold every value of it; "
                    "--convert-input rounds",
                    x.file, name_of(x.dtype), selected.layer, name_of(w.gate.dtype))};
}

class LayerRunner {
 public:
  LayerRunner(const Selected& selected, const LayerRequest& request) : selected_(selected), request_(request) {}

  Result<LayerResult> run(const io::TensorView& x) {
    result_.layer = selected_.layer;
    result_.expert = selected_.expert;
    TILEGLU_TRY(stage(x));
    TILEGLU_TRY(plan());
    TILEGLU_TRY(compute());
    if (request_.check && m_ > 0) {
      TILEGLU_TRY(check());
      TILEGLU_TRY(time());
    }
    deliver();
    return std::move(result_);
  }

 private:
  Status stage(const io::TensorView& x) {
    const Dtype dtype = selected_.weights.gate.dtype;
    const std::size_t alignment = std::max(size_of(dtype), size_of(request_.dtype_y.value_or(dtype)));
    Result<StagedWeights> staged = StagedWeights::make(selected_.weights, request_.place, alignment);
    TILEGLU_TRY(staged.status());
    original_ = std::move(staged.value());
    weights_ = original_;
    if (request_.repack && *request_.repack != original_.view().layout) TILEGLU_TRY(repack());
    m_ = x.shape[0];
    const std::size_t bytes = static_cast<std::size_t>(m_ * x.shape[1]) * size_of(dtype);
    std::vector<std::byte> converted(bytes);
    convert(x.dtype, x.data, dtype, converted.data(), m_ * x.shape[1]);
    Result<runtime::Buffer> a = runtime::Buffer::make(request_.place.memory, request_.place.device, bytes);
    TILEGLU_TRY(a.status());
    a_ = a.value();
    return a_.upload(converted.data(), bytes);
  }

  Status repack() {
    Result<runtime::Event> start = runtime::Event::make(Memory::kHost, 0);
    Result<runtime::Event> stop = runtime::Event::make(Memory::kHost, 0);
    TILEGLU_TRY(start.status());
    TILEGLU_TRY(stop.status());
    TILEGLU_TRY(start.value().record({}));
    Result<StagedWeights> relaid = original_.relaid(*request_.repack);
    TILEGLU_TRY(relaid.status());
    TILEGLU_TRY(stop.value().record({}));
    result_.repack_us = stop.value().microseconds_since(start.value()).value();
    weights_ = std::move(relaid.value());
    return {};
  }

  Problem problem_of(const StagedWeights& weights, Dtype dtype_y) const {
    Problem problem = weights.problem();
    problem.activation = request_.activation;
    problem.swiglu = request_.swiglu;
    problem.rounding = request_.rounding;
    problem.m = m_;
    problem.dtype_y = dtype_y;
    return problem;
  }

  // A Y that only has to be widened is widened afterwards where the backend does not write it itself.
  Status plan() {
    const Dtype dtype = selected_.weights.gate.dtype;
    result_.y_dtype = request_.dtype_y.value_or(dtype);
    problem_ = problem_of(weights_, result_.y_dtype);
    Result<Call> call = Call::plan(problem_, request_.options);
    const bool refused = !call.ok() && call.status().code() == Code::kNotSupported;
    if (refused && problem_.dtype_y != dtype && widens(dtype, problem_.dtype_y)) {
      problem_.dtype_y = dtype;
      call = Call::plan(problem_, request_.options);
    }
    TILEGLU_TRY(call.status());
    fused_ = std::move(call.value());
    result_.problem = problem_;
    result_.backend = fused_.backend();
    result_.kernel = fused_.kernel();
    result_.describe = fused_.describe();
    result_.weights_in_place = weights_.in_place();
    Result<runtime::Stream> stream = runtime::Stream::make(problem_.memory, problem_.device);
    TILEGLU_TRY(stream.status());
    stream_ = stream.value();
    return make_output(y_);
  }

  Status make_output(runtime::Buffer& buffer) const {
    const std::size_t bytes = static_cast<std::size_t>(m_ * problem_.n) * size_of(problem_.dtype_y);
    Result<runtime::Buffer> made = runtime::Buffer::make(problem_.memory, problem_.device, bytes);
    TILEGLU_TRY(made.status());
    buffer = made.value();
    return buffer.fill(reference::kPoisonByte);
  }

  Operands operands(const StagedWeights& weights, const runtime::Buffer& y) const {
    return {.a = a_.data(),
            .gate = weights.view().gate,
            .up = weights.view().up,
            .y = y.data(),
            .stream = stream_.handle()};
  }

  Status compute() {
    Result<runtime::Event> start = runtime::Event::make(problem_.memory, problem_.device);
    Result<runtime::Event> stop = runtime::Event::make(problem_.memory, problem_.device);
    TILEGLU_TRY(start.status());
    TILEGLU_TRY(stop.status());
    TILEGLU_TRY(start.value().record(stream_));
    TILEGLU_TRY(fused_.run(operands(weights_, y_)));
    TILEGLU_TRY(stop.value().record(stream_));
    TILEGLU_TRY(stream_.synchronize());
    const Result<double> elapsed = stop.value().microseconds_since(start.value());
    TILEGLU_TRY(elapsed.status());
    result_.fused_us = elapsed.value();
    return fetch(y_, host_y_);
  }

  static Status fetch(const runtime::Buffer& buffer, std::vector<std::byte>& host) {
    host.resize(buffer.size());
    return buffer.download(host.data(), host.size());
  }

  Status check() {
    const Problem plain = problem_of(original_, problem_.dtype_y);
    const Result<reference::Preactivations> preactivations = reference::preactivations(plain, operands(original_, y_));
    TILEGLU_TRY(preactivations.status());
    yardstick_ = make_yardstick(plain, preactivations.value());
    const Verdict verdict =
        judge(plain, yardstick_, {.kernel = result_.kernel, .y = host_y_.data(), .normal_data = false});
    result_.error = verdict.error;
    result_.unfused_error = yardstick_.unfused;
    result_.pass = verdict.pass;
    result_.reason = verdict.reason;
    return {};
  }

  // What frameworks run on the same device, on the weights as the checkpoint has them.
  Result<Call> plan_unfused(const Problem& problem) {
    const bool host = problem.memory == Memory::kHost;
    result_.unfused_kernel = host ? "two_gemms_act_mul" : "two_gemms_silu_mul";
    return Call::plan(problem,
                      {.backend = host ? BackendId::kCpu : BackendId::kCublas, .kernel = result_.unfused_kernel});
  }

  Status time() {
    std::vector<Contestant> contestants{[&](const runtime::Stream& stream, int) {
      Operands with_stream = operands(weights_, y_);
      with_stream.stream = stream.handle();
      return fused_.run(with_stream);
    }};
    runtime::Buffer unfused_y;
    const Result<Call> unfused = plan_unfused(problem_of(original_, problem_.dtype_y));
    if (unfused.ok()) {
      TILEGLU_TRY(make_output(unfused_y));
      contestants.push_back([&](const runtime::Stream& stream, int) {
        Operands with_stream = operands(original_, unfused_y);
        with_stream.stream = stream.handle();
        return unfused.value().run(with_stream);
      });
    } else {
      result_.unfused_reason = unfused.status().text();
    }
    const Result<std::vector<Measurement>> measured =
        measure(contestants, {.memory = problem_.memory, .device = problem_.device, .samples = request_.runs});
    TILEGLU_TRY(measured.status());
    for (const Measurement& measurement : measured.value()) TILEGLU_TRY(measurement.status);
    result_.fused_us = summarise(measured.value()[0].samples_us).median;
    if (!unfused.ok()) return {};
    result_.unfused_us = summarise(measured.value()[1].samples_us).median;
    std::vector<std::byte> host;
    TILEGLU_TRY(fetch(unfused_y, host));
    result_.unfused_kernel_error =
        reference::compare(problem_.dtype_y, m_, problem_.n, host.data(), problem_.n, yardstick_.exact);
    return {};
  }

  void deliver() {
    result_.y = std::move(host_y_);
    if (result_.y_dtype == problem_.dtype_y) return;
    std::vector<std::byte> widened(static_cast<std::size_t>(m_ * problem_.n) * size_of(result_.y_dtype));
    convert(problem_.dtype_y, result_.y.data(), result_.y_dtype, widened.data(), m_ * problem_.n);
    result_.y = std::move(widened);
  }

  const Selected& selected_;
  const LayerRequest& request_;
  LayerResult result_;
  StagedWeights original_, weights_;
  std::int64_t m_ = 0;
  runtime::Buffer a_, y_;
  runtime::Stream stream_;
  Problem problem_;
  Call fused_;
  Yardstick yardstick_;
  std::vector<std::byte> host_y_;
};

}  // namespace

Result<LayerResult> run_layer(const Selected& selected, const io::TensorView& x, const LayerRequest& request) {
  TILEGLU_TRY(check_input(selected, x, request.convert_input));
  return LayerRunner(selected, request).run(x);
}

}  // namespace tileglu::tool
