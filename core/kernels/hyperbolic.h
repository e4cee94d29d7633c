// exp(x) - 1, the hyperbolic functions and their inverses of float without branches, within 2 ulps for every
// float (tests/native/float_check.cpp). The polynomials are minimax in relative error (tools/fit_float.py).
// log(1 + x) is in explog.h, the hyperbolic tangent in tanherf.h.
#pragma once
#include "explog.h"

namespace gt::math {

// 2^k (exp(r) - 1) + 2^k - 1, where the rounding error of r is added. Computed with 2^k / 2, which is a float
// for all k.
template <OfFloat X> GT_INLINE X expm1(X x) {
  const X y = at_most(at_least(x, -18), 89);  // -1 from -17.4 on; NaN stays
  const X shifted = fused(y, 1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const X first = fused_from(k, 0.693359375f, y), r = fused(k, 2.12194440e-4f, first);
  const X lacks = fused(k, 2.12194440e-4f, first - r);
  const X half = of_bits((bits_of(shifted) << 23) + (126u << 23));
  const X rest = fused(expm1_rest(r, r * r) * r, r, lacks);
  const X out = 2 * fused(half, rest, fused(half, r, half - 0.5f));
  return pick(size_of(x) < 0x1p-25f, x, out);
}

// exp(y) / 4, which does not overflow where exp(y) / 2 does not.
template <OfFloat X> GT_INLINE X quarter_of_exp(X y) {
  X shifted;
  const X p = exp_small(exp_remainder(y, shifted));
  return p * power_of_two(shifted, -2);
}
// The addition theorem with y = k log(2) + r, k < 126: a = sinh(k log(2)) and b = cosh(k log(2)) are sums of
// powers of two. Where y is tiny, half of it may be rounded.
template <OfFloat X> GT_INLINE X sinh_of(X y) {
  const X shifted = fused(y, 1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const X r = fused(k, 2.12194440e-4f, fused_from(k, 0.693359375f, y)), q = r * r;
  const auto power = bits_of(shifted) << 23;
  const X up = of_bits(power + (126u << 23)), down = of_bits((126u << 23) - power);  // 2^k / 2, 2^-k / 2
  const X a = up - down, b = up + down;
  const X sinh_rest = horner(q, 1.666666716e-1f, 8.333195932e-3f, 1.995334605e-4f) * (q * r);
  const X coshm1 = horner(q, 0.5f, 4.166603088e-2f, 1.397053828e-3f) * q;
  return at_least(fused(b, r, a) + fused(b, sinh_rest, a * coshm1), y);
}
constexpr float kSinhNear = 80;
template <OfFloat X> GT_RARE X sinh_anywhere(X x) {
  const X y = at_most(size_of(x), 89.45f);  // NaN stays
  return with_sign_of(x, pick(y > kSinhNear, 2 * quarter_of_exp(y), sinh_of(at_most(y, kSinhNear))));
}
template <OfFloat X> GT_INLINE X sinh(X x) {
  if (any_beyond(x, kSinhNear)) [[unlikely]]
    return sinh_anywhere(x);
  return with_sign_of(x, sinh_of(size_of(x)));
}
template <OfFloat X> GT_INLINE X cosh(X x) {
  const X e = quarter_of_exp(at_most(size_of(x), 89.45f));
  return 2 * (e + 0.0625f / e);
}

// log(y + sqrt(y^2 + 1)) = log(1 + w) with w = y + y^2 / (1 + sqrt(1 + y^2)); for large y, log(2 y).
constexpr float kLarge = 0x1p13f;
template <OfFloat X> GT_INLINE X asinh_of(X z) {
  const X d = z * z / (1 + square_root(fused(z, z, 1)));
  const X w = z + d, lost = (z - w) + d;
  return log1p_of_sum(w, lost);
}
template <OfFloat X> GT_RARE X asinh_anywhere(X x) {
  const X y = size_of(x), out = pick(y > kLarge, log(y) + 0.693147182f, asinh_of(at_most(y, kLarge)));
  return pick(y < __builtin_inff(), with_sign_of(x, out), x);
}
template <OfFloat X> GT_INLINE X asinh(X x) {
  if (any_beyond(x, kLarge)) [[unlikely]]
    return asinh_anywhere(x);
  return with_sign_of(x, asinh_of(size_of(x)));
}
// log(x + sqrt(x^2 - 1)) = log(1 + w) with t = x - 1, w = t + sqrt(t (t + 2)).
template <OfFloat X> GT_INLINE X acosh_of(X x) {
  const X t = x - 1, s = square_root(fused(t, t, 2 * t));
  const X w = s + t, lost = t - (w - s);
  return log1p_of_sum(w, lost);
}
template <OfFloat X> GT_RARE X acosh_anywhere(X x) {
  const X out = pick(x > kLarge, log(x) + 0.693147182f, acosh_of(at_least(at_most(x, kLarge), 1)));
  return pick(x < 1, X(__builtin_nanf("")), pick(x < __builtin_inff(), out, x));
}
template <OfFloat X> GT_INLINE X acosh(X x) {
  if (any_outside(x, 1, kLarge)) [[unlikely]]
    return acosh_anywhere(x);
  return acosh_of(x);
}
// With 2^e near (1 + y) / (1 - y), atanh(y) = e log(2) / 2 + atanh(s), where (1 + s) / (1 - s) is that
// quotient divided by 2^e; for e = 0, s is exactly y. Close to 1, 1 + 2^e is no float, but 1 - y is exact.
template <OfFloat X> GT_INLINE X atanh(X x) {
  const X y = size_of(x), sum = 1 + y, difference = 1 - y;
  const auto e = signed_of(bits_of(sum) - bits_of(difference) + 0x400000) >> 23;
  const X k = to_float(e), two = of_bits(bits_of(e + 127) << 23), scaled_difference = two * difference;
  const auto close = k > 20;
  const X top = pick(close, sum - scaled_difference, rounded_once(y, 1 + two, 1 - two));
  const X bottom = pick(close, sum + scaled_difference, rounded_once(y, 1 - two, 1 + two));
  const X s = top / bottom, q = s * s;
  const X p = horner(q, 3.333333135e-1f, 2.000047415e-1f, 1.425142586e-1f, 1.208063811e-1f);
  const X out = fused(k, 0.3466796875f, s + fused(p * q, s, k * -1.06097220e-4f));
  const X known = pick(y == 1, X(__builtin_inff()), X(__builtin_nanf("")));
  return with_sign_of(x, pick(y < 1, out, known));
}

}  // namespace gt::math
