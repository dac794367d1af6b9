// Products of 8-bit rows with packed weights, where bytes are multiplied and added in pairs to 16 bits: AVX2.
//
// Such a sum must be widened to 32 bits by a second multiplication, and two factors of 8 bits overflow it. Therefore
// - inputs are taken from a window of 129 levels around their zero point. With 0 to 128 from its begin, two products
//   always fit, and four do unless several large weights of one sign meet: `Dense::apart` says where. So there are
//   three multiplications for 64 products instead of four, and no operation on signs.
// - what is outside of the window, a few per cent of inputs, is multiplied again by how far it is.
// Every sum is exact.
#pragma once

#include "compute/functions.h"
#include "compute/offsets.h"

namespace dragoman {
namespace {

constexpr int kTileRows = 4, kTileColumns = 16;
constexpr int kLanesEach = 8;
constexpr int kVectors = kTileColumns / kLanesEach;
constexpr int kWindow = 128;                   // the largest input of the window
constexpr int kMostOfFour = 32767 / kWindow;   // of the weights of one sign among four
constexpr int kMaxRows = 64;                   // at a time
constexpr int64_t kMaxRowBytes = 1 << 16;      // more than inputs of a layer: see `kMaxInputs` in runtime/model.cpp

DRAGOMAN_INLINE int32_t window_begin(const Dense &dense) {
  const int32_t begin = dense.zero_point - kWindow / 2;
  return begin < 0 ? 0 : begin > 127 ? 127 : begin;
}

DRAGOMAN_INLINE int64_t num_pairs(const Dense &dense) { return (dense.num_groups + 1) / 2; }

DRAGOMAN_INLINE __m256i load_bytes(const void *from) {
  return _mm256_loadu_si256(static_cast<const __m256i *>(from));
}

// Four inputs' distances from the window, and their magnitudes.
struct Rest {
  __m256i distances, magnitudes;
};
DRAGOMAN_INLINE Rest rest_of(__m256i levels, __m256i begin, __m256i end) {
  const __m256i below = _mm256_subs_epu8(begin, levels), above = _mm256_subs_epu8(levels, end);
  return {_mm256_sub_epi8(above, below), _mm256_or_si256(above, below)};
}

struct InputRows {
  const uint8_t *levels;
  int64_t levels_stride, stride, num_words;
  __m256i begin, end; // of the window
  alignas(64) uint8_t window[kMaxRowBytes];                     // (rows, stride)
  uint64_t is_outside[kMaxRowBytes / (64 * 4) + kMaxRows];      // (rows, num_words): a bit for each group of inputs

  static int64_t most(const Dense &dense) {
    const int64_t rows = kMaxRowBytes / round_up(dense.num_inputs, 32);
    return rows < kMaxRows ? rows : kMaxRows;
  }

  InputRows(const Dense &dense, const uint8_t *from, int64_t from_stride, int64_t num_rows)
      : levels(from), levels_stride(from_stride), stride(round_up(dense.num_inputs, 32)),
        num_words((dense.num_groups + 63) / 64), begin(_mm256_set1_epi8(static_cast<char>(window_begin(dense)))),
        end(_mm256_set1_epi8(static_cast<char>(window_begin(dense) + kWindow))) {
    const __m256i largest = _mm256_set1_epi8(static_cast<char>(kWindow));
    for (int64_t row = 0; row < num_rows; ++row) {
      uint64_t *const bits = is_outside + row * num_words;
      for (int64_t word = 0; word < num_words; ++word) bits[word] = 0;
      for (int64_t i = 0; i < stride; i += 32) {
        const __m256i own = load_bytes(levels + row * levels_stride + i);
        const __m256i inside = _mm256_min_epu8(_mm256_subs_epu8(own, begin), largest);
        _mm256_store_si256(reinterpret_cast<__m256i *>(window + row * stride + i), inside);
        const __m256i is_inside = _mm256_cmpeq_epi32(rest_of(own, begin, end).magnitudes, _mm256_setzero_si256());
        const uint64_t outside = 255u & ~static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(is_inside)));
        bits[i / 256] |= outside << (i / 4 % 64);
      }
      if (dense.num_groups % 64 != 0) bits[num_words - 1] &= (uint64_t{1} << (dense.num_groups % 64)) - 1;
    }
  }
};

