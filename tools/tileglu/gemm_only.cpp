// SPDX-License-Identifier: Apache-2.0
#include "gemm_only.hpp"

#if TILEGLU_HAVE_CUDA
#include "backends/cublas/gemm.hpp"
#endif

namespace tileglu::tool {

#if TILEGLU_HAVE_CUDA

struct GemmOnlyCall::Implementation {
  cublas::GemmOnly gemm;
};

Result<GemmOnlyCall> GemmOnlyCall::make(const Problem& problem) {
  Result<cublas::GemmOnly> gemm = cublas::GemmOnly::make(problem);
  if (!gemm.ok()) return gemm.status();
  GemmOnlyCall call;
  Result<runtime::Buffer> workspace =
      runtime::Buffer::make(problem.memory, problem.device, gemm.value().workspace_bytes());
  if (!workspace.ok()) return workspace.status();
  call.workspace_ = workspace.value();
  call.implementation_ = std::make_shared<const Implementation>(Implementation{std::move(gemm.value())});
  return call;
}

int GemmOnlyCall::algorithms() const {
  return implementation_->gemm.algorithms();
}

std::int64_t GemmOnlyCall::product_ld() const {
  return implementation_->gemm.product_ld();
}

Status GemmOnlyCall::run(const Operands& operands, int algorithm) const {
  Operands with_workspace = operands;
  with_workspace.workspace = workspace_.data();
  with_workspace.workspace_bytes = workspace_.size();
  return implementation_->gemm.run(with_workspace, algorithm);
}

#else

struct GemmOnlyCall::Implementation {};

namespace {
Status no_cuda() {
  return {Code::kNotAvailable, "this build has no CUDA (configure with nvcc and the CUTLASS headers)"};
}
}  // namespace

Result<GemmOnlyCall> GemmOnlyCall::make(const Problem&) {
  return no_cuda();
}
int GemmOnlyCall::algorithms() const {
  return 0;
}
std::int64_t GemmOnlyCall::product_ld() const {
  return 0;
}
Status GemmOnlyCall::run(const Operands&, int) const {
  return no_cuda();
}

#endif

}  // namespace tileglu::tool
