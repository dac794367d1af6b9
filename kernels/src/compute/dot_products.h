// Products of 8-bit rows with packed weights, where four products of bytes are added to 32 bits exactly.
//
// The file of an instruction set has defined
//   Accumulators  a register of 32-bit sums, one per column
//   Inputs        four inputs of a row, as `multiply` wants them
//   kTileRows, kTileColumns  how many sums are held in registers at a time
//   spread_inputs, load_weights, multiply  sums[n] += input[0..3] * weights[n][0..3]
//   kInputShift   what `multiply` subtracts from inputs
#pragma once

#include "compute/functions.h"
#include "compute/offsets.h"

namespace dragoman {
namespace {

struct InputRows {
  const uint8_t *levels;
  int64_t stride;

  InputRows(const Dense &, const uint8_t *from, int64_t levels_stride, int64_t) : levels(from), stride(levels_stride) {}
  static int64_t most(const Dense &) { return INT64_MAX; }
};

void prepare(Dense &dense, int32_t *offsets, uint16_t *) { fill_offsets(dense, kInputShift, offsets); }

// Results of rows from `row_begin` on and a block of weights: (num_rows, 64), with their offsets. Meanwhile read ahead so
// many 64-byte lines of each group at `ahead`.
template <int num_rows, int lines_ahead>
void multiply_block(const InputRows &rows, int64_t row_begin, const Dense &dense, int64_t block, const int8_t *ahead,
                    int32_t *results) {
  constexpr int kLanesEach = sizeof(Accumulators) / sizeof(int32_t);
  constexpr int kVectors = kTileColumns / kLanesEach;
  const int64_t num_groups = dense.num_groups;
  const int8_t *const weights = dense.weights + block * num_groups * kGroupBytes;
  const int32_t *const offsets = dense.offsets + block * kBlockColumns;
  const uint8_t *const levels = rows.levels + row_begin * rows.stride;
  for (int column = 0; column < kBlockColumns; column += kTileColumns) {
    Accumulators sums[num_rows][kVectors];
#pragma GCC unroll 16
    for (int row = 0; row < num_rows; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sums[row][v] = Memory<Accumulators>::load(offsets + column + v * kLanesEach);
    }
    const int8_t *from = weights + column * 4;
    const uint8_t *input = levels;
    for (int64_t group = 0; group < num_groups; ++group, from += kGroupBytes, input += 4) {
#pragma GCC unroll 2
      for (int line = 0; line < lines_ahead && column == 0; ++line)
        __builtin_prefetch(ahead + group * kGroupBytes + line * 64, 0, 2); // into the second-level cache
      Weights own[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) own[v] = load_weights(from + v * kLanesEach * 4);
#pragma GCC unroll 16
      for (int row = 0; row < num_rows; ++row) {
        const Inputs inputs = spread_inputs(input + row * rows.stride);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[row][v] = multiply(sums[row][v], inputs, own[v]);
      }
    }
#pragma GCC unroll 16
    for (int row = 0; row < num_rows; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        Memory<Accumulators>::store(sums[row][v], results + row * kBlockColumns + column + v * kLanesEach);
    }
  }
}

} // namespace
} // namespace dragoman