DRAGOMAN_INLINE __m256i widened(__m256i sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }
DRAGOMAN_INLINE Accumulators added(Accumulators sums, __m256i more) {
  return reinterpret_cast<Accumulators>(_mm256_add_epi32(reinterpret_cast<__m256i>(sums), more));
}

void prepare(Dense &dense, int32_t *offsets, uint8_t *apart) {
  fill_offsets(dense, window_begin(dense), offsets);
  dense.apart = apart;
  const __m256i zero = _mm256_setzero_si256(), most = _mm256_set1_epi16(kMostOfFour), ones = _mm256_set1_epi8(1);
  for (int64_t block = 0; block < dense.num_blocks; ++block) {
    const int8_t *const weights = dense.weights + block * dense.num_groups * kGroupBytes;
    for (int64_t group = 0; group < dense.num_groups; group += 2) {
      uint8_t tiles = 0;
      for (int64_t i = 0; i < kGroupBytes && group + 1 < dense.num_groups; i += 32) {
        const __m256i first = load_bytes(weights + group * kGroupBytes + i);
        const __m256i second = load_bytes(weights + (group + 1) * kGroupBytes + i);
        const __m256i positive = _mm256_add_epi16(_mm256_maddubs_epi16(ones, _mm256_max_epi8(first, zero)),
                                                  _mm256_maddubs_epi16(ones, _mm256_max_epi8(second, zero)));
        const __m256i negative = _mm256_add_epi16(_mm256_maddubs_epi16(ones, _mm256_min_epi8(first, zero)),
                                                  _mm256_maddubs_epi16(ones, _mm256_min_epi8(second, zero)));
        const __m256i is_over = _mm256_or_si256(_mm256_cmpgt_epi16(positive, most),
                                                _mm256_cmpgt_epi16(_mm256_sub_epi16(zero, negative), most));
        if (_mm256_movemask_epi8(is_over) != 0) tiles = static_cast<uint8_t>(tiles | 1 << i / (4 * kTileColumns));
      }
      *apart++ = tiles;
    }
  }
}

