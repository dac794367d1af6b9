// AVX2 without VNNI: Intel since Haswell, AMD since Zen. Compile with -mavx2 -mfma
#include "compute/ymm.h"

namespace dragoman {
namespace {

// The product of bytes adds pairs with saturation at 16 bits, and 255 * 127 * 2 does not fit. So 128 is subtracted from
// inputs, and their sign is moved to the weights: 128 * 127 * 2 fits.
struct Inputs {
  __m256i magnitudes, shifted;
};
constexpr int kInputShift = 128;
constexpr int kTileRows = 4, kTileColumns = 16;

DRAGOMAN_INLINE Inputs spread_inputs(const uint8_t *from) {
  const __m256i shifted = _mm256_xor_si256(spread_four(from), _mm256_set1_epi8(-128));
  return {_mm256_abs_epi8(shifted), shifted};
}
DRAGOMAN_INLINE Accumulators multiply(Accumulators sums, Inputs inputs, Weights weights) {
  const __m256i pairs = _mm256_maddubs_epi16(inputs.magnitudes, _mm256_sign_epi8(weights, inputs.shifted));
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  return reinterpret_cast<Accumulators>(_mm256_add_epi32(reinterpret_cast<__m256i>(sums), fours));
}

} // namespace
} // namespace dragoman

#include "compute/table.h"
#include "compute/tables.h"

namespace dragoman {
extern const Compute kAvx2 = make_table("avx2");
}
