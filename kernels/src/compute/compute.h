// The arithmetic, once per instruction set: a table of functions, chosen when the library is loaded.
//
// Every table computes the same bits. Integer products are exact. Floating-point operations are element-wise on 16
// lanes, in one fixed order, without contraction to fused multiply-add; sums over lanes fold halves (8, 4, 2, 1).
//
// Sizes are counted in elements. Rows of float scratch are padded to multiples of 16 columns, rows of 8-bit scratch to
// multiples of 64; columns beyond a row's width may be read and must be finite, and their values never matter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dragoman {

constexpr int kLanes = 16;
constexpr int kBlockColumns = 64; // of a packed weight
constexpr int kBlockTokens = 16;  // of cached keys and values
constexpr int64_t kGroupBytes = kBlockColumns * 4; // of a block of packed weights: four inputs of its columns
constexpr int64_t kMaxInputs = 65'000;             // of a layer: 255 * 127 * 65,000 < 2^31

// Inlined always: a copy compiled for some CPUs only must not be the one that the linker keeps.
#define DRAGOMAN_INLINE inline __attribute__((always_inline))

DRAGOMAN_INLINE int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// x W^T + b for rows x in 8 bits, each with a scale of its own. A row's integer result is
// sum_k (x[k] - zero_point) w[n][k], exactly.
struct Dense {
  int32_t num_inputs;  // K
  int32_t num_outputs; // N
  int32_t num_groups;  // ceil(K / 4): groups of four inputs; inputs beyond K have zero weights
  int32_t num_blocks;  // ceil(N / 64); columns beyond N have zero weights, scales and biases
  const int8_t *weights;   // (blocks, groups, 64, 4), 64-byte aligned
  const int32_t *offsets;  // (blocks * 64,): what to add to the sum as this table accumulates it
  const uint16_t *order;   // see `prepare`; null if this table needs none
  const float *scales;     // (blocks * 64,): of the weights
  const float *biases;     // (blocks * 64,)
  int32_t zero_point;      // of its inputs: `kZero`, or 0 if none is negative
};

constexpr int32_t kZero = 128;

// The columns of a layer, one after the other, so that some of them can be computed.
struct Columns {
  const int8_t *weights; // (N, stride), zeros beyond K; 64-byte aligned
  int64_t stride;        // K rounded up to 64
  const int32_t *sums;   // (N,): of each column's weights
};
constexpr int kColumnsTogether = 4; // that are multiplied with a row at a time

// Rows in 8 bits: x = (level - zero_point) * scale. A row's largest magnitude is the 127th level above or below
// `kZero`, or the 255th above 0: so a row's levels depend on nothing but the row.
struct Levels {
  uint8_t *levels; // (rows, stride)
  int64_t stride;
  float *scales;   // (rows,)

  DRAGOMAN_INLINE Levels from(int64_t row) const { return {levels + row * stride, stride, scales + row}; }
};

DRAGOMAN_INLINE int64_t order_size(int64_t num_blocks, int64_t num_groups) {
  return num_blocks * (kBlockColumns / 16) * (1 + num_groups / 2);
}

enum class Activation : int32_t { kIdentity = 0, kRelu = 1, kGelu = 2, kSilu = 3, kGeluTanh = 4 };

// What becomes of the results of a dense layer: they replace what is there, are added to it, or multiply it.
enum class Into : int32_t { kSet = 0, kAdd = 1, kMultiply = 2 };

// export/architecture/layers.py: nn.LayerNorm, ScalarLayerNorm, and one without a mean.
enum class NormKind : int32_t { kVector = 0, kScalar = 1, kRms = 2 };

struct Norm {
  const float *gain; // (round_up(width, 16),), zeros beyond the width
  const float *bias;
  int32_t width;
  float epsilon;
  NormKind kind;
};

// The upper half of a float32: the same range, and 8 bits of its precision.
using Bfloat16 = uint16_t;

// Keys and values of 16 tokens of one head: keys (D, 16), then values (16, D), with D the head's size rounded up to 16.
// A layer of a cached row is (ceil(tokens / 16), H) such blocks.
struct CacheShape {
  int32_t num_heads;
  int32_t head_size;        // as in the projections' outputs
  int32_t padded_head_size; // round_up(head_size, 16)
  // Numbers of a block.
  DRAGOMAN_INLINE int64_t block_size() const { return 2 * static_cast<int64_t>(kBlockTokens) * padded_head_size; }
  // Floats that `attend` needs as a workspace for a query.
  DRAGOMAN_INLINE int64_t scratch_size(int64_t num_tokens) const { return weights_begin(num_heads, num_tokens); }
  // Where it leaves a head's weights there; they sum up to what is at the place `head`.
  DRAGOMAN_INLINE int64_t weights_begin(int64_t head, int64_t num_tokens) const {
    return round_up(num_heads, kLanes) + head * round_up(num_tokens, kBlockTokens);
  }
};

// What is added to the scaled scores of a query: to that of token t in head h, values[h * stride + t], readable up to a
// block's end; for the next query, values begin `step` numbers further. Nothing without values.
struct ScoreBias {
  const float *values;
  int64_t stride, step;
};

