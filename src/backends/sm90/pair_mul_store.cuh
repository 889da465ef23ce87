// SPDX-License-Identifier: Apache-2.0
// PairMulStore: an epilogue visitor tree node that turns an accumulator tile over interleaved weights (gate and up
// columns alternating, [m,2n]) into act(gate) * up ([m,n]) and stores it by TMA.
//
// Where it hooks into CUTLASS's TMA epilogue: visit() computes a sub-tile in registers, reduce() writes it to the
// shared memory of the current store stage, tma_store() sends it off. The collective's own destination is void, so this
// is its only store, and the collective delays the TMA store of one sub-tile until the arithmetic of the next is done.
// A void destination still has its stages in shared memory, one ElementAux per accumulator column; with a one-byte
// ElementAux they are exactly as large as the half as wide 16-bit result, which is why the node needs no memory of its
// own.
//
// Accumulator of a thread (WGMMA 64xN): for each group of 8 columns four values, columns 2q, 2q+1 of rows r and r+8,
// with q = lane % 4. An output unit (8 columns of y) comes from two groups:
//   granularity 8: one group is gate, the next up, of the same columns; the thread has its outputs in stmatrix order.
//   granularity 1: the columns of a pair are gate and up of one output; the thread has columns q and q+4 of the unit,
//   and
//                  one exchange inside the quad of lanes brings 2q and 2q+1 together.
#pragma once

#include "backends/sm90/gate_math.cuh"

#include <cutlass/epilogue/collective/collective_builder.hpp>

#include <cuda.h>

namespace tileglu::sm90 {

// Rows, Columns: of a sub-tile of y, which is one TMA box.
template <int Rows, int Columns, class Act, int Granularity>
struct PairMulStore {
  static_assert(Granularity == 1 || Granularity == 8);
  using ElementAux = std::uint8_t;

  struct SharedStorage {};
  struct Arguments {
    CUtensorMap y;  // [m,n], boxes of Rows x Columns
  };
  using Params = Arguments;

  template <class ProblemShape>
  static constexpr Params to_underlying_arguments(const ProblemShape&, const Arguments& args, void*) {
    return args;
  }
  template <class ProblemShape>
  static bool can_implement(const ProblemShape&, const Arguments&) {
    return true;
  }
  template <class ProblemShape>
  static std::size_t get_workspace_size(const ProblemShape&, const Arguments&) {
    return 0;
  }
  template <class ProblemShape>
  static cutlass::Status initialize_workspace(const ProblemShape&, const Arguments&, void*, cudaStream_t,
                                              cutlass::CudaHostAdapter* = nullptr) {
    return cutlass::Status::kSuccess;
  }

  CUTLASS_HOST_DEVICE PairMulStore() {}
  CUTLASS_HOST_DEVICE PairMulStore(const Params& params, const SharedStorage&) : params(&params) {}

  const Params* params;

  CUTLASS_DEVICE bool is_producer_load_needed() const { return false; }
  CUTLASS_DEVICE bool is_C_load_needed() const { return false; }

  template <class... Args>
  CUTLASS_DEVICE auto get_producer_load_callbacks(const cutlass::epilogue::fusion::ProducerLoadArgs<Args...>&) {
    return cutlass::epilogue::fusion::EmptyProducerLoadCallbacks{};
  }

  struct ConsumerStoreCallbacks : cutlass::epilogue::fusion::EmptyConsumerStoreCallbacks {
    static constexpr int kUnits = Columns / 8;

    CUTLASS_DEVICE ConsumerStoreCallbacks(const Params* params, int thread, int first_row, int first_column)
        : params(params), thread(thread), first_row(first_row), first_column(first_column) {}

    const Params* params;
    int thread;                       // in the warpgroups that share the tile
    int first_row;                    // of the CTA tile in y
    int first_column;                 // of the CTA tile in y
    void* stage = nullptr;            // shared memory of the sub-tile last written
    std::uint32_t packed[kUnits][2];  // (unit, row r or r+8): two neighbouring columns as bf16x2

