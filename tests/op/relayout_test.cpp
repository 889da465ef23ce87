// SPDX-License-Identifier: Apache-2.0
// Copying weights between layouts through the C ABI (field case C27).
#include "core/layout.hpp"
#include "op/op_cases.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace tileglu::test {
namespace {

// Weights of 16-bit elements in one layout, with gaps between the rows.
struct Packed {
  Layout layout;
  std::int64_t n, k, pad;
  std::vector<std::uint16_t> gate, up;

  Packed(Layout which, std::int64_t rows, std::int64_t depth, std::int64_t gap)
      : layout(which),
        n(rows),
        k(depth),
        pad(gap),
        gate(matrix(is_single_matrix(which) ? 2 * rows : rows)),
        up(matrix(is_single_matrix(which) ? 0 : rows)) {}

  std::vector<std::uint16_t> matrix(std::int64_t rows) const {
    return std::vector<std::uint16_t>(static_cast<std::size_t>(rows * (k + pad)), 0xDEAD);
  }
  std::uint16_t& at(bool of_up, std::int64_t row, std::int64_t column) {
    const HalfRows half = of_up ? up_rows(layout, n) : gate_rows(layout, n);
    auto& values = of_up && !is_single_matrix(layout) ? up : gate;
    return values[static_cast<std::size_t>(half.row(row) * (k + pad) + column)];
  }
  bool gaps_intact() const {
    for (const auto* values : {&gate, &up}) {
      for (std::size_t i = 0; i < values->size(); ++i) {
        const bool in_gap = static_cast<std::int64_t>(i) % (k + pad) >= k;
        if (in_gap && (*values)[i] != 0xDEAD) return false;
      }
    }
    return true;
  }
  tileglu_weights view() {
    tileglu_weights weights = TILEGLU_WEIGHTS_INIT;
    weights.layout = static_cast<int>(layout);
    weights.gate = gate.data();
    weights.up = is_single_matrix(layout) ? nullptr : up.data();
    weights.ld_gate = k + pad;
    weights.ld_up = is_single_matrix(layout) ? 0 : k + pad;
    return weights;
  }
};

tileglu_status relayout(Packed& source, Packed& destination) {
  tileglu_problem problem = TILEGLU_PROBLEM_INIT;
  problem.dtype = TILEGLU_BF16;
  problem.memory = TILEGLU_MEMORY_HOST;
  problem.n = source.n;
  problem.k = source.k;
  const tileglu_weights from = source.view(), to = destination.view();
  return tileglu_relayout(&problem, &from, &to, nullptr);
}

void expect_same_rows(Packed& one, Packed& other) {
  for (const bool of_up : {false, true}) {
    for (std::int64_t row = 0; row < one.n; ++row) {
      for (std::int64_t i = 0; i < one.k; ++i) ASSERT_EQ(one.at(of_up, row, i), other.at(of_up, row, i));
    }
  }
}

TEST(Relayout, C27_EveryChainGivesBackTheBits) {
  for (const Layout first : kLayouts) {
    for (const Layout second : kLayouts) {
      Packed original(first, 24, 7, 2), packed(second, 24, 7, 5), back(first, 24, 7, 0);
      std::mt19937 generator(27);
      for (const bool of_up : {false, true}) {
        for (std::int64_t i = 0; i < 24 * 7; ++i) {
          original.at(of_up, i / 7, i % 7) = static_cast<std::uint16_t>(generator());  // any bits, NaN included
        }
      }
      ASSERT_EQ(relayout(original, packed), TILEGLU_OK) << tileglu_last_error();
      ASSERT_EQ(relayout(packed, back), TILEGLU_OK) << tileglu_last_error();
      expect_same_rows(original, packed);
      expect_same_rows(original, back);
      EXPECT_TRUE(packed.gaps_intact());
    }
  }
}

TEST(Relayout, C27_RowsLandWhereTheLayoutSays) {
  Packed separate(Layout::kSeparate, 4, 1, 0), interleaved(Layout::kInterleaved1, 4, 1, 0),
      stacked(Layout::kUpGate, 4, 1, 0);
  separate.gate = {1, 2, 3, 4};
  separate.up = {10, 20, 30, 40};
  ASSERT_EQ(relayout(separate, interleaved), TILEGLU_OK);
  EXPECT_EQ(interleaved.gate, (std::vector<std::uint16_t>{1, 10, 2, 20, 3, 30, 4, 40}));
  ASSERT_EQ(relayout(interleaved, stacked), TILEGLU_OK);
  EXPECT_EQ(stacked.gate, (std::vector<std::uint16_t>{10, 20, 30, 40, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace tileglu::test