// Cached tokens of a layer that queries attend to.
struct CachedTokens {
  const Bfloat16 *layer;  // of a cached row
  int64_t count;          // >= 1
  const int32_t *history; // (queries, history_stride): a query's token t is in the row that starts history[t] * row_stride
                          // numbers after `layer`; without a history, in the one at `layer`
  int64_t history_stride, row_stride;
  int64_t ahead; // numbers to the layer of another row that is read next, so that it is on its way from memory; or 0
};

// Queries of the same tokens, each (H * head_size,); what they get replaces them.
struct Queries {
  float *heads;
  int64_t stride, count;
};
constexpr int64_t kMostQueries = 4; // at a time

struct Compute {
  const char *name; // "avx512-vnni", "avx-vnni", "avx2", "neon-dot", "portable"

  // Quantize rows x (num_rows, >= width), without negative values if `zero_point` is 0.
  void (*quantize)(const float *x, int64_t x_stride, int64_t num_rows, int64_t width, int32_t zero_point,
                   const Levels &to);

  // Normalize rows; store floats if `normed` is not null (it may be x), and levels around `kZero` if `to` has any.
  void (*norm)(const Norm &norm, const float *x, int64_t x_stride, int64_t num_rows, float *normed,
               int64_t normed_stride, const Levels &to);

  // Fill `offsets` for weights that are packed, and `order` (`order_size`) if the table needs it, and set them in
  // `dense`: for each 16 columns of a block, how many pairs of groups may be added in 16 bits, these pairs, and then
  // the others.
  void (*prepare)(Dense &dense, int32_t *offsets, uint16_t *order);

  // x W^T + b into y: levels (num_rows, K) to floats (num_rows, N padded to 64).
  void (*dense)(const Dense &dense, const Levels &x, int64_t num_rows, Into into, float *y, int64_t y_stride);

  // y = activation(x W^T + b).
  void (*dense_activated)(const Dense &dense, const Levels &x, int64_t num_rows, Activation activation, float *y,
                          int64_t y_stride);

  // The arg-max of x W^T + b and its value, per row; the lowest column among equals, or some column for a row whose
  // scale is not finite. Biases are finite or minus infinity.
  void (*dense_arg_max)(const Dense &dense, const Levels &x, int64_t num_rows, int32_t *best, float *best_value);

  // The values of `count` columns of x W^T + b for one row, whose levels are readable up to the stride.
  void (*dense_columns)(const Dense &dense, const Columns &columns, const uint8_t *levels, float scale,
                        const int32_t *ids, int64_t count, float *y);

  // Form a token's queries or keys, (H * norm.width,): normalize each head, unless the norm has no gain, and rotate pairs
  // of its first `rotary_size` components (i and i + rotary_size / 2) by `angles`: cosines, then sines; or null.
  void (*form_heads)(const Norm &norm, const float *angles, int64_t rotary_size, int64_t num_heads, float *heads);

  // Append one token's keys and values, each (H * head_size,), at `position` of a cached row's layer.
  void (*append)(const CacheShape &shape, const float *keys, const float *values, int64_t position,
                 Bfloat16 *layer);

  // Attend from queries to tokens: softmax(scale q k + bias) v. `scratch` (`shape.scratch_size(tokens.count)` for each
  // query) is a workspace.
  void (*attend)(const CacheShape &shape, const Queries &queries, float scale, const ScoreBias &bias,
                 const CachedTokens &tokens, float *scratch);

  // Read one token by a simpler simple recurrent unit (`export/architecture/recurrence.py`), whose candidate and gate,
  // before its sigmoid, are side by side in `projected` (2 width,): its output replaces the candidate. `before` is the
  // state before the token, null if it is the first; `state` gets the one after it. Both have width rounded up to 16.
  void (*recur)(float *projected, const float *before, int64_t width, float *state);

  // x[i] = weights[i] * scale + position[i]: the embedding of a token, which is a column of a packed table.
  void (*embed)(const int8_t *tokens, int64_t token, float scale, const float *position, int64_t width, float *x);

  // Whether all are finite.
  bool (*is_finite)(const float *x, int64_t count);

  // The largest of `count` values, and the sum of exp(x - largest); minus infinity is allowed, NaN is not.
  void (*log_sum)(const float *x, int64_t count, float *largest, float *sum);

  // Indices of the `num_wanted` (<= 64) largest values, best first, the lower index among equals; returns how many.
  // `x` are the values from the index `first` on; of lower indices, `num_found` are in `indices` and `values` already.
  int (*top)(const float *x, int64_t count, int32_t first, int num_wanted, int num_found, int32_t *indices,
             float *values);
};

// The table for a name, if this CPU can run it; "" means the fastest it can run. Null otherwise.
const Compute *find_compute(const char *name);

} // namespace dragoman

// For tests and benchmarks, which load the library by itself.
extern "C" __attribute__((visibility("default"))) const dragoman::Compute *dragoman_compute(const char *name);
