// pow of double: exp(y log(x)) with the logarithm as a pair, to 2^-65 (Muller et al., "Handbook of
// Floating-Point Arithmetic", chapter 11, says how many digits it takes). Whole exponents, signs, zeros and
// infinities as C99 has them.
#pragma once
#include "double_base.h"
#include "double_exp.h"
#include "double_log.h"

namespace gt::math {

// log(x) of a positive finite x.
[[gnu::always_inline]] inline Pair log_pair(double x) {
  const bool tiny = x < 0x1p-1022;
  const uint64_t off = log_bits(tiny ? x * 0x1p54 : x);
  const double e = whole_less(off >> 52, 1023) - (tiny ? 54.0 : 0.0), m = mantissa_of(off), f = m - 1;
  // s = f / (m + 1) as a pair, and so its square.
  const Pair d = quick_sum(1, m);
  const double inverse = 1 / d.hi, s = f * inverse;
  const Pair back = two_product(s, d.hi);
  const double s_lo = (((f - back.hi) - back.lo) - s * d.lo) * inverse;
  const Pair square = two_product(s, s);
  const double z = square.hi, z_lo = fused(2 * s, s_lo, square.lo);
  // s^3 (2/3 + z p(z)).
  const double p = z * polynomial(z, 0x1.9999999999995p-2, 0x1.2492492493150p-2, 0x1.c71c71c5643eap-3,
                                  0x1.745d183df3493p-3, 0x1.3b135ffca282dp-3, 0x1.1121133d6187ap-3,
                                  0x1.de2603e143428p-4, 0x1.eb77444a176f7p-4);
  const Pair w = quick_sum(0x1.5555555555555p-1, p), zw = two_product(z, w.hi);
  const double zw_lo = zw.lo + fused(z, w.lo + 0x1.5555555555555p-55, z_lo * w.hi);
  const Pair rest = two_product(s, zw.hi);
  const double rest_lo = rest.lo + fused(s, zw_lo, s_lo * zw.hi);
  const Pair a = quick_sum(e * kLog2, 2 * s), b = quick_sum(a.hi, rest.hi);
  return quick_sum(b.hi, (a.lo + b.lo) + (fused(e, kLog2Rest, 2 * s_lo) + rest_lo));
}

[[gnu::always_inline]] inline double pow(double x, double y) {
  const double size = size_of(x);
  double k = y > 0x1p65 ? 0x1p65 : y;  // beyond that all but 1 overflow or vanish
  k = k < -0x1p65 ? -0x1p65 : k;
  const Pair log = log_pair(size), product = two_product(k, log.hi);
  double h = product.hi;
  h = h > 710.0 ? 710.0 : h;
  h = h < -750.0 ? -750.0 : h;
  double shifted;
  const double r = exp_remainder(h, shifted) + (h == product.hi ? fused(k, log.lo, product.lo) : 0.0);
  const double p = fused(exp_polynomial(r), r * r, r);
  const TwoFactors f = factors_of(shifted);
  double out = fused(p, f.first, f.first) * f.second;
  const double edge = (size == 0) == (y > 0) ? 0.0 : kInfinity;
  out = size == 0 || size == kInfinity ? edge : out;
  const bool whole = __builtin_rint(y) == y, odd = whole && __builtin_rint(0.5 * y) != 0.5 * y;
  out = odd ? with_sign_of(x, out) : out;
  out = x < 0 && !whole && size < kInfinity ? kNan : out;
  out = x == x && y == y ? out : x + y;
  return y == 0 || x == 1 ? 1.0 : out;
}

}  // namespace gt::math