    template <class Accumulator, class Input, int FragmentSize>
    CUTLASS_DEVICE auto visit(const cutlass::Array<Accumulator, FragmentSize>& accumulators, int, int, int,
                              const cutlass::Array<Input, FragmentSize>&) {
      static_assert(FragmentSize == kUnits * 8, "one visit covers a thread's whole sub-tile");
      CUTLASS_PRAGMA_UNROLL
      for (int unit = 0; unit < kUnits; ++unit) {
        Quad gate, up;
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < 4; ++i) {
          gate.v[i] = accumulators[unit * 8 + (Granularity == 8 ? i : 2 * i)];
          up.v[i] = accumulators[unit * 8 + (Granularity == 8 ? 4 + i : 2 * i + 1)];
        }
        const Quad y = act_times_up(Act{}, gate, up);
        if constexpr (Granularity == 8) {
          packed[unit][0] = PackBf16{}(y.v[0], y.v[1]);
          packed[unit][1] = PackBf16{}(y.v[2], y.v[3]);
        } else {
          exchange(PackBf16{}(y.v[0], y.v[1]), PackBf16{}(y.v[2], y.v[3]), packed[unit]);
        }
      }
      return accumulators;
    }

    template <class StageTensor, class Synchronize, class Results>
    CUTLASS_DEVICE void reduce(StageTensor&& stage_tensor, const Synchronize&, int, int, bool, const Results&) {
      static_assert(decltype(cute::cosize(stage_tensor.layout()))::value == Rows * Columns * 2);
      stage = cute::raw_pointer_cast(stage_tensor.data());
      const int lane = thread % 32;
      const int row = thread / 32 * 16 + lane % 16;  // stmatrix x4: two 8-row matrices below each other, two units wide
      CUTLASS_PRAGMA_UNROLL
      for (int unit = 0; unit < kUnits; unit += 2) {
        const int offset = row * Columns + swizzled_unit<Columns>(row, unit + lane / 16) * 8;
        cute::SM90_U32x4_STSM_N::copy(
            packed[unit][0], packed[unit][1], packed[unit + 1][0], packed[unit + 1][1],
            *reinterpret_cast<cute::uint128_t*>(static_cast<cutlass::bfloat16_t*>(stage) + offset));
      }
    }

    CUTLASS_DEVICE void tma_store(int epi_m, int epi_n, int, bool issue_tma_store) {
      if (issue_tma_store && cute::elect_one_sync()) {
        cute::SM90_TMA_STORE_2D::copy(&params->y, stage, first_column + epi_n * Columns, first_row + epi_m * Rows);
      }
    }

   private:
    // In: left = column q, right = column q + 4 of the unit, each (row r, row r+8) as (low, high).
    // Out: rows r and r+8, each (column 2q, column 2q+1).
    // Two shuffles: lane q needs one of left/right of lanes 2(q%2) and 2(q%2)+1; in the first, even lanes offer left
    // and odd lanes right, in the second the other way round, so that every lane is asked for what it offers.
    CUTLASS_DEVICE void exchange(std::uint32_t left, std::uint32_t right, std::uint32_t (&rows)[2]) const {
      const int lane = thread % 32;
      const int q = lane % 4;
      const bool odd = q % 2 != 0;
      const int quad = lane - q;
      const int source = 2 * (q % 2) + q / 2;  // 0, 2, 1, 3
      const std::uint32_t first = __shfl_sync(0xFFFFFFFFU, odd ? right : left, quad + source);
      const std::uint32_t second = __shfl_sync(0xFFFFFFFFU, odd ? left : right, quad + (source ^ 1));
      const bool swapped = q >= 2;  // `first` then holds the odd column
      rows[0] = __byte_perm(first, second, swapped ? 0x1054 : 0x5410);
      rows[1] = __byte_perm(first, second, swapped ? 0x3276 : 0x7632);
    }
  };

  template <bool ReferenceSrc, class... Args>
  CUTLASS_DEVICE auto get_consumer_store_callbacks(const cutlass::epilogue::fusion::ConsumerStoreArgs<Args...>& args) {
    const auto [m, n, k, l] = args.tile_coord_mnkl;
    constexpr int kTileM = cute::size<0>(decltype(args.tile_shape_mnk){});
    constexpr int kTileN2 = cute::size<1>(decltype(args.tile_shape_mnk){});
    return ConsumerStoreCallbacks(params, args.thread_idx, static_cast<int>(m) * kTileM,
                                  static_cast<int>(n) * (kTileN2 / 2));
  }
};

}  // namespace tileglu::sm90
