// exp, erf, the activations and the rounding to 8 bits, on 16 lanes: not the C library's,
// which differ between machines.
#pragma once

#include "compute/compute.h"
#include "compute/lanes.h"

namespace dragoman {
namespace {

// 1.5 * 2^23. Adding it to a number below 2^22 rounds that to an integer, to even if in the middle, in the low bits.
constexpr float kRounder = 12582912.0f;

template <int count> DRAGOMAN_INLINE Floats polynomial(Floats x, const float (&coefficients)[count]) {
  Floats sum = spread(coefficients[0]);
#pragma GCC unroll 16
  for (int i = 1; i < count; ++i) sum = multiply_add(sum, x, spread(coefficients[i]));
  return sum;
}

// exp(x) within 2 ulp for -87 < x <= 88; 0 below, and for NaN. Larger x are not allowed.
DRAGOMAN_INLINE Floats exp(Floats x) {
  const Floats rounded = multiply_add(x, spread(1.44269504f), spread(kRounder));
  const Floats power = rounded - spread(kRounder);
  // ln 2 in two parts, so that the product of the first is exact.
  const Floats rest =
      multiply_add(power, spread(2.12194440e-4f), multiply_add(power, spread(-0.693359375f), x));
  constexpr float kTaylor[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                               4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  const Floats value = multiply_add(polynomial(rest, kTaylor), rest * rest, rest + spread(1.0f));
  return select(greater(x, spread(-87.0f)), add_to_exponent(value, rounded), spread(0.0f));
}

// erf(x) within 4e-7: a rational function fitted by least squares of its relative error.
DRAGOMAN_INLINE Floats erf(Floats x) {
  x = min(max(x, spread(-4.0f)), spread(4.0f)); // beyond, it is 1
  constexpr float kNumerator[] = {1.986801290e-6f, 2.845654568e-4f, 3.883289810e-3f,
                                 5.310157313e-2f, 1.935436866e-1f, 1.128379139f};
  constexpr float kDenominator[] = {3.742035237e-5f, 1.185559642e-3f, 1.520713905e-2f,
                                 1.153494404e-1f, 5.048561821e-1f, 1.000000000f};
  const Floats square = x * x;
  return x * polynomial(square, kNumerator) / polynomial(square, kDenominator);
}

DRAGOMAN_INLINE Floats relu(Floats x) { return max(x, spread(0.0f)); }
DRAGOMAN_INLINE Floats gelu(Floats x) {
  return x * spread(0.5f) * (spread(1.0f) + erf(x * spread(0.70710678118654752f)));
}
DRAGOMAN_INLINE Floats inverse_sigmoid(Floats x) {
  return spread(1.0f) + exp(min(spread(0.0f) - x, spread(88.0f)));
}
DRAGOMAN_INLINE Floats sigmoid(Floats x) { return spread(1.0f) / inverse_sigmoid(x); }
DRAGOMAN_INLINE Floats silu(Floats x) { return x / inverse_sigmoid(x); }
// x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), and (1 + tanh u) / 2 = sigmoid(2 u).
DRAGOMAN_INLINE Floats gelu_tanh(Floats x) {
  return x / inverse_sigmoid(x * multiply_add(x * x, spread(0.071354816f), spread(1.5957691f)));
}

// How the floats of a row become 8 bits: level = round_to_even(x / scale) + zero_point.
struct Quantizer {
  float scale;
  Floats inverse_scale, lowest, highest;
  Ints zero_point;

  // For a row whose largest magnitude is `largest`.
  DRAGOMAN_INLINE Quantizer(float largest, int32_t zero)
      : scale(largest / static_cast<float>(255 - zero)),
        // Below, 1 / scale is infinite or inexact; such a row is as good as zeros.
        inverse_scale(spread(largest >= 1e-30f ? static_cast<float>(255 - zero) / largest : 0.0f)),
        lowest(spread(static_cast<float>(-zero))), highest(spread(static_cast<float>(255 - zero))),
        zero_point(spread(zero)) {}

  // Levels in the low bytes of the lanes; what is above them is arbitrary. NaN is level 0.
  DRAGOMAN_INLINE Ints operator()(Floats x) const {
    // To clamp before rounding gives the same, since the bounds are integers.
    const Floats clamped = min(max(x * inverse_scale, lowest), highest);
    return bits_of(clamped + spread(kRounder)) + zero_point;
  }
};

} // namespace
} // namespace dragoman
