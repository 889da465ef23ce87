// SPDX-License-Identifier: Apache-2.0
// Status: a code and a text that carries the values involved. Result<T>: a value or a Status.
#pragma once

#include <tileglu/tileglu.h>

#include <optional>
#include <string>
#include <utility>

namespace tileglu {

enum class Code : int {
  kOk = TILEGLU_OK,
  kInvalidArgument = TILEGLU_INVALID_ARGUMENT,
  kNotSupported = TILEGLU_NOT_SUPPORTED,
  kNotAvailable = TILEGLU_NOT_AVAILABLE,
  kWorkspaceTooSmall = TILEGLU_WORKSPACE_TOO_SMALL,
  kCudaError = TILEGLU_CUDA_ERROR,
  kOutOfMemory = TILEGLU_OUT_OF_MEMORY,
  kInternalError = TILEGLU_INTERNAL_ERROR,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text) : code_(code), text_(std::move(text)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& text() const { return text_; }
  std::string take_text() && { return std::move(text_); }

 private:
  Code code_ = Code::kOk;
  std::string text_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tileglu

#define TILEGLU_TRY(expression)                                                                          \
  do {                                                                                                   \
    if (::tileglu::Status tileglu_status_ = (expression); !tileglu_status_.ok()) return tileglu_status_; \
  } while (false)
