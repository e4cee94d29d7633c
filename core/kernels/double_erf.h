// erf and erfc of double.
//
// For y >= 0, erfc(y) = exp(-y^2) R(y), where R falls like 1 / y: R(y) (y + K) is a polynomial of t = (y - K) / (y + K) (Shepherd and
// Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", 1981; Cody, "Rational Chebyshev approximations
// for the error function", 1969, has the split of the range). One division gives t and the factor.
#pragma once
#include "double_base.h"
#include "double_exp.h"

namespace gt::math {

// exp(-(y^2 + less)) w: the square as a pair, so that its digits beyond a double count.
[[gnu::always_inline]] inline double exp_of_square(double y, double less, double w) {
  const Pair square = two_product(y, y);
  double shifted;
  const double r = exp_remainder(-square.hi, shifted) - (square.lo + less);
  const double p = fused(exp_polynomial(r), r * r, r);
  const TwoFactors f = factors_of(shifted);
  return fused(p, w, w) * f.first * f.second;
}

[[gnu::always_inline]] inline double erf(double x) {
  double y = size_of(x);
  y = y > 6.0 ? 6.0 : y;
  const double z = y * y;
  const double near = polynomial(z, 0x1.06eba8214db66p-3, -0x1.812746b03780dp-2, 0x1.ce2f21a027988p-4, -0x1.b82ce308e9a16p-6,
                                 0x1.565bcb52c8bbcp-8, -0x1.c02d5806070d3p-11, 0x1.f997817956f6ep-14, -0x1.f3e77cb528f4ap-17,
                                 0x1.ae9c5ef8e1ffbp-20, -0x1.10b848b1bc677p-23);
  const double u = 1 / (y + 2), t = (y - 2) * u;
  const double q =
      polynomial(t, 0x1.058671b52c776p+0, -0x1.5fd386754eff7p-1, 0x1.1e2deea6b10f5p-2, -0x1.2a88e61081097p-5,
                 -0x1.606e41550fa31p-6, 0x1.a89eb00588a7cp-8, 0x1.9517bbbc9618cp-9, -0x1.b6fc06ba06876p-11,
                 -0x1.5ba4938146121p-11, 0x1.20529cbea9eb8p-15, 0x1.2f1243be3bf29p-13, 0x1.1fbe506b5b634p-15,
                 -0x1.6bc1e9d142c2bp-16, -0x1.206a179a64e50p-16, -0x1.114a6e19c9fbap-18);
  const double out = y < 0.75 ? fused(y, near, y) : 1 - exp_of_square(y, 0, u * q);
  return with_sign_of(x, out);
}

[[gnu::always_inline]] inline double erfc(double x) {
  double y = size_of(x);
  y = y > 27.5 ? 27.5 : y;
  const Pair more = two_sum(y, 4);
  const double u = 1 / more.hi, t = (y - 4) * u;
  const Pair one = two_product(u, more.hi);  // what u lacks goes into the exponent
  const double lacks = ((one.hi - 1) + one.lo) + u * more.lo;
  const double q = polynomial(
      t, 0x1.18932bf08e154p+0, -0x1.f3fe31ecb49c2p-1, 0x1.8be202d26c759p-1, -0x1.14eacb1ad01f2p-1, 0x1.52cac2370e4d8p-2,
      -0x1.645fd8a4c7454p-3, 0x1.38dbd2c968f1dp-4, -0x1.b00c05268988ap-6, 0x1.908f46d07b3b0p-8, -0x1.269b5f07d5353p-12,
      -0x1.dd282703cba30p-12, 0x1.72ce37219ffd6p-13, -0x1.e81dcb17e550fp-19, -0x1.3c7ea4bc982dbp-16, 0x1.3b40e4ca5105fp-18,
      0x1.808779d6655aap-20, -0x1.c82c93e6b5e22p-21, -0x1.760e2a6e5408bp-24, 0x1.0cdd724bc5a06p-23, 0x1.54cd7908c6d9fp-27,
      -0x1.e4c62dc8fff56p-27, -0x1.8eb10fb274aaep-29);
  const double tail = exp_of_square(y, lacks, u * q);
  return x < 0 ? 2 - tail : tail;
}

}  // namespace gt::math
