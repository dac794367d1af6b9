// What a product's sums begin with.
#pragma once

#include "compute/compute.h"

namespace dragoman {
namespace {

// Fill `offsets` for products that subtract `shift` from each input instead of its zero point.
DRAGOMAN_INLINE void fill_offsets(Dense &dense, int32_t shift, int32_t *offsets) {
  for (int64_t n = 0; n < static_cast<int64_t>(dense.num_blocks) * kBlockColumns; ++n) {
    const int8_t *weight = dense.weights + n / kBlockColumns * dense.num_groups * kGroupBytes + n % kBlockColumns * 4;
    int32_t sum = 0;
    for (int64_t group = 0; group < dense.num_groups; ++group, weight += kGroupBytes)
      sum += weight[0] + weight[1] + weight[2] + weight[3];
    offsets[n] = (shift - dense.zero_point) * sum;
  }
  dense.offsets = offsets;
}

} // namespace
} // namespace dragoman
