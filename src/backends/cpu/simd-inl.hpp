// SPDX-License-Identifier: Apache-2.0
// The loops themselves; no include guard: simd.cpp includes this once per instruction set, after setting
// TILEGLU_SIMD_NAMESPACE and TILEGLU_SIMD_LANES (floats per vector register).
namespace tileglu::cpu::TILEGLU_SIMD_NAMESPACE {

constexpr std::int64_t kLanes = TILEGLU_SIMD_LANES;
constexpr std::int64_t kStep = 2 * kLanes;  // elements of k that a dot kernel takes at a time

typedef float Vector __attribute__((vector_size(4 * TILEGLU_SIMD_LANES)));
typedef std::uint32_t Bits __attribute__((vector_size(4 * TILEGLU_SIMD_LANES)));
typedef std::uint16_t Halves __attribute__((vector_size(2 * TILEGLU_SIMD_LANES)));

// --- Weights: kStep elements as two vectors -------------------------------------------------------------------------

struct Pair {
  Vector first, second;
};

template <class V>
inline V load(const void* source) {
  V value;
  std::memcpy(&value, source, sizeof(V));
  return value;
}

inline Pair load_pair(const float* source) {
  return {load<Vector>(source), load<Vector>(source + kLanes)};
}

// Even elements, then odd ones: a shift and a mask instead of the unpacking that would keep the order.
inline Pair load_pair(const Bf16* source) {
  const Bits bits = load<Bits>(source);
  return {reinterpret_cast<Vector>(bits << 16), reinterpret_cast<Vector>(bits & 0xFFFF0000U)};
}

inline Vector load_halves(const Fp16* source) {
#if TILEGLU_SIMD_LANES == 16
  return _mm512_maskz_cvtph_ps(0xFFFF, load<__m256i>(source));  // the unmasked form warns in GCC 12
#elif TILEGLU_SIMD_LANES == 8
  return _mm256_cvtph_ps(load<__m128i>(source));
#else
  Vector value;
  for (std::int64_t i = 0; i < kLanes; ++i) value[i] = widen(source[i]);
  return value;
#endif
}
inline Pair load_pair(const Fp16* source) {
  return {load_halves(source), load_halves(source + kLanes)};
}

// --- Rows of A ------------------------------------------------------------------------------------------------------

template <class T>
void widen_row(const void* source, std::int64_t k, float* destination) {
  const T* row = static_cast<const T*>(source);
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, Fp16>) {
    for (; i + kLanes <= k; i += kLanes) {
      const Vector value = load_halves(row + i);
      std::memcpy(destination + i, &value, sizeof(value));
    }
  }
  for (; i < k; ++i) destination[i] = widen(row[i]);
}

// In the order in which load_pair gives the weights; what is left past the last whole step keeps its order.
template <class T>
void prepare_row(const void* source, std::int64_t k, float* destination) {
  const T* row = static_cast<const T*>(source);
  std::int64_t i = 0;
  for (; i + kStep <= k; i += kStep) {
    const Pair pair = load_pair(row + i);
    std::memcpy(destination + i, &pair, sizeof(pair));
  }
  for (; i < k; ++i) destination[i] = widen(row[i]);
}

// --- Dot products for few rows of A: weights are read once, from memory, and widened in registers --------------------

// The weight rows that a block takes, and those that the next one will: rows are too short for the hardware's
// prefetcher (Zen 1, m=1, rows of 1792 bytes: 2.39 ms without, 1.78 with).
template <class T, int kColumns>
struct Columns {
  const T *now[kColumns], *next[kColumns];
};