// Add the products of what is outside of the window to a row's 64 results.
DRAGOMAN_INLINE void add_rests(const InputRows &rows, int64_t row, const int8_t *weights, int32_t *result) {
  const uint64_t *const bits = rows.is_outside + row * rows.num_words;
  const uint8_t *const levels = rows.levels + row * rows.levels_stride;
  constexpr int kAll = kBlockColumns / kLanesEach;
  Accumulators sums[kAll];
#pragma GCC unroll 8
  for (int v = 0; v < kAll; ++v) sums[v] = Memory<Accumulators>::load(result + v * kLanesEach);
  for (int64_t word = 0; word < rows.num_words; ++word) {
    for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
      const int64_t group = word * 64 + __builtin_ctzll(rest);
      const Rest own = rest_of(spread_four(levels + group * 4), rows.begin, rows.end);
      const int8_t *const from = weights + group * kGroupBytes;
#pragma GCC unroll 8
      for (int v = 0; v < kAll; ++v) {
        const __m256i signed_weights = _mm256_sign_epi8(load_bytes(from + v * kLanesEach * 4), own.distances);
        sums[v] = added(sums[v], widened(_mm256_maddubs_epi16(own.magnitudes, signed_weights)));
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kAll; ++v) Memory<Accumulators>::store(sums[v], result + v * kLanesEach);
}

// Results of rows from `row_begin` on and blocks of weights from `block_begin` on: (num_blocks, num_rows, 64), with
// their offsets. Meanwhile read ahead so many 64-byte lines of each group at `ahead`.
template <int num_rows, int num_blocks, int lines_ahead>
void multiply_blocks(const InputRows &rows, int64_t row_begin, const Dense &dense, int64_t block_begin,
                     const int8_t *ahead, int32_t *results) {
  const int64_t num_groups = dense.num_groups, block_bytes = num_groups * kGroupBytes, stride = rows.stride;
  const int8_t *const weights = dense.weights + block_begin * block_bytes;
  const int32_t *const offsets = dense.offsets + block_begin * kBlockColumns;
  for (int column = 0; column < kBlockColumns; column += kTileColumns) {
    Accumulators sums[num_blocks][num_rows][kVectors];
#pragma GCC unroll 4
    for (int block = 0; block < num_blocks; ++block) {
#pragma GCC unroll 16
      for (int row = 0; row < num_rows; ++row) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          sums[block][row][v] = Memory<Accumulators>::load(offsets + block * kBlockColumns + column + v * kLanesEach);
      }
    }
    const int8_t *from = weights + column * 4;
    const uint8_t *input = rows.window + row_begin * stride;
    const uint8_t *apart = dense.apart + block_begin * num_pairs(dense);
    const uint8_t own_tile = static_cast<uint8_t>(1 << column / kTileColumns);
    int64_t group = 0;
    for (; group + 1 < num_groups; group += 2, from += 2 * kGroupBytes, input += 8, ++apart) {
#pragma GCC unroll 2
      for (int line = 0; line < lines_ahead && column == 0; ++line) {
        __builtin_prefetch(ahead + group * kGroupBytes + line * 64, 0, 2); // into the second-level cache
        __builtin_prefetch(ahead + (group + 1) * kGroupBytes + line * 64, 0, 2);
      }
#pragma GCC unroll 4
      for (int block = 0; block < num_blocks; ++block) {
        __m256i first[kVectors], second[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          first[v] = load_bytes(from + block * block_bytes + v * kLanesEach * 4);
          second[v] = load_bytes(from + block * block_bytes + kGroupBytes + v * kLanesEach * 4);
        }
        const bool is_apart = (apart[block * num_pairs(dense)] & own_tile) != 0;
        if (__builtin_expect(is_apart, 0)) {
#pragma GCC unroll 16
          for (int row = 0; row < num_rows; ++row) {
            const __m256i one = spread_four(input + row * stride), two = spread_four(input + row * stride + 4);
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v)
              sums[block][row][v] = added(added(sums[block][row][v], widened(_mm256_maddubs_epi16(one, first[v]))),
                                          widened(_mm256_maddubs_epi16(two, second[v])));
          }
          continue;
        }
#pragma GCC unroll 16
        for (int row = 0; row < num_rows; ++row) {
          const __m256i one = spread_four(input + row * stride), two = spread_four(input + row * stride + 4);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v)
            sums[block][row][v] =
                added(sums[block][row][v], widened(_mm256_add_epi16(_mm256_maddubs_epi16(one, first[v]),
                                                                    _mm256_maddubs_epi16(two, second[v]))));
        }
      }
    }
    if (group < num_groups) {
#pragma GCC unroll 4
      for (int block = 0; block < num_blocks; ++block) {
#pragma GCC unroll 16
        for (int row = 0; row < num_rows; ++row) {
          const __m256i one = spread_four(input + row * stride);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            const __m256i own = load_bytes(from + block * block_bytes + v * kLanesEach * 4);
            sums[block][row][v] = added(sums[block][row][v], widened(_mm256_maddubs_epi16(one, own)));
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int block = 0; block < num_blocks; ++block) {
#pragma GCC unroll 16
      for (int row = 0; row < num_rows; ++row) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          Memory<Accumulators>::store(sums[block][row][v],
                                      results + (block * num_rows + row) * kBlockColumns + column + v * kLanesEach);
      }
    }
  }
  for (int block = 0; block < num_blocks; ++block)
    for (int row = 0; row < num_rows; ++row)
      add_rests(rows, row_begin + row, weights + block * block_bytes, results + (block * num_rows + row) * kBlockColumns);
}

} // namespace
} // namespace dragoman
