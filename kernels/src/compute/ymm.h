// What the two instruction sets with registers of 256 bits have in common.
#pragma once

#include <immintrin.h>

namespace dragoman {
namespace {
constexpr int kRegisterLanes = 8;
}
} // namespace dragoman

#include "compute/lanes.h"

namespace dragoman {
namespace {

DRAGOMAN_INLINE bool any(RegisterI mask) { return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0; }
DRAGOMAN_INLINE bool any(Pair<RegisterI> mask) { return any(mask.low | mask.high); }
DRAGOMAN_INLINE RegisterF multiply_add(RegisterF a, RegisterF b, RegisterF c) {
  return reinterpret_cast<RegisterF>(_mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b),
                                                     reinterpret_cast<__m256>(c)));
}
DRAGOMAN_INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

// The low bytes of 16 lanes.
DRAGOMAN_INLINE void store_low_bytes(Pair<RegisterI> value, uint8_t *to) {
  const __m256i byte = _mm256_set1_epi32(255);
  const __m256i low = _mm256_and_si256(reinterpret_cast<__m256i>(value.low), byte);
  const __m256i high = _mm256_and_si256(reinterpret_cast<__m256i>(value.high), byte);
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(to), bytes);
}

DRAGOMAN_INLINE __m256i load_bytes(const void *from) {
  return _mm256_loadu_si256(static_cast<const __m256i *>(from));
}
DRAGOMAN_INLINE __m256i spread_four(const uint8_t *from) {
  int32_t inputs;
  memcpy(&inputs, from, sizeof(inputs));
  return _mm256_set1_epi32(inputs);
}

} // namespace
} // namespace dragoman
