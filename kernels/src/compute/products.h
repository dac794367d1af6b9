// Products of 8-bit rows with packed weights, and what is done with their results.
//
// `compute/dot_products.h`, or `compute/narrow_products.h` for CPUs that have no instruction that adds four products of
// bytes to 32 bits, has defined
//   prepare     see compute.h
//   kTileRows   how many rows' sums of a block are held in registers at a time, or a part of them
//   InputRows   rows as these products read them, at most `InputRows::most(dense)` at a time
//   multiply_block<num_rows, lines_ahead>  the results of some rows and a block of columns
// and `compute/columns.h` or `compute/vector_columns.h`
//   multiply_columns<count>  the sums of one row's levels, less `kColumnShift`, times the weights of some columns
#pragma once

#include "compute/functions.h"

namespace dragoman {
namespace {

using MultiplyBlock = void (*)(const InputRows &, int64_t, const Dense &, int64_t, const int8_t *, int32_t *);

template <int lines_ahead> DRAGOMAN_INLINE MultiplyBlock tile_function(int64_t num_rows) {
  static_assert(kTileRows == 4 || kTileRows == 6, "one line per number of rows");
  switch (num_rows) {
  case 1: return multiply_block<1, lines_ahead>;
  case 2: return multiply_block<2, lines_ahead>;
  case 3: return multiply_block<3, lines_ahead>;
  case 4: return multiply_block<4, lines_ahead>;
  case 5: return multiply_block<kTileRows < 5 ? 4 : 5, lines_ahead>;
  default: return multiply_block<kTileRows < 6 ? 4 : 6, lines_ahead>;
  }
}

template <class Use>
DRAGOMAN_INLINE void multiply_rows(const InputRows &rows, const Dense &dense, int64_t num_rows, const Use &use) {
  alignas(64) int32_t results[kTileRows * kBlockColumns];
  const int64_t num_tiles = (num_rows + kTileRows - 1) / kTileRows, block_bytes = dense.num_groups * kGroupBytes;
  for (int64_t block = 0; block < dense.num_blocks; ++block) {
    const int8_t *const weights = dense.weights + block * block_bytes;
    const int8_t *const next = block + 1 < dense.num_blocks ? weights + block_bytes : weights;
    for (int64_t tile = 0, row = 0; tile < num_tiles; ++tile) {
      // As many rows in each tile, or one more.
      const int64_t end = num_rows * (tile + 1) / num_tiles;
      const int64_t lines = num_tiles == 1 ? 0 : num_tiles < 4 ? 2 : 1; // of four in each group of the next block
      const bool reads_ahead = tile * lines < 4 && lines > 0;
      const MultiplyBlock function = !reads_ahead ? tile_function<0>(end - row)
                                      : lines == 1 ? tile_function<1>(end - row)
                                                   : tile_function<2>(end - row);
      function(rows, row, dense, block, next + tile * lines * 64, results);
      for (const int32_t *result = results; row < end; ++row, result += kBlockColumns) use(block, row, result);
    }
  }
}

// Calls use(block, row, results of 64 columns) for every block of columns and every row, for each row in the blocks'
// order.
template <class Use>
DRAGOMAN_INLINE void multiply_all(const Dense &dense, const Levels &x, int64_t num_rows, const Use &use) {
  const int64_t most = InputRows::most(dense);
  for (int64_t first = 0; first < num_rows; first += most) {
    const int64_t count = num_rows - first < most ? num_rows - first : most;
    const InputRows rows(dense, x.levels + first * x.stride, x.stride, count);
    multiply_rows(rows, dense, count,
                  [&](int64_t block, int64_t row, const int32_t *result) { use(block, first + row, result); });
  }
}

// Columns of a block that exist, rounded up to vectors.
DRAGOMAN_INLINE int block_width(const Dense &dense, int64_t block) {
  const int64_t rest = dense.num_outputs - block * kBlockColumns;
  return static_cast<int>(rest < kBlockColumns ? (rest + kLanes - 1) / kLanes * kLanes : kBlockColumns);
}

// The results of a row's columns: those of integers times the scales of the row and of the columns, plus biases.
struct Scaled {
  const int32_t *result;
  const float *scales, *biases;
  Floats row_scale;

  DRAGOMAN_INLINE Scaled(const Dense &dense, int64_t block, const int32_t *sums, float scale)
      : result(sums), scales(dense.scales + block * kBlockColumns), biases(dense.biases + block * kBlockColumns),
        row_scale(spread(scale)) {}

