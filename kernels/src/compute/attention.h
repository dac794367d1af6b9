// Attention of queries to cached tokens.
#pragma once

#include "compute/functions.h"

namespace dragoman {
namespace {

// Queries that share what is loaded of keys and values, as far as sums fit into registers.
constexpr int kQueriesTogether = kRegisterLanes == 16 ? 4 : 2;
static_assert(kQueriesTogether <= kMostQueries, "a caller's scratch is for so many");

template <int number> struct Number {
  constexpr operator int() const { return number; }
};

// Finds the tokens of a cached row's layer; those of a beam are spread over several rows.
struct Cache {
  CachedTokens tokens;
  int64_t head_stride;  // numbers from a block of a head to that of the next head
  int64_t token_stride; // numbers from a block of tokens to the next

  DRAGOMAN_INLINE const Bfloat16 *block(int64_t head, int64_t first_token, int64_t slot) const {
    return tokens.layer + slot * tokens.row_stride + first_token / kBlockTokens * token_stride + head * head_stride;
  }
};

// Begin to read `count` numbers into the second-level cache: the first one is at the beginning of a line.
template <int count> DRAGOMAN_INLINE void read_ahead(const Bfloat16 *from) {
#pragma GCC unroll 4
  for (int i = 0; i < count; i += 32) __builtin_prefetch(from + i, 0, 2);
}

// Tokens of the block that begins with `first_token`.
DRAGOMAN_INLINE int64_t tokens_of_block(int64_t first_token, int64_t num_tokens) {
  return num_tokens - first_token < kBlockTokens ? num_tokens - first_token : kBlockTokens;
}

// In which rows the tokens of a block are that queries attend to.
template <int num_queries> struct Slots {
  int num_different = 0;
  int32_t different[num_queries * kBlockTokens];
  alignas(64) int32_t lanes[num_queries][kBlockTokens]; // of each query's tokens, if there are different ones

  DRAGOMAN_INLINE Slots(const CachedTokens &tokens, int64_t first, int64_t count) {
    if (tokens.history == nullptr) {
      different[num_different++] = 0;
      return;
    }
    for (int q = 0; q < num_queries; ++q) {
      const int32_t *const slots = tokens.history + q * tokens.history_stride + first;
      for (int64_t i = 0; i < kBlockTokens; ++i) {
        lanes[q][i] = i < count ? slots[i] : slots[0];
        if (i == 0 || lanes[q][i] != lanes[q][i - 1]) add(lanes[q][i]);
      }
    }
  }

  DRAGOMAN_INLINE void add(int32_t slot) {
    for (int i = 0; i < num_different; ++i)
      if (different[i] == slot) return;
    different[num_different++] = slot;
  }
};

// Products of queries with the keys of `num_blocks` blocks of 16 tokens, side by side: their sums don't wait for each
// other.
template <int num_queries, int num_blocks>
DRAGOMAN_INLINE void key_products(const float *query, int64_t stride, const Bfloat16 *const *keys, int64_t head_size,
                                  int64_t ahead, Floats (*products)[num_blocks]) {
  Floats sums[num_queries][num_blocks][4];
#pragma GCC unroll 4
  for (int q = 0; q < num_queries; ++q)
#pragma GCC unroll 2
    for (int b = 0; b < num_blocks; ++b)
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sums[q][b][j] = spread(0.0f);
  const auto add = [&](int64_t d, int j) {
#pragma GCC unroll 2
    for (int b = 0; b < num_blocks; ++b) {
      const Floats key = load(keys[b] + (d + j) * kBlockTokens);
#pragma GCC unroll 4
      for (int q = 0; q < num_queries; ++q)
        sums[q][b][j] = multiply_add(spread(query[q * stride + d + j]), key, sums[q][b][j]);
    }
  };
  int64_t d = 0;
  for (; d + 4 <= head_size; d += 4) {
#pragma GCC unroll 2
    for (int b = 0; b < num_blocks; ++b) read_ahead<4 * kBlockTokens>(keys[b] + ahead + d * kBlockTokens);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) add(d, j);
  }
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j)
    if (d + j < head_size) add(d, j);
#pragma GCC unroll 4
  for (int q = 0; q < num_queries; ++q)
#pragma GCC unroll 2
    for (int b = 0; b < num_blocks; ++b)
      products[q][b] = (sums[q][b][0] + sums[q][b][1]) + (sums[q][b][2] + sums[q][b][3]);
}

// What `attend` leaves of a query in its part of the scratch.
struct Scratch {
  float *totals;  // (H,): sums of each head's weights
  float *weights; // (H, stride)
  int64_t stride;

  Scratch() = default;
  DRAGOMAN_INLINE Scratch(const CacheShape &shape, int64_t num_tokens, float *begin)
      : totals(begin), weights(begin + shape.weights_begin(0, num_tokens)), stride(round_up(num_tokens, kBlockTokens)) {}
};

