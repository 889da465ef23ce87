// SPDX-License-Identifier: Apache-2.0
// The C ABI: validate -> plan -> run. No policy here; the only try/catch of the library.
#include "api/plan_cache.hpp"
#include "backends/backend.hpp"
#include "build_info.hpp"
#include "core/checks.hpp"
#include "core/format.hpp"
#include "core/validate.hpp"
#include "pack/relayout.hpp"

#include <cstring>
#include <exception>
#include <new>

struct tileglu_plan {
  tileglu::PlannedProblem planned;
};
struct tileglu_handle {
  tileglu::PlanCache plans;
};

namespace {

using tileglu::BackendId;
using tileglu::Code;
using tileglu::Result;
using tileglu::Status;
using tileglu::checks::invalid;

// `text`, or where memory may be short a literal.
struct LastError {
  std::string text;
  const char* literal = "";
};
thread_local LastError last_error;

tileglu_status fail(Code code, const char* literal) noexcept {
  last_error.text.clear();
  last_error.literal = literal;
  return static_cast<tileglu_status>(code);
}

tileglu_status fail(Status status) noexcept {
  const Code code = status.code();
  last_error.text = std::move(status).take_text();
  last_error.literal = "";
  return static_cast<tileglu_status>(code);
}

// Runs `body`, which returns Status, and turns whatever comes out into a code and the thread's last error.
template <class Body>
tileglu_status guarded(Body&& body) noexcept {
  try {
    Status status = body();
    return status.ok() ? TILEGLU_OK : fail(std::move(status));
  } catch (const std::bad_alloc&) {
    return fail(Code::kOutOfMemory, "out of host memory");
  } catch (const std::exception& error) {
    try {
      return fail(Status(Code::kInternalError, std::string("unexpected exception: ") + error.what()));
    } catch (...) {
      return fail(Code::kInternalError, "unexpected exception");
    }
  } catch (...) {
    return fail(Code::kInternalError, "unexpected exception of unknown type");
  }
}

// The number in an enumeration that a C caller may have filled with anything; reading it as the enumeration is
// undefined in C++ if it is out of range.
template <class Enum>
int number_in(const Enum& value) {
  int number = 0;
  static_assert(sizeof(value) == sizeof(number));
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

Result<tileglu::PlannedProblem> plan(const tileglu_problem* problem, const tileglu_options* options) {
  const Result<tileglu::Problem> valid = tileglu::validate_problem(problem);
  if (!valid.ok()) return valid.status();
  const Result<tileglu::PlanOptions> valid_options = tileglu::validate_options(options);
  if (!valid_options.ok()) return valid_options.status();
  return tileglu::plan_problem(valid.value(), valid_options.value());
}

Result<std::shared_ptr<const tileglu::PlannedProblem>> cached_plan(tileglu_handle* handle,
                                                                   const tileglu_problem* problem,
                                                                   const tileglu_options* options) {
  if (handle == nullptr) return invalid("handle is NULL");
  const Result<tileglu::Problem> valid = tileglu::validate_problem(problem);
  if (!valid.ok()) return valid.status();
  const Result<tileglu::OptionsView> view = tileglu::view_options(options);
  if (!view.ok()) return view.status();
  return handle->plans.get(valid.value(), view.value());
}

Status run(const tileglu::PlannedProblem& planned, const tileglu_args* args) {
  const Result<tileglu::Operands> operands =
      tileglu::validate_args(args, planned.problem, planned.plan->workspace_bytes());
  if (!operands.ok()) return operands.status();
  return planned.plan->run(operands.value());
}

Status any_backend_available() {
  std::string reasons;
  for (const tileglu::Backend* backend : tileglu::backends()) {
    const Status status = backend->available();
    if (status.ok()) return {};
    reasons += tileglu::formatted("{}{}: {}", reasons.empty() ? "" : "; ", backend->name, status.text());
  }
  return {Code::kNotAvailable, reasons};
}

void copy_text(const char* text, char* target, std::size_t size) {
  if (target == nullptr || size == 0) return;
  const std::size_t length = std::min(std::strlen(text), size - 1);
  std::memcpy(target, text, length);
  target[length] = '\0';
}

}  // namespace

int tileglu_version(void) {
  return TILEGLU_VERSION;
}

const char* tileglu_build_info(void) {
  return "tileglu " TILEGLU_BUILD_VERSION ", commit " TILEGLU_BUILD_COMMIT ", " TILEGLU_BUILD_COMPILER
         ", CUDA " TILEGLU_BUILD_CUDA ", CUTLASS " TILEGLU_BUILD_CUTLASS;
}

const char* tileglu_status_name(tileglu_status status) {
  switch (number_in(status)) {
    case TILEGLU_OK: return "OK";
    case TILEGLU_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case TILEGLU_NOT_SUPPORTED: return "NOT_SUPPORTED";
    case TILEGLU_NOT_AVAILABLE: return "NOT_AVAILABLE";
    case TILEGLU_WORKSPACE_TOO_SMALL: return "WORKSPACE_TOO_SMALL";
    case TILEGLU_CUDA_ERROR: return "CUDA_ERROR";
    case TILEGLU_OUT_OF_MEMORY: return "OUT_OF_MEMORY";
    case TILEGLU_INTERNAL_ERROR: return "INTERNAL_ERROR";
    default: return "UNKNOWN_STATUS";
  }
}

const char* tileglu_last_error(void) {
  return last_error.text.empty() ? last_error.literal : last_error.text.c_str();
}

tileglu_status tileglu_backend_available(tileglu_backend backend) {
  return guarded([&]() -> Status {
    const int id = number_in(backend);
    TILEGLU_TRY(tileglu::checks::in_range("backend", id, BackendId::kAuto, BackendId::kCpu));
    if (id == TILEGLU_BACKEND_AUTO) return any_backend_available();
    return tileglu::find_backend(static_cast<BackendId>(id))->available();
  });
}

const char* tileglu_kernel_name(tileglu_backend backend, int index) {
  const char* name = nullptr;
  (void)guarded([&]() -> Status {
    const tileglu::Backend* found = tileglu::find_backend(static_cast<BackendId>(number_in(backend)));
    if (found == nullptr || index < 0) return {};
    const auto kernels = found->kernels();
    if (static_cast<std::size_t>(index) < kernels.size()) name = kernels[static_cast<std::size_t>(index)].c_str();
    return {};
  });
  return name;
}

tileglu_status tileglu_can_implement(const tileglu_problem* problem, const tileglu_options* options, char* reason,
                                     size_t reason_size) {
  const tileglu_status status = guarded([&] { return plan(problem, options).status(); });
  copy_text(status == TILEGLU_OK ? "" : tileglu_last_error(), reason, reason_size);
  return status;
}

tileglu_status tileglu_plan_create(const tileglu_problem* problem, const tileglu_options* options,
                                   tileglu_plan** plan_out) {
  if (plan_out != nullptr) *plan_out = nullptr;
  return guarded([&]() -> Status {
    if (plan_out == nullptr) return invalid("plan is NULL");
    Result<tileglu::PlannedProblem> planned = plan(problem, options);
    if (!planned.ok()) return planned.status();
    *plan_out = new tileglu_plan{std::move(planned.value())};
    return {};
  });
}

void tileglu_plan_destroy(tileglu_plan* plan) {
  delete plan;
}

const char* tileglu_plan_describe(const tileglu_plan* plan) {
  return plan == nullptr ? "" : plan->planned.description.c_str();
}

const char* tileglu_plan_backend(const tileglu_plan* plan) {
  return plan == nullptr ? "" : plan->planned.plan->backend().c_str();
}

const char* tileglu_plan_kernel(const tileglu_plan* plan) {
  return plan == nullptr ? "" : plan->planned.plan->kernel().c_str();
}

size_t tileglu_plan_workspace(const tileglu_plan* plan) {
  return plan == nullptr ? 0 : plan->planned.plan->workspace_bytes();
}

tileglu_status tileglu_plan_run(const tileglu_plan* plan, const tileglu_args* args) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return invalid("plan is NULL");
    return run(plan->planned, args);
  });
}

