// Attention of one query to cached tokens.
#pragma once

#include "compute/functions.h"

namespace dragoman {
namespace {

template <int number> struct Number {
  constexpr operator int() const { return number; }
};

// Finds the tokens of a cached row's layer; those of a beam are spread over several rows.
struct Cache {
  const float *layer;
  const int32_t *history; // or null
  int64_t row_stride;
  int64_t head_stride;    // floats from a block of a head to that of the next head
  int64_t token_stride;   // floats from a block of tokens to the next

  DRAGOMAN_INLINE const float *block(int64_t head, int64_t first_token, int64_t slot) const {
    return layer + slot * row_stride + first_token / kBlockTokens * token_stride + head * head_stride;
  }
};

// The slot that holds all of `count` tokens, or -1.
DRAGOMAN_INLINE int64_t only_slot(const int32_t *history, int64_t count) {
  for (int64_t i = 1; i < count; ++i)
    if (history[i] != history[0]) return -1;
  return history[0];
}

// Products of a query with the 16 keys of a block.
DRAGOMAN_INLINE Floats key_products(const float *query, const float *keys, int64_t head_size) {
  Floats sums[4] = {spread(0.0f), spread(0.0f), spread(0.0f), spread(0.0f)};
  int64_t d = 0;
  for (; d + 4 <= head_size; d += 4) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sums[j] = multiply_add(spread(query[d + j]), load(keys + (d + j) * kBlockTokens), sums[j]);
  }
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j)
    if (d + j < head_size) sums[j] = multiply_add(spread(query[d + j]), load(keys + (d + j) * kBlockTokens), sums[j]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The same for a block whose tokens are in several slots.
Floats mixed_key_products(const float *query, const Cache &cache, int64_t head, int64_t first_token, int64_t count,
                          int64_t head_size) {
  const int32_t *const slots = cache.history + first_token;
  alignas(64) int32_t lane_slots[kLanes];
  for (int i = 0; i < kLanes; ++i) lane_slots[i] = i < count ? slots[i] : slots[0];
  Floats products = spread(0.0f);
  for (int64_t i = 0; i < count; ++i) {
    bool is_first = true;
    for (int64_t j = 0; j < i; ++j) is_first = is_first && slots[j] != slots[i];
    if (!is_first) continue;
    const Floats own = key_products(query, cache.block(head, first_token, slots[i]), head_size);
    products = select(equal(load(lane_slots), spread(slots[i])), own, products);
  }
  return products;
}

// exp(score - largest) of every token in `weights`, and their sum.
float softmax_weights(const CacheShape &shape, const float *query, float scale, const Cache &cache, int64_t head,
                      int64_t num_tokens, float *weights) {
  const Floats lowest = spread(-__builtin_inff());
  Floats largest = lowest;
  for (int64_t first = 0; first < num_tokens; first += kBlockTokens) {
    const int64_t count = num_tokens - first < kBlockTokens ? num_tokens - first : kBlockTokens;
    const int64_t slot = cache.history == nullptr ? 0 : only_slot(cache.history + first, count);
    Floats scores = slot >= 0 ? key_products(query, cache.block(head, first, slot), shape.head_size)
                              : mixed_key_products(query, cache, head, first, count, shape.head_size);
    scores = scores * spread(scale);
    if (count < kBlockTokens) scores = select(first_lanes(count), scores, lowest); // the memory of others may be NaN
    store(scores, weights + first);
    largest = max(scores, largest);
  }
  const Floats most = spread(max_lanes(largest));
  Floats sum = spread(0.0f);
  for (int64_t first = 0; first < num_tokens; first += kBlockTokens) {
    const Floats weight = exp(load(weights + first) - most);
    store(weight, weights + first);
    sum = sum + weight;
  }
  return sum_lanes(sum);
}

// The weighted sum of `count` columns of values, at most 16 in each of `num_vectors` and from `column` on, divided by
// `total`: as levels or, if that is null, as floats.
template <int num_vectors>
DRAGOMAN_INLINE void mix_values(const CacheShape &shape, const Cache &cache, int64_t head, int64_t column,
                                const float *weights, int64_t num_tokens, float total, const Quantizer &quantizer,
                                int64_t count, uint8_t *levels, float *heads) {
  const int64_t padded = shape.padded_head_size;
  Floats sums[num_vectors];
#pragma GCC unroll 4
  for (int j = 0; j < num_vectors; ++j) sums[j] = spread(0.0f);
  for (int64_t first = 0; first < num_tokens; first += kBlockTokens) {
    const int64_t num_here = num_tokens - first < kBlockTokens ? num_tokens - first : kBlockTokens;
    for (int64_t i = 0; i < num_here; ++i) {
      const int64_t slot = cache.history == nullptr ? 0 : cache.history[first + i];
      const float *const value = cache.block(head, first, slot) + (kBlockTokens + i) * padded + column;
      const Floats weight = spread(weights[first + i]);
#pragma GCC unroll 4
      for (int j = 0; j < num_vectors; ++j) sums[j] = multiply_add(weight, load(value + j * kLanes), sums[j]);
    }
  }
  alignas(64) float out[num_vectors * kLanes];
  alignas(16) uint8_t out_levels[num_vectors * kLanes];
#pragma GCC unroll 4
  for (int j = 0; j < num_vectors; ++j) {
    const Floats mixed = sums[j] / spread(total);
    if (levels == nullptr) store(mixed, out + j * kLanes);
    else store_low_bytes(quantizer(mixed), out_levels + j * kLanes);
  }
  if (levels == nullptr) memcpy(heads, out, count * sizeof(float));
  else memcpy(levels, out_levels, count);
}

void attend(const CacheShape &shape, const float *query, float scale, const float *layer, int64_t num_tokens,
            const int32_t *history, int64_t row_stride, Quantization to, uint8_t *levels, float *heads,
            float *scratch) {
  const int64_t head_stride = 2 * kBlockTokens * static_cast<int64_t>(shape.padded_head_size);
  const Cache cache = {layer, history, row_stride, head_stride, head_stride * shape.num_heads};
  const Quantizer quantizer(to);
  const int64_t size = shape.head_size;
  for (int64_t head = 0; head < shape.num_heads; ++head) {
    const float total = softmax_weights(shape, query + head * size, scale, cache, head, num_tokens, scratch);
    for (int64_t column = 0; column < size; column += 4 * kLanes) {
      const int64_t rest = size - column, count = rest < 4 * kLanes ? rest : 4 * kLanes;
      // A head is written after its query was read: `heads` may be `query`.
      uint8_t *const to_levels = levels == nullptr ? nullptr : levels + head * size + column;
      float *const to_heads = levels == nullptr ? heads + head * size + column : nullptr;
      const auto mix = [&](auto num_vectors) {
        mix_values<num_vectors>(shape, cache, head, column, scratch, num_tokens, total, quantizer, count, to_levels,
                                to_heads);
      };
      if (count > 3 * kLanes) mix(Number<4>{});
      else if (count > 2 * kLanes) mix(Number<3>{});
      else if (count > kLanes) mix(Number<2>{});
      else mix(Number<1>{});
    }
  }
}

} // namespace
} // namespace dragoman