// Store the scores of tokens, to which `bias` is added, and minus infinity for those beyond, whose memory may hold NaN.
template <int num_queries>
DRAGOMAN_INLINE void score_tokens(const CacheShape &shape, const Queries &queries, float scale, const ScoreBias &bias,
                                  const Cache &cache, const Scratch *scratches) {
  const CachedTokens &tokens = cache.tokens;
  const auto keep = [&](Floats products, int q, int64_t head, int64_t first) {
    Floats own = products * spread(scale);
    if (bias.values != nullptr) own = own + load(bias.values + q * bias.step + head * bias.stride + first);
    const int64_t count = tokens_of_block(first, tokens.count);
    if (count < kBlockTokens) own = select(first_lanes(count), own, spread(-__builtin_inff()));
    store(own, scratches[q].weights + head * scratches[q].stride + first);
  };
  const auto multiply = [&](int64_t head, int64_t first, int64_t slot, auto &products) {
    constexpr int kBlocks = sizeof(products[0]) / sizeof(Floats);
    const Bfloat16 *keys[kBlocks];
#pragma GCC unroll 2
    for (int b = 0; b < kBlocks; ++b) keys[b] = cache.block(head, first + b * kBlockTokens, slot);
    key_products<num_queries, kBlocks>(queries.heads + head * shape.head_size, queries.stride, keys, shape.head_size,
                                       tokens.ahead, products);
  };
  int64_t first = 0;
  if (num_queries == 1 && tokens.history == nullptr)
    for (; first + kBlockTokens < tokens.count; first += 2 * kBlockTokens)
      for (int64_t head = 0; head < shape.num_heads; ++head) {
        Floats products[num_queries][2];
        multiply(head, first, 0, products);
        keep(products[0][0], 0, head, first);
        keep(products[0][1], 0, head, first + kBlockTokens);
      }
  for (; first < tokens.count; first += kBlockTokens) {
    const Slots<num_queries> slots(tokens, first, tokens_of_block(first, tokens.count));
    for (int64_t head = 0; head < shape.num_heads; ++head) {
      Floats products[num_queries][1];
      multiply(head, first, slots.different[0], products);
      for (int i = 1; i < slots.num_different; ++i) {
        Floats others[num_queries][1];
        multiply(head, first, slots.different[i], others);
#pragma GCC unroll 4
        for (int q = 0; q < num_queries; ++q)
          products[q][0] = select(equal(load(slots.lanes[q]), spread(slots.different[i])), others[q][0], products[q][0]);
      }
#pragma GCC unroll 4
      for (int q = 0; q < num_queries; ++q) keep(products[q][0], q, head, first);
    }
  }
}

// Replace scores by exp(score - the largest); returns their sum.
DRAGOMAN_INLINE float exponentiate(int64_t num_tokens, float *scores) {
  Floats largest = spread(-__builtin_inff());
  for (int64_t first = 0; first < num_tokens; first += kBlockTokens) largest = max(load(scores + first), largest);
  const Floats most = spread(max_lanes(largest));
  Floats sum = spread(0.0f);
  for (int64_t first = 0; first < num_tokens; first += kBlockTokens) {
    const Floats weight = exp(load(scores + first) - most);
    store(weight, scores + first);
    sum = sum + weight;
  }
  return sum_lanes(sum);
}

