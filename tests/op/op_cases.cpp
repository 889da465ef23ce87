// SPDX-License-Identifier: Apache-2.0
#include "op/op_cases.hpp"

#include "core/format.hpp"

namespace tileglu::test {
namespace {

// Takes turns through the values of a table; tables of different lengths drift against each other.
template <class T, std::size_t N>
T turn(const T (&values)[N], std::size_t count) {
  return values[count % N];
}

Layout layout_for(std::int64_t n, std::size_t count) {
  const Layout layout = turn(kLayouts, count);
  return layout == Layout::kInterleaved8 && n % 8 != 0 ? Layout::kInterleaved1 : layout;
}

constexpr PerMatrix kPads[] = {
    {.y = 64}, {}, {.a = 8, .gate = 16, .up = 8, .y = 8}, {.a = 1, .gate = 3, .up = 5, .y = 7}};
constexpr PerMatrix kMisalignments[] = {{}, {.a = 1}, {}, {.gate = 1, .up = 3}, {}, {.y = 1}, {.a = 4, .y = 4}};

void add(std::vector<NamedCase>& cases, std::string name, const OpCase& op) {
  cases.push_back({std::move(name), op});
}

// C04: intermediate sizes that are no multiple of a vector; C25: shards of real models over 5, 8 and 16 ranks.
void add_widths(std::vector<NamedCase>& cases) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16}) {
    for (const std::int64_t n : {3420, 1710, 1234, 1366, 12, 8, 6, 3, 1}) {
      add(cases, formatted("C04_{}_n{}", name_of(dtype), n),
          {.dtype = dtype, .layout = Layout::kGateUp, .m = 33, .n = n, .k = 128});
    }
  }
  for (const std::int64_t n : {2368, 3696, 1376, 1712, 856, 1848, 3788}) {
    for (const std::int64_t m : {1, 17, 130}) {
      add(cases, formatted("C25_n{}_m{}", n, m), {.m = m, .n = n, .k = m == 130 ? 64 : 256, .seed = 25});
    }
  }
}

// C05: rows of Y that are not 16-byte aligned, by size, base and stride. C06: the same for A and the weights.
void add_misaligned(std::vector<NamedCase>& cases) {
  for (const std::int64_t n : {4097, 4098, 4100, 4104}) {
    add(cases, formatted("C05_n{}", n), {.m = 257, .n = n, .k = 32, .pad = {}});
  }
  add(cases, "C05_base_of_y", {.m = 257, .n = 1024, .k = 64, .misalign = {.y = 1}});
  add(cases, "C05_stride_of_y", {.m = 257, .n = 1024, .k = 64, .pad = {.y = 1}});
  add(cases, "C06_stride_of_a", {.m = 64, .n = 128, .k = 64, .pad = {.a = 1, .y = 64}});
  add(cases, "C06_odd_k", {.m = 64, .n = 128, .k = 511});
  add(cases, "C06_base_of_a", {.m = 64, .n = 128, .k = 512, .misalign = {.a = 1}});
  add(cases, "C06_base_of_gate", {.m = 64, .n = 128, .k = 512, .misalign = {.gate = 1}});
  add(cases, "C06_base_of_merged", {.layout = Layout::kGateUp, .m = 64, .n = 128, .k = 512, .misalign = {.gate = 1}});
}

// C08: a stride of a matrix with one row means nothing, be it small, zero-like or huge.
void add_meaningless_strides(std::vector<NamedCase>& cases) {
  for (const std::int64_t ld : {std::int64_t{1}, std::int64_t{7}, (std::int64_t{1} << 31) + 8}) {
    add(cases, formatted("C08_lda_{}", ld), {.m = 1, .n = 96, .k = 4096, .stated_ld = {.a = ld, .y = ld}});
    add(cases, formatted("C08_ld_gate_{}", ld), {.m = 5, .n = 1, .k = 4096, .stated_ld = {.gate = ld, .up = ld}});
  }
}

// C12: small inputs, where an absolute tolerance would accept anything.
void add_small_inputs(std::vector<NamedCase>& cases) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16}) {
    for (const double scale : {0.02, 1.0}) {
      add(cases, formatted("C12_{}_scale_{}", name_of(dtype), scale == 1 ? "1" : "small"),
          {.dtype = dtype, .m = 300, .n = 712, .k = 640, .seed = 12, .input_scale = scale});
    }
  }
}

}  // namespace

void PrintTo(const NamedCase& named, std::ostream* stream) {
  PrintTo(named.op, stream);
}

std::vector<OpCase> ragged_cases(std::int64_t m) {
  std::vector<OpCase> cases;
  auto count = static_cast<std::size_t>(m);
  for (const std::int64_t n : kRaggedN) {
    for (const std::int64_t k : kRaggedK) {
      ++count;
      cases.push_back({.dtype = turn(kDtypes, count),
                       .dtype_y = turn(kDtypes, count / 3),
                       .activation = turn(kActivations, count / 2),
                       .layout = layout_for(n, count),
                       .m = m,
                       .n = n,
                       .k = k,
                       .pad = turn(kPads, count),
                       .misalign = turn(kMisalignments, count),
                       .seed = static_cast<unsigned>(count),
                       .swiglu = numbers_of(turn(kActivations, count / 2))});
    }
  }
  return cases;
}

std::vector<OpCase> combination_cases() {
  std::vector<OpCase> cases;
  for (const Dtype dtype : kDtypes) {
    for (const Dtype dtype_y : kDtypes) {
      for (const Activation activation : kActivations) {
        for (const Layout layout : kLayouts) {
          for (const std::int64_t m : {5, 35}) {
            cases.push_back({.dtype = dtype,
                             .dtype_y = dtype_y,
                             .activation = activation,
                             .layout = layout,
                             .m = m,
                             .n = 72,
                             .k = 83,
                             .swiglu = numbers_of(activation)});
          }
        }
      }
    }
  }
  return cases;
}

std::vector<OpCase> alignment_cases() {
  constexpr PerMatrix kOffsets[] = {
      {.a = 1}, {.gate = 1}, {.up = 1}, {.y = 1}, {.a = 1, .gate = 1, .up = 1, .y = 1}, {.a = 3, .gate = 5}};
  std::vector<OpCase> cases;
  for (const Dtype dtype : kDtypes) {
    for (const PerMatrix& off : kOffsets) {
      for (const std::int64_t m : {3, 40}) {
        OpCase op{.dtype = dtype, .m = m, .n = 50, .k = 100};
        op.pad = off;
        cases.push_back(op);
        op.pad = {.y = 64};
        op.misalign = off;
        cases.push_back(op);
      }
    }
  }
  return cases;
}

std::vector<OpCase> block_edge_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t m : {15, 33, 255, 256, 257}) {
    for (const std::int64_t n : {15, 16, 17, 47, 48, 49, 127, 128, 129, 257}) {
      cases.push_back({.m = m, .n = n, .k = 24});
      cases.push_back({.dtype = Dtype::kFp32, .layout = layout_for(n, 4), .m = m, .n = n, .k = 24});
    }
  }
  for (const std::int64_t m : {1023, 1024, 1025, 2100}) {
    cases.push_back({.m = m, .n = 33, .k = 99});
    cases.push_back({.dtype = Dtype::kFp32, .layout = Layout::kInterleaved8, .m = m, .n = 40, .k = 19});
  }
  return cases;
}

std::vector<NamedCase> field_cases() {
  std::vector<NamedCase> cases;
  add_widths(cases);
  add_misaligned(cases);
  add_meaningless_strides(cases);
  add_small_inputs(cases);
  return cases;
}

}  // namespace tileglu::test
