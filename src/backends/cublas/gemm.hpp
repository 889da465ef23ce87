// SPDX-License-Identifier: Apache-2.0
// One matrix product through cuBLASLt, planned once: D[m,n] = A[m,k] * W[n,k]^T, all row-major, fp32 accumulation. The
// backend's kernels are made of it; GemmOnly is the yardstick that the benchmark times.
#pragma once

#include "backends/cublas/cublaslt.hpp"
#include "core/problem.hpp"

#include <memory>
#include <vector>

namespace tileglu::cublas {

struct GemmShape {
  Dtype dtype = Dtype::kBf16;    // of A and W
  Dtype dtype_d = Dtype::kBf16;  // of D: the same, or fp32
  int device = 0;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldw = 0, ldd = 0;  // elements
  int align_a = 16, align_w = 16;          // bytes, powers of two; D is 256-byte aligned
  // Whether partial sums over k may be rounded to the dtype of D before they are added, which cuBLAS allows itself by
  // default: faster at small m, less accurate.
  bool round_partial_sums = false;
};

class Gemm {
 public:
  // Asks the heuristic for up to `max_algorithms`, best first. kNotSupported if it knows none.
  static Result<Gemm> make(const GemmShape& shape, int max_algorithms);

  int algorithms() const { return static_cast<int>(found_.size()); }
  std::size_t scratch_bytes(int algorithm) const { return found_[static_cast<std::size_t>(algorithm)].workspaceSize; }
  // `scratch`: scratch_bytes(algorithm), 256-byte aligned. The device of the shape is current.
  Status run(const void* a, const void* w, void* d, void* scratch, cudaStream_t stream, int algorithm = 0) const;

 private:
  cublasLtHandle_t handle_ = nullptr;
  std::shared_ptr<cublasLtMatmulDescOpaque_t> product_;
  std::shared_ptr<cublasLtMatrixLayoutOpaque_t> weights_, tokens_, result_;
  std::vector<cublasLtMatmulHeuristicResult_t> found_;
};

// The largest power of two that divides base_alignment (a power of two) and offset_bytes; at most 256.
int alignment_at(int base_alignment, std::int64_t offset_bytes);

// Row length in elements of an intermediate with `columns` columns: padded to whole 16 bytes.
std::int64_t padded_columns(Dtype dtype, std::int64_t columns);

inline constexpr std::size_t kPartAlignment = 256;
constexpr std::size_t round_to_part(std::size_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// The activation-free GEMM over all 2n weight rows of a merged or interleaved problem, with every algorithm that the
// heuristic offers. What a fused kernel has to beat.
class GemmOnly {
 public:
  static Result<GemmOnly> make(const Problem& problem);

  int algorithms() const { return gemm_.algorithms(); }
  std::size_t workspace_bytes() const { return scratch_bytes_; }
  // Rows of the product [m,2n], elements.
  std::int64_t product_ld() const { return product_ld_; }
  // Reads a and gate, writes the product to y.
  Status run(const Operands& operands, int algorithm) const;

 private:
  Gemm gemm_;
  int device_ = 0;
  std::int64_t product_ld_ = 0;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace tileglu::cublas
