// SPDX-License-Identifier: Apache-2.0
// runtime.hpp over the CUDA runtime, which is linked statically and itself opens libcuda at run time: a binary built
// with CUDA starts on machines without a driver and says here what is missing.
#include "core/format.hpp"
#include "io/tuning_cache.hpp"
#include "runtime/device_guard.hpp"
#include "runtime/nvml.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace tileglu::runtime {
namespace {

constexpr std::size_t kPage = 4096;

std::string version_text(int version) {
  return formatted("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

int driver_version() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) (void)cudaGetLastError();
  return version;
}

Status ask_cuda_status() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return {};
  (void)cudaGetLastError();
  const int driver = driver_version();
  if (driver == 0) return {Code::kNotAvailable, "no NVIDIA driver is installed (no usable libcuda.so.1 was found)"};
  if (error == cudaErrorInsufficientDriver) {
    return {Code::kNotAvailable, formatted("the NVIDIA driver is too old: it supports {}, this build needs {}",
                                           version_text(driver), version_text(CUDART_VERSION))};
  }
  if (error == cudaSuccess || error == cudaErrorNoDevice) {
    return {Code::kNotAvailable, formatted("the NVIDIA driver ({}) shows no GPU to this process (none is there, or "
                                           "CUDA_VISIBLE_DEVICES hides it)",
                                           version_text(driver))};
  }
  return {Code::kNotAvailable, formatted("the NVIDIA driver ({}) cannot be used: {} ({})", version_text(driver),
                                         cudaGetErrorString(error), cudaGetErrorName(error))};
}

Status check_device(int device) {
  TILEGLU_TRY(cuda_status());
  if (device >= 0 && device < device_count()) return {};
  return {Code::kNotAvailable,
          formatted("device={} is not one of the {} GPUs of this machine", device, device_count())};
}

Result<DeviceSpec> ask_device_spec(int device) {
  TILEGLU_TRY(check_device(device));
  cudaDeviceProp properties{};
  TILEGLU_TRY(cuda_check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"));
  int clock_khz = 0;
  TILEGLU_TRY(cuda_check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device), "cudaDeviceGetAttribute"));
  return DeviceSpec{.name = properties.name,
                    .capability_major = properties.major,
                    .capability_minor = properties.minor,
                    .sm_count = properties.multiProcessorCount,
                    .l2_bytes = properties.l2CacheSize,
                    .shared_memory_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin),
                    .sm_clock_khz = clock_khz,
                    .tuning = io::process_tuning()};
}

cudaStream_t stream_of(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.handle());
}

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1};
}

Status check_range(std::size_t bytes, std::size_t offset, std::size_t size) {
  if (offset <= size && bytes <= size - offset) return {};
  return {Code::kInvalidArgument,
          formatted("bytes {} at offset {} lie outside a buffer of {} bytes", bytes, offset, size)};
}

// Copies and fills of the legacy stream may return before they are done (pageable memory, memset), and streams made
// here do not wait for it.
Status finish_legacy_stream() {
  return cuda_check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
}

}  // namespace

Status cuda_status() {
  static const Status status = ask_cuda_status();
  return status;
}

int device_count() {
  static const int count = [] {
    int devices = 0;
    return cuda_status().ok() && cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
  }();
  return count;
}

Result<DeviceSpec> device_spec(int device) {
  static std::mutex mutex;
  static std::map<int, DeviceSpec> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(device); found != known.end()) return found->second;
  Result<DeviceSpec> spec = ask_device_spec(device);
  if (spec.ok()) known.emplace(device, spec.value());
  return spec;
}

std::string driver_description() {
  const int version = driver_version();
  if (version == 0) return "none";
  const std::string number = nvml_driver_version();
  return formatted("driver {}, {}", number.empty() ? "of unknown version" : number, version_text(version));
}

