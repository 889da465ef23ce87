// SPDX-License-Identifier: Apache-2.0
// libtileglu_jax: the C ABI as XLA FFI handlers, for python/tileglu/jax.py. A library of its own, since only it needs
// the headers that jaxlib brings along. One handler per platform; both take
//
//     arguments   x [..., k], gate [n, k], up [n, k], or x and one merged matrix [2n, k]; then bias_gate [n] and
//     bias_up [n],
//                 those whose bits are in `operands`
//     result      y [..., n]
//     attributes  activation, layout, rounding, operands, backend: numbers of tileglu.h; alpha, limit, up_offset;
//     kernel: text
#include <tileglu/tileglu.hpp>
#include <xla/ffi/api/ffi.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace {

namespace ffi = xla::ffi;

// Never freed: XLA may still run handlers while the process ends. NULL, which the library refuses, if out of memory.
tileglu_handle* plans() {
  static tileglu_handle* const handle = [] {
    tileglu_handle* created = nullptr;
    (void)tileglu_create(&created);
    return created;
  }();
  return handle;
}

ffi::Error failed(tileglu_status status) {
  const auto code = [status] {
    switch (status) {
      case TILEGLU_INVALID_ARGUMENT: return ffi::ErrorCode::kInvalidArgument;
      case TILEGLU_NOT_SUPPORTED: return ffi::ErrorCode::kUnimplemented;
      case TILEGLU_NOT_AVAILABLE: return ffi::ErrorCode::kUnavailable;
      case TILEGLU_OUT_OF_MEMORY: return ffi::ErrorCode::kResourceExhausted;
      default: return ffi::ErrorCode::kInternal;
    }
  }();
  return {code, std::string("tileglu: ") + tileglu_last_error()};
}

int32_t dtype_of(const ffi::AnyBuffer& buffer) {
  switch (buffer.element_type()) {
    case ffi::DataType::BF16: return TILEGLU_BF16;
    case ffi::DataType::F16: return TILEGLU_FP16;
    case ffi::DataType::F32: return TILEGLU_FP32;
    default: return 0;  // which the library refuses
  }
}

int32_t alignment_of(std::uintptr_t addresses) {
  const std::uintptr_t low = addresses & 15U;
  return low == 0 ? 16 : static_cast<int32_t>(low & -low);
}

struct Call {
  tileglu::Problem problem;
  tileglu::Options options;
  tileglu::Args args;
  std::string kernel;
};

// The attributes of a call.
struct How {
  int32_t activation, layout, rounding, operands;
  float alpha, limit, up_offset;
  int32_t backend;
  std::string_view kernel;
};

// Fills what both platforms share; an error if the shapes do not belong together.
ffi::Error read(Call& call, const ffi::AnyBuffer& x, const ffi::AnyBuffer& gate, const ffi::RemainingArgs& others,
                ffi::Result<ffi::AnyBuffer>& y, const How& how) {
  const bool separate = how.layout == TILEGLU_SEPARATE;
  const bool bias_gate = (how.operands & TILEGLU_BIAS_GATE) != 0, bias_up = (how.operands & TILEGLU_BIAS_UP) != 0;
  const std::size_t wanted = std::size_t{separate} + std::size_t{bias_gate} + std::size_t{bias_up};
  const auto x_shape = x.dimensions(), gate_shape = gate.dimensions(), y_shape = y->dimensions();
  if (others.size() != wanted || x_shape.size() < 1 || gate_shape.size() != 2 || y_shape.size() < 1) {
    return {ffi::ErrorCode::kInvalidArgument, "tileglu: x must be [..., k] and the weights matrices"};
  }
  const std::int64_t k = x_shape[x_shape.size() - 1], n = y_shape[y_shape.size() - 1];
  std::int64_t m = 1;
  for (std::size_t i = 0; i + 1 < x_shape.size(); ++i) m *= x_shape[i];
  const std::int64_t weight_rows = separate ? n : 2 * n;
  const auto fits = [&](const ffi::AnyBuffer& weight) {
    const auto shape = weight.dimensions();
    return shape.size() == 2 && shape[0] == weight_rows && shape[1] == k && weight.element_type() == x.element_type();
  };
  const auto fits_bias = [&](const ffi::AnyBuffer& bias) {
    const auto shape = bias.dimensions();
    return shape.size() == 1 && shape[0] == n && bias.element_type() == x.element_type();
  };
  bool right = fits(gate) && static_cast<std::int64_t>(y->element_count()) == m * n;
  std::size_t next = 0;
  const auto take = [&](bool given, auto fitting, const void*& address) {
    if (!given) return;
    const auto buffer = others.get<ffi::AnyBuffer>(next++);
    right = right && buffer.has_value() && fitting(*buffer);
    if (right) address = buffer->untyped_data();
  };
  take(separate, fits, call.args.up);
  take(bias_gate, fits_bias, call.args.bias_gate);
  take(bias_up, fits_bias, call.args.bias_up);
  if (!right) {
    return {ffi::ErrorCode::kInvalidArgument, "tileglu: shapes or dtypes of x, weights, biases and result do not fit"};
  }
  call.args.a = x.untyped_data(), call.args.gate = gate.untyped_data(), call.args.y = y->untyped_data();
  call.problem.dtype = dtype_of(x), call.problem.dtype_y = dtype_of(*y);
  call.problem.activation = how.activation, call.problem.layout = how.layout;
  call.problem.alpha = how.alpha, call.problem.limit = how.limit, call.problem.up_offset = how.up_offset;
  call.problem.rounding = how.rounding, call.problem.operands = static_cast<std::uint32_t>(how.operands);
  call.problem.m = m, call.problem.n = n, call.problem.k = k;
  const auto address = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  call.problem.alignment =
      alignment_of(address(call.args.a) | address(call.args.gate) | address(call.args.up) | address(call.args.y));
  call.kernel = how.kernel;
  call.options.backend = how.backend, call.options.kernel = call.kernel.c_str();
  return ffi::Error::Success();
}

