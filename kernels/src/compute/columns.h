// Products of one 8-bit row with some columns, by plain loops.
#pragma once

#include "compute/compute.h"

namespace dragoman {
namespace {

constexpr int32_t kColumnShift = 0;

DRAGOMAN_INLINE void multiply_columns(const uint8_t *levels, const int8_t *const *weights, int64_t stride,
                                      int32_t *sums) {
  for (int j = 0; j < kColumnsTogether; ++j) {
    sums[j] = 0;
    for (int64_t k = 0; k < stride; ++k) sums[j] += static_cast<int32_t>(levels[k]) * weights[j][k];
  }
}

} // namespace
} // namespace dragoman
