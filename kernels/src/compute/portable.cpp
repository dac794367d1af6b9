// Plain C++, with what every CPU of the target has. Compile with no flags of instruction sets.
namespace dragoman {
namespace {
constexpr int kRegisterLanes = 4;
}
} // namespace dragoman

#include "compute/lanes.h"

namespace dragoman {
namespace {

DRAGOMAN_INLINE bool any(RegisterI mask) {
  uint64_t words[2];
  memcpy(words, &mask, sizeof(words));
  return (words[0] | words[1]) != 0;
}
template <class V> DRAGOMAN_INLINE bool any(Pair<V> mask) { return any(mask.low | mask.high); }
// In double precision, where the product is exact and the sum is rounded to odd: to round that to single precision is
// to round once (Boldo, Melquiond: Emulation of FMA and correctly rounded sums, 2008).
DRAGOMAN_INLINE RegisterF multiply_add(RegisterF a, RegisterF b, RegisterF c) {
  typedef double Doubles __attribute__((vector_size(32)));
  typedef int64_t Words __attribute__((vector_size(32)));
  const Doubles product = __builtin_convertvector(a, Doubles) * __builtin_convertvector(b, Doubles);
  const Doubles addend = __builtin_convertvector(c, Doubles), sum = product + addend;
  const Doubles shifted = sum - product;
  const Doubles error = (product - (sum - shifted)) + (addend - shifted);
  const Words bits = reinterpret_cast<Words>(sum);
  const Words is_inexact = (error < 0.0) | (error > 0.0); // not for infinities, whose error is NaN
  const Words is_away = (error > 0.0) ^ (sum > 0.0);      // the exact sum is nearer to zero
  const Words odd = bits + (is_away | 1);                 // one up, or down for -1
  const Words is_even = (bits & 1) == 0;
  const Doubles rounded = reinterpret_cast<Doubles>((is_inexact & is_even) ? odd : bits);
  return __builtin_convertvector(rounded, RegisterF);
}
DRAGOMAN_INLINE float square_root(float x) { return __builtin_sqrtf(x); }

// The low bytes of 16 lanes.
DRAGOMAN_INLINE void store_low_bytes(Ints value, uint8_t *to) {
  alignas(64) int32_t lanes[16];
  store(value, lanes);
  for (int i = 0; i < 16; ++i) to[i] = static_cast<uint8_t>(lanes[i]);
}

struct Accumulators {
  int32_t sums[4];
};
struct Weights {
  int8_t values[16];
};
struct Inputs {
  int32_t values[4];
};
constexpr int kTileRows = 4, kTileColumns = 4;
constexpr int kInputShift = 0;

DRAGOMAN_INLINE Weights load_weights(const int8_t *from) { return Memory<Weights>::load(from); }
DRAGOMAN_INLINE Inputs spread_inputs(const uint8_t *from) { return {{from[0], from[1], from[2], from[3]}}; }
DRAGOMAN_INLINE Accumulators multiply(Accumulators sums, Inputs inputs, Weights weights) {
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 4; ++k) sums.sums[i] += inputs.values[k] * weights.values[i * 4 + k];
  return sums;
}

} // namespace
} // namespace dragoman

#include "compute/columns.h"
#include "compute/dot_products.h"

#include "compute/table.h"
#include "compute/tables.h"

namespace dragoman {
extern const Compute kPortable = make_table("portable");
}
