// SPDX-License-Identifier: Apache-2.0
#include "backends/cublas/gemm.hpp"

#include "core/format.hpp"
#include "core/layout.hpp"
#include "core/names.hpp"
#include "runtime/device_guard.hpp"

#include <algorithm>

namespace tileglu::cublas {
namespace {

constexpr std::size_t kMaxScratchBytes = std::size_t{32} << 20;
constexpr int kMaxAlgorithms = 64;

cudaDataType_t data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return CUDA_R_16BF;
    case Dtype::kFp16: return CUDA_R_16F;
    case Dtype::kFp32: break;
  }
  return CUDA_R_32F;
}

// cuBLASLt is column-major: a row-major [rows,columns] with stride ld is to it a [columns,rows] with leading dimension
// ld.
Result<std::shared_ptr<cublasLtMatrixLayoutOpaque_t>> make_matrix(Dtype dtype, std::int64_t rows, std::int64_t columns,
                                                                  std::int64_t ld) {
  cublasLtMatrixLayout_t layout = nullptr;
  TILEGLU_TRY(check(api().matrix_layout_create(&layout, data_type(dtype), static_cast<std::uint64_t>(columns),
                                               static_cast<std::uint64_t>(rows), ld),
                    "cublasLtMatrixLayoutCreate"));
  return std::shared_ptr<cublasLtMatrixLayoutOpaque_t>(layout, api().matrix_layout_destroy);
}

// D^T[n,m] = W[n,k] A^T[k,m] in row-major terms; W, which cuBLASLt sees as [k,n], is the transposed operand.
Result<std::shared_ptr<cublasLtMatmulDescOpaque_t>> make_product() {
  cublasLtMatmulDesc_t product = nullptr;
  TILEGLU_TRY(check(api().matmul_desc_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate"));
  std::shared_ptr<cublasLtMatmulDescOpaque_t> owner(product, api().matmul_desc_destroy);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  TILEGLU_TRY(
      check(api().matmul_desc_set_attribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
            "cublasLtMatmulDescSetAttribute"));
  return owner;
}

template <class T>
Status set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  return check(api().matmul_preference_set_attribute(preference, attribute, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
}

Result<std::shared_ptr<cublasLtMatmulPreferenceOpaque_t>> make_preference(const GemmShape& shape) {
  cublasLtMatmulPreference_t preference = nullptr;
  TILEGLU_TRY(check(api().matmul_preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
  std::shared_ptr<cublasLtMatmulPreferenceOpaque_t> owner(preference, api().matmul_preference_destroy);
  const std::uint32_t reductions =
      shape.round_partial_sums ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const auto align_d = static_cast<std::uint32_t>(kPartAlignment);
  TILEGLU_TRY(set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kMaxScratchBytes}));
  TILEGLU_TRY(set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
  TILEGLU_TRY(set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(shape.align_w)));
  TILEGLU_TRY(set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(shape.align_a)));
  TILEGLU_TRY(set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, align_d));
  TILEGLU_TRY(set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, align_d));
  return owner;
}

template <class T>
Status assign(std::shared_ptr<T>& target, Result<std::shared_ptr<T>> made) {
  if (made.ok()) target = std::move(made.value());
  return made.status();
}

}  // namespace

