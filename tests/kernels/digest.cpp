// Prints a digest of everything that each instruction set of this CPU computes from the same numbers: one line each,
// equal on all CPUs. For CPUs that tests only emulate; needs no more than the C library.
#include <initializer_list>
#include <stdio.h>
#include <stdlib.h>

#include "compute/compute.h"

namespace {

using namespace dragoman;

uint32_t state;

uint32_t next() { return state = state * 1664525u + 1013904223u, state >> 8; }
float real() { return static_cast<float>(static_cast<int>(next() % 20001) - 10000) * 3e-4f; }

template <class T> class Memory {
public:
  explicit Memory(int64_t size) : memory_(calloc(size * sizeof(T) + 64, 1)) {
    first_ = reinterpret_cast<T *>(round_up(reinterpret_cast<int64_t>(memory_), 64));
  }
  Memory(const Memory &) = delete;
  ~Memory() { free(memory_); }
  operator T *() { return first_; }

private:
  void *memory_;
  T *first_;
};

struct Digest {
  uint64_t value = 14695981039346656037u;
  template <class T> void add(const T *data, int64_t count) {
    const unsigned char *bytes = reinterpret_cast<const unsigned char *>(data);
    for (int64_t i = 0; i < count * static_cast<int64_t>(sizeof(T)); ++i) value = (value ^ bytes[i]) * 1099511628211u;
  }
};

void add_products(const Compute &compute, Digest &digest) {
  constexpr int kInputs = 300, kOutputs = 330, kRows = 13, kGroups = kInputs / 4, kBlocks = 6, kWidth = kBlocks * 64;
  Memory<int8_t> weights(kBlocks * kGroups * 256);
  Memory<float> scales(kWidth), biases(kWidth), y(kRows * kWidth);
  Memory<int32_t> offsets(kWidth);
  Memory<uint16_t> order(order_size(kBlocks, kGroups));
  Memory<uint8_t> levels(kRows * 320);
  Memory<float> row_scales(kRows);
  for (int n = 0; n < kOutputs; ++n) {
    for (int k = 0; k < kInputs; ++k)
      weights[((n / 64 * kGroups + k / 4) * 64 + n % 64) * 4 + k % 4] = static_cast<int8_t>(next() % 255 - 127);
    scales[n] = 1e-4f + 1e-8f * static_cast<float>(next() % 10000);
    biases[n] = real();
  }
  for (int i = 0; i < kRows * 320; ++i) levels[i] = static_cast<uint8_t>(next());
  for (int i = 0; i < kRows; ++i) row_scales[i] = i == 5 ? 0.0f : 1e-3f * static_cast<float>(1 + next() % 1000);
  const Levels x = {levels, 320, row_scales};
  for (int32_t zero_point : {0, kZero}) {
    Dense dense = {kInputs, kOutputs, kGroups, kBlocks, weights, nullptr, nullptr, scales, biases, zero_point};
    compute.prepare(dense, offsets, order);
    for (int rows : {1, 2, 3, 7, kRows}) {
      for (Into into : {Into::kSet, Into::kAdd, Into::kMultiply}) {
        compute.dense(dense, x, rows, into, y, kWidth);
        for (int row = 0; row < rows; ++row) digest.add(y + row * kWidth, kOutputs);
      }
      for (int activation = 0; activation < 5; ++activation) {
        compute.dense_activated(dense, x, rows, static_cast<Activation>(activation), y, kWidth);
        for (int row = 0; row < rows; ++row) digest.add(y + row * kWidth, kOutputs);
      }
      int32_t best[kRows];
      float values[kRows];
      compute.dense_arg_max(dense, x, rows, best, values);
      digest.add(best, rows);
      digest.add(values, rows);
    }
  }
}

void add_attention(const Compute &compute, Digest &digest) {
  for (int size : {5, 24, 64, 80}) {
    constexpr int kTokens = 77, kHeads = 3, kSlots = 3, kQueries = 7;
    const CacheShape shape = {kHeads, size, static_cast<int32_t>(round_up(size, 16))};
    const int64_t row_size = 5 * kHeads * shape.block_size();
    Memory<Bfloat16> cache(kSlots * row_size);
    const int64_t width = kHeads * size;
    Memory<float> heads(kQueries * width), query(kQueries * width);
    Memory<float> scratch(kQueries * shape.scratch_size(kTokens)), biases(kHeads * kTokens + kQueries + 16);
    for (int i = 0; i < kHeads * kTokens + kQueries; ++i) biases[i] = real();
    int32_t history[kQueries * kTokens];
    for (int i = 0; i < kQueries * kTokens; ++i)
      history[i] = i % kTokens < 40 ? i % kTokens / 30 : static_cast<int32_t>(next() % kSlots);
    for (int token = 0; token < kTokens; ++token) {
      for (int i = 0; i < width; ++i) query[i] = real(), heads[i] = real();
      for (int slot = 0; slot < kSlots; ++slot) compute.append(shape, query, heads, token, cache + slot * row_size);
    }
    for (int i = width; i < kQueries * width; ++i) query[i] = real();
    const auto add = [&](const CachedTokens &tokens, int64_t count, const ScoreBias &bias) {
      for (int i = 0; i < count * width; ++i) heads[i] = query[i];
      compute.attend(shape, {heads, width, count}, 0.2f, bias, tokens, scratch);
      digest.add<float>(heads, count * width);
      for (int64_t i = 0; i < count; ++i) {
        const float *const own = scratch + i * shape.scratch_size(tokens.count);
        digest.add(own, kHeads);
        for (int head = 0; head < kHeads; ++head)
          digest.add(own + shape.weights_begin(head, tokens.count), tokens.count);
      }
    };
    for (const ScoreBias &bias : {ScoreBias{nullptr, 0, 0}, ScoreBias{biases + kQueries, kTokens, -1}}) {
      for (int64_t count : {1, kQueries}) {
        add({cache, kTokens, history, kTokens, row_size, 0}, count, bias);
        add({cache, 30, nullptr, 0, 0, row_size}, count, bias);
      }
    }
  }
}

void add_rows(const Compute &compute, Digest &digest) {
  constexpr int kWidth = 1000;
  Memory<float> x(1008), gain(1008), bias(1008), normed(1008), scale(1);
  Memory<uint8_t> levels(1024);
  Memory<int8_t> tokens(kWidth * kBlockColumns);
  for (int i = 0; i < kWidth; ++i) x[i] = real(), gain[i] = real(), bias[i] = real();
  for (int i = 0; i < kWidth * kBlockColumns; ++i) tokens[i] = static_cast<int8_t>(next());
  const Levels to = {levels, 1024, scale};
  const auto add_levels = [&](int64_t width) {
    digest.add<uint8_t>(levels, width);
    digest.add<float>(scale, 1);
  };
  for (NormKind kind : {NormKind::kVector, NormKind::kScalar, NormKind::kRms}) {
    const Norm norm = {gain, bias, kWidth, 1e-5f, kind};
    compute.norm(norm, x, 1008, 1, normed, 1008, to);
    digest.add<float>(normed, kWidth);
    add_levels(kWidth);
    compute.norm(norm, x, 1008, 1, nullptr, 0, to);
    add_levels(kWidth);
  }
  for (int32_t zero_point : {0, kZero})
    for (int64_t width : {1, 17, 40, kWidth}) {
      compute.quantize(x, 1008, 1, width, zero_point, to);
      add_levels(width);
    }
  constexpr float kOdd[] = {__builtin_nanf(""), __builtin_inff(), 1e-45f, 1e-31f, 0.0f};
  for (float odd : kOdd) {
    for (int i = 0; i < 40; ++i) normed[i] = i % 3 == 0 ? odd : odd < 1 ? 0.0f : x[i];
    compute.quantize(normed, 1008, 1, 40, kZero, to);
    add_levels(40);
  }
  const float *const rotations[] = {nullptr, gain};
  for (const float *angles : rotations)
    for (int32_t size : {10, 40, 64})
      for (const float *own_gain : rotations) {
        const Norm norm = {own_gain, bias, size, 1e-5f, size == 40 ? NormKind::kRms : NormKind::kVector};
        for (int i = 0; i < 3 * size; ++i) normed[i] = x[i];
        compute.form_heads(norm, angles, size - 4, 3, normed);
        digest.add<float>(normed, 3 * size);
      }
  float projected[128], states[64];
  const float *const pasts[] = {nullptr, x};
  for (const float *before : pasts) {
    for (int i = 0; i < 128; ++i) projected[i] = x[i];
    compute.recur(projected, before, 60, states);
    digest.add<float>(projected, 120);
    digest.add<float>(states, 60);
  }
  compute.embed(tokens, 37, 0.01f, x, kWidth, normed);
  digest.add<float>(normed, kWidth);
  const bool is_finite = compute.is_finite(x, kWidth);
  digest.add(&is_finite, 1);
  float largest, sum;
  compute.log_sum(x, kWidth, &largest, &sum);
  digest.add(&largest, 1);
  digest.add(&sum, 1);
  int32_t indices[64];
  float values[64];
  digest.add(indices, compute.top(x, kWidth, 0, 50, 0, indices, values));
}

void print_digests() {
  for (const char *name : {"avx512-vnni", "avx-vnni", "avx2", "neon-dot", "portable"}) {
    const Compute *compute = dragoman_compute(name);
    if (compute == nullptr) continue;
    Digest digest;
    state = 17;
    add_products(*compute, digest);
    add_attention(*compute, digest);
    add_rows(*compute, digest);
    printf("%s %016llx\n", name, static_cast<unsigned long long>(digest.value));
  }
}

} // namespace

int main() { print_digests(); }

// Where a dynamically linked program starts that has no object of the C library's.
extern "C" void start() {
  print_digests();
  exit(0);
}
