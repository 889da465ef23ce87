// SPDX-License-Identifier: Apache-2.0
#include "core/validate.hpp"

#include "core/c_struct.hpp"
#include "core/checks.hpp"
#include "core/format.hpp"
#include "core/validate_extra.hpp"

namespace tileglu {
namespace {

using checks::invalid;

constexpr int kMaxAlignment = 4096;
constexpr std::size_t kMaxKernelName = 128;
constexpr std::size_t kWorkspaceAlignment = 256;

Status check_enums(const tileglu_problem& p) {
  TILEGLU_TRY(checks::in_range("dtype", p.dtype, Dtype::kBf16, Dtype::kFp32));
  if (p.dtype_y != 0) TILEGLU_TRY(checks::in_range("dtype_y", p.dtype_y, Dtype::kBf16, Dtype::kFp32));
  TILEGLU_TRY(checks::in_range("activation", p.activation, Activation::kSilu, Activation::kSwiglu));
  TILEGLU_TRY(checks::in_range("layout", p.layout, Layout::kSeparate, Layout::kInterleaved8));
  return checks::in_range("memory", p.memory, Memory::kHost, Memory::kCuda);
}

Status check_alignment(int alignment, Dtype dtype, Dtype dtype_y) {
  const int element = static_cast<int>(std::max(size_of(dtype), size_of(dtype_y)));
  if (alignment >= element && alignment <= kMaxAlignment && (alignment & (alignment - 1)) == 0) return {};
  return invalid("alignment={} is not a power of two from {} (the element size) to {}", alignment, element,
                 kMaxAlignment);
}

Status resolve_strides(Problem& p) {
  const auto in = static_cast<std::int64_t>(size_of(p.dtype));
  const auto out = static_cast<std::int64_t>(size_of(p.dtype_y));
  TILEGLU_TRY(checks::resolve_stride({"a", "lda", "k", p.m, p.k, in}, p.lda));
  TILEGLU_TRY(checks::resolve_weight_strides({p.layout, p.n, p.k, in}, "", p.ld_gate, p.ld_up));
  return checks::resolve_stride({"y", "ldy", "n", p.m, p.n, out}, p.ldy);
}

using checks::NamedRange;

// An operand that the run will touch. One of no bytes may be anything, NULL included.
Status check_operand(const NamedRange& operand, std::size_t alignment) {
  if (operand.range.bytes == 0) return {};
  if (operand.range.first == nullptr) {
    return invalid("{} is NULL and must hold {} bytes", operand.name, operand.range.bytes);
  }
  return checks::aligned(operand.name, operand.range.first, alignment);
}

Status check_apart(const NamedRange& written, const NamedRange& other) {
  if (!overlap(written.range, other.range)) return {};
  return invalid("{}={} ({} bytes) overlaps {}={} ({} bytes)", written.name, written.range.first, written.range.bytes,
                 other.name, other.range.first, other.range.bytes);
}

Status check_workspace(const tileglu_args& args, std::size_t needed) {
  if (needed == 0) return {};
  if (args.workspace == nullptr || args.workspace_bytes < needed) {
    return {Code::kWorkspaceTooSmall, formatted("workspace={} with workspace_bytes={}; this plan needs {} bytes",
                                                args.workspace, args.workspace_bytes, needed)};
  }
  return checks::aligned("workspace", args.workspace, kWorkspaceAlignment);
}

Status check_pointers(const tileglu_args& args, const Problem& p, std::size_t workspace_bytes) {
  const auto in = static_cast<std::int64_t>(size_of(p.dtype));
  const auto out = static_cast<std::int64_t>(size_of(p.dtype_y));
  // validate_problem has seen that no extent is too long.
  const auto bytes = [](std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t element) {
    return extent_bytes(rows, columns, ld, element).value_or(0);
  };
  const std::int64_t gate_rows = is_single_matrix(p.layout) ? 2 * p.n : p.n;
  const std::int64_t up_rows = is_single_matrix(p.layout) ? 0 : p.n;
  const auto add = checks::extra_inputs(args, p);
  const auto pre = checks::extra_outputs(args, p);
  // What is read, then what is written, which may touch nothing that stands before it.
  constexpr std::size_t kFirstWritten = 7, kFirstExtra = 3, kFirstMain = 9;
  const std::array<NamedRange, 11> operands{
      {{"a", {args.a, bytes(p.m, p.k, p.lda, in)}},
       {"gate", {args.gate, bytes(gate_rows, p.k, p.ld_gate, in)}},
       {"up", {args.up, bytes(up_rows, p.k, p.ld_up, in)}},
       add[0],
       add[1],
       add[2],
       add[3],
       pre[0],
       pre[1],
       {"y", {args.y, bytes(p.m, p.n, p.ldy, out)}},
       {"workspace", {args.workspace, static_cast<std::int64_t>(workspace_bytes)}}}};
  for (std::size_t i = 0; i + 1 < operands.size(); ++i) {
    const bool extra = i >= kFirstExtra && i < kFirstMain;
    TILEGLU_TRY(check_operand(operands[i], extra ? size_of(p.dtype) : static_cast<std::size_t>(p.alignment)));
  }
  TILEGLU_TRY(check_workspace(args, workspace_bytes));
  for (std::size_t written = kFirstWritten; written < operands.size(); ++written) {
    for (std::size_t other = 0; other < written; ++other) TILEGLU_TRY(check_apart(operands[written], operands[other]));
  }
  return {};
}

}  // namespace

Result<Problem> validate_problem(const tileglu_problem* problem) {
  const Result<tileglu_problem> read = read_struct(problem, "problem", kProblemV1);
  if (!read.ok()) return read.status();
  const tileglu_problem& c = read.value();
  TILEGLU_TRY(check_enums(c));
  TILEGLU_TRY(checks::size_in_range("m", c.m));
  TILEGLU_TRY(checks::size_in_range("n", c.n));
  TILEGLU_TRY(checks::size_in_range("k", c.k));
  Problem p{
      .dtype = static_cast<Dtype>(c.dtype),
      .dtype_y = static_cast<Dtype>(c.dtype_y == 0 ? c.dtype : c.dtype_y),
      .activation = static_cast<Activation>(c.activation),
      .layout = static_cast<Layout>(c.layout),
      .memory = static_cast<Memory>(c.memory),
      .device = c.memory == TILEGLU_MEMORY_HOST ? 0 : c.device,
      .alignment = c.alignment == 0 ? 16 : c.alignment,
      .m = c.m,
      .n = c.n,
      .k = c.k,
      .lda = c.lda,
      .ld_gate = c.ld_gate,
      .ld_up = c.ld_up,
      .ldy = c.ldy,
  };
  if (p.device < 0) return invalid("device={} is below 0 (a CUDA ordinal)", p.device);
  TILEGLU_TRY(check_alignment(p.alignment, p.dtype, p.dtype_y));
  TILEGLU_TRY(resolve_strides(p));
  TILEGLU_TRY(checks::read_extra(c, p));
  return p;
}

Result<OptionsView> view_options(const tileglu_options* options) {
  if (options == nullptr) return OptionsView{};
  const Result<tileglu_options> read = read_struct(options, "options", kOptionsV1);
  if (!read.ok()) return read.status();
  TILEGLU_TRY(checks::in_range("options.backend", read.value().backend, BackendId::kAuto, BackendId::kCpu));
  constexpr std::uint32_t kFlags = TILEGLU_PREFETCH_WEIGHTS | TILEGLU_BATCH_INVARIANT;
  const std::uint32_t flags = read.value().flags;
  if ((flags & ~kFlags) != 0) return invalid("options.flags={:#x} has bits outside {:#x}", flags, kFlags);
  if (read.value().reserved != 0) return invalid("options.reserved={} must be 0", read.value().reserved);
  OptionsView view{.backend = static_cast<BackendId>(read.value().backend),
                   .kernel = {},
                   .prefetch_weights = (flags & TILEGLU_PREFETCH_WEIGHTS) != 0,
                   .batch_invariant = (flags & TILEGLU_BATCH_INVARIANT) != 0};
  const char* kernel = read.value().kernel;
  if (kernel == nullptr) return view;
  std::size_t length = 0;
  for (; kernel[length] != '\0'; ++length) {
    const char c = kernel[length];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain || length == kMaxKernelName) {
      return invalid(
          "options.kernel has byte {:#04x} at position {}; kernel names are up to {} characters of a-z 0-9 _",
          static_cast<unsigned char>(c), length, kMaxKernelName);
    }
  }
  view.kernel = {kernel, length};
  return view;
}

