// AVX-VNNI: Intel client CPUs since Alder Lake, which have no AVX-512. Compile with -mavx2 -mfma -mavxvnni
#include "compute/lane_sums.h"
#include "compute/ymm.h"

namespace dragoman {
namespace {

using Accumulators = RegisterI;
using Weights = __m256i;
using Inputs = __m256i;
constexpr int kInputShift = 0;
constexpr int kTileRows = 6, kTileColumns = 16;

DRAGOMAN_INLINE Weights load_weights(const int8_t *from) { return load_bytes(from); }
DRAGOMAN_INLINE Inputs load_inputs(const uint8_t *from) { return load_bytes(from); }
DRAGOMAN_INLINE Inputs spread_inputs(const uint8_t *from) { return spread_four(from); }
DRAGOMAN_INLINE Accumulators multiply(Accumulators sums, Inputs inputs, Weights weights) {
#ifdef __AVXVNNI__
  return reinterpret_cast<Accumulators>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(sums), inputs, weights));
#else // tests run it on CPUs that have the same instruction as part of AVX-512
  return reinterpret_cast<Accumulators>(_mm256_dpbusd_epi32(reinterpret_cast<__m256i>(sums), inputs, weights));
#endif
}
DRAGOMAN_INLINE void add_lanes(const Accumulators *totals, int32_t *sums) {
  const __m256i *four = reinterpret_cast<const __m256i *>(totals);
  add_lanes(four[0], four[1], four[2], four[3], sums);
}

} // namespace
} // namespace dragoman

#include "compute/dot_products.h"
#include "compute/vector_columns.h"

#include "compute/table.h"
#include "compute/tables.h"

namespace dragoman {
extern const Compute kAvxVnni = make_table("avx-vnni");
}
