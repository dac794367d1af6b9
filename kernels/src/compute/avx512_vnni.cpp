// AVX-512 with VNNI: Intel since Cascade Lake and Ice Lake, AMD since Zen 4.
// Compile with -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx2
#include <immintrin.h>

namespace dragoman {
namespace {
constexpr int kRegisterLanes = 16;
}
} // namespace dragoman

#include "compute/lane_sums.h"
#include "compute/lanes.h"

namespace dragoman {
namespace {

DRAGOMAN_INLINE bool any(RegisterI mask) {
  const __m512i value = reinterpret_cast<__m512i>(mask);
  return _mm512_test_epi32_mask(value, value) != 0;
}
DRAGOMAN_INLINE RegisterF multiply_add(RegisterF a, RegisterF b, RegisterF c) {
  return reinterpret_cast<RegisterF>(_mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b),
                                                     reinterpret_cast<__m512>(c)));
}
DRAGOMAN_INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

// The low bytes of 16 lanes.
DRAGOMAN_INLINE void store_low_bytes(RegisterI value, uint8_t *to) {
  // Not _mm512_cvtepi32_epi8: gcc 12 warns of its own header.
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, reinterpret_cast<__m512i>(value));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(to), bytes);
}

using Accumulators = RegisterI;
using Weights = __m512i;
using Inputs = __m512i;
constexpr int kTileRows = 6, kTileColumns = 64;
constexpr int kInputShift = 0;

DRAGOMAN_INLINE Weights load_weights(const int8_t *from) { return _mm512_loadu_si512(from); }
DRAGOMAN_INLINE Inputs load_inputs(const uint8_t *from) { return _mm512_loadu_si512(from); }
DRAGOMAN_INLINE Inputs spread_inputs(const uint8_t *from) {
  int32_t inputs;
  memcpy(&inputs, from, sizeof(inputs));
  return _mm512_set1_epi32(inputs);
}
DRAGOMAN_INLINE Accumulators multiply(Accumulators sums, Inputs inputs, Weights weights) {
  return reinterpret_cast<Accumulators>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sums), inputs, weights));
}
DRAGOMAN_INLINE __m256i halves_added(Accumulators total) {
  const __m512i value = reinterpret_cast<__m512i>(total);
  return _mm256_add_epi32(_mm512_castsi512_si256(value), _mm512_extracti64x4_epi64(value, 1));
}
DRAGOMAN_INLINE void add_lanes(const Accumulators *totals, int32_t *sums) {
  add_lanes(halves_added(totals[0]), halves_added(totals[1]), halves_added(totals[2]), halves_added(totals[3]), sums);
}

} // namespace
} // namespace dragoman

#include "compute/dot_products.h"
#include "compute/vector_columns.h"

#include "compute/table.h"
#include "compute/tables.h"

namespace dragoman {
extern const Compute kAvx512Vnni = make_table("avx512-vnni");
}
