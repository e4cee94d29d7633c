// erf and erfc of double, and the normal distribution.
//
// Up to 6, from the nearest of 385 points x0 with tabulated values (tables.h): the integral of exp(-t^2) from
// x0 to x0 + h is h exp(-m^2) (1 + small even powers of h) with m = x0 + h / 2, and exp(-m^2) is exp(-x0^2),
// which the table has, times exp(-h (x0 + h / 4)), all but 1. Beyond, erfc(y) = exp(-y^2) / y times a
// polynomial of 1 / y^2.
#pragma once
#include "double_base.h"
#include "double_exp.h"
#include "tables.h"

namespace gt::math {

constexpr double kErfNear = 6;

// The rows nearest to 0 <= y <= 6.
template <int N> GT_INLINE ErfRow<N> erf_rows(Doubles<N> y) {
  return look_up(gradtape_double_erf, bits_of(y + 0x1.8p46) & 0x1ff);
}

// The increase of erf from x0 to x0 + h, |h| <= 1/128. When it is added to erf, terms that matter for large
// x0 only are left out: erf is nearly 1 there.
template <bool beside_erf, int N> GT_INLINE Doubles<N> erf_step(const ErfRow<N>& row, Doubles<N> h) {
  const Doubles<N> w = h * fused(h, 0.25, row.x), m = fused(h, 0.5, row.x), mm = m * m, z = h * h;
  Doubles<N> e, last;
  if constexpr (beside_erf) {
    e = polynomial(w, -1.0, 0.5, -1.0 / 6, 1.0 / 24, -1.0 / 120);
    last = -1.0 / 2688;
  } else {
    e = polynomial(w, -1.0, 0.5, -1.0 / 6, 1.0 / 24, -1.0 / 120, 1.0 / 720, -1.0 / 5040, 1.0 / 40320);
    last = fused(fused(fused(mm, 1.0 / 5040, -1.0 / 672), mm, 1.0 / 448), mm, -1.0 / 2688);
  }
  e = e * w;
  const Doubles<N> middle = fused(fused(mm, 1.0 / 120, -1.0 / 40), mm, 1.0 / 160);
  const Doubles<N> s = z * fused(fused(last, z, middle), z, fused(mm, 1.0 / 6, -1.0 / 12));
  const Doubles<N> first = row.slope * h;
  return fused(first, fused(e, s, e + s), first);
}

template <int N> GT_INLINE Doubles<N> erf_near(Doubles<N> x, Doubles<N> y) {
  const ErfRow<N> row = erf_rows(y);
  return with_sign_of(x, row.erf + erf_step<true>(row, y - row.x));
}
template <int N> GT_RARE Doubles<N> erf_anywhere(Doubles<N> x) {
  const Doubles<N> y = size_of(x);
  return pick(x == x, erf_near(x, pick(y < kErfNear, y, kErfNear)), x);
}
template <int N> GT_INLINE Doubles<N> erf(Doubles<N> x) {
  if (any(beyond(x, kErfNear))) [[unlikely]]
    return erf_anywhere(x);
  return erf_near(x, size_of(x));
}

// exp(-(y^2 + less)) w, with the square as a pair.
template <int N> GT_INLINE Doubles<N> exp_of_square(Doubles<N> y, Doubles<N> less, Doubles<N> w) {
  const Pair<N> square = two_product(y, y);
  Doubles<N> shifted;
  const Doubles<N> p = expm1_small(exp_remainder(-square.hi, shifted) - (square.lo + less));
  const TwoFactors<N> f = factors_of(shifted);
  return fused(p, w, w) * f.first * f.second;
}
// erfc(x) for |x| = y + rest <= 6.
template <int N> GT_INLINE Doubles<N> erfc_near(Doubles<N> x, Doubles<N> y, Doubles<N> rest) {
  const ErfRow<N> row = erf_rows(y);
  const Doubles<N> step = erf_step<false>(row, (y - row.x) + rest);
  const Mask<N> left = x < 0;
  return pick(left, 1.0, 0.0) +
         (pick(left, row.erf, row.erfc) + of_bits(bits_of(step) ^ (~bits_of(x) & kSignBit<double>)));
}
template <int N> GT_RARE Doubles<N> erfc_anywhere(Doubles<N> x, Doubles<N> y, Doubles<N> rest) {
  const Doubles<N> near = erfc_near(x, pick(y < kErfNear, y, kErfNear), pick(y < kErfNear, rest, 0.0));
  const Doubles<N> far = at_most(at_least(y, 5.99), 27.5), u = 1 / far;
  const Pair<N> one = two_product(u, far);  // the rounding error of u goes into the exponent
  const Doubles<N> lacks = ((one.hi - 1) + one.lo) + (far + far) * rest;
  const Doubles<N> q =
      polynomial(u * u, 0x1.20dd750429b6cp-1, -0x1.20dd750428c4fp-2, 0x1.b14c2f83a0254p-2,
                 -0x1.0ecf9cbf9adb2p+0, 0x1.d9eae9d8b98e6p+1, -0x1.0a8d03200a85fp+4, 0x1.6dde7d0ff2900p+6,
                 -0x1.2467fe4bdfc44p+9, 0x1.f38910c244679p+11, -0x1.789096d8e54bfp+14, 0x1.4fe68a6bc25cdp+16);
  const Doubles<N> tail = exp_of_square(far, lacks, u * q);
  const Doubles<N> out = pick(y < kErfNear, near, pick(x < 0, 2 - tail, tail));
  return pick(x == x, out, x);
}
template <int N> GT_INLINE Doubles<N> erfc(Doubles<N> x) {
  if (any(beyond(x, kErfNear))) [[unlikely]]
    return erfc_anywhere(x, size_of(x), Doubles<N>{});
  return erfc_near(x, size_of(x), Doubles<N>{});
}

// The standard normal distribution function, erfc(-x / sqrt(2)) / 2, with the argument as a pair: erfc would
// magnify its rounding error to many ulps.
template <int N> GT_INLINE Doubles<N> normal_below(Doubles<N> x) {
  const Doubles<N> size = at_most(size_of(x), 40), y = size * 0x1.6a09e667f3bcdp-1;
  const Doubles<N> rest =
      two_product(size, Doubles<N>(0x1.6a09e667f3bcdp-1)).lo + size * -0x1.bdd3413b26456p-55;
  if (any(beyond(y, kErfNear))) [[unlikely]]
    return 0.5 * erfc_anywhere(-x, y, rest);
  return 0.5 * erfc_near(-x, y, rest);
}

}  // namespace gt::math
