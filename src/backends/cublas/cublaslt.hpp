// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, opened at run time: the same binary starts on machines without it. Only the header is needed to build.
#pragma once

#include "core/status.hpp"

#include <cublasLt.h>

#include <string>

namespace tileglu::cublas {

// The functions used, under their own names without the prefix cublasLt.
struct Api {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetVersion) get_version = nullptr;
  decltype(&cublasLtGetStatusName) status_name = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) matmul_desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) matmul_desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) matrix_layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) matrix_layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) matmul_preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) matmul_preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute = nullptr;
};

// OK, or kNotAvailable and in one sentence what is missing. Loads the library on the first call of the process.
Status load();
const Api& api();           // only after load() was OK
std::string description();  // "cuBLASLt 13.1.0"; only after load() was OK

// OK, or the error of the named call.
Status check(cublasStatus_t status, const char* call);

// The handle of a GPU, made on first use (at plan time, never in a run) and kept for the life of the process.
Result<cublasLtHandle_t> handle(int device);

}  // namespace tileglu::cublas