constexpr std::size_t kWorkspaceAlignment = 256;  // of tileglu.h

// `allocate`: size -> address of workspace of that alignment, or NULL.
template <class Allocate>
ffi::Error run(Call& call, Allocate allocate) {
  std::size_t size = 0;
  if (const auto status = tileglu_workspace(plans(), &call.problem, &call.options, &size); status != TILEGLU_OK) {
    return failed(status);
  }
  if (size > 0) {
    call.args.workspace = allocate(size);
    if (call.args.workspace == nullptr) {
      return {ffi::ErrorCode::kResourceExhausted,
              "tileglu: no memory for a workspace of " + std::to_string(size) + " bytes"};
    }
    call.args.workspace_bytes = size;
  }
  const auto status = tileglu_run(plans(), &call.problem, &call.options, &call.args);
  return status == TILEGLU_OK ? ffi::Error::Success() : failed(status);
}

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

// A call on host memory has ended when it returns, so each thread keeps one.
void* host_workspace(std::size_t size) {
  thread_local std::unique_ptr<void, Free> memory;
  thread_local std::size_t have = 0;
  if (size > have) {
    have = 0;
    const std::size_t rounded = (size + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    memory.reset(std::aligned_alloc(kWorkspaceAlignment, rounded));
    if (memory != nullptr) have = rounded;
  }
  return memory.get();
}

ffi::Error glu_cpu(ffi::AnyBuffer x, ffi::AnyBuffer gate, ffi::RemainingArgs others, ffi::Result<ffi::AnyBuffer> y,
                   How how) {
  Call call;
  if (auto error = read(call, x, gate, others, y, how); error.failure()) return error;
  call.problem.memory = TILEGLU_MEMORY_HOST;
  return run(call, host_workspace);
}

ffi::Error glu_cuda(void* stream, int32_t device, ffi::ScratchAllocator scratch, ffi::AnyBuffer x, ffi::AnyBuffer gate,
                    ffi::RemainingArgs others, ffi::Result<ffi::AnyBuffer> y, How how) {
  Call call;
  if (auto error = read(call, x, gate, others, y, how); error.failure()) return error;
  call.problem.memory = TILEGLU_MEMORY_CUDA;
  call.problem.device = device;
  call.args.stream = stream;
  return run(call, [&](std::size_t size) -> void* {
    constexpr std::size_t kOffered = 16;  // the strictest alignment that XLA takes
    std::size_t space = size + kWorkspaceAlignment - kOffered;
    void* memory = scratch.Allocate(space, kOffered).value_or(nullptr);
    return memory == nullptr ? nullptr : std::align(kWorkspaceAlignment, size, memory, space);
  });
}

auto with_operands(auto binding) {
  return std::move(binding)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .RemainingArgs()
      .template Ret<ffi::AnyBuffer>()
      .template Attrs<How>();
}

}  // namespace

XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(How, xla::ffi::StructMember<int32_t>("activation"),
                                      xla::ffi::StructMember<int32_t>("layout"),
                                      xla::ffi::StructMember<int32_t>("rounding"),
                                      xla::ffi::StructMember<int32_t>("operands"),
                                      xla::ffi::StructMember<float>("alpha"), xla::ffi::StructMember<float>("limit"),
                                      xla::ffi::StructMember<float>("up_offset"),
                                      xla::ffi::StructMember<int32_t>("backend"),
                                      xla::ffi::StructMember<std::string_view>("kernel"));

#define TILEGLU_JAX_API extern "C" __attribute__((visibility("default")))

TILEGLU_JAX_API XLA_FFI_Error* tileglu_jax_cpu(XLA_FFI_CallFrame* frame);
XLA_FFI_DEFINE_HANDLER_SYMBOL(tileglu_jax_cpu, glu_cpu, with_operands(ffi::Ffi::Bind()));

// Its launches can be captured: XLA may make them part of a CUDA graph.
TILEGLU_JAX_API XLA_FFI_Error* tileglu_jax_cuda(XLA_FFI_CallFrame* frame);
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    tileglu_jax_cuda, glu_cuda,
    with_operands(
        ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Ctx<ffi::DeviceOrdinal>().Ctx<ffi::ScratchAllocator>()),
    {ffi::Traits::kCmdBufferCompatible});