// The weighted sums of `count` columns of values, at most 16 in each of `num_vectors` and from `column` on. Tokens at
// even and at odd places are summed up separately.
template <int num_queries, int num_vectors>
DRAGOMAN_INLINE void mix_values(const CacheShape &shape, const Cache &cache, int64_t head, int64_t column,
                                const Scratch *scratches, int64_t count, const Queries &queries) {
  const int64_t padded = shape.padded_head_size;
  const CachedTokens &tokens = cache.tokens;
  const float *weights[num_queries];
  Floats sums[2][num_queries][num_vectors];
#pragma GCC unroll 4
  for (int q = 0; q < num_queries; ++q) {
    weights[q] = scratches[q].weights + head * scratches[q].stride;
#pragma GCC unroll 4
    for (int j = 0; j < num_vectors; ++j) sums[0][q][j] = sums[1][q][j] = spread(0.0f);
  }
  const auto add = [&](const Bfloat16 *value, int64_t token, auto &own) {
    Floats values[num_vectors];
#pragma GCC unroll 4
    for (int j = 0; j < num_vectors; ++j) values[j] = load(value + j * kLanes);
#pragma GCC unroll 4
    for (int q = 0; q < num_queries; ++q) {
      const Floats weight = spread(weights[q][token]);
#pragma GCC unroll 4
      for (int j = 0; j < num_vectors; ++j) own[q][j] = multiply_add(weight, values[j], own[q][j]);
    }
  };
  const auto add_of_slots = [&](int64_t first, int64_t i, auto &own) {
    const int32_t *const slots = tokens.history + first + i;
    const auto value_of = [&](int q) {
      return cache.block(head, first, slots[q * tokens.history_stride]) + (kBlockTokens + i) * padded + column;
    };
    bool is_shared = true;
    for (int q = 1; q < num_queries; ++q) is_shared = is_shared && slots[q * tokens.history_stride] == slots[0];
    if (is_shared) return add(value_of(0), first + i, own);
#pragma GCC unroll 4
    for (int q = 0; q < num_queries; ++q) {
      const Floats weight = spread(weights[q][first + i]);
#pragma GCC unroll 4
      for (int j = 0; j < num_vectors; ++j)
        own[q][j] = multiply_add(weight, load(value_of(q) + j * kLanes), own[q][j]);
    }
  };
  for (int64_t first = 0; first < tokens.count; first += kBlockTokens) {
    const int64_t num_here = tokens_of_block(first, tokens.count);
    int64_t i = 0;
    if (tokens.history == nullptr) {
      const Bfloat16 *value = cache.block(head, first, 0) + kBlockTokens * padded + column;
      for (; i + 2 <= num_here; i += 2, value += 2 * padded) {
        read_ahead<num_vectors * kLanes>(value + tokens.ahead);
        add(value, first + i, sums[0]);
        read_ahead<num_vectors * kLanes>(value + tokens.ahead + padded);
        add(value + padded, first + i + 1, sums[1]);
      }
      if (i < num_here) add(value, first + i, sums[0]);
      continue;
    }
    for (; i + 2 <= num_here; i += 2) {
      add_of_slots(first, i, sums[0]);
      add_of_slots(first, i + 1, sums[1]);
    }
    if (i < num_here) add_of_slots(first, i, sums[0]);
  }
#pragma GCC unroll 4
  for (int q = 0; q < num_queries; ++q) {
    const Floats factor = spread(1.0f / scratches[q].totals[head]);
    alignas(64) float out[num_vectors * kLanes];
#pragma GCC unroll 4
    for (int j = 0; j < num_vectors; ++j) store((sums[0][q][j] + sums[1][q][j]) * factor, out + j * kLanes);
    memcpy(queries.heads + q * queries.stride + head * shape.head_size + column, out, count * sizeof(float));
  }
}

// Each part is done for all heads before the next one, so that heads don't wait for each other.
template <int num_queries>
void attend_together(const CacheShape &shape, const Queries &queries, float scale, const ScoreBias &bias,
                     const Cache &cache, const Scratch *scratches) {
  constexpr int kMostVectors = num_queries == 1 ? 4 : 2; // whose sums fit into registers
  const int64_t size = shape.head_size;
  score_tokens<num_queries>(shape, queries, scale, bias, cache, scratches);
  for (int q = 0; q < num_queries; ++q) {
    const Scratch &own = scratches[q];
    for (int64_t head = 0; head < shape.num_heads; ++head)
      own.totals[head] = exponentiate(cache.tokens.count, own.weights + head * own.stride);
  }
  for (int64_t head = 0; head < shape.num_heads; ++head) {
    for (int64_t column = 0; column < size; column += kMostVectors * kLanes) {
      const int64_t rest = size - column, count = rest < kMostVectors * kLanes ? rest : kMostVectors * kLanes;
      const auto mix = [&](auto num_vectors) {
        mix_values<num_queries, num_vectors>(shape, cache, head, column, scratches, count, queries);
      };
      if constexpr (kMostVectors > 2) {
        if (count > 2 * kLanes) {
          if (count > 3 * kLanes) mix(Number<4>{});
          else mix(Number<3>{});
          continue;
        }
      }
      if (count > kLanes) mix(Number<2>{});
      else mix(Number<1>{});
    }
  }
}

void attend(const CacheShape &shape, const Queries &queries, float scale, const ScoreBias &bias,
            const CachedTokens &tokens, float *scratch) {
  const int64_t head_stride = 2 * kBlockTokens * static_cast<int64_t>(shape.padded_head_size);
  const auto attend_some = [&](int64_t first, auto count) {
    const int64_t size = shape.scratch_size(tokens.count);
    Cache cache = {tokens, head_stride, head_stride * shape.num_heads};
    if (tokens.history != nullptr) cache.tokens.history += first * tokens.history_stride;
    Scratch scratches[count];
    for (int q = 0; q < count; ++q) scratches[q] = Scratch(shape, tokens.count, scratch + (first + q) * size);
    const Queries own = {queries.heads + first * queries.stride, queries.stride, count};
    const ScoreBias of_first = {bias.values == nullptr ? nullptr : bias.values + first * bias.step, bias.stride,
                                bias.step};
    attend_together<count>(shape, own, scale, of_first, cache, scratches);
  };
  int64_t first = 0;
  for (; first + kQueriesTogether <= queries.count; first += kQueriesTogether)
    attend_some(first, Number<kQueriesTogether>{});
  for (; first < queries.count; ++first) attend_some(first, Number<1>{});
}

} // namespace
} // namespace dragoman