Result<DeviceSensors> device_sensors(int device) {
  TILEGLU_TRY(check_device(device));
  char bus_id[32] = {};
  TILEGLU_TRY(cuda_check(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device), "cudaDeviceGetPCIBusId"));
  return nvml_sensors(bus_id);
}

// --- Buffer ----------------------------------------------------------------------------------------------------------

Result<Buffer> Buffer::make(Memory memory, int device, std::size_t bytes) {
  Buffer buffer;
  buffer.size_ = bytes;
  buffer.memory_ = memory;
  buffer.device_ = device;
  if (memory == Memory::kHost) {
    void* data = bytes > SIZE_MAX - kPage ? nullptr : std::aligned_alloc(kPage, (bytes / kPage + 1) * kPage);
    if (data == nullptr) return Status{Code::kOutOfMemory, formatted("no {} bytes of host memory", bytes)};
    buffer.data_ = {data, std::free};
    return buffer;
  }
  TILEGLU_TRY(check_device(device));
  const DeviceGuard guard(device);
  TILEGLU_TRY(guard.status());
  void* data = nullptr;
  const Status status = cuda_check(cudaMalloc(&data, bytes), "cudaMalloc");
  if (!status.ok()) return Status{status.code(), formatted("{} bytes on GPU {}: {}", bytes, device, status.text())};
  buffer.data_ = {data, [](void* pointer) { cudaFree(pointer); }};
  return buffer;
}