tileglu_status tileglu_create(tileglu_handle** handle) {
  if (handle != nullptr) *handle = nullptr;
  return guarded([&]() -> Status {
    if (handle == nullptr) return invalid("handle is NULL");
    *handle = new tileglu_handle;
    return {};
  });
}

void tileglu_destroy(tileglu_handle* handle) {
  delete handle;
}

tileglu_status tileglu_workspace(tileglu_handle* handle, const tileglu_problem* problem, const tileglu_options* options,
                                 size_t* bytes) {
  return guarded([&]() -> Status {
    if (bytes == nullptr) return invalid("bytes is NULL");
    *bytes = 0;
    const auto planned = cached_plan(handle, problem, options);
    if (!planned.ok()) return planned.status();
    *bytes = planned.value()->plan->workspace_bytes();
    return {};
  });
}

tileglu_status tileglu_run(tileglu_handle* handle, const tileglu_problem* problem, const tileglu_options* options,
                           const tileglu_args* args) {
  return guarded([&]() -> Status {
    const auto planned = cached_plan(handle, problem, options);
    return planned.ok() ? run(*planned.value(), args) : planned.status();
  });
}

tileglu_status tileglu_relayout(const tileglu_problem* problem, const tileglu_weights* source,
                                const tileglu_weights* destination, void* stream) {
  return guarded([&]() -> Status {
    const Result<tileglu::RelayoutCall> valid = tileglu::validate_relayout(problem, source, destination);
    if (!valid.ok()) return valid.status();
    const tileglu::RelayoutCall& call = valid.value();
    if (call.shape.n == 0 || call.shape.k == 0) return {};
    if (call.memory == tileglu::Memory::kCuda) {
      return tileglu::relayout_cuda(call.shape, call.source, call.destination, call.device, stream);
    }
    tileglu::relayout_host(call.shape, call.source, call.destination);
    return {};
  });
}
