// SPDX-License-Identifier: Apache-2.0
// Problem: what is asked, as a plain value that has been validated once (validate.hpp). No CUDA, no streams.
#pragma once

#include <tileglu/tileglu.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace tileglu {

enum class Dtype : int { kBf16 = TILEGLU_BF16, kFp16 = TILEGLU_FP16, kFp32 = TILEGLU_FP32 };
enum class Activation : int {
  kSilu = TILEGLU_SILU,
  kGeluTanh = TILEGLU_GELU_TANH,
  kGeluErf = TILEGLU_GELU_ERF,
  kRelu = TILEGLU_RELU,
  kSigmoid = TILEGLU_SIGMOID,
  kIdentity = TILEGLU_IDENTITY,
  kSwiglu = TILEGLU_SWIGLU,
};
enum class Rounding : int { kOnce = TILEGLU_ROUND_ONCE, kUnfused = TILEGLU_ROUND_UNFUSED };
enum class Layout : int {
  kSeparate = TILEGLU_SEPARATE,
  kGateUp = TILEGLU_GATE_UP,
  kUpGate = TILEGLU_UP_GATE,
  kInterleaved1 = TILEGLU_INTERLEAVED_1,
  kInterleaved8 = TILEGLU_INTERLEAVED_8,
};
enum class Memory : int { kHost = TILEGLU_MEMORY_HOST, kCuda = TILEGLU_MEMORY_CUDA };
enum class BackendId : int {
  kAuto = TILEGLU_BACKEND_AUTO,
  kSm90 = TILEGLU_BACKEND_SM90,
  kCublas = TILEGLU_BACKEND_CUBLAS,
  kCpu = TILEGLU_BACKEND_CPU,
};

// The numbers of Activation::kSwiglu; the others leave them as they are here.
struct SwigluNumbers {
  float alpha = 1;
  float limit = std::numeric_limits<float>::infinity();
  float up_offset = 0;

  bool operator==(const SwigluNumbers&) const = default;
};

// tileglu_problem.operands.
struct ExtraOperands {
  bool bias_gate = false, bias_up = false, addend = false, preactivations = false;

  bool any() const { return bias_gate || bias_up || addend || preactivations; }
  bool operator==(const ExtraOperands&) const = default;
};

struct Problem {
  Dtype dtype = Dtype::kBf16;    // A and weights
  Dtype dtype_y = Dtype::kBf16;  // Y
  Activation activation = Activation::kSilu;
  Layout layout = Layout::kSeparate;
  Memory memory = Memory::kHost;
  int device = 0;
  int alignment = 16;  // bytes; every base address is a multiple of it
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ld_gate = 0, ld_up = 0, ldy = 0;  // elements, never 0 once validated; ld_up only if separate
  SwigluNumbers swiglu = {};
  Rounding rounding = Rounding::kOnce;
  ExtraOperands extra = {};
  Layout layout_add = Layout::kGateUp, layout_pre = Layout::kGateUp;  // of columns
  std::int64_t ld_add = 0, ld_pre = 0;                                // 0 unless the operand is there

  bool operator==(const Problem&) const = default;
};

// Operands of one run.
struct Operands {
  const void* a = nullptr;
  const void* gate = nullptr;
  const void* up = nullptr;
  void* y = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  void* stream = nullptr;
  const void *bias_gate = nullptr, *bias_up = nullptr;
  const void *add_gate = nullptr, *add_up = nullptr;
  void *pre_gate = nullptr, *pre_up = nullptr;
};

constexpr std::size_t size_of(Dtype dtype) {
  return dtype == Dtype::kFp32 ? 4 : 2;
}

}  // namespace tileglu