template <class T, int kRows, int kColumns>
void dot_block(const float* a, std::int64_t lda, const Columns<T, kColumns>& columns, std::int64_t k,
               float (*sums)[kColumns]) {
  Vector sum[kRows][kColumns] = {};
  std::int64_t i = 0;
  for (; i + kStep <= k; i += kStep) {
    for (int column = 0; column < kColumns; ++column) {
      __builtin_prefetch(columns.next[column] + i);
      const Pair weight = load_pair(columns.now[column] + i);
      for (int row = 0; row < kRows; ++row) {
        const Pair value = load_pair(a + row * lda + i);
        sum[row][column] += value.first * weight.first;
        sum[row][column] += value.second * weight.second;
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      float total = 0;
      for (std::int64_t lane = 0; lane < kLanes; ++lane) total += sum[row][column][lane];
      for (std::int64_t rest = i; rest < k; ++rest) total += a[row * lda + rest] * widen(columns.now[column][rest]);
      sums[row][column] = total;
    }
  }
}

// kColumns weight rows against all rows of A, four at a time. Past the last column the last one is computed again.
template <class T, int kColumns>
void dot_columns(const DotTile& tile, std::int64_t column) {
  const WeightRows& w = tile.weights;
  const auto row_at = [&w](std::int64_t i) {
    return static_cast<const T*>(w.base) + w.half.row(w.first + std::min(i, w.count - 1)) * w.ld;
  };
  Columns<T, kColumns> pointers;
  for (int c = 0; c < kColumns; ++c) {
    pointers.now[c] = row_at(column + c);
    pointers.next[c] = row_at(column + c + kColumns);
  }
  const std::int64_t columns = std::min<std::int64_t>(kColumns, w.count - column);
  for (std::int64_t row = 0; row < tile.rows; row += 4) {
    const float* a = tile.a + row * tile.lda;
    const std::int64_t rows = std::min<std::int64_t>(4, tile.rows - row);
    float sums[4][kColumns];
    switch (rows) {
      case 1: dot_block<T, 1, kColumns>(a, tile.lda, pointers, tile.k, sums); break;
      case 2: dot_block<T, 2, kColumns>(a, tile.lda, pointers, tile.k, sums); break;
      case 3: dot_block<T, 3, kColumns>(a, tile.lda, pointers, tile.k, sums); break;
      default: dot_block<T, 4, kColumns>(a, tile.lda, pointers, tile.k, sums); break;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      std::copy_n(sums[r], columns, tile.sums + (row + r) * tile.sums_ld + column);
    }
  }
}

// 4 x 3 sums and a pair of weights fit the 16 vector registers of AVX2; one row alone wants more columns in flight.
template <class T>
void dot(const DotTile& tile) {
  if (tile.rows == 1) {
    for (std::int64_t column = 0; column < tile.weights.count; column += 4) dot_columns<T, 4>(tile, column);
  } else {
    for (std::int64_t column = 0; column < tile.weights.count; column += 3) dot_columns<T, 3>(tile, column);
  }
}

// --- The end of a tile ----------------------------------------------------------------------------------------------

// Calls body(i, element) for the tile's columns of a row of `half`, the second an index into its matrix.
template <class Pointer, class Body>
void for_columns(const ColumnHalf<Pointer>& half, const ExtraTile& tile, std::int64_t row, Body body) {
  const std::int64_t first = half.index(tile.row + row, tile.column);
  if (half.columns.group == 1) {
    for (std::int64_t i = 0; i < tile.columns; ++i) body(i, first + i * half.columns.pitch);
  } else {
    for (std::int64_t i = 0; i < tile.columns; ++i) body(i, half.index(tile.row + row, tile.column + i));
  }
}

template <class T>
void extra(const ExtraTile& tile) {
  const T* bias = tile.bias != nullptr ? static_cast<const T*>(tile.bias) + tile.column : nullptr;
  const T* add = static_cast<const T*>(tile.add.base);
  T* saved = static_cast<T*>(tile.save.base);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    float* sums = tile.sums + row * tile.sums_ld;
    if (bias != nullptr) {
      for (std::int64_t i = 0; i < tile.columns; ++i) sums[i] += widen(bias[i]);
    }
    if (add != nullptr) {
      for_columns(tile.add, tile, row, [&](std::int64_t i, std::int64_t element) { sums[i] += widen(add[element]); });
    }
    if (saved != nullptr) {
      for_columns(tile.save, tile, row,
                  [&](std::int64_t i, std::int64_t element) { saved[element] = narrow<T>(sums[i]); });
    }
  }
}

template <Rounding kRounding, class Act, class Y>
void finish(const FinishTile& tile) {
  Act act;
  if constexpr (std::is_same_v<Act, Swiglu>) act.numbers = tile.swiglu;
  const auto round = [](float x) { return widen(narrow<Y>(x)); };
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const float* gate = tile.gate + row * tile.sums_ld;
    const float* up = tile.up + row * tile.sums_ld;
    Y* y = static_cast<Y*>(tile.y) + row * tile.ldy;
#pragma omp simd
    for (std::int64_t i = 0; i < tile.columns; ++i) {
      if constexpr (kRounding == Rounding::kOnce) {
        y[i] = narrow<Y>(gated(act, gate[i], up[i]));
      } else {
        y[i] = narrow<Y>(gated_unfused(act, gate[i], up[i], round));
      }
    }
  }
}

using Finish = void (*)(const FinishTile&);
template <Rounding kRounding, class Act>
constexpr void list_finish(Finish (&by_type)[3]) {
  by_type[0] = finish<kRounding, Act, Bf16>;
  by_type[1] = finish<kRounding, Act, Fp16>;
  by_type[2] = finish<kRounding, Act, float>;
}
template <Rounding kRounding>
constexpr void list_finish(Finish (&by_activation)[7][3]) {
  list_finish<kRounding, Silu>(by_activation[0]);
  list_finish<kRounding, GeluTanh>(by_activation[1]);
  list_finish<kRounding, GeluErf>(by_activation[2]);
  list_finish<kRounding, Relu>(by_activation[3]);
  list_finish<kRounding, Sigmoid>(by_activation[4]);
  list_finish<kRounding, Identity>(by_activation[5]);
  list_finish<kRounding, Swiglu>(by_activation[6]);
}

constexpr Simd make_simd(const char* name, bool (*supported)()) {
  Simd simd{
      .name = name,
      .supported = supported,
      .widen_row = {widen_row<Bf16>, widen_row<Fp16>, widen_row<float>},
      .prepare_row = {prepare_row<Bf16>, prepare_row<Fp16>, prepare_row<float>},
      .dot = {dot<Bf16>, dot<Fp16>, dot<float>},
      .extra = {extra<Bf16>, extra<Fp16>, extra<float>},
      .finish = {},
  };
  list_finish<Rounding::kOnce>(simd.finish[0]);
  list_finish<Rounding::kUnfused>(simd.finish[1]);
  return simd;
}

}  // namespace tileglu::cpu::TILEGLU_SIMD_NAMESPACE
