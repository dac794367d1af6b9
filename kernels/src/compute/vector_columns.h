// Products of one 8-bit row with some columns, by an instruction that adds four products of bytes to 32 bits.
//
// The file of an instruction set has defined, beside what `compute/dot_products.h` wants,
//   load_inputs   as many inputs of a row as a register of weights has, as `multiply` wants them
//   add_lanes     the sums of the lanes of each of four `Accumulators`
#pragma once

#include "compute/dot_products.h"

namespace dragoman {
namespace {

constexpr int32_t kColumnShift = kInputShift;

DRAGOMAN_INLINE void multiply_columns(const uint8_t *levels, const int8_t *const *weights, int64_t stride,
                                      int32_t *sums) {
  Accumulators totals[kColumnsTogether] = {};
  for (int64_t k = 0; k < stride; k += static_cast<int64_t>(sizeof(Weights))) {
    const Inputs inputs = load_inputs(levels + k);
#pragma GCC unroll 4
    for (int j = 0; j < kColumnsTogether; ++j) totals[j] = multiply(totals[j], inputs, load_weights(weights[j] + k));
  }
  add_lanes(totals, sums);
}

} // namespace
} // namespace dragoman
