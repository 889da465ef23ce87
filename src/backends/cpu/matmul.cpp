// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul.hpp"

#include "core/format.hpp"

#include <omp.h>

#include <optional>

namespace tileglu::cpu {
namespace {

using Descriptor = dnnl::memory::desc;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::memory::data_type type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return dnnl::memory::data_type::bf16;
    case Dtype::kFp16: return dnnl::memory::data_type::f16;
    case Dtype::kFp32: break;
  }
  return dnnl::memory::data_type::f32;
}

dnnl::memory unbound(const Descriptor& descriptor) {
  return {descriptor, engine(), nullptr};
}

}  // namespace

Result<TileMatmul> TileMatmul::make(const MatmulShape& shape) try {
  std::optional<SingleThreaded> single;  // some implementations fix their number of threads here
  if (!shape.all_threads) single.emplace();
  const auto input = type_of(shape.dtype);
  TileMatmul matmul;
  matmul.a_ = Descriptor({shape.rows, shape.k}, input, dnnl::memory::dims{shape.lda, 1});
  matmul.weights_ = Descriptor({shape.k, shape.columns}, input, dnnl::memory::dims{1, shape.ldw});
  matmul.sums_ =
      Descriptor({shape.rows, shape.columns}, dnnl::memory::data_type::f32, dnnl::memory::dims{shape.ld_sums, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc description({matmul.a_, matmul.weights_, matmul.sums_}, attributes, engine());
  matmul.implementation_ = description.impl_info_str();
  // brg:avx512_core_bf16 and brg:avx512_core_amx_bf16; the others convert element by element.
  if (shape.dtype != Dtype::kFp32 && matmul.implementation_.find("bf16") == std::string::npos) {
    return Status(Code::kNotSupported, formatted("oneDNN has only {} for 16 bits here", matmul.implementation_));
  }
  matmul.scratch_ = description.scratchpad_desc();
  matmul.scratch_bytes_ = matmul.scratch_.get_size();
  matmul.primitive_ = dnnl::matmul(description);
  return matmul;
} catch (const dnnl::error& error) {
  const Code code = error.status == dnnl_out_of_memory ? Code::kOutOfMemory : Code::kNotSupported;
  return Status(code,
                formatted("oneDNN matmul of {} x {} x {}: {}", shape.rows, shape.columns, shape.k, error.message));
}

TileMatmul::Call::Call(const TileMatmul& matmul, void* scratch)
    : primitive_(matmul.primitive_),
      stream_(engine()),
      a_(unbound(matmul.a_)),
      weights_(unbound(matmul.weights_)),
      sums_(unbound(matmul.sums_)),
      arguments_{{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, sums_}} {
  if (matmul.scratch_bytes_ > 0) {
    arguments_.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(matmul.scratch_, engine(), scratch));
  }
}

void TileMatmul::Call::operator()(const void* a, const void* weights, float* sums) {
  a_.set_data_handle(const_cast<void*>(a));
  weights_.set_data_handle(const_cast<void*>(weights));
  sums_.set_data_handle(sums);
  primitive_.execute(stream_, arguments_);
}

SingleThreaded::SingleThreaded() : threads_before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}
SingleThreaded::~SingleThreaded() {
  omp_set_num_threads(threads_before_);
}

}  // namespace tileglu::cpu
