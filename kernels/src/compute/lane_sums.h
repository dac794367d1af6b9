// Sums of the lanes of registers of 256 bits.
#pragma once

#include <immintrin.h>

#include "compute/compute.h"

namespace dragoman {
namespace {

// Store the sum of the lanes of each of four.
DRAGOMAN_INLINE void add_lanes(__m256i a, __m256i b, __m256i c, __m256i d, int32_t *sums) {
  const __m256i halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(sums),
                   _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)));
}

} // namespace
} // namespace dragoman
