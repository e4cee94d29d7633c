// pow and hypot of float, within 2 ulps.
#pragma once
#include "explog.h"

namespace gt::math {

// x^y, given `out` = |x|^y for finite x other than 0. For the others, the sign of y log|x| gives the result.
// Signs and special cases as in C99, F.9.4.4.
template <OfFloat X> GT_INLINE X pow_edges(X x, X y, X out) {
  const X inf = __builtin_inff(), size = size_of(x), known = y * pick(size == 0, -inf, size);
  const X edge = pick(known < 0, 0, known);  // infinite or NaN otherwise
  out = pick(bits_of(size) - 1 < 0x7f7fffff, out, edge);
  const X half = 0.5f * y;
  const auto fraction = nearest_whole(y) != y;
  const auto odd = (nearest_whole(half) != half) & !fraction;
  out = pick((y == 0) | ((size == 1) & (size_of(y) == inf)), 1, out);
  out = nan_if((x < 0) & (size < inf) & fraction, out);
  out = pick(odd, with_sign_of(x, out), out);
  return pick(x == 1, 1, out);
}
// y log2(2^e (1 + f)) in double, since its error is magnified up to 128 times: log2(1 + f) = 2 atanh(s) /
// log(2) with s = f / (2 + f).
template <OfFloat X> GT_INLINE auto log2_times(X f, X e, X y) {
  const auto wide = widened(f), s = wide / (2 + wide), q = s * s;
  const auto p = polynomial(q, 2.88539008177792681, 0.961796679234215746, 0.577082843873383156,
                            0.411706806751642285, 0.340210406833225787);
  return widened(y) * fused(p, s, widened(e));
}
// 2^r - 1 for |r| <= 1/2.
template <OfFloat X> GT_INLINE X exp2m1_small(X r) {
  return r * horner(r, 6.931471825e-01f, 2.402264774e-01f, 5.550332367e-02f, 9.618437849e-03f,
                    1.339890063e-03f, 1.535334159e-04f);
}
template <OfFloat X> GT_RARE X pow_anywhere(X x, X y) {
  const X size = size_of(x);
  const auto tiny = size < 0x1p-126f;
  const BitsOf<X> off = bits_of(pick(tiny, size * 0x1p23f, size)) - 0x3f3504f3u;  // sqrt(1/2)
  const X e = to_float(signed_of(off) >> 23) - pick(tiny, X(23), 0);
  const auto exact = log2_times(of_bits((off & 0x7fffffu) + 0x3f3504f3u) - 1, e, y);
  const X t = narrowed(exact), near = at_most(at_least(t, -160), 130);  // NaN stays
  const X shifted = near + 0x1.8p23f, k = shifted - 0x1.8p23f;
  const X r = pick(near == t, narrowed(exact - widened(k)), X(0) + (near - near));
  return pow_edges(x, y, one_more_scaled(exp2m1_small(r), shifted));
}
// |x|^y = 2^(y log2|x|); 2^r of the remainder r in float.
template <OfFloat X> GT_INLINE X pow(X x, X y) {
  const BitsOf<X> off = bits_of(x) - 0x3f3504f3u;
  const X f = of_bits((off & 0x7fffffu) + 0x3f3504f3u) - 1;
  const auto exact = log2_times(f, to_float(signed_of(off) >> 23), y);
  const X t = narrowed(exact);
  // Without special cases, and neither x nor the result subnormal.
  if (any_outside(x, 0x1p-126f, __builtin_inff()) || any_beyond(t, 125)) [[unlikely]]
    return pow_anywhere(x, y);
  const X shifted = t + 0x1.8p23f, k = shifted - 0x1.8p23f, power = power_of_two(shifted);
  return fused(exp2m1_small(narrowed(exact - widened(k))), power, power);
}

// Scaled by a power of two near the larger one, squares neither overflow nor underflow. Numbers without a
// sign are ordered as their bits are, infinity before NaN.
template <OfFloat X> GT_INLINE X hypot(X x, X y) {
  const auto a = signed_of(bits_of(size_of(x))), b = signed_of(bits_of(size_of(y)));
  const auto most = at_least(a, b), least = at_most(a, b);
  const auto power = at_least(at_most(most & 0x7f800000, 0x7e800000), 0x00800000);
  const X scale = of_bits(bits_of(0x7f000000 - power));
  const X u = of_bits(bits_of(most)) * scale, v = of_bits(bits_of(least)) * scale;
  const X out = square_root(fused(u, u, v * v)) * of_bits(bits_of(power));
  return pick(least == 0x7f800000, X(__builtin_inff()), out);
}

}  // namespace gt::math
