// erf and erfc of double.
//
// For y >= 0, erfc(y) = exp(-y^2) R(y), where R falls like 1 / y: R(y) (y + K) is a polynomial of t = (y - K)
// / (y + K) (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf",
// 1981; Cody, "Rational Chebyshev approximations for the error function", 1969, has the split of the range).
// One division gives t and the factor.
#pragma once
#include "double_base.h"
#include "double_exp.h"

namespace gt::math {

// exp(-(y^2 + less)) w: the square as a pair, so that its digits beyond a double count.
GT_INLINE Doubles exp_of_square(Doubles y, Doubles less, Doubles w) {
  const Pair square = two_product(y, y);
  Doubles shifted;
  const Doubles e = exp_small(exp_remainder(-square.hi, shifted) - (square.lo + less));
  const TwoFactors f = factors_of(shifted);
  return e * w * f.first * f.second;
}

// (erf(y) - y) / y of z = y^2 for y <= 3/4.
GT_INLINE Doubles erf_rest(Doubles z) {
  return polynomial(z, 0x1.06eba8214db66p-3, -0x1.812746b03780dp-2, 0x1.ce2f21a027988p-4,
                    -0x1.b82ce308e9a16p-6, 0x1.565bcb52c8bbcp-8, -0x1.c02d5806070d3p-11,
                    0x1.f997817956f6ep-14, -0x1.f3e77cb528f4ap-17, 0x1.ae9c5ef8e1ffbp-20,
                    -0x1.10b848b1bc677p-23);
}

GT_INLINE Doubles erf(Doubles x) {
  const Doubles y = at_most(size_of(x), 6);
  const Doubles u = 1 / (y + 2), t = (y - 2) * u;
  const Doubles q =
      polynomial(t, 0x1.058671b52c776p+0, -0x1.5fd386754eff7p-1, 0x1.1e2deea6b10f5p-2, -0x1.2a88e61081097p-5,
                 -0x1.606e41550fa31p-6, 0x1.a89eb00588a7cp-8, 0x1.9517bbbc9618cp-9, -0x1.b6fc06ba06876p-11,
                 -0x1.5ba4938146121p-11, 0x1.20529cbea9eb8p-15, 0x1.2f1243be3bf29p-13, 0x1.1fbe506b5b634p-15,
                 -0x1.6bc1e9d142c2bp-16, -0x1.206a179a64e50p-16, -0x1.114a6e19c9fbap-18);
  const Doubles out = pick(y < 0.75, fused(y, erf_rest(y * y), y), 1 - exp_of_square(y, Doubles{}, u * q));
  return with_sign_of(x, out);
}

GT_INLINE Doubles erfc(Doubles x) {
  const Doubles y = at_most(size_of(x), 27.5);
  const Pair more = two_sum(y, all(4));
  const Doubles u = 1 / more.hi, t = (y - 4) * u;
  const Pair one = two_product(u, more.hi);  // what u lacks goes into the exponent
  const Doubles lacks = ((one.hi - 1) + one.lo) + u * more.lo;
  const Doubles q =
      polynomial(t, 0x1.18932bf08e154p+0, -0x1.f3fe31ecb49bep-1, 0x1.8be202d26c743p-1, -0x1.14eacb1ad03c3p-1,
                 0x1.52cac2370f13ap-2, -0x1.645fd8a4b78f1p-3, 0x1.38dbd2c91d591p-4, -0x1.b00c052e7358ep-6,
                 0x1.908f47088d9c5p-8, -0x1.269b4d3522ac2p-12, -0x1.dd283e747fdfdp-12, 0x1.72cd7333b8316p-13,
                 -0x1.e7ee78a46beaep-19, -0x1.3c694a74a25ecp-16, 0x1.3b05f4fab238fp-18, 0x1.7d8febf6d1af1p-20,
                 -0x1.c5673d9581b1cp-21, -0x1.34df1def8630bp-24, 0x1.03a0328675529p-23,
                 -0x1.f142e80f13a56p-30, -0x1.b053339a92e14p-27, 0x1.12ad9cec372aap-30);
  const Doubles tail = exp_of_square(y, lacks, u * q);
  const Doubles far = pick(x < 0, 2 - tail, tail);
  return pick(y < 0.75, 1 - fused(x, erf_rest(y * y), x), far);
}

// The distribution of a standard normal, half of erfc(-x / sqrt(2)).
GT_INLINE Doubles normal_below(Doubles x) { return 0.5 * erfc(x * -0.70710678118654752440); }

}  // namespace gt::math
