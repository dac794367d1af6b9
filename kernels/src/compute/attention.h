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
  const Bfloat16 *layer;
  const int32_t *history; // or null
  int64_t row_stride;
  int64_t head_stride;    // numbers from a block of a head to that of the next head
  int64_t token_stride;   // numbers from a block of tokens to the next

  DRAGOMAN_INLINE const Bfloat16 *block(int64_t head, int64_t first_token, int64_t slot) const {
    return layer + slot * row_stride + first_token / kBlockTokens * token_stride + head * head_stride;
  }
};

// The slot that holds all of `count` tokens, or -1.
DRAGOMAN_INLINE int64_t only_slot(const int32_t *history, int64_t count) {
  for (int64_t i = 1; i < count; ++i)
    if (history[i] != history[0]) return -1;
  return history[0];
}

// Products of a query with the keys of `num_blocks` blocks of 16 tokens, side by side: their sums don't wait for each
// other.
template <int num_blocks>
DRAGOMAN_INLINE void key_products(const float *query, const Bfloat16 *const *keys, int64_t head_size, Floats *products) {
  Floats sums[num_blocks][4];
#pragma GCC unroll 2
  for (int b = 0; b < num_blocks; ++b)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sums[b][j] = spread(0.0f);
  int64_t d = 0;
  for (; d + 4 <= head_size; d += 4) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const Floats value = spread(query[d + j]);
#pragma GCC unroll 2
      for (int b = 0; b < num_blocks; ++b)
        sums[b][j] = multiply_add(value, load(keys[b] + (d + j) * kBlockTokens), sums[b][j]);
    }
  }
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    if (d + j >= head_size) continue;
#pragma GCC unroll 2
    for (int b = 0; b < num_blocks; ++b)
      sums[b][j] = multiply_add(spread(query[d + j]), load(keys[b] + (d + j) * kBlockTokens), sums[b][j]);
  }
#pragma GCC unroll 2
  for (int b = 0; b < num_blocks; ++b) products[b] = (sums[b][0] + sums[b][1]) + (sums[b][2] + sums[b][3]);
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
    const Bfloat16 *const keys = cache.block(head, first_token, slots[i]);
    Floats own;
    key_products<1>(query, &keys, head_size, &own);
    products = select(equal(load(lane_slots), spread(slots[i])), own, products);
  }
  return products;
}

// Tokens of the block that begins with `first_token`.
DRAGOMAN_INLINE int64_t tokens_of_block(int64_t first_token, int64_t num_tokens) {
  return num_tokens - first_token < kBlockTokens ? num_tokens - first_token : kBlockTokens;
}

// Store the scores of a head's tokens, to which `bias` is added if it is not null, and minus infinity for those beyond,
// whose memory may hold NaN; returns the largest score of each lane.
DRAGOMAN_INLINE Floats score_tokens(const CacheShape &shape, const float *query, float scale, const float *bias,
                                    const Cache &cache, int64_t head, int64_t num_tokens, float *scores) {
  const Floats lowest = spread(-__builtin_inff());
  Floats largest = lowest;
  const auto keep = [&](Floats products, int64_t first) {
    Floats own = products * spread(scale);
    if (bias != nullptr) own = own + load(bias + first);
    const int64_t count = tokens_of_block(first, num_tokens);
    if (count < kBlockTokens) own = select(first_lanes(count), own, lowest);
    store(own, scores + first);
    largest = max(own, largest);
  };
  int64_t first = 0;
  if (cache.history == nullptr) {
    for (; first + kBlockTokens < num_tokens; first += 2 * kBlockTokens) {
      const Bfloat16 *const keys[2] = {cache.block(head, first, 0), cache.block(head, first + kBlockTokens, 0)};
      Floats products[2];
      key_products<2>(query, keys, shape.head_size, products);
      keep(products[0], first);
      keep(products[1], first + kBlockTokens);
    }
  }
  for (; first < num_tokens; first += kBlockTokens) {
    const int64_t count = tokens_of_block(first, num_tokens);
    const int64_t slot = cache.history == nullptr ? 0 : only_slot(cache.history + first, count);
    Floats products;
    if (slot >= 0) {
      const Bfloat16 *const keys = cache.block(head, first, slot);
      key_products<1>(query, &keys, shape.head_size, &products);
    } else {
      products = mixed_key_products(query, cache, head, first, count, shape.head_size);
    }
    keep(products, first);
  }
  return largest;
}

