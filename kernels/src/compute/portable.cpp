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

#include "compute/table.h"
#include "compute/tables.h"

namespace dragoman {
extern const Compute kPortable = make_table("portable");
}
