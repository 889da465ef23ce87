// SPDX-License-Identifier: Apache-2.0
// Which half is the gate (field cases C26, C27), and packing on the GPU bit for bit as on the host.
#include "launch.hpp"
#include "op/op_case.hpp"
#include "pack/relayout.hpp"

#include <cmath>
#include <random>

namespace tileglu::gpu {
namespace {

constexpr std::array kLayouts{Layout::kSeparate, Layout::kGateUp, Layout::kUpGate, Layout::kInterleaved1,
                              Layout::kInterleaved8};

const Kernel kAny{BackendId::kAuto, ""};

double expected(double gate, double up) {
  return gate / (1 + std::exp(-gate)) * up;
}

// C26: silu(1) * 2 = 1.46212, exchanged 1.76159; silu(-3) * 5 = -0.71139, exchanged -14.8996.
TEST(WhichHalfIsTheGate, OneByOne) {
  for (const Layout layout : kLayouts) {
    if (layout == Layout::kInterleaved8) continue;  // needs eight columns
    for (const auto& [gate, up] : {std::pair{1.0, 2.0}, {-3.0, 5.0}}) {
      const test::OpCase op{.layout = layout, .a = {1}, .gate = {gate}, .up = {up}};
      const test::Outcome outcome = test::run_case(op, kAny.options(), Memory::kCuda);
      ASSERT_EQ(outcome.status, TILEGLU_OK) << outcome.error;
      EXPECT_NEAR(test::values(op, outcome).front(), expected(gate, up), std::abs(expected(gate, up)) / 128)
          << "layout " << name_of(layout);
    }
  }
}

class Halves : public testing::TestWithParam<Kernel> {};
INSTANTIATE_TEST_SUITE_P(All, Halves, testing::ValuesIn(all_kernels()), test_name);

// C26 and C27 for every kernel and layout: eight columns, no two alike; only column 0 of k = 8 counts.
TEST_P(Halves, EveryLayoutGivesTheSame) {
  const std::vector<double> gate{1, 2, 3, 4, -3, -1, 0.5, 1}, up{10, 20, 30, 40, 5, 2, -8, 2};
  int taken = 0;
  for (const Layout layout : kLayouts) {
    test::OpCase op{.layout = layout, .m = 1, .n = 8, .k = 8};
    op.a.resize(8);
    op.gate.resize(64);
    op.up.resize(64);
    op.a[0] = 1;
    for (std::size_t i = 0; i < 8; ++i) op.gate[8 * i] = gate[i], op.up[8 * i] = up[i];
    const test::Outcome outcome = test::run_case(op, GetParam().options(), Memory::kCuda);
    EXPECT_TRUE(outcome.status == TILEGLU_OK || outcome.status == TILEGLU_NOT_SUPPORTED) << outcome.error;
    if (outcome.status != TILEGLU_OK) continue;
    const std::vector<double> y = test::values(op, outcome);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_NEAR(y[i], expected(gate[i], up[i]), std::abs(expected(gate[i], up[i])) / 64)
          << "layout " << name_of(layout) << " column " << i;
    }
    ++taken;
  }
  EXPECT_GT(taken, 0);
}

// --- relayout --------------------------------------------------------------------------------------------------------

struct Packed {
  std::int64_t n, k, pad;
  std::int64_t skew;  // elements that the destination is off the 16-byte grid
  Dtype dtype = Dtype::kBf16;
};

// Two matrices' worth of bytes, and the view of a layout in them.
struct TwoMatrices {
  std::int64_t up_offset, bytes;
};
TwoMatrices memory_of(const Packed& shape) {
  const auto size = static_cast<std::int64_t>(size_of(shape.dtype));
  const std::int64_t half = (shape.n * (shape.k + shape.pad) + 16) * size;
  return {.up_offset = half, .bytes = 2 * half + 64};
}
WeightsView view_in(void* memory, Layout layout, const Packed& shape, std::int64_t skew) {
  auto* base = static_cast<unsigned char*>(memory) + skew * static_cast<std::int64_t>(size_of(shape.dtype));
  const bool separate = layout == Layout::kSeparate;
  const std::int64_t ld = shape.k + shape.pad;
  return {.layout = layout,
          .gate = base,
          .up = separate ? base + memory_of(shape).up_offset : nullptr,
          .ld_gate = ld,
          .ld_up = separate ? ld : 0};
}

// From one layout to another on the GPU and on the host: the same bytes, those around them untouched. Then back: the
// bytes that it began with.
void check_relayout(Layout from, Layout to, const Packed& shape, const std::vector<unsigned char>& source) {
  const std::size_t bytes = source.size();
  std::vector<unsigned char> host(bytes, 0x7E), back(bytes, 0x7E), gpu(bytes);
  const auto source_gpu = require(runtime::Buffer::make(Memory::kCuda, 0, bytes));
  const auto packed_gpu = require(runtime::Buffer::make(Memory::kCuda, 0, bytes));
  const auto back_gpu = require(runtime::Buffer::make(Memory::kCuda, 0, bytes));
  require(source_gpu.upload(source.data(), bytes));
  require(packed_gpu.fill(0x7E));
  require(back_gpu.fill(0x7E));
  const runtime::Stream stream = require(runtime::Stream::make(Memory::kCuda, 0));
  const RelayoutShape relayout{.dtype = shape.dtype, .n = shape.n, .k = shape.k};
  const WeightsView packed = view_in(packed_gpu.data(), to, shape, shape.skew);
  require(relayout_cuda(relayout, view_in(source_gpu.data(), from, shape, 0), packed, 0, stream.handle()));
  require(relayout_cuda(relayout, packed, view_in(back_gpu.data(), from, shape, 0), 0, stream.handle()));
  require(stream.synchronize());

  const auto text = testing::Message() << name_of(from) << " -> " << name_of(to) << " n=" << shape.n << " k=" << shape.k
                                       << " pad=" << shape.pad << " skew=" << shape.skew;
  const WeightsView on_host = view_in(const_cast<unsigned char*>(source.data()), from, shape, 0);
  relayout_host(relayout, on_host, view_in(host.data(), to, shape, shape.skew));
  require(packed_gpu.download(gpu.data(), bytes));
  EXPECT_TRUE(gpu == host) << text;
  relayout_host(relayout, on_host, view_in(back.data(), from, shape, 0));
  require(back_gpu.download(gpu.data(), bytes));
  EXPECT_TRUE(gpu == back) << text << ", and back";
}

TEST(Relayout, AllPairsOfLayoutsBitForBit) {
  for (const Packed& shape :
       {Packed{8, 1, 0, 0}, Packed{8, 8, 0, 0}, Packed{712, 640, 8, 0}, Packed{40, 511, 1, 0}, Packed{304, 64, 4, 0},
        Packed{304, 64, 8, 1}, Packed{304, 66, 2, 2}, Packed{136, 72, 4, 1, Dtype::kFp32}, Packed{4864, 896, 0, 0}}) {
    std::mt19937 generator(7);
    std::vector<unsigned char> source(static_cast<std::size_t>(memory_of(shape).bytes));
    for (unsigned char& byte : source) byte = static_cast<unsigned char>(generator());
    for (const Layout from : kLayouts) {
      for (const Layout to : kLayouts) check_relayout(from, to, shape, source);
    }
  }
}

}  // namespace
}  // namespace tileglu::gpu
