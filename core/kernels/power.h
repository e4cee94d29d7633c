// Powers and the hypotenuse of float, to 2 units of the last place.
#pragma once
#include "explog.h"

namespace gt::math {

// To the nearest whole number, of |x| < 2^22; of larger ones whose parity matters, x itself.
template <Real X> GT_INLINE X nearest(X x) {
  const X large = with_sign_of(x, X(0x1p23f)), y = (x + large) - large;
  return pick(size_of(x) < X(0x1p23f), y, x);
}
// x^y, where `out` is |x|^y of numbers that are neither 0 nor infinite. Others' logarithm times y says
// enough. Then C99, F.9.4.4.
template <Real X> GT_INLINE X pow_edges(X x, X y, X out) {
  const X inf = __builtin_inff(), size = size_of(x), known = y * pick(size == X(0), -inf, size);
  const X edge = pick(known < X(0), X(0), known);  // infinite or NaN otherwise
  out = pick(bits_of(size) - 1u < BitsOf<X>(0x7f7fffffu), out, edge);
  const X half = 0.5f * y;
  const auto fraction = nearest(y) != y;
  const auto odd = (nearest(half) != half) & !fraction;
  out = pick((y == X(0)) | ((size == X(1)) & (size_of(y) == inf)), X(1), out);
  out = nan_if((x < X(0)) & (size < inf) & fraction, out);
  out = pick(odd, with_sign_of(x, out), out);
  return pick(x == X(1), X(1), out);
}
// |x|^y = 2^(y log2|x|): the logarithm and its product with y, whose error counts up to 128 times, in double;
// 2^r of the rest in float.
template <Real X> GT_INLINE X pow(X x, X y) {
  const X inf = __builtin_inff(), size = size_of(x);
  const auto tiny = size < X(0x1p-126f);
  const BitsOf<X> off = bits_of(pick(tiny, size * 0x1p23f, size)) - 0x3f3504f3u;  // sqrt(1/2)
  const X e = to_float(signed_shift(off, 23)) - only_if(tiny, X(23.0f));
  const X f = from_bits((off & 0x7fffffu) + 0x3f3504f3u) - 1;
  // log2(1 + f) = 2 atanh(s) / log(2) with s = f / (2 + f).
  using Wide = decltype(widened(x));
  const Wide wide = widened(f), s = wide / (Wide(2) + wide), q = s * s;
  Wide p = fused(Wide(0.340210406833225787), q, Wide(0.411706806751642285));
  p = fused(p, q, Wide(0.577082843873383156));
  p = fused(p, q, Wide(0.961796679234215746));
  p = fused(p, q, Wide(2.88539008177792681));
  const Wide log = fused(p, s, widened(e)), exact = widened(y) * log;
  const X t = narrowed(exact), near = at_most(X(130), at_least(X(-160), t));  // NaN stays
  const X k = (near + 0x1.8p23f) - 0x1.8p23f;
  const X r = pick(near == t, narrowed(exact - widened(k)), X(0) + (near - near));
  const X g = horner(r, 6.931471825e-01f, 2.402264774e-01f, 5.550332367e-02f, 9.618437849e-03f,
                     1.339890063e-03f, 1.535334159e-04f);
  const X out = one_more_scaled(g * r, k);
  // A branch, since the rest is a third of all.
  const auto plain = (x > X(0)) & (x < inf) & (size_of(y) < inf);
  if (!any(!plain)) [[likely]]
    return out;
  return pow_edges(x, y, out);
}

// Squares of what is scaled by a power of two near the larger one neither overflow nor vanish. Numbers that
// are not negative are ordered as their bits are, infinity before NaN.
template <Real X> GT_INLINE X hypot(X x, X y) {
  const BitsOf<X> a = bits_of(size_of(x)), b = bits_of(size_of(y));
  const BitsOf<X> most = signed_most(a, b), least = signed_least(a, b), high = most & 0x7f800000u;
  const BitsOf<X> power = signed_most(BitsOf<X>(0x00800000u), signed_least(BitsOf<X>(0x7e800000u), high));
  const X scale = from_bits(0x7f000000u - power), u = from_bits(most) * scale, v = from_bits(least) * scale;
  const X out = square_root(fused(u, u, v * v)) * from_bits(power);
  return pick(least == BitsOf<X>(0x7f800000u), X(__builtin_inff()), out);
}

}  // namespace gt::math
