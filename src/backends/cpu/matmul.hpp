// SPDX-License-Identifier: Apache-2.0
// oneDNN's matmul for the tiles of one plan: sums[rows, columns] = A[rows, k] * W[columns, k]^T, fp32 sums, one thread.
#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include <string>
#include <unordered_map>

namespace tileglu::cpu {

struct MatmulShape {
  Dtype dtype = Dtype::kFp32;  // of A and W
  std::int64_t rows = 0, columns = 0, k = 0;
  std::int64_t lda = 0, ldw = 0, ld_sums = 0;  // elements
  bool all_threads = false;                    // for a call that is not already in a parallel region
};

// A primitive that is made at plan time and is executed by one thread at a time or by many.
class TileMatmul {
 public:
  // kNotSupported if oneDNN has no code for the shape on this processor, or for bf16 none that is made for bf16.
  static Result<TileMatmul> make(const MatmulShape& shape);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  const std::string& implementation() const { return implementation_; }

  // What one thread needs to execute it; made at the start of a run. oneDNN's execute allocates anyway (its argument
  // map, the packing buffers of its gemm), so keeping these across runs would not make a run free of allocations.
  class Call {
   public:
    Call(const TileMatmul& matmul, void* scratch);
    void operator()(const void* a, const void* weights, float* sums);

   private:
    const dnnl::matmul& primitive_;
    dnnl::stream stream_;
    dnnl::memory a_, weights_, sums_;
    std::unordered_map<int, dnnl::memory> arguments_;
  };

 private:
  dnnl::matmul primitive_;
  dnnl::memory::desc a_, weights_, sums_, scratch_;
  std::size_t scratch_bytes_ = 0;
  std::string implementation_;
};

// Makes every oneDNN and OpenMP call of the calling thread single-threaded while it lives. In a parallel region it
// affects only this thread's share of it.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int threads_before_;
};

}  // namespace tileglu::cpu
