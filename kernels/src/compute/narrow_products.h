// Products of 8-bit rows with packed weights, where bytes are multiplied and added in pairs to 16 bits: AVX2.
//
// Such a sum is widened to 32 bits by another multiplication, and two products of any bytes overflow it. Therefore
// - inputs are taken from a window of 129 levels around their zero point, as 0 to 128. Two products of these always fit
//   into 16 bits, and four do unless large weights of one sign meet (of a trained model, in one of ten pairs of groups;
//   `Dense::order` has them last). So 64 products take three multiplications instead of four, and none needs its sign
//   moved to the other factor.
// - what is outside of the window, one in eight inputs, or one in fifty behind ReLU, is multiplied again by how far it
//   is.
// Every sum is exact.
#pragma once

#include "compute/functions.h"
#include "compute/offsets.h"

namespace dragoman {
namespace {

constexpr int kTileRows = 4, kTileColumns = 16;
constexpr int kLanesEach = 8;
constexpr int kVectors = kTileColumns / kLanesEach;
constexpr int kWindow = 128;                 // the largest input of the window
constexpr int kMostOfFour = 32767 / kWindow; // the sum of the weights of one sign among four
constexpr int kMaxRows = 64;                 // at a time
constexpr int64_t kMaxRowBytes = 1 << 16;    // of these rows together
static_assert(kMaxRowBytes >= kMaxInputs + 32, "one row fits");

DRAGOMAN_INLINE int32_t window_begin(const Dense &dense) {
  const int32_t begin = dense.zero_point - kWindow / 2;
  return begin < 0 ? 0 : begin > 127 ? 127 : begin;
}

DRAGOMAN_INLINE void store_bytes(__m256i bytes, void *to) { _mm256_storeu_si256(static_cast<__m256i *>(to), bytes); }

// A bit for each group of these 32 inputs: whether one of its four is not zero.
DRAGOMAN_INLINE uint64_t groups_not_zero(__m256i inputs) {
  const __m256i is_zero = _mm256_cmpeq_epi32(inputs, _mm256_setzero_si256());
  return 255u & ~static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(is_zero)));
}

// Rows of inputs, taken from the window, and where some are outside.
struct InputRows {
  const uint8_t *levels;
  int64_t levels_stride, stride, num_words;
  __m256i begin, end;                       // of the window
  alignas(64) uint8_t window[kMaxRowBytes]; // (rows, stride)
  // (rows, num_words): a bit for each group that has inputs below or above the window
  uint64_t is_below[kMaxRowBytes / 256 + kMaxRows], is_above[kMaxRowBytes / 256 + kMaxRows];

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
      for (int64_t word = 0; word < num_words; ++word) {
        uint64_t below = 0, above = 0;
        for (int64_t i = word * 256; i < word * 256 + 256 && i < stride; i += 32) {
          const __m256i own = load_bytes(levels + row * levels_stride + i);
          const __m256i inside = _mm256_min_epu8(_mm256_subs_epu8(own, begin), largest);
          store_bytes(inside, window + row * stride + i);
          below |= groups_not_zero(_mm256_subs_epu8(begin, own)) << (i / 4 % 64);
          above |= groups_not_zero(_mm256_subs_epu8(own, end)) << (i / 4 % 64);
        }
        const int64_t rest = dense.num_groups - word * 64; // what follows a row's inputs may be any bytes
        const uint64_t own_groups = rest < 64 ? (uint64_t{1} << rest) - 1 : ~uint64_t{0};
        is_below[row * num_words + word] = below & own_groups;
        is_above[row * num_words + word] = above & own_groups;
      }
    }
  }
};

DRAGOMAN_INLINE __m256i widened(__m256i sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }

// Whether sums of four products with this group and the next fit into 16 bits, for all columns of a tile.
DRAGOMAN_INLINE bool fits(const int8_t *group) {
  const __m256i zero = _mm256_setzero_si256(), most = _mm256_set1_epi16(kMostOfFour), ones = _mm256_set1_epi8(1);
  __m256i is_over = zero;
  for (int i = 0; i < kTileColumns * 4; i += 32) {
    const __m256i one = load_bytes(group + i), two = load_bytes(group + kGroupBytes + i);
    const __m256i positive = _mm256_add_epi16(_mm256_maddubs_epi16(ones, _mm256_max_epi8(one, zero)),
                                              _mm256_maddubs_epi16(ones, _mm256_max_epi8(two, zero)));
    const __m256i negative = _mm256_add_epi16(_mm256_maddubs_epi16(ones, _mm256_min_epi8(one, zero)),
                                              _mm256_maddubs_epi16(ones, _mm256_min_epi8(two, zero)));
    is_over = _mm256_or_si256(is_over, _mm256_cmpgt_epi16(positive, most));
    is_over = _mm256_or_si256(is_over, _mm256_cmpgt_epi16(_mm256_sub_epi16(zero, negative), most));
  }
  return _mm256_testz_si256(is_over, is_over) != 0;
}