Status Buffer::upload(const void* host, std::size_t bytes, std::size_t offset) const {
  TILEGLU_TRY(check_range(bytes, offset, size_));
  if (bytes == 0) return {};
  char* target = static_cast<char*>(data_.get()) + offset;
  if (memory_ == Memory::kHost) {
    std::memcpy(target, host, bytes);
    return {};
  }
  const DeviceGuard guard(device_);
  TILEGLU_TRY(guard.status());
  TILEGLU_TRY(cuda_check(cudaMemcpy(target, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the GPU"));
  return finish_legacy_stream();
}

Status Buffer::download(void* host, std::size_t bytes, std::size_t offset) const {
  TILEGLU_TRY(check_range(bytes, offset, size_));
  if (bytes == 0) return {};
  const char* source = static_cast<const char*>(data_.get()) + offset;
  if (memory_ == Memory::kHost) {
    std::memcpy(host, source, bytes);
    return {};
  }
  const DeviceGuard guard(device_);
  TILEGLU_TRY(guard.status());
  return cuda_check(cudaMemcpy(host, source, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy from the GPU");
}

Status Buffer::fill(unsigned char byte) const {
  if (size_ == 0) return {};
  if (memory_ == Memory::kHost) {
    std::memset(data_.get(), byte, size_);
    return {};
  }
  const DeviceGuard guard(device_);
  TILEGLU_TRY(guard.status());
  TILEGLU_TRY(cuda_check(cudaMemset(data_.get(), byte, size_), "cudaMemset"));
  return finish_legacy_stream();
}

Status Buffer::fill_async(unsigned char byte, const Stream& stream) const {
  if (memory_ == Memory::kHost || size_ == 0) return fill(byte);
  const DeviceGuard guard(device_);
  TILEGLU_TRY(guard.status());
  return cuda_check(cudaMemsetAsync(data_.get(), byte, size_, stream_of(stream)), "cudaMemsetAsync");
}

// --- Stream, Event, Graph --------------------------------------------------------------------------------------------

Result<Stream> Stream::make(Memory memory, int device) {
  Stream stream;
  stream.memory_ = memory;
  stream.device_ = device;
  if (memory == Memory::kHost) return stream;
  TILEGLU_TRY(check_device(device));
  const DeviceGuard guard(device);
  TILEGLU_TRY(guard.status());
  cudaStream_t handle = nullptr;
  TILEGLU_TRY(cuda_check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
  stream.handle_ = {handle, [](cudaStream_t created) { cudaStreamDestroy(created); }};
  return stream;
}

Status Stream::synchronize() const {
  if (memory_ == Memory::kHost) return {};
  return cuda_check(cudaStreamSynchronize(static_cast<cudaStream_t>(handle_.get())), "cudaStreamSynchronize");
}

Result<Event> Event::make(Memory memory, int device) {
  Event event;
  event.memory_ = memory;
  if (memory == Memory::kHost) return event;
  TILEGLU_TRY(check_device(device));
  const DeviceGuard guard(device);
  TILEGLU_TRY(guard.status());
  cudaEvent_t handle = nullptr;
  TILEGLU_TRY(cuda_check(cudaEventCreate(&handle), "cudaEventCreate"));
  event.handle_ = {handle, [](cudaEvent_t created) { cudaEventDestroy(created); }};
  return event;
}

Status Event::record(const Stream& stream) {
  if (memory_ == Memory::kHost) {
    host_ns_ = now_ns();
    return {};
  }
  return cuda_check(cudaEventRecord(static_cast<cudaEvent_t>(handle_.get()), stream_of(stream)), "cudaEventRecord");
}

Result<double> Event::microseconds_since(const Event& start) const {
  if (memory_ == Memory::kHost) return static_cast<double>(host_ns_ - start.host_ns_) / 1000.0;
  float milliseconds = 0;
  TILEGLU_TRY(cuda_check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(start.handle_.get()),
                                              static_cast<cudaEvent_t>(handle_.get())),
                         "cudaEventElapsedTime"));
  return double{milliseconds} * 1000.0;
}

Result<Graph> Graph::capture(const Stream& stream, const std::function<Status()>& body) {
  if (stream.handle() == nullptr) {
    return Status{Code::kNotSupported, "work on host memory cannot be captured in a CUDA graph"};
  }
  // Thread-local: what other threads do meanwhile neither enters the graph nor breaks the capture.
  TILEGLU_TRY(cuda_check(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal),
                         "cudaStreamBeginCapture"));
  const Status body_status = body();
  cudaGraph_t captured = nullptr;
  const Status end_status = cuda_check(cudaStreamEndCapture(stream_of(stream), &captured), "cudaStreamEndCapture");
  const std::shared_ptr<CUgraph_st> owner(captured, [](cudaGraph_t graph) {
    if (graph != nullptr) cudaGraphDestroy(graph);
  });
  TILEGLU_TRY(body_status);
  TILEGLU_TRY(end_status);
  cudaGraphExec_t executable = nullptr;
  TILEGLU_TRY(cuda_check(cudaGraphInstantiate(&executable, captured, 0), "cudaGraphInstantiate"));
  Graph graph;
  graph.handle_ = {executable, [](cudaGraphExec_t created) { cudaGraphExecDestroy(created); }};
  return graph;
}

Status Graph::launch(const Stream& stream) const {
  return cuda_check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(handle_.get()), stream_of(stream)), "cudaGraphLaunch");
}

// ---------------------------------------------------------------------------------------------------------------------

Status fill_zero_rows(const Problem& problem, void* y, void* stream) {
  if (problem.m == 0 || problem.n == 0) return {};
  const std::size_t pitch = static_cast<std::size_t>(problem.ldy) * size_of(problem.dtype_y);
  const std::size_t width = static_cast<std::size_t>(problem.n) * size_of(problem.dtype_y);
  const auto rows = static_cast<std::size_t>(problem.m);
  if (problem.memory == Memory::kHost) {
    for (std::size_t row = 0; row < rows; ++row) std::memset(static_cast<char*>(y) + row * pitch, 0, width);
    return {};
  }
  const DeviceGuard guard(problem.device);
  TILEGLU_TRY(guard.status());
  const auto on = static_cast<cudaStream_t>(stream);
  if (pitch == width || rows == 1) return cuda_check(cudaMemsetAsync(y, 0, rows * width, on), "cudaMemsetAsync");
  return cuda_check(cudaMemset2DAsync(y, pitch, 0, width, rows, on), "cudaMemset2DAsync");
}

}  // namespace tileglu::runtime
