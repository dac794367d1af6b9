// Functions of whole rows: quantize, norm, form_heads, recur, embed, append, is_finite.
#pragma once

#include "compute/functions.h"

namespace dragoman {
namespace {

// The largest of |value(i)| over the first `width` lanes; `value` returns 16 from place i on. NaN counts as nothing.
template <class Value> DRAGOMAN_INLINE float largest_magnitude(int64_t width, Value value) {
  Floats most[2] = {spread(0.0f), spread(0.0f)};
  const auto larger = [](Floats values, Floats so_far) { return max(max(values, spread(0.0f) - values), so_far); };
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    most[0] = larger(value(i), most[0]);
    most[1] = larger(value(i + kLanes), most[1]);
  }
  for (; i < width; i += kLanes)
    most[0] = larger(width - i < kLanes ? select(first_lanes(width - i), value(i), spread(0.0f)) : value(i), most[0]);
  return max_lanes(max(most[0], most[1]));
}

// Store the levels of a row, and its scale. Lanes beyond `width` get levels that don't matter.
template <class Value>
DRAGOMAN_INLINE void store_levels(int64_t width, int32_t zero_point, Value value, uint8_t *levels, float *scale) {
  const Quantizer quantizer(largest_magnitude(width, value), zero_point);
  *scale = quantizer.scale;
  for (int64_t i = 0; i < width; i += kLanes) store_low_bytes(quantizer(value(i)), levels + i);
}

void quantize(const float *x, int64_t x_stride, int64_t num_rows, int64_t width, int32_t zero_point, const Levels &to) {
  for (int64_t row = 0; row < num_rows; ++row, x += x_stride)
    store_levels(width, zero_point, [x](int64_t i) { return load(x + i); }, to.levels + row * to.stride,
                 to.scales + row);
}

// The sum of term(x) over the first `width` values of a row; lanes beyond count as zero.
template <class Term> DRAGOMAN_INLINE float sum_of(const float *x, int64_t width, Term term) {
  Floats sums[4] = {spread(0.0f), spread(0.0f), spread(0.0f), spread(0.0f)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sums[j] = sums[j] + term(load(x + i + j * kLanes));
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    if (i < width) sums[j] = sums[j] + select(first_lanes(width - i), term(load(x + i)), spread(0.0f));
    i += kLanes;
  }
  return sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// What to multiply centered values with, from the sum of their squares.
DRAGOMAN_INLINE float inverse_deviation(const Norm &norm, float sum_of_squares) {
  const float width = static_cast<float>(norm.width);
  if (norm.kind == NormKind::kScalar) return 1.0f / (square_root(sum_of_squares / (width - 1.0f)) + norm.epsilon);
  return 1.0f / square_root(sum_of_squares / width + norm.epsilon);
}

void norm_rows(const Norm &norm, const float *x, int64_t x_stride, int64_t num_rows, float *normed,
               int64_t normed_stride, const Levels &to) {
  const int64_t width = norm.width;
  for (int64_t row = 0; row < num_rows; ++row) {
    const float *const from = x + row * x_stride;
    float mean = 0.0f;
    if (norm.kind != NormKind::kRms)
      mean = sum_of(from, width, [](Floats value) { return value; }) / static_cast<float>(width);
    const Floats means = spread(mean);
    const float squares = sum_of(from, width, [&](Floats value) { return (value - means) * (value - means); });
    const Floats factor = spread(inverse_deviation(norm, squares));
    const auto value = [&](int64_t i) {
      return (load(from + i) - means) * factor * load(norm.gain + i) + load(norm.bias + i);
    };
    uint8_t *const levels = to.levels + row * to.stride;
    if (normed == nullptr) { // computed twice: that is faster than to keep it
      store_levels(width, kZero, value, levels, to.scales + row);
      continue;
    }
    float *const kept = normed + row * normed_stride;
    for (int64_t i = 0; i < width; i += kLanes) store(value(i), kept + i);
    if (to.levels == nullptr) continue;
    store_levels(width, kZero, [kept](int64_t i) { return load(kept + i); }, levels, to.scales + row);
  }
}

// Up to 16 numbers of which no others may be read or written.
DRAGOMAN_INLINE Floats load_some(const float *from, int64_t count) {
  if (count >= kLanes) return load(from);
  alignas(64) float lanes[kLanes] = {};
  memcpy(lanes, from, count * sizeof(float));
  return load(lanes);
}
DRAGOMAN_INLINE void store_some(Floats value, int64_t count, float *to) {
  if (count >= kLanes) return store(value, to);
  alignas(64) float lanes[kLanes];
  store(value, lanes);
  memcpy(to, lanes, count * sizeof(float));
}

DRAGOMAN_INLINE void norm_head(const Norm &norm, float *x) {
  const int64_t width = norm.width;
  const auto sum = [&](auto term) {
    Floats total = spread(0.0f);
    for (int64_t i = 0; i < width; i += kLanes)
      total = total + select(first_lanes(width - i), term(load_some(x + i, width - i)), spread(0.0f));
    return sum_lanes(total);
  };
  const bool is_centered = norm.kind != NormKind::kRms;
  const float mean = is_centered ? sum([](Floats value) { return value; }) / static_cast<float>(width) : 0.0f;
  const Floats means = spread(mean);
  const Floats factor =
      spread(inverse_deviation(norm, sum([&](Floats value) { return (value - means) * (value - means); })));
  for (int64_t i = 0; i < width; i += kLanes)
    store_some((load_some(x + i, width - i) - means) * factor * load(norm.gain + i) + load(norm.bias + i), width - i,
               x + i);
}

void form_heads(const Norm &norm, const float *angles, int64_t rotary_size, int64_t num_heads, float *heads) {
  const int64_t half = rotary_size / 2;
  for (float *x = heads; x < heads + num_heads * norm.width; x += norm.width) {
    if (norm.gain != nullptr) norm_head(norm, x);
    if (angles == nullptr) continue;
    for (int64_t i = 0; i < half; i += kLanes) {
      const int64_t count = half - i;
      const Floats first = load_some(x + i, count), second = load_some(x + half + i, count);
      const Floats cosine = load_some(angles + i, count), sine = load_some(angles + half + i, count);
      store_some(first * cosine - second * sine, count, x + i);
      store_some(second * cosine + first * sine, count, x + half + i);
    }
  }
}

void recur(float *projected, const float *before, int64_t width, float *state) {
  for (int64_t i = 0; i < width; i += kLanes) {
    const Floats gate = sigmoid(load(projected + width + i));
    const Floats past = before == nullptr ? spread(0.0f) : load(before + i);
    const Floats now = gate * past + (spread(1.0f) - gate) * load(projected + i);
    store(now, state + i);
    alignas(64) float output[kLanes];
    store(relu(now), output);
    memcpy(projected + i, output, (width - i < kLanes ? width - i : kLanes) * sizeof(float)); // a gate may follow
  }
}

void embed(const int8_t *tokens, int64_t token, float scale, const float *position, int64_t width, float *x) {
  const int64_t num_groups = (width + 3) / 4;
  const int8_t *weights = tokens + token / kBlockColumns * num_groups * kGroupBytes + token % kBlockColumns * 4;
  for (int64_t i = 0; i < width; i += 4, weights += kGroupBytes)
    for (int64_t j = i; j < i + 4 && j < width; ++j) x[j] = static_cast<float>(weights[j - i]) * scale + position[j];
}

bool is_finite(const float *x, int64_t count) {
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof(bits));
    found |= (bits & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return found == 0;
}

void append(const CacheShape &shape, const float *keys, const float *values, int64_t position, Bfloat16 *layer) {
  const int64_t size = shape.head_size, padded = shape.padded_head_size;
  const int64_t token = position % kBlockTokens;
  Bfloat16 *block = layer + position / kBlockTokens * shape.num_heads * 2 * kBlockTokens * padded;
  for (int64_t head = 0; head < shape.num_heads; ++head, block += 2 * kBlockTokens * padded) {
    Bfloat16 *const value = block + kBlockTokens * padded + token * padded;
    for (int64_t d = 0; d < padded; d += kLanes) {
      const auto round_lanes = [&](const float *from, Bfloat16 *to) {
        if (size - d >= kLanes) return store(load(from + d), to);
        alignas(64) float padded_lanes[kLanes] = {};
        memcpy(padded_lanes, from + d, (size - d) * sizeof(float));
        store(load(padded_lanes), to);
      };
      Bfloat16 column[kLanes];
      round_lanes(keys + head * size, column);
      round_lanes(values + head * size, value + d);
      for (int64_t i = 0; i < kLanes; ++i) block[(d + i) * kBlockTokens + token] = column[i];
    }
  }
}

} // namespace
} // namespace dragoman
