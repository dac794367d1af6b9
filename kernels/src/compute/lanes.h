// Sixteen lanes of floats or integers, made of whatever registers the instruction set has.
//
// Included by the files of the instruction sets only, after they have defined `kRegisterLanes`, the 32-bit lanes of a
// register. Everything is in an anonymous namespace and nothing of the standard library is instantiated: the linker
// keeps one copy of an inline function, and that could be one that only some CPUs can run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compute/compute.h" // DRAGOMAN_INLINE

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" // of vectors as arguments: all of these functions are inlined
#endif

namespace dragoman {
namespace {

typedef float Floats4 __attribute__((vector_size(16)));
typedef float RegisterF __attribute__((vector_size(4 * kRegisterLanes)));
typedef int32_t RegisterI __attribute__((vector_size(4 * kRegisterLanes)));
typedef uint32_t RegisterU __attribute__((vector_size(4 * kRegisterLanes)));
typedef uint16_t RegisterH __attribute__((vector_size(2 * kRegisterLanes)));

template <class V> struct Pair {
  V low, high;
};

template <class V, int num_lanes> struct Join {
  using type = Pair<typename Join<V, num_lanes / 2>::type>;
};
template <class V> struct Join<V, kRegisterLanes> {
  using type = V;
};

using Floats = Join<RegisterF, 16>::type;
using Ints = Join<RegisterI, 16>::type;

// Comparisons give -1 for true and 0 for false in each lane, as integers.
DRAGOMAN_INLINE RegisterI greater(RegisterF a, RegisterF b) { return a > b; }
DRAGOMAN_INLINE RegisterI greater(RegisterI a, RegisterI b) { return a > b; }
DRAGOMAN_INLINE RegisterI equal(RegisterI a, RegisterI b) { return a == b; }
DRAGOMAN_INLINE RegisterF select(RegisterI where, RegisterF a, RegisterF b) { return where ? a : b; }
DRAGOMAN_INLINE RegisterF max(RegisterF a, RegisterF b) { return a > b ? a : b; } // b if one is NaN
DRAGOMAN_INLINE RegisterF min(RegisterF a, RegisterF b) { return a < b ? a : b; } // b if one is NaN
DRAGOMAN_INLINE RegisterF to_floats(RegisterI a) { return __builtin_convertvector(a, RegisterF); }
DRAGOMAN_INLINE RegisterI bits_of(RegisterF a) { return reinterpret_cast<RegisterI>(a); }
// a * 2^b for the integer in the low bits of b, if the result is a normal number.
DRAGOMAN_INLINE RegisterF add_to_exponent(RegisterF a, RegisterF b) {
  return reinterpret_cast<RegisterF>(reinterpret_cast<RegisterU>(a) + (reinterpret_cast<RegisterU>(b) << 23));
}

// a * b + c with one rounding; each instruction set has its own.
DRAGOMAN_INLINE RegisterF multiply_add(RegisterF a, RegisterF b, RegisterF c);

template <class V> DRAGOMAN_INLINE Pair<V> pair_of(V low, V high) { return {low, high}; }
template <class V> DRAGOMAN_INLINE Pair<V> operator+(Pair<V> a, Pair<V> b) {
  return {a.low + b.low, a.high + b.high};
}
template <class V> DRAGOMAN_INLINE Pair<V> operator-(Pair<V> a, Pair<V> b) {
  return {a.low - b.low, a.high - b.high};
}
template <class V> DRAGOMAN_INLINE Pair<V> operator*(Pair<V> a, Pair<V> b) {
  return {a.low * b.low, a.high * b.high};
}
template <class V> DRAGOMAN_INLINE Pair<V> multiply_add(Pair<V> a, Pair<V> b, Pair<V> c) {
  return {multiply_add(a.low, b.low, c.low), multiply_add(a.high, b.high, c.high)};
}
template <class V> DRAGOMAN_INLINE Pair<V> operator/(Pair<V> a, Pair<V> b) {
  return {a.low / b.low, a.high / b.high};
}
template <class V> DRAGOMAN_INLINE Pair<V> operator|(Pair<V> a, Pair<V> b) {
  return {a.low | b.low, a.high | b.high};
}
template <class V> DRAGOMAN_INLINE Pair<V> max(Pair<V> a, Pair<V> b) {
  return {max(a.low, b.low), max(a.high, b.high)};
}
template <class V> DRAGOMAN_INLINE Pair<V> min(Pair<V> a, Pair<V> b) {
  return {min(a.low, b.low), min(a.high, b.high)};
}
template <class V> DRAGOMAN_INLINE auto greater(Pair<V> a, Pair<V> b) {
  return pair_of(greater(a.low, b.low), greater(a.high, b.high));
}
template <class V> DRAGOMAN_INLINE auto equal(Pair<V> a, Pair<V> b) {
  return pair_of(equal(a.low, b.low), equal(a.high, b.high));
}
template <class M, class V> DRAGOMAN_INLINE auto select(Pair<M> where, Pair<V> a, Pair<V> b) {
  return pair_of(select(where.low, a.low, b.low), select(where.high, a.high, b.high));
}
template <class V> DRAGOMAN_INLINE auto to_floats(Pair<V> a) { return pair_of(to_floats(a.low), to_floats(a.high)); }
template <class V> DRAGOMAN_INLINE auto bits_of(Pair<V> a) { return pair_of(bits_of(a.low), bits_of(a.high)); }
template <class V> DRAGOMAN_INLINE Pair<V> add_to_exponent(Pair<V> a, Pair<V> b) {
  return {add_to_exponent(a.low, b.low), add_to_exponent(a.high, b.high)};
}

// Loads and stores at any address.
template <class V> struct Memory {
  static DRAGOMAN_INLINE V load(const void *from) {
    V value;
    memcpy(&value, from, sizeof(V));
    return value;
  }
  static DRAGOMAN_INLINE void store(V value, void *to) { memcpy(to, &value, sizeof(V)); }
  template <class T> static DRAGOMAN_INLINE V spread(T value) { return value - V{}; }
};
template <class V> struct Memory<Pair<V>> {
  static DRAGOMAN_INLINE Pair<V> load(const void *from) {
    return {Memory<V>::load(from), Memory<V>::load(static_cast<const char *>(from) + sizeof(V))};
  }
  static DRAGOMAN_INLINE void store(Pair<V> value, void *to) {
    Memory<V>::store(value.low, to);
    Memory<V>::store(value.high, static_cast<char *>(to) + sizeof(V));
  }
  template <class T> static DRAGOMAN_INLINE Pair<V> spread(T value) {
    return {Memory<V>::spread(value), Memory<V>::spread(value)};
  }
};
DRAGOMAN_INLINE Floats load(const float *from) { return Memory<Floats>::load(from); }
DRAGOMAN_INLINE Ints load(const int32_t *from) { return Memory<Ints>::load(from); }
DRAGOMAN_INLINE void store(Floats value, float *to) { Memory<Floats>::store(value, to); }
DRAGOMAN_INLINE void store(Ints value, int32_t *to) { Memory<Ints>::store(value, to); }
DRAGOMAN_INLINE Floats spread(float value) { return Memory<Floats>::spread(value); }
DRAGOMAN_INLINE Ints spread(int32_t value) { return Memory<Ints>::spread(value); }

// Sixteen numbers in 16 bits. Stored ones are rounded to the nearest, to even if in the middle.
DRAGOMAN_INLINE void load_lanes(const Bfloat16 *from, RegisterF &to) {
  RegisterH halves;
  memcpy(&halves, from, sizeof(halves));
  to = reinterpret_cast<RegisterF>(__builtin_convertvector(halves, RegisterU) << 16);
}
DRAGOMAN_INLINE void store_lanes(RegisterF value, Bfloat16 *to) {
  const RegisterU bits = reinterpret_cast<RegisterU>(value), quiet_nan = bits | 0x400000u;
  const RegisterU rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const RegisterH halves = __builtin_convertvector((value == value ? rounded : quiet_nan) >> 16, RegisterH);
  memcpy(to, &halves, sizeof(halves));
}
template <class V> DRAGOMAN_INLINE void load_lanes(const Bfloat16 *from, Pair<V> &to) {
  load_lanes(from, to.low);
  load_lanes(from + sizeof(V) / sizeof(float), to.high);
}
template <class V> DRAGOMAN_INLINE void store_lanes(Pair<V> value, Bfloat16 *to) {
  store_lanes(value.low, to);
  store_lanes(value.high, to + sizeof(V) / sizeof(float));
}
DRAGOMAN_INLINE Floats load(const Bfloat16 *from) {
  Floats value;
  load_lanes(from, value);
  return value;
}
DRAGOMAN_INLINE void store(Floats value, Bfloat16 *to) { store_lanes(value, to); }

alignas(64) constexpr int32_t kLaneNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Lanes [0, count).
DRAGOMAN_INLINE Ints first_lanes(int64_t count) {
  return greater(spread(static_cast<int32_t>(count < 16 ? count : 16)), load(kLaneNumbers));
}

// The sum of all lanes: halves of eight, four, two and one.
DRAGOMAN_INLINE float sum_lanes(Floats value) {
  alignas(64) float lanes[16];
  store(value, lanes);
  using Four = Memory<Floats4>;
  const Floats4 sums = (Four::load(lanes) + Four::load(lanes + 8)) + (Four::load(lanes + 4) + Four::load(lanes + 12));
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

DRAGOMAN_INLINE float max_lanes(Floats value) {
  alignas(64) float lanes[16];
  store(value, lanes);
  float largest[4];
  for (int i = 0; i < 4; ++i) {
    const float a = lanes[i] > lanes[i + 8] ? lanes[i] : lanes[i + 8];
    const float b = lanes[i + 4] > lanes[i + 12] ? lanes[i + 4] : lanes[i + 12];
    largest[i] = a > b ? a : b;
  }
  const float a = largest[0] > largest[2] ? largest[0] : largest[2];
  const float b = largest[1] > largest[3] ? largest[1] : largest[3];
  return a > b ? a : b;
}

DRAGOMAN_INLINE bool any_bits(const void *from) {
  uint64_t words[2];
  memcpy(words, from, sizeof(words));
  return (words[0] | words[1]) != 0;
}

} // namespace
} // namespace dragoman