  DRAGOMAN_INLINE Floats operator()(int column) const {
    return to_floats(load(result + column)) * row_scale * load(scales + column) + load(biases + column);
  }
};

// y = function(what `y` has, x W^T + b).
template <class Function>
DRAGOMAN_INLINE void store_results(const Dense &dense, const Levels &x, int64_t num_rows, float *y, int64_t y_stride,
                                   Function function) {
  multiply_all(dense, x, num_rows, [&](int64_t block, int64_t row, const int32_t *result) {
    const Scaled scaled(dense, block, result, x.scales[row]);
    float *const to = y + row * y_stride + block * kBlockColumns;
    const int width = block_width(dense, block);
    for (int column = 0; column < width; column += kLanes) store(function(to + column, scaled(column)), to + column);
  });
}

void dense(const Dense &dense, const Levels &x, int64_t num_rows, Into into, float *y, int64_t y_stride) {
  switch (into) {
  case Into::kSet:
    return store_results(dense, x, num_rows, y, y_stride, [](const float *, Floats value) { return value; });
  case Into::kAdd:
    return store_results(dense, x, num_rows, y, y_stride,
                         [](const float *to, Floats value) { return load(to) + value; });
  case Into::kMultiply:
    return store_results(dense, x, num_rows, y, y_stride,
                         [](const float *to, Floats value) { return load(to) * value; });
  }
}

void dense_activated(const Dense &layer, const Levels &x, int64_t num_rows, Activation activation, float *y,
                     int64_t y_stride) {
  switch (activation) {
  case Activation::kIdentity: return dense(layer, x, num_rows, Into::kSet, y, y_stride);
  case Activation::kRelu:
    return store_results(layer, x, num_rows, y, y_stride, [](const float *, Floats value) { return relu(value); });
  case Activation::kGelu:
    return store_results(layer, x, num_rows, y, y_stride, [](const float *, Floats value) { return gelu(value); });
  case Activation::kSilu:
    return store_results(layer, x, num_rows, y, y_stride, [](const float *, Floats value) { return silu(value); });
  case Activation::kGeluTanh:
    return store_results(layer, x, num_rows, y, y_stride,
                         [](const float *, Floats value) { return gelu_tanh(value); });
  }
}

void dense_arg_max(const Dense &dense, const Levels &x, int64_t num_rows, int32_t *best, float *best_value) {
  for (int64_t row = 0; row < num_rows; ++row) {
    best[row] = 0;
    best_value[row] = -__builtin_inff();
  }
  // Columns beyond N must not win: their biases are replaced.
  alignas(64) float last_biases[kBlockColumns];
  const int64_t last_block = dense.num_blocks - 1;
  for (int i = 0; i < kBlockColumns; ++i) {
    const int64_t column = last_block * kBlockColumns + i;
    last_biases[i] = column < dense.num_outputs ? dense.biases[column] : -__builtin_inff();
  }
  multiply_all(dense, x, num_rows, [&](int64_t block, int64_t row, const int32_t *result) {
    Scaled scaled(dense, block, result, x.scales[row]);
    if (block == last_block) scaled.biases = last_biases;
    Floats values[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) values[j] = scaled(j * kLanes);
    const Floats largest = max(max(values[0], values[1]), max(values[2], values[3]));
    if (!any(greater(largest, spread(best_value[row])))) return; // mostly
    alignas(64) float lanes[kBlockColumns];
    for (int j = 0; j < 4; ++j) store(values[j], lanes + j * kLanes);
    for (int i = 0; i < kBlockColumns; ++i) {
      if (!(lanes[i] > best_value[row])) continue;
      best_value[row] = lanes[i];
      best[row] = static_cast<int32_t>(block * kBlockColumns + i);
    }
  });
}

void dense_columns(const Dense &dense, const Columns &columns, const uint8_t *levels, float scale, const int32_t *ids,
                   int64_t count, float *y) {
  constexpr int64_t kAhead = 8;
  auto column = [&](int64_t place) { return columns.weights + ids[place] * columns.stride; };
  const int32_t shift = kColumnShift - dense.zero_point;
  for (int64_t i = 0; i < count; i += kColumnsTogether) {
    const int8_t *weights[kColumnsTogether];
    int64_t places[kColumnsTogether];
    for (int j = 0; j < kColumnsTogether; ++j) { // the last one again where there are no more
      places[j] = i + j < count ? i + j : count - 1;
      weights[j] = column(places[j]);
      const int8_t *next = column(places[j] + kAhead < count ? places[j] + kAhead : count - 1);
      for (int64_t k = 0; k < columns.stride; k += 64) __builtin_prefetch(next + k, 0, 3); // they lie anywhere
    }
    int32_t sums[kColumnsTogether], of_weights[kColumnsTogether];
    float scales[kColumnsTogether], biases[kColumnsTogether];
    multiply_columns(levels, weights, columns.stride, sums);
    for (int j = 0; j < kColumnsTogether; ++j) {
      const int64_t id = ids[places[j]];
      of_weights[j] = columns.sums[id], scales[j] = dense.scales[id], biases[j] = dense.biases[id];
    }
    float results[kColumnsTogether];
    for (int j = 0; j < kColumnsTogether; ++j)
      results[j] = static_cast<float>(sums[j] + shift * of_weights[j]) * scale * scales[j] + biases[j];
    for (int j = 0; j < kColumnsTogether; ++j) y[places[j]] = results[j];
  }
}

} // namespace
} // namespace dragoman
