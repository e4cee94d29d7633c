// pow of double: exp(y log(x)) with the logarithm as a pair, accurate to 2^-65 (Muller et al., "Handbook of
// Floating-Point Arithmetic", chapter 11, derives the precision needed). Integer exponents, signs, zeros and
// infinities as in C99.
#pragma once
#include "double_base.h"
#include "double_exp.h"
#include "double_log.h"

namespace gt::math {

// log(2^e m) of m in [sqrt(1/2), sqrt(2)).
template <int N> GT_INLINE Pair<N> log_pair(Doubles<N> e, Doubles<N> m) {
  // s = f / (m + 1) as a pair, and so its square.
  const Doubles<N> f = m - 1;
  const Pair<N> d = quick_sum(Doubles<N>(1), m);
  const Doubles<N> inverse = 1 / d.hi, s = f * inverse;
  const Pair<N> back = two_product(s, d.hi);
  const Doubles<N> s_lo = (((f - back.hi) - back.lo) - s * d.lo) * inverse;
  const Pair<N> square = two_product(s, s);
  const Doubles<N> z = square.hi, z_lo = fused(s + s, s_lo, square.lo);
  // s^3 (2/3 + z p(z)).
  const Doubles<N> p = z * polynomial(z, 0x1.9999999999995p-2, 0x1.2492492493150p-2, 0x1.c71c71c5643eap-3,
                                      0x1.745d183df3493p-3, 0x1.3b135ffca282dp-3, 0x1.1121133d6187ap-3,
                                      0x1.de2603e143428p-4, 0x1.eb77444a176f7p-4);
  const Pair<N> w = quick_sum(Doubles<N>(0x1.5555555555555p-1), p), zw = two_product(z, w.hi);
  const Doubles<N> zw_lo = zw.lo + fused(z, w.lo + 0x1.5555555555555p-55, z_lo * w.hi);
  const Pair<N> rest = two_product(s, zw.hi);
  const Doubles<N> rest_lo = rest.lo + fused(s, zw_lo, s_lo * zw.hi);
  const Pair<N> a = quick_sum(e * kLog2, s + s), b = quick_sum(a.hi, rest.hi);
  return quick_sum(b.hi, (a.lo + b.lo) + (fused(e, kLog2Rest, s_lo + s_lo) + rest_lo));
}

template <int N> GT_RARE Doubles<N> pow_anywhere(Doubles<N> x, Doubles<N> y) {
  const Doubles<N> size = size_of(x);
  const Doubles<N> k = at_least(at_most(y, 0x1p65), -0x1p65);  // beyond that all but 1 overflow or underflow
  const Mask<N> tiny = size < 0x1p-1022;
  const Bits<N> off = log_bits(pick(tiny, size * 0x1p54, size));
  const Pair<N> log = log_pair(whole_less(off >> 52, 1023) - pick(tiny, 54.0, 0.0), mantissa_of(off));
  const Pair<N> product = two_product(k, log.hi);
  const Doubles<N> h = at_least(at_most(product.hi, 710), -750);
  ExpParts<N> e = exp_parts(h);
  e.r = e.r + pick(h == product.hi, fused(k, log.lo, product.lo), 0.0);
  const TwoFactors<N> f = factors_of(e.k);
  Doubles<N> out = exp_small(e) * f.first * f.second;
  const Mask<N> zero = size == 0;
  const Doubles<N> edge = pick(!(zero ^ (y > 0)), 0.0, kInfinity);
  out = pick(zero | (size == kInfinity), edge, out);
  const Mask<N> whole = is_whole(y), odd = whole & !is_whole(0.5 * y);
  out = of_bits(bits_of(out) | (sign_bit(x) & bits_of(odd)));
  out = pick((x < 0) & !whole & (size < kInfinity), kNan, out);
  out = pick((x == x) & (y == y), out, x + y);
  return pick((y == 0) | (x == 1), 1.0, out);
}
template <int N> GT_INLINE Doubles<N> short_pow(Doubles<N> x, Doubles<N> y) {
  const Bits<N> off = log_bits(x);
  const Pair<N> log = log_pair(whole_less(off >> 52, 1023), mantissa_of(off));
  const Pair<N> product = two_product(y, log.hi);
  if (any_not_normal(x) || any_beyond(product.hi, kExpNear)) [[unlikely]]
    return pow_anywhere(x, y);
  ExpParts<N> e = exp_parts(product.hi);
  e.r = e.r + fused(y, log.lo, product.lo);
  return scaled(exp_small(e), e.k);
}
// With FMA one register after the other: two at once would need more registers than there are.
template <int N> GT_INLINE Doubles<N> pow(Doubles<N> x, Doubles<N> y) {
  if constexpr (GT_HAS_FMA)
    return one_by_one<N>(
        [](auto a, auto b) __attribute__((always_inline)) { return short_pow(a, b); }, x, y);
  else
    return short_pow(x, y);
}

}  // namespace gt::math