Result<PlanOptions> validate_options(const tileglu_options* options) {
  const Result<OptionsView> view = view_options(options);
  if (!view.ok()) return view.status();
  return view.value().copy();
}

Result<Operands> validate_args(const tileglu_args* args, const Problem& problem, std::size_t workspace_bytes) {
  const Result<tileglu_args> read = read_struct(args, "args", kArgsV1);
  if (!read.ok()) return read.status();
  const tileglu_args& c = read.value();
  if (c.reserved != 0) return invalid("args.reserved={} must be 0", c.reserved);
  if (is_single_matrix(problem.layout) && c.up != nullptr) {
    return invalid("up={} must be NULL in layout {} (one matrix with base gate)", c.up, name_of(problem.layout));
  }
  TILEGLU_TRY(checks::extra_pointers_belong(c, problem));
  // Nothing is launched for m = 0 or n = 0, so nothing is asked of the pointers.
  if (problem.m > 0 && problem.n > 0) TILEGLU_TRY(check_pointers(c, problem, workspace_bytes));
  return Operands{.a = c.a,
                  .gate = c.gate,
                  .up = c.up,
                  .y = c.y,
                  .workspace = c.workspace,
                  .workspace_bytes = c.workspace_bytes,
                  .stream = c.stream,
                  .bias_gate = c.bias_gate,
                  .bias_up = c.bias_up,
                  .add_gate = c.add_gate,
                  .add_up = c.add_up,
                  .pre_gate = c.pre_gate,
                  .pre_up = c.pre_up};
}

}  // namespace tileglu
