// Sine, cosine, tangent and their inverses of float without branches, within 2 ulps for every float
// (tests/native/float_check.cpp). The polynomials are minimax in relative error (tools/fit_float.py).
#pragma once
#include "explog.h"

namespace gt::math {

// ---- sine, cosine, tangent -----------------------------------------------------------------

// Beyond this, the multiple of pi has too many digits for the reductions below: far_sin and the others are
// used.
constexpr float kFarFrom = GT_HAS_FMA ? 1e5f : 1e4f;
template <OfFloat X> GT_INLINE auto is_far(X x) { return size_of(x) > kFarFrom; }

#if GT_HAS_FMA
// x - k pi, with pi as the sum of three floats (Cody and Waite 1980, chapter 8). The first subtraction is
// exact, since k is near x / pi; the others are rounded once.
template <OfFloat X> GT_INLINE X less_multiple_of_pi(X x, X k) {
  return fused(k, 0x1.ee59dap-49f, fused(k, 0x1.777a5cp-24f, fused_from(k, 0x1.921fb6p+1f, x)));
}
template <OfFloat X> GT_INLINE X less_multiple_of_half_pi(X x, X k, X& lost) {
  const X first = fused_from(k, 0x1.921fb6p+0f, x), second = k * 0x1.777a5cp-25f, r = first + second;
  // If `second` is the larger one, their sum is either exact or its rounding error does not matter here.
  lost = ((first - r) + second) + fused(k, 0x1.ee59dap-50f, fused_less(k, 0x1.777a5cp-25f, second));
  return r;
}
// sin(r) for |r| <= pi / 2.
template <OfFloat X> GT_INLINE X sin_reduced(X r) {
  const X q = r * r, p = horner(q, -1.666665971e-01f, 8.333062753e-03f, -1.980934612e-04f, 2.605182090e-06f);
  return fused(p, q * r, r);
}
// For |x| <= kFarFrom: (-1)^k sin(x - k pi). Adding 1.5 * 2^23 rounds to an integer k, which is then in the
// low bits.
template <OfFloat X> GT_INLINE X near_sin(X x) {
  const X shifted = fused(x, 0.318309886f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const X s = sin_reduced(less_multiple_of_pi(x, k));
  return pick(x == 0, x, negated_if(s, bits_of(shifted)));
}
// The same with k + 1/2: cos(x) = sin(x + pi / 2).
template <OfFloat X> GT_INLINE X near_cos(X x) {
  const X y = size_of(x), shifted = fused(y, 0.318309886f, 0.5f) + 0x1.8p23f,
          k = (shifted - 0x1.8p23f) - 0.5f;
  const X s = sin_reduced(less_multiple_of_pi(y, k));
  return negated_if(s, bits_of(shifted));
}
#else
// x - k pi, of which `lost` is to be added, with pi as the sum of four floats (Cody and Waite 1980, chapter
// 8). The first three have 11 bits at most, so that products with the 13 bits of k, or of 2 k, are exact. So
// are the first two subtractions, of numbers near each other: the third is the only one that rounds. No part
// of pi is negative, and -0 stays -0 in all steps.
template <OfFloat X> GT_INLINE X less_multiple_of_pi(X x, X k, X& lost) {
  lost = k * -0x1.68c234p-38f;
  return ((x - k * 0x1.92p+1f) - k * 0x1.fb4p-11f) - k * 0x1.444p-23f;
}
// The same for pi / 2, where `lost` is also what the third rounds away.
template <OfFloat X> GT_INLINE X less_multiple_of_half_pi(X x, X k, X& lost) {
  const X first = (x - k * 0x1.92p+0f) - k * 0x1.fb4p-12f, second = k * 0x1.444p-24f, r = first - second;
  lost = -((second - (first - r)) + k * 0x1.68c234p-39f);
  return r;
}
// sin(r + lost) for |r| <= pi / 2: r - r^3 / 8 (1 + p). Near pi / 2 the rounding of a polynomial near 1/6
// would show; that of a product with p, at most a third, does not. `lost` is far below an ulp where the
// cosine is not 1.
template <OfFloat X> GT_INLINE X sin_reduced(X r, X lost = 0) {
  const X q = r * r, cube = q * (0.125f * r);
  const X p = polynomial(q, 3.333327770e-01f, -6.666450202e-02f, 1.584747690e-03f, -2.084145672e-05f);
  return r - (cube + (cube * p - lost));
}
// For |x| <= kFarFrom: (-1)^k sin(x - k pi). Adding 1.5 * 2^23 rounds to an integer k, which is then in the
// low bits; it is +0 where it is 0.
template <OfFloat X> GT_INLINE X near_sin(X x) {
  const X shifted = x * 0.318309886f + 0x1.8p23f;
  X lost;
  const X r = less_multiple_of_pi(x, shifted - 0x1.8p23f, lost);
  return negated_if(sin_reduced(r, lost), bits_of(shifted));
}
// The same with k + 1/2: cos(x) = sin(x + pi / 2).
template <OfFloat X> GT_INLINE X near_cos(X x) {
  const X y = size_of(x), k = whole_below(y * 0.318309886f);
  X lost;
  const X r = less_multiple_of_pi(y, k + 0.5f, lost);
  return negated_if(sin_reduced(r, lost), bits_of(k + 0x1.800002p23f));
}
#endif
// tan(r + lost) for |r| <= pi / 4 is r + u / d with polynomials u and d; its negative reciprocal is
// -d / (r d + u). As a term of u, `lost` is multiplied by 1 to 1.36; the derivative, 1 to 2, would be exact.
template <OfFloat X> GT_INLINE X tan_reduced(X r, X lost, BitsOf<X> k) {
  const X q = r * r;
  const X d = fused(fused(q, 1.597187668e-2f, -4.446910024e-1f), q, 1);
  const X u = fused(fused(q, -1.489698514e-2f, 3.333333433e-1f), q * r, lost);
#if GT_HAS_FMA
  const X all = fused(r, d, u);
#else
  const X all = r + (r * (d - 1) + u);  // d as it was rounded, which the quotient then hardly shows
#endif
  const BitsOf<X> turned = k << 31;
  const auto odd = signed_of(turned) < 0;
  const X quotient = pick(odd, d, u) / pick(odd, all, d);
  return of_bits(bits_of(quotient) ^ turned) + pick(odd, 0, r);
}
template <OfFloat X> GT_INLINE X near_tan(X x) {
  const X shifted = fused(x, 0.636619772f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  X lost;
  const X r = less_multiple_of_half_pi(x, k, lost);
  const X out = tan_reduced(r, lost, bits_of(shifted));
  return GT_HAS_FMA ? pick(x == 0, x, out) : out;  // the other reduction leaves -0 as it is
}

// x - k pi / 2 for the nearest k and any finite x (Payne and Hanek 1983): x is an integer of 24 bits times
// 2^e, and only 96 bits of 2 / pi matter; those before them contribute multiples of 4, those after them
// nothing that the result shows.
inline double far_remainder(float x, uint32_t& k) {
  constexpr uint32_t two_over_pi[] = {0,           0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                      0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const uint32_t bits = bits_of(x), whole = (bits & 0x7fffffu) | 0x800000u;
  const int e = int(bits >> 23 & 255) - 150 + 62;  // x = whole * 2^(e - 62)
  const int word = e >> 5, shift = e & 31;
  const uint32_t* w = two_over_pi + word;
  auto part = [&](int j) { return uint32_t((uint64_t(w[j]) << 32 | w[j + 1]) >> (32 - shift)); };
  const uint64_t low = uint64_t(whole) * part(2), middle = uint64_t(whole) * part(1);
  const uint64_t high = uint64_t(whole) * part(0);
  // The sum, in units of 2^-62 of pi / 2, modulo 4.
  const uint64_t sum = (high << 32) + middle + (low >> 32);
  k = uint32_t((sum + (uint64_t(1) << 61)) >> 62);
  const double r = double(int64_t(sum - (uint64_t(k) << 62))) * (0x1p-62 * 1.57079632679489661923);
  if (bits >> 31) k = 0u - k;
  return bits >> 31 ? -r : r;
}
inline float not_finite(float x) { return x - x; }
inline float far_sin(float x) {
  if (!(size_of(x) < __builtin_inff())) return not_finite(x);
  uint32_t k;
  double r = far_remainder(x, k);
  if (k & 1) r = r > 0 ? r - 1.57079632679489661923 : r + 1.57079632679489661923, k += r > 0 ? 3 : 1;
  const float s = sin_reduced(float(r));
  return k & 2 ? -s : s;
}
inline float far_cos(float x) {
  if (!(size_of(x) < __builtin_inff())) return not_finite(x);
  uint32_t k;
  double r = far_remainder(size_of(x), k);
  k += 1;
  if (k & 1) r = r > 0 ? r - 1.57079632679489661923 : r + 1.57079632679489661923, k += r > 0 ? 3 : 1;
  const float s = sin_reduced(float(r));
  return k & 2 ? -s : s;
}
inline float far_tan(float x) {
  if (!(size_of(x) < __builtin_inff())) return not_finite(x);
  uint32_t k;
  const double r = far_remainder(x, k);
  return tan_reduced(float(r), float(r - double(float(r))), k);
}
inline float sin(float x) { return is_far(x) ? far_sin(x) : near_sin(x); }
inline float cos(float x) { return is_far(x) ? far_cos(x) : near_cos(x); }
inline float tan(float x) { return is_far(x) ? far_tan(x) : near_tan(x); }

// ---- their inverses ------------------------------------------------------------------------

// (asin(s) - s) / s for z = s^2 <= 1/4.
template <OfFloat X> GT_INLINE X asin_rest(X z) {
  return z * polynomial(z, 1.666675210e-01f, 7.495297492e-02f, 4.547037557e-02f, 2.417952195e-02f,
                        4.216629639e-02f);
}
// Above 1/2: asin(y) = pi / 2 - 2 asin(sqrt((1 - y) / 2)). Beyond 1 the square root of a negative number
// gives NaN.
template <OfFloat X> GT_INLINE X asin(X x) {
  const X y = size_of(x), z_outer = fused_from(y, 0.5f, 0.5f);
  const auto inner = y < 0.5f;
  const X z = pick(inner, y * y, z_outer), s = pick(inner, y, square_root(z_outer));
  const X rest = asin_rest(z);
  const X low = fused(rest, s, s);
  const X high = fused_from(s, 2, 0x1.921fb6p+0f) + fused_from(rest * s, 2, -0x1.777a5cp-25f);
  return with_sign_of(x, pick(inner, low, high));
}
template <OfFloat X> GT_INLINE X acos(X x) {
  const X y = size_of(x), z_outer = fused_from(y, 0.5f, 0.5f);
  const auto inner = y < 0.5f;
  const X z = pick(inner, y * y, z_outer), s = pick(inner, x, square_root(z_outer));
  const X rest = asin_rest(z) * s;
  const X middle = (0x1.921fb6p+0f - s) - (rest + 0x1.777a5cp-25f);
  const X low = fused_from(s, 2, 0x1.921fb6p+1f) - fused(rest, 2, 0x1.777a5cp-24f);
  return pick(inner, middle, pick(x < 0, low, 2 * (rest + s)));
}

// (atan(r) - r) / r^3 for q = r^2 <= 1.
template <OfFloat X> GT_INLINE X atan_rest(X q) {
  return horner(q, -3.333315253e-01f, 1.999377310e-01f, -1.421105564e-01f, 1.066600457e-01f,
                -7.552213967e-02f, 4.321185872e-02f, -1.636792719e-02f, 2.920691855e-03f);
}
// Above 1: pi / 2 - atan(1 / x).
template <OfFloat X> GT_INLINE X atan(X x) {
  const X y = size_of(x);
  const auto outer = y > 1;
  const X r = pick(outer, -1 / y, y), q = r * r;
  const X rest = fused(atan_rest(q), q * r, pick(outer, X(-0x1.777a5cp-25f), 0));
  return with_sign_of(x, (pick(outer, X(0x1.921fb6p+0f), 0) + r) + rest);
}
// The direction for the quotient r of the smaller and the larger of |x| and |y|.
template <OfFloat X> GT_INLINE X direction(X y, X x, X r) {
  const auto steep = size_of(y) > size_of(x);
  const BitsOf<X> left = bits_of(signed_of(bits_of(x)) >> 31);  // all ones, or 0
  // Steep: pi / 2 -+ atan(r); else to the left pi - atan(r), to the right atan(r).
  const X other = of_bits(left & bits_of(X(0x1.921fb6p+1f)));
  const X other_low = of_bits(left & bits_of(X(-0x1.777a5cp-24f)));
  const X base = pick(steep, X(0x1.921fb6p+0f), other), low = pick(steep, X(-0x1.777a5cp-25f), other_low);
  const X turned = pick(steep, -r, r);
  const X part = of_bits(bits_of(turned) ^ sign_bit(x)), q = r * r;
  return with_sign_of(y, size_of((base + part) + fused(atan_rest(q), q * part, low)));
}
// Zeros and infinities have directions as in C99.
template <OfFloat X> GT_RARE X atan2_anywhere(X y, X x) {
  const X ax = size_of(x), ay = size_of(y), inf = __builtin_inff();
  const X top = pick(ay > ax, ax, ay), bottom = pick(ay > ax, ay, ax);
  const X r = pick(top == inf, 1, pick(bottom == 0, 0, top / bottom));
  return pick((ax != ax) | (ay != ay), X(__builtin_nanf("")), direction(y, x, r));
}
template <OfFloat X> GT_INLINE X atan2(X y, X x) {
  const X ax = size_of(x), ay = size_of(y);
  if (any_outside(ax + ay, 0x1p-126f, __builtin_inff())) [[unlikely]]
    return atan2_anywhere(y, x);
  return direction(y, x, at_most(ax, ay) / at_least(ax, ay));
}

}  // namespace gt::math