void prepare(Dense &dense, int32_t *offsets, uint16_t *order) {
  fill_offsets(dense, window_begin(dense), offsets);
  dense.order = order;
  const int64_t num_pairs = dense.num_groups / 2;
  for (int64_t block = 0; block < dense.num_blocks; ++block) {
    for (int column = 0; column < kBlockColumns; column += kTileColumns, order += 1 + num_pairs) {
      const int8_t *const weights = dense.weights + block * dense.num_groups * kGroupBytes + column * 4;
      int64_t count = 0;
      for (int64_t pair = 0; pair < num_pairs; ++pair)
        if (fits(weights + pair * 2 * kGroupBytes)) order[++count] = static_cast<uint16_t>(pair);
      order[0] = static_cast<uint16_t>(count);
      for (int64_t pair = 0; pair < num_pairs; ++pair)
        if (!fits(weights + pair * 2 * kGroupBytes)) order[++count] = static_cast<uint16_t>(pair);
    }
  }
}

// Add the products of what is outside of the window to a row's 64 results.
DRAGOMAN_INLINE void add_outside(const InputRows &rows, int64_t row, const int8_t *weights, int32_t *result) {
  const uint8_t *const levels = rows.levels + row * rows.levels_stride;
  constexpr int kAll = kBlockColumns / kLanesEach;
  __m256i sums[kAll];
#pragma GCC unroll 8
  for (int v = 0; v < kAll; ++v) sums[v] = load_bytes(result + v * kLanesEach);
  for (int64_t word = row * rows.num_words, first = 0; word < (row + 1) * rows.num_words; ++word, first += 64) {
    for (uint64_t groups = rows.is_above[word]; groups != 0; groups &= groups - 1) {
      const int64_t group = first + __builtin_ctzll(groups);
      const __m256i above = _mm256_subs_epu8(spread_four(levels + group * 4), rows.end);
      const int8_t *const from = weights + group * kGroupBytes;
#pragma GCC unroll 8
      for (int v = 0; v < kAll; ++v)
        sums[v] = _mm256_add_epi32(sums[v], widened(_mm256_maddubs_epi16(above, load_bytes(from + v * 32))));
    }
    for (uint64_t groups = rows.is_below[word]; groups != 0; groups &= groups - 1) {
      const int64_t group = first + __builtin_ctzll(groups);
      const __m256i below = _mm256_subs_epu8(rows.begin, spread_four(levels + group * 4));
      const int8_t *const from = weights + group * kGroupBytes;
#pragma GCC unroll 8
      for (int v = 0; v < kAll; ++v)
        sums[v] = _mm256_sub_epi32(sums[v], widened(_mm256_maddubs_epi16(below, load_bytes(from + v * 32))));
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kAll; ++v) store_bytes(sums[v], result + v * kLanesEach);
}

// Few rows: the time is that of reading the weights, which are read in one stream.
template <int num_rows>
DRAGOMAN_INLINE void multiply_few_rows(const uint8_t *window, int64_t stride, const int8_t *weights, int64_t num_groups,
                                       const int32_t *offsets, int32_t *results) {
  constexpr int kAll = kBlockColumns / kLanesEach / num_rows;
  for (int column = 0; column < kBlockColumns; column += kAll * kLanesEach) {
    __m256i sums[num_rows][kAll];
#pragma GCC unroll 2
    for (int row = 0; row < num_rows; ++row) {
#pragma GCC unroll 8
      for (int v = 0; v < kAll; ++v) sums[row][v] = load_bytes(offsets + column + v * kLanesEach);
    }
    const int8_t *from = weights + column * 4;
    for (int64_t group = 0; group < num_groups; ++group, from += kGroupBytes) {
#pragma GCC unroll 2
      for (int row = 0; row < num_rows; ++row) {
        const __m256i inputs = spread_four(window + row * stride + group * 4);
#pragma GCC unroll 8
        for (int v = 0; v < kAll; ++v) {
          const __m256i pairs = _mm256_maddubs_epi16(inputs, load_bytes(from + v * 32));
          sums[row][v] = _mm256_add_epi32(sums[row][v], widened(pairs));
        }
      }
    }
#pragma GCC unroll 2
    for (int row = 0; row < num_rows; ++row) {
#pragma GCC unroll 8
      for (int v = 0; v < kAll; ++v) store_bytes(sums[row][v], results + row * kBlockColumns + column + v * kLanesEach);
    }
  }
}

// Add the products of rows with two groups, or with one, for the columns of a tile.
template <int num_rows, bool fits_in_16_bits>
DRAGOMAN_INLINE void add_pair(const uint8_t *input, int64_t stride, const int8_t *from,
                              __m256i (&sums)[num_rows][kVectors]) {
#pragma GCC unroll 4
  for (int row = 0; row < num_rows; ++row) {
    const __m256i one = spread_four(input + row * stride), two = spread_four(input + row * stride + 4);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const __m256i of_one = _mm256_maddubs_epi16(one, load_bytes(from + v * 32));
      const __m256i of_two = _mm256_maddubs_epi16(two, load_bytes(from + kGroupBytes + v * 32));
      if (fits_in_16_bits)
        sums[row][v] = _mm256_add_epi32(sums[row][v], widened(_mm256_add_epi16(of_one, of_two)));
      else
        sums[row][v] = _mm256_add_epi32(sums[row][v], _mm256_add_epi32(widened(of_one), widened(of_two)));
    }
  }
}
template <int num_rows>
DRAGOMAN_INLINE void add_group(const uint8_t *input, int64_t stride, const int8_t *from,
                               __m256i (&sums)[num_rows][kVectors]) {
#pragma GCC unroll 4
  for (int row = 0; row < num_rows; ++row) {
    const __m256i one = spread_four(input + row * stride);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sums[row][v] = _mm256_add_epi32(sums[row][v], widened(_mm256_maddubs_epi16(one, load_bytes(from + v * 32))));
  }
}

