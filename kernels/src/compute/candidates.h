// What the choice of tokens needs of all logits: the log of their sum, and the largest.
#pragma once

#include "compute/functions.h"

namespace dragoman {
namespace {

// Sixteen values at `index`, with minus infinity beyond `count`.
DRAGOMAN_INLINE Floats load_or_lowest(const float *x, int64_t index, int64_t count) {
  if (index + kLanes <= count) return load(x + index);
  alignas(64) float values[kLanes];
  for (int i = 0; i < kLanes; ++i) values[i] = index + i < count ? x[index + i] : -__builtin_inff();
  return load(values);
}

void log_sum(const float *x, int64_t count, float *largest, float *sum) {
  constexpr int64_t kSpan = 64 * kLanes; // sums of spans are summed in turn, so that rounding errors stay small
  const Floats lowest = spread(-__builtin_inff());
  Floats most[4] = {lowest, lowest, lowest, lowest};
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) most[j] = max(load(x + i + j * kLanes), most[j]);
  }
  for (; i < count; i += kLanes) most[0] = max(load_or_lowest(x, i, count), most[0]);
  *largest = max_lanes(max(max(most[0], most[1]), max(most[2], most[3])));
  const Floats top = spread(*largest);
  Floats total = spread(0.0f);
  for (int64_t span = 0; span < count; span += kSpan) {
    const int64_t end = span + kSpan < count ? span + kSpan : count;
    Floats sums[4] = {spread(0.0f), spread(0.0f), spread(0.0f), spread(0.0f)};
    for (i = span; i + 4 * kLanes <= end; i += 4 * kLanes) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sums[j] = sums[j] + exp(load(x + i + j * kLanes) - top);
    }
    for (; i < end; i += kLanes) sums[0] = sums[0] + exp(load_or_lowest(x, i, end) - top);
    total = total + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  *sum = sum_lanes(total);
}

int top(const float *x, int64_t count, int32_t first, int num_wanted, int num_found, int32_t *indices, float *values) {
  const auto insert = [&](float value, int32_t index) {
    int at = num_found < num_wanted ? num_found++ : num_wanted - 1;
    for (; at > 0 && values[at - 1] < value; --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = value;
    indices[at] = index;
  };
  int64_t i = 0;
  for (; i < count && num_found < num_wanted; ++i) insert(x[i], first + static_cast<int32_t>(i));
  if (num_wanted <= 0) return 0;
  while (i < count) {
    const Floats worst = spread(values[num_wanted - 1]);
    while (i + 4 * kLanes <= count && !any(greater(max(max(load(x + i), load(x + i + kLanes)),
                                                       max(load(x + i + 2 * kLanes), load(x + i + 3 * kLanes))),
                                                   worst)))
      i += 4 * kLanes;
    for (const int64_t end = i + 4 * kLanes < count ? i + 4 * kLanes : count; i < end; ++i)
      if (x[i] > values[num_wanted - 1]) insert(x[i], first + static_cast<int32_t>(i));
  }
  return num_found;
}

} // namespace
} // namespace dragoman