Result<Gemm> Gemm::make(const GemmShape& shape, int max_algorithms) {
  Gemm gemm;
  const Result<cublasLtHandle_t> opened = handle(shape.device);
  TILEGLU_TRY(opened.status());
  gemm.handle_ = opened.value();
  const runtime::DeviceGuard guard(shape.device);
  TILEGLU_TRY(guard.status());
  const runtime::RelaxedCapture relaxed;
  std::shared_ptr<cublasLtMatmulPreferenceOpaque_t> preference;
  TILEGLU_TRY(assign(gemm.product_, make_product()));
  TILEGLU_TRY(assign(gemm.weights_, make_matrix(shape.dtype, shape.n, shape.k, shape.ldw)));
  TILEGLU_TRY(assign(gemm.tokens_, make_matrix(shape.dtype, shape.m, shape.k, shape.lda)));
  TILEGLU_TRY(assign(gemm.result_, make_matrix(shape.dtype_d, shape.m, shape.n, shape.ldd)));
  TILEGLU_TRY(assign(preference, make_preference(shape)));

  gemm.found_.resize(static_cast<std::size_t>(std::clamp(max_algorithms, 1, kMaxAlgorithms)));
  int returned = 0;
  const cublasStatus_t asked = api().matmul_algo_get_heuristic(
      gemm.handle_, gemm.product_.get(), gemm.weights_.get(), gemm.tokens_.get(), gemm.result_.get(),
      gemm.result_.get(), preference.get(), static_cast<int>(gemm.found_.size()), gemm.found_.data(), &returned);
  gemm.found_.resize(asked == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(returned) : 0);
  std::erase_if(gemm.found_, [](const cublasLtMatmulHeuristicResult_t& result) {
    return result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kMaxScratchBytes;
  });
  if (!gemm.found_.empty()) return gemm;
  return Status{
      Code::kNotSupported,
      formatted("{} offers no algorithm for m={}, n={}, k={}, {} to {}, row strides {}, {}, {}, bases aligned to "
                "{} and {} bytes (cublasLtMatmulAlgoGetHeuristic: {})",
                description(), shape.m, shape.n, shape.k, name_of(shape.dtype), name_of(shape.dtype_d), shape.lda,
                shape.ldw, shape.ldd, shape.align_a, shape.align_w, api().status_name(asked))};
}

Status Gemm::run(const void* a, const void* w, void* d, void* scratch, cudaStream_t stream, int algorithm) const {
  const float one = 1.0F, zero = 0.0F;
  const cublasLtMatmulHeuristicResult_t& chosen = found_[static_cast<std::size_t>(algorithm)];
  return check(api().matmul(handle_, product_.get(), &one, w, weights_.get(), a, tokens_.get(), &zero, d, result_.get(),
                            d, result_.get(), &chosen.algo, scratch, chosen.workspaceSize, stream),
               "cublasLtMatmul");
}

int alignment_at(int base_alignment, std::int64_t offset_bytes) {
  const std::int64_t both = base_alignment | offset_bytes | std::int64_t{kPartAlignment};
  return static_cast<int>(both & -both);
}

std::int64_t padded_columns(Dtype dtype, std::int64_t columns) {
  const auto per_vector = static_cast<std::int64_t>(16 / size_of(dtype));
  return (columns + per_vector - 1) / per_vector * per_vector;
}

Result<GemmOnly> GemmOnly::make(const Problem& problem) {
  if (!is_single_matrix(problem.layout)) {
    return Status{Code::kNotSupported, "layout=separate has no single matrix of 2n rows to multiply with"};
  }
  const std::int64_t columns = padded_columns(problem.dtype, 2 * problem.n);
  const Result<Gemm> gemm = Gemm::make({.dtype = problem.dtype,
                                        .dtype_d = problem.dtype,
                                        .device = problem.device,
                                        .m = problem.m,
                                        .n = 2 * problem.n,
                                        .k = problem.k,
                                        .lda = problem.lda,
                                        .ldw = problem.ld_gate,
                                        .ldd = columns,
                                        .align_a = alignment_at(problem.alignment, 0),
                                        .align_w = alignment_at(problem.alignment, 0),
                                        .round_partial_sums = true},
                                       kMaxAlgorithms);
  TILEGLU_TRY(gemm.status());
  GemmOnly only;
  only.gemm_ = gemm.value();
  only.device_ = problem.device;
  only.product_ld_ = columns;
  for (int i = 0; i < only.algorithms(); ++i) {
    only.scratch_bytes_ = std::max(only.scratch_bytes_, only.gemm_.scratch_bytes(i));
  }
  return only;
}

Status GemmOnly::run(const Operands& operands, int algorithm) const {
  if (algorithm < 0 || algorithm >= algorithms()) {
    return {Code::kInvalidArgument, formatted("algorithm={} is not one of {}", algorithm, algorithms())};
  }
  if (operands.workspace_bytes < workspace_bytes()) {
    return {Code::kWorkspaceTooSmall,
            formatted("workspace_bytes={} is below {}", operands.workspace_bytes, workspace_bytes())};
  }
  const runtime::DeviceGuard guard(device_);
  TILEGLU_TRY(guard.status());
  const runtime::RelaxedCapture relaxed;  // cuBLASLt loads a kernel on its first use
  return gemm_.run(operands.a, operands.gate, operands.y, operands.workspace,
                   static_cast<cudaStream_t>(operands.stream), algorithm);
}

}  // namespace tileglu::cublas
