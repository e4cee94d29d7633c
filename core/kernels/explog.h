// exp and log of float without branches. The C library's vector functions leave their fast path,
// element by element, when one is out of range (exp(-inf) under a mask, log(0) in an entropy):
// five times slower there, otherwise no faster than these, and less exact.
#pragma once
#include "fused.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace gt::math {

// exp(x) = 2^k exp(r) with |r| <= log(2)/2. Adding and subtracting 1.5 * 2^23 rounds to a whole k
// and leaves it in the low bits. Gives r; k goes to `power`.
inline float exp_remainder(float x, int32_t& power) {
  const float shifted = fused(x, 1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  power = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(0x1.8p23f);
  return fused(k, 2.12194440e-4f, fused(k, -0.693359375f, x));
}
// (exp(r) - 1 - r) / r^2, where exp(r) - 1 gets to 2^-26 of it: the polynomial of least largest relative
// error (tools/fit_kernels.py).
inline float expm1_rest(float r) {
  float p = 1.388250384e-3f;
  p = fused(p, r, 8.366581053e-3f);
  p = fused(p, r, 4.166720062e-2f);
  p = fused(p, r, 1.666654348e-1f);
  return fused(p, r, 4.999999702e-1f);
}
inline float expm1_small(float r) { return fused(expm1_rest(r), r * r, r); }
inline float exp_small(float r) { return expm1_small(r) + 1; }
inline float exp_reduced(float x, int32_t& power) { return exp_small(exp_remainder(x, power)); }

// 2^k goes in as two factors: results below the smallest normal number round once, and exponents
// up to 128 pass without overflow on the way.
inline float exp(float x) {
  int32_t k;
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;  // NaN stays
  const float p = expm1_small(exp_remainder(x, k)), half = power_of_two(k >> 1);
  return fused(p, half, half) * power_of_two(k - (k >> 1));
}
#if defined(__AVX512F__)
// The same of a register: scaling by 2^k is one instruction there, whatever k is.
inline __m512 scaled(__m512 x, __m512 k) { return _mm512_maskz_scalef_ps(0xffff, x, k); }
inline __m512 exp(__m512 x) {
  x = _mm512_maskz_max_ps(0xffff, __m512{} - 104.0f, x);  // of a NaN and a number, the second: NaN stays
  x = _mm512_maskz_min_ps(0xffff, __m512{} + 89.0f, x);
  const __m512 k = x * 1.44269504f + 0x1.8p23f - 0x1.8p23f;
  const __m512 r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  __m512 p = r * 1.388250384e-3f + 8.366581053e-3f;
  p = p * r + 4.166720062e-2f;
  p = p * r + 1.666654348e-1f;
  p = p * r + 4.999999702e-1f;
  return scaled(p * (r * r) + r + 1, k);
}
#endif
// For x <= 0 where results below the normal numbers may as well be 0.
inline float exp_negative(float x) {
  int32_t k;
  const float p = exp_reduced(x < -87.0f ? -87.0f : x, k);
  return x < -87.0f ? 0.0f : p * power_of_two(k);
}

// exp(-x^2 / 2), to the last digits: x^2 is split into a part that a float holds exactly and the rest.
inline float exp_half_square(float x) {
  const float head = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xfffff000u);  // 12 bits
  const float square = -0.5f * (head * head), rest = -0.5f * ((x - head) * (x + head));
  int32_t k;
  const float r = exp_remainder(square < -87.0f ? -87.0f : square, k) + rest;
  return square < -87.0f ? 0.0f : exp_small(r) * power_of_two(k);
}

// (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)).
inline float log_rest(float f) {
  float p = 6.746638566e-2f;
  p = fused(p, f, -1.167565137e-1f);
  p = fused(p, f, 1.188816279e-1f);
  p = fused(p, f, -1.240558922e-1f);
  p = fused(p, f, 1.421955228e-1f);
  p = fused(p, f, -1.666799635e-1f);
  p = fused(p, f, 2.000211924e-1f);
  p = fused(p, f, -2.500000894e-1f);
  return fused(p, f, 3.333331347e-1f);
}
// log(1 + f) + e log(2).
inline float log_reduced(float f, float e) {
  const float s = f * f, y = fused(e, -2.12194440e-4f, fused(log_rest(f) * f, s, -0.5f * s));
  return fused(e, 0.693359375f, f + y);
}
// log(x) = e log(2) + log(m) with m in [sqrt(1/2), sqrt(2)).
inline float log(float x) {
  const bool tiny = x < 0x1p-126f;
  const uint32_t bits = bits_of(tiny ? x * 0x1p23f : x);
  const uint32_t off = bits - 0x3f3504f3u;  // sqrt(1/2)
  const float e = float(int32_t(off) >> 23) - (tiny ? 23.0f : 0.0f);
  const float out = log_reduced(from_bits((off & 0x7fffffu) + 0x3f3504f3u) - 1, e);
  const float inf = __builtin_inff(), other = x == 0  ? -inf
                                              : x < 0 ? __builtin_nanf("")
                                                      : x;  // infinity, NaN
  return bits_of(x) - 1u < 0x7f7fffffu ? out : other;
}
// log(1 + x) for x in [0, 1]: twice the inverse hyperbolic tangent of x / (2 + x).
inline float log1p_unit(float x) {
  const float s = x / (2 + x), q = s * s;
  float p = 2.0f / 15;
  p = fused(p, q, 2.0f / 13);
  p = fused(p, q, 2.0f / 11);
  p = fused(p, q, 2.0f / 9);
  p = fused(p, q, 2.0f / 7);
  p = fused(p, q, 2.0f / 5);
  p = fused(p, q, 2.0f / 3);
  return fused(s * q, p, 2 * s);
}

}  // namespace gt::math