// Results of one block, tile by tile.
template <int num_rows, int lines_ahead>
DRAGOMAN_INLINE void multiply_tiles(const uint8_t *window, int64_t stride, const int8_t *weights, int64_t num_groups,
                                    const int32_t *offsets, const uint16_t *order, const int8_t *ahead,
                                    int32_t *results) {
  const int64_t num_pairs = num_groups / 2;
  for (int column = 0; column < kBlockColumns; column += kTileColumns, order += 1 + num_pairs) {
    __m256i sums[num_rows][kVectors];
#pragma GCC unroll 4
    for (int row = 0; row < num_rows; ++row) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[row][v] = load_bytes(offsets + column + v * kLanesEach);
    }
    const int8_t *const tile = weights + column * 4;
    const auto read_ahead = [&](int64_t i) { // into the second-level cache
      for (int line = 0; line < lines_ahead && column == 0; ++line) {
        __builtin_prefetch(ahead + 2 * i * kGroupBytes + line * 64, 0, 2);
        __builtin_prefetch(ahead + (2 * i + 1) * kGroupBytes + line * 64, 0, 2);
      }
    };
    int64_t i = 0;
    for (; i < order[0]; ++i) {
      read_ahead(i);
      const int64_t pair = order[1 + i];
      add_pair<num_rows, true>(window + pair * 8, stride, tile + pair * (2 * kGroupBytes), sums);
    }
    for (; i < num_pairs; ++i) {
      read_ahead(i);
      const int64_t pair = order[1 + i];
      add_pair<num_rows, false>(window + pair * 8, stride, tile + pair * (2 * kGroupBytes), sums);
    }
    if (num_groups % 2 != 0)
      add_group<num_rows>(window + num_pairs * 8, stride, tile + num_pairs * (2 * kGroupBytes), sums);
#pragma GCC unroll 4
    for (int row = 0; row < num_rows; ++row) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        store_bytes(sums[row][v], results + row * kBlockColumns + column + v * kLanesEach);
    }
  }
}

// Results of rows from `row_begin` on and a block of weights: (num_rows, 64), with their offsets. Meanwhile read ahead so
// many 64-byte lines of each group at `ahead`.
template <int num_rows, int lines_ahead>
void multiply_block(const InputRows &rows, int64_t row_begin, const Dense &dense, int64_t block, const int8_t *ahead,
                    int32_t *results) {
  const uint8_t *const window = rows.window + row_begin * rows.stride;
  const int8_t *const weights = dense.weights + block * dense.num_groups * kGroupBytes;
  const int32_t *const offsets = dense.offsets + block * kBlockColumns;
  if constexpr (num_rows <= 2)
    multiply_few_rows<num_rows>(window, rows.stride, weights, dense.num_groups, offsets, results);
  else
    multiply_tiles<num_rows, lines_ahead>(window, rows.stride, weights, dense.num_groups, offsets,
                                          dense.order + block * order_size(1, dense.num_groups), ahead, results);
  for (int row = 0; row < num_rows; ++row, results += kBlockColumns)
    add_outside(rows, row_begin + row, weights, results);
}

} // namespace
} // namespace dragoman