// Replace scores by exp(score - largest); returns their sum.
DRAGOMAN_INLINE float exponentiate(Floats largest, int64_t num_tokens, float *scores) {
  const Floats most = spread(max_lanes(largest));
  Floats sum = spread(0.0f);
  for (int64_t first = 0; first < num_tokens; first += kBlockTokens) {
    const Floats weight = exp(load(scores + first) - most);
    store(weight, scores + first);
    sum = sum + weight;
  }
  return sum_lanes(sum);
}

// The weighted sum of `count` columns of values, at most 16 in each of `num_vectors` and from `column` on, times
// `factor`. Tokens at even and at odd places are summed up separately.
template <int num_vectors>
DRAGOMAN_INLINE void mix_values(const CacheShape &shape, const Cache &cache, int64_t head, int64_t column,
                                const float *weights, int64_t num_tokens, float factor, int64_t count,
                                float *heads) {
  const int64_t padded = shape.padded_head_size;
  Floats sums[2][num_vectors];
#pragma GCC unroll 4
  for (int j = 0; j < num_vectors; ++j) sums[0][j] = sums[1][j] = spread(0.0f);
  const auto add = [&](const Bfloat16 *value, float weight, Floats *own) {
    const Floats weights_of_token = spread(weight);
#pragma GCC unroll 4
    for (int j = 0; j < num_vectors; ++j)
      own[j] = multiply_add(weights_of_token, load(value + j * kLanes), own[j]);
  };
  for (int64_t first = 0; first < num_tokens; first += kBlockTokens) {
    const int64_t num_here = tokens_of_block(first, num_tokens);
    const int64_t slot = cache.history == nullptr ? 0 : only_slot(cache.history + first, num_here);
    int64_t i = 0;
    if (slot >= 0) {
      const Bfloat16 *value = cache.block(head, first, slot) + kBlockTokens * padded + column;
      for (; i + 2 <= num_here; i += 2, value += 2 * padded) {
        add(value, weights[first + i], sums[0]);
        add(value + padded, weights[first + i + 1], sums[1]);
      }
      if (i < num_here) add(value, weights[first + i], sums[0]);
      continue;
    }
    for (; i < num_here; ++i)
      add(cache.block(head, first, cache.history[first + i]) + (kBlockTokens + i) * padded + column,
          weights[first + i], sums[i % 2]);
  }
  alignas(64) float out[num_vectors * kLanes];
#pragma GCC unroll 4
  for (int j = 0; j < num_vectors; ++j) store((sums[0][j] + sums[1][j]) * spread(factor), out + j * kLanes);
  memcpy(heads, out, count * sizeof(float));
}

// Each part is done for all heads before the next one, so that heads don't wait for each other.
void attend(const CacheShape &shape, const float *query, float scale, const ScoreBias &bias, const Bfloat16 *layer,
            int64_t num_tokens, const int32_t *history, int64_t row_stride, float *heads, float *scratch) {
  const int64_t head_stride = 2 * kBlockTokens * static_cast<int64_t>(shape.padded_head_size);
  const Cache cache = {layer, history, row_stride, head_stride, head_stride * shape.num_heads};
  const int64_t size = shape.head_size, stride = round_up(num_tokens, kBlockTokens);
  float *const totals = scratch, *const weights = scratch + shape.weights_begin(0, num_tokens);
  float *const largest = totals + round_up(shape.num_heads, kLanes);
  for (int64_t head = 0; head < shape.num_heads; ++head) {
    const float *const own = bias.values == nullptr ? nullptr : bias.values + head * bias.stride;
    store(score_tokens(shape, query + head * size, scale, own, cache, head, num_tokens, weights + head * stride),
          largest + head * kLanes);
  }
  for (int64_t head = 0; head < shape.num_heads; ++head)
    totals[head] = exponentiate(load(largest + head * kLanes), num_tokens, weights + head * stride);
  for (int64_t head = 0; head < shape.num_heads; ++head) {
    const float factor = 1.0f / totals[head];
    for (int64_t column = 0; column < size; column += 4 * kLanes) {
      const int64_t rest = size - column, count = rest < 4 * kLanes ? rest : 4 * kLanes;
      const auto mix = [&](auto num_vectors) {
        mix_values<num_vectors>(shape, cache, head, column, weights + head * stride, num_tokens, factor, count,
                                heads + head * size + column);
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
