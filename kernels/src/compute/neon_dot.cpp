// NEON with dot products: aarch64 since Cortex-A75, Neoverse N1, Apple M1. Compile with -mcpu=generic+dotprod
// (zig has no -march)
#include <arm_neon.h>

namespace dragoman {
namespace {
constexpr int kRegisterLanes = 4;
}
} // namespace dragoman

#include "compute/lanes.h"

namespace dragoman {
namespace {

DRAGOMAN_INLINE bool any(RegisterI mask) { return vmaxvq_u32(reinterpret_cast<uint32x4_t>(mask)) != 0; }
template <class V> DRAGOMAN_INLINE bool any(Pair<V> mask) { return any(mask.low | mask.high); }
DRAGOMAN_INLINE RegisterF multiply_add(RegisterF a, RegisterF b, RegisterF c) {
  return reinterpret_cast<RegisterF>(vfmaq_f32(reinterpret_cast<float32x4_t>(c), reinterpret_cast<float32x4_t>(a),
                                               reinterpret_cast<float32x4_t>(b)));
}
DRAGOMAN_INLINE float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }

DRAGOMAN_INLINE uint16x8_t low_words(Pair<RegisterI> value) {
  return vcombine_u16(vmovn_u32(reinterpret_cast<uint32x4_t>(value.low)),
                      vmovn_u32(reinterpret_cast<uint32x4_t>(value.high)));
}
DRAGOMAN_INLINE void store_low_bytes(Pair<Pair<RegisterI>> value, uint8_t *to) {
  vst1q_u8(to, vcombine_u8(vmovn_u16(low_words(value.low)), vmovn_u16(low_words(value.high))));
}

using Accumulators = RegisterI;
using Weights = int8x16_t;
using Inputs = int8x16_t;
constexpr int kInputShift = 128; // both factors are signed
constexpr int kTileRows = 6, kTileColumns = 16;

DRAGOMAN_INLINE Weights load_weights(const int8_t *from) { return vld1q_s8(from); }
DRAGOMAN_INLINE Inputs load_inputs(const uint8_t *from) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from), vdupq_n_u8(0x80)));
}
DRAGOMAN_INLINE Inputs spread_inputs(const uint8_t *from) {
  uint32_t inputs;
  memcpy(&inputs, from, sizeof(inputs));
  return vreinterpretq_s8_u32(vdupq_n_u32(inputs ^ 0x80808080u));
}
DRAGOMAN_INLINE Accumulators multiply(Accumulators sums, Inputs inputs, Weights weights) {
  return reinterpret_cast<Accumulators>(vdotq_s32(reinterpret_cast<int32x4_t>(sums), weights, inputs));
}
DRAGOMAN_INLINE void add_lanes(const Accumulators *totals, int32_t *sums) {
  int32x4_t four[4];
  for (int j = 0; j < 4; ++j) four[j] = reinterpret_cast<int32x4_t>(totals[j]);
  vst1q_s32(sums, vpaddq_s32(vpaddq_s32(four[0], four[1]), vpaddq_s32(four[2], four[3])));
}

} // namespace
} // namespace dragoman

#include "compute/dot_products.h"
#include "compute/vector_columns.h"

#include "compute/table.h"
#include "compute/tables.h"

namespace dragoman {
extern const Compute kNeonDot = make_table("neon-dot");
}
