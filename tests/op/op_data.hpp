// SPDX-License-Identifier: Apache-2.0
// The memory of one case: operands filled with random or given values, NaN in every gap and around every input, poison
// in and around Y, and the check that nothing but Y's elements changed.
#pragma once

#include "core/layout.hpp"
#include "op/op_case.hpp"

#include <array>

namespace tileglu::test {

// A matrix in device or host memory, with guards before and behind it, and its copy on the host.
class GuardedMatrix {
 public:
  struct Shape {
    Dtype dtype = Dtype::kBf16;
    std::int64_t rows = 0, columns = 0, pad = 0;
    std::int64_t misalign_bytes = 0;
  };

  GuardedMatrix(const Shape& shape, Memory memory, unsigned char fill);

  void set(std::int64_t row, std::int64_t column, double value);
  void upload();    // what has been set; remembered as what the guards must be
  void download();  // what is there now
  void* address() const;
  bool outside_intact() const;   // everything but the elements
  bool elements_intact() const;  // the elements
  std::vector<unsigned char> elements() const;

  std::int64_t ld = 0;

 private:
  std::int64_t element_offset(std::int64_t row, std::int64_t column) const;  // bytes

  Shape shape_;
  runtime::Buffer buffer_;
  std::vector<unsigned char> uploaded_, now_;
};

class OpData {
 public:
  OpData(const OpCase& op, Memory memory);

  const GuardedMatrix& a() const { return a_; }
  const GuardedMatrix& gate() const { return gate_; }
  const GuardedMatrix& up() const { return up_; }
  const GuardedMatrix& y() const { return y_; }
  // All pointers but the workspace, NULL where the case has no such operand, and the strides of the extra ones.
  Operands operands() const;
  std::int64_t ld_add() const { return op_.extra.addend ? add_[0].ld : 0; }
  std::int64_t ld_pre() const { return op_.extra.preactivations ? pre_[0].ld : 0; }
  int alignment() const { return alignment_; }  // of all four bases, bytes
  void* stream() const { return stream_.handle(); }
  void* workspace(std::size_t bytes);  // filled with NaN, with a guard behind it; null if 0

  void download();
  std::vector<unsigned char> result() const { return y_.elements(); }
  std::vector<unsigned char> saved(bool is_up) const;  // a half of the pre-activations, [m,n] without gaps
  bool result_untouched() const { return y_.elements_intact(); }
  bool guards_intact() const;

 private:
  void fill(const OpCase& op);
  void fill_extra();
  std::vector<GuardedMatrix*> matrices();

  OpCase op_;
  Memory memory_;
  GuardedMatrix a_, gate_, up_, y_;  // gate_ is the single matrix in every layout but kSeparate
  // Of no rows if the case does not have them; add_[0] and pre_[0] are the single matrix in every layout but kSeparate.
  std::array<GuardedMatrix, 2> bias_, add_, pre_;
  int alignment_ = 16;
  runtime::Stream stream_;
  runtime::Buffer workspace_;
  bool workspace_intact_ = true;
};

// Stored bytes as doubles, and back (rounded).
std::vector<double> decode(Dtype dtype, const std::vector<unsigned char>& bytes);
std::vector<unsigned char> encode(Dtype dtype, const std::vector<double>& values);

}  // namespace tileglu::test
