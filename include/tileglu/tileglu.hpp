// SPDX-License-Identifier: Apache-2.0
// C++17 over tileglu.h: plans and handles that free themselves, errors as exceptions. Header-only, nothing else added.
//
//     tileglu::Problem problem;  // a tileglu_problem with struct_size set
//     problem.dtype = TILEGLU_BF16;
//     problem.activation = TILEGLU_SILU;
//     problem.layout = TILEGLU_SEPARATE;
//     problem.memory = TILEGLU_MEMORY_CUDA;
//     problem.m = tokens, problem.n = intermediate, problem.k = hidden;
//     const tileglu::Plan plan(problem);  // throws tileglu::Error
//     tileglu::Args args;
//     args.a = a, args.gate = gate, args.up = up, args.y = y, args.stream = stream;
//     plan.run(args);
#ifndef TILEGLU_TILEGLU_HPP
#define TILEGLU_TILEGLU_HPP

#include <tileglu/tileglu.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace tileglu {
inline namespace cxx {  // names of its own for the linker: the library's inside has a tileglu::Plan too

// The C structs with their INIT values.
struct Problem : tileglu_problem {
  Problem() : tileglu_problem TILEGLU_PROBLEM_INIT {}
};
struct Options : tileglu_options {
  Options() : tileglu_options TILEGLU_OPTIONS_INIT {}
};
struct Args : tileglu_args {
  Args() : tileglu_args TILEGLU_ARGS_INIT {}
};
struct Weights : tileglu_weights {
  Weights() : tileglu_weights TILEGLU_WEIGHTS_INIT {}
};

// what() is "INVALID_ARGUMENT: lda=100 is below k=128 (...)".
class Error : public std::runtime_error {
 public:
  Error(tileglu_status status, const std::string& text)
      : std::runtime_error(std::string(tileglu_status_name(status)) + ": " + text), status_(status) {}
  tileglu_status status() const noexcept { return status_; }

 private:
  tileglu_status status_;
};

// Throws Error unless `status` is TILEGLU_OK; call it at once after the C function.
inline void check(tileglu_status status) {
  if (status != TILEGLU_OK) throw Error(status, tileglu_last_error());
}

// An immutable plan; run() may be called by many threads at once. A moved-from plan may only be destroyed or assigned.
class Plan {
 public:
  explicit Plan(const tileglu_problem& problem) : Plan(problem, Options()) {}
  Plan(const tileglu_problem& problem, const tileglu_options& options) {
    tileglu_plan* plan = nullptr;
    check(tileglu_plan_create(&problem, &options, &plan));
    plan_.reset(plan);
  }

  void run(const tileglu_args& args) const { check(tileglu_plan_run(plan_.get(), &args)); }
  std::size_t workspace() const noexcept { return tileglu_plan_workspace(plan_.get()); }
  const char* describe() const noexcept { return tileglu_plan_describe(plan_.get()); }
  const char* backend() const noexcept { return tileglu_plan_backend(plan_.get()); }
  const char* kernel() const noexcept { return tileglu_plan_kernel(plan_.get()); }
  const tileglu_plan* get() const noexcept { return plan_.get(); }

 private:
  struct Destroy {
    void operator()(tileglu_plan* plan) const noexcept { tileglu_plan_destroy(plan); }
  };
  std::unique_ptr<tileglu_plan, Destroy> plan_;
};

// Plans on the first call for a problem, then only runs. May be used by many threads at once.
class Handle {
 public:
  Handle() {
    tileglu_handle* handle = nullptr;
    check(tileglu_create(&handle));
    handle_.reset(handle);
  }

  void run(const tileglu_problem& problem, const tileglu_args& args, const tileglu_options& options = Options()) const {
    check(tileglu_run(handle_.get(), &problem, &options, &args));
  }
  std::size_t workspace(const tileglu_problem& problem, const tileglu_options& options = Options()) const {
    std::size_t bytes = 0;
    check(tileglu_workspace(handle_.get(), &problem, &options, &bytes));
    return bytes;
  }
  tileglu_handle* get() const noexcept { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(tileglu_handle* handle) const noexcept { tileglu_destroy(handle); }
  };
  std::unique_ptr<tileglu_handle, Destroy> handle_;
};

// Whether a plan can be made; if not, `reason` (may be null) receives why.
inline bool can_implement(const tileglu_problem& problem, const tileglu_options& options = Options(),
                          std::string* reason = nullptr) {
  if (tileglu_can_implement(&problem, &options, nullptr, 0) == TILEGLU_OK) return true;
  if (reason != nullptr) *reason = tileglu_last_error();
  return false;
}

inline void relayout(const tileglu_problem& problem, const tileglu_weights& source, const tileglu_weights& destination,
                     void* stream = nullptr) {
  check(tileglu_relayout(&problem, &source, &destination, stream));
}

}  // namespace cxx
}  // namespace tileglu

#endif
