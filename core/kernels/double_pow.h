// pow of double: exp(y log(x)) with the logarithm as a pair, to 2^-65 (Muller et al., "Handbook of
// Floating-Point Arithmetic", chapter 11, says how many digits it takes). Whole exponents, signs, zeros and
// infinities as C99 has them.
#pragma once
#include "double_base.h"
#include "double_exp.h"
#include "double_log.h"

namespace gt::math {

// log(2^e m) of m in [sqrt(1/2), sqrt(2)).
GT_INLINE Pair log_pair(Doubles e, Doubles m) {
  // s = f / (m + 1) as a pair, and so its square.
  const Doubles f = m - 1;
  const Pair d = quick_sum(all(1), m);
  const Doubles inverse = 1 / d.hi, s = f * inverse;
  const Pair back = two_product(s, d.hi);
  const Doubles s_lo = (((f - back.hi) - back.lo) - s * d.lo) * inverse;
  const Pair square = two_product(s, s);
  const Doubles z = square.hi, z_lo = fused(s + s, s_lo, square.lo);
  // s^3 (2/3 + z p(z)).
  const Doubles p = z * polynomial(z, 0x1.9999999999995p-2, 0x1.2492492493150p-2, 0x1.c71c71c5643eap-3,
                                   0x1.745d183df3493p-3, 0x1.3b135ffca282dp-3, 0x1.1121133d6187ap-3,
                                   0x1.de2603e143428p-4, 0x1.eb77444a176f7p-4);
  const Pair w = quick_sum(all(0x1.5555555555555p-1), p), zw = two_product(z, w.hi);
  const Doubles zw_lo = zw.lo + fused(z, w.lo + 0x1.5555555555555p-55, z_lo * w.hi);
  const Pair rest = two_product(s, zw.hi);
  const Doubles rest_lo = rest.lo + fused(s, zw_lo, s_lo * zw.hi);
  const Pair a = quick_sum(e * kLog2, s + s), b = quick_sum(a.hi, rest.hi);
  return quick_sum(b.hi, (a.lo + b.lo) + (fused(e, kLog2Rest, s_lo + s_lo) + rest_lo));
}

GT_RARE Doubles pow_anywhere(Doubles x, Doubles y) {
  const Doubles size = size_of(x);
  const Doubles k = at_least(at_most(y, 0x1p65), -0x1p65);  // beyond that all but 1 overflow or vanish
  const Mask tiny = size < 0x1p-1022;
  const Bits off = log_bits(pick(tiny, size * 0x1p54, size));
  const Pair log = log_pair(whole_less(off >> 52, 1023) - pick(tiny, 54.0, 0.0), mantissa_of(off));
  const Pair product = two_product(k, log.hi);
  const Doubles h = at_least(at_most(product.hi, 710), -750);
  Doubles shifted;
  const Doubles rest = pick(h == product.hi, fused(k, log.lo, product.lo), 0.0);
  const Doubles e = exp_small(exp_remainder(h, shifted) + rest);
  const TwoFactors f = factors_of(shifted);
  Doubles out = e * f.first * f.second;
  const Mask zero = size == 0;
  const Doubles edge = pick(~(zero ^ (y > 0)), 0.0, kInfinity);
  out = pick(zero | (size == kInfinity), edge, out);
  const Mask whole = is_whole(y), odd = whole & ~is_whole(0.5 * y);
  out = of_bits(bits_of(out) | (sign_bit(x) & bits_of(odd)));
  out = pick((x < 0) & ~whole & (size < kInfinity), kNan, out);
  out = pick((x == x) & (y == y), out, x + y);
  return pick((y == 0) | (x == 1), 1.0, out);
}
GT_INLINE Doubles pow(Doubles x, Doubles y) {
  const Bits off = log_bits(x);
  const Pair log = log_pair(whole_less(off >> 52, 1023), mantissa_of(off));
  const Pair product = two_product(y, log.hi);
  if (any(not_normal(x) | beyond(product.hi, kExpNear))) [[unlikely]]
    return pow_anywhere(x, y);
  Doubles shifted;
  const Doubles r = exp_remainder(product.hi, shifted) + fused(y, log.lo, product.lo);
  return scaled(exp_small(r), shifted);
}

}  // namespace gt::math
