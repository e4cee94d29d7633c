// exp and log of float without branches. The C library's vector functions leave their fast path when one
// element is out of range (exp(-inf) under a mask, log(0) in an entropy) and are five times slower there;
// otherwise they are no faster than these, and less accurate.
#pragma once
#include "registers.h"

namespace gt::math {

// exp(x) = 2^k exp(r) with |r| <= log(2)/2. Adding 1.5 * 2^23 rounds to an integer k, which is then in the
// low bits. Returns r.
template <OfFloat X> GT_INLINE X exp_remainder(X x, X& shifted) {
  shifted = fused(x, 1.44269504f, 0x1.8p23f);
  const X k = shifted - 0x1.8p23f;
  return fused(k, 2.12194440e-4f, fused_from(k, 0.693359375f, x));
}
// (exp(r) - 1 - r) / r^2: the minimax polynomial (tools/fit_float.py), with which the relative error of
// exp(r) - 1 is 2^-26.
template <OfFloat X> GT_INLINE X expm1_rest(X r, X square) {
  return fused(horner(r, 4.166720062e-2f, 8.366581053e-3f, 1.388250384e-3f), square,
               horner(r, 4.999999702e-1f, 1.666654348e-1f));
}
template <OfFloat X> GT_INLINE X expm1_small(X r) {
  const X square = r * r;
  return fused(expm1_rest(r, square), square, r);
}
template <OfFloat X> GT_INLINE X exp_small(X r) { return expm1_small(r) + 1; }
// 2^(k + more) of shifted = k + 1.5 * 2^23, a normal number.
template <OfFloat X> GT_INLINE X power_of_two(X shifted, int more = 0) {
  return of_bits((bits_of(shifted) << 23) + (uint32_t(127 + more) << 23));
}

// (1 + p) 2^k, shifted = k + 1.5 * 2^23; subnormal results are rounded once. 2^k is multiplied in as two
// factors, so that intermediate results do not overflow for k up to 128.
template <OfFloat X> GT_INLINE X one_more_scaled(X p, X shifted) {
#if GT_ISA_LEVEL == 4
  if constexpr (std::same_as<X, Floats>)
    return Floats(_mm512_maskz_scalef_ps(0xffff, (p + 1).at[0], (shifted - 0x1.8p23f).at[0]));
#endif
  const BitsOf<X> e = bits_of(shifted) - (0x4b400000u - 254), half = e >> 1;
  const X first = of_bits(half << 23);
  return fused(p, first, first) * of_bits((e - half) << 23);
}
template <OfFloat X> GT_INLINE X exp(X x) {
  X shifted;
  const X r = exp_remainder(at_most(at_least(x, -104), 89), shifted);  // NaN stays
  return one_more_scaled(expm1_small(r), shifted);
}
// For x <= 0 where subnormal results may be flushed to 0.
template <OfFloat X> GT_INLINE X exp_negative(X x) {
  X shifted;
  const X p = exp_small(exp_remainder(at_least(x, -87), shifted));
  return pick(x < -87, 0, p * power_of_two(shifted));
}

// exp(-x^2 / 2) at full accuracy: with what rounding the square loses.
template <OfFloat X> GT_INLINE X exp_half_square(X x) {
#if GT_HAS_FMA
  const X half = -0.5f * x, square = half * x, rest = fused(half, x, -square);
#else
  const X head = of_bits(bits_of(x) & 0xfffff000u);  // 12 bits
  const X square = -0.5f * (head * head), rest = -0.5f * ((x - head) * (x + head));
#endif
  X shifted;
  const X r = exp_remainder(at_least(square, -87), shifted) + rest;
  return pick(square < -87, 0, exp_small(r) * power_of_two(shifted));
}

// (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)).
template <OfFloat X> GT_INLINE X log_rest(X f) {
  return polynomial(f, 3.333331347e-1f, -2.500000894e-1f, 2.000211924e-1f, -1.666799635e-1f, 1.421955228e-1f,
                    -1.240558922e-1f, 1.188816279e-1f, -1.167565137e-1f, 6.746638566e-2f);
}
// log(1 + f) + e log(2).
template <OfFloat X> GT_INLINE X log_reduced(X f, X e, X rest = 0) {
  const X s = f * f, y = fused(e, -2.12194440e-4f, fused(log_rest(f) * f, s, fused_from(s, 0.5f, rest)));
  return fused(e, 0.693359375f, f + y);
}
// `out`, or the logarithm of 0, of negative numbers, infinity and NaN.
template <OfFloat X> GT_INLINE X log_edges(X x, X out) {
  if (!any_outside(x, 0x1p-126f, __builtin_inff())) [[likely]]
    return out;
  const X above = pick(x < __builtin_inff(), out, x);
  return nan_if(x < 0, pick(x == 0, X(-__builtin_inff()), above));
}
#if GT_ISA_LEVEL == 4
// Four bits for each class of x, which say the result: NaN (x), signalling NaN (x), 0 (-inf), 1 (`out`), -inf
// (NaN), inf (inf), negative (NaN), positive (`out`).
GT_INLINE Floats log_edges(Floats x, Floats out) {
  return Floats(_mm512_fixupimm_ps(out.at[0], x.at[0], _mm512_set1_epi32(0x03530422), 0));
}
#endif
// log(x) = e log(2) + log(m) with m in [sqrt(1/2), sqrt(2)).
template <OfFloat X> GT_INLINE X log(X x) {
  const auto tiny = x < 0x1p-126f;
  const BitsOf<X> off = bits_of(pick(tiny, x * 0x1p23f, x)) - 0x3f3504f3u;  // sqrt(1/2)
  const X e = to_float(signed_of(off) >> 23) - pick(tiny, X(23), 0);
  return log_edges(x, log_reduced(of_bits((off & 0x7fffffu) + 0x3f3504f3u) - 1, e));
}
// log(1 + x + rest) for x below 2^126, without rounding 1 + x: with 2^e near it, 2^-e (1 + x) - 1 = 2^-e x +
// (2^-e - 1) is rounded once.
template <OfFloat X> GT_INLINE X log1p_of_sum(X x, X rest) {
  const BitsOf<X> off = bits_of(1 + x) - 0x3f3504f3u;
  const X scale = of_bits(0x3f800000u - (off & 0xff800000u));
  return log_reduced(fused_less(x, scale, 1 - scale), to_float(signed_of(off) >> 23), rest * scale);
}
// With 4 * 2^-e, a normal number for all x. The sign is that of x, also of 0.
template <OfFloat X> GT_INLINE X log1p(X x) {
  const BitsOf<X> off = bits_of(1 + x) - 0x3f3504f3u;
  const X scale = of_bits(0x40800000u - (off & 0xff800000u));
  const X f = 0.25f * fused_less(x, scale, 4 - scale);
  const X out = log_reduced(f, to_float(signed_of(off) >> 23));
  return with_sign_of(x, log_edges(1 + x, out));
}
// log(1 + x) for x in [0, 1]: twice the inverse hyperbolic tangent of x / (2 + x).
template <OfFloat X> GT_INLINE X log1p_unit(X x) {
  const X s = x / (2 + x), q = s * s;
  const X p = horner(q, 6.666641831e-01f, 4.002152681e-01f, 2.800180614e-01f, 2.801198363e-01f);
  return fused(s * q, p, s + s);
}

}  // namespace gt::math
