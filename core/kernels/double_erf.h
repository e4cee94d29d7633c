// erf and erfc of double, and the normal distribution.
//
// Up to 6, from the nearest x0 = i / 128 with tabulated values (tables.h): the increase from x0 to x0 + h is
// the slope at x0 times the integral of exp(-2 x0 t - t^2), a series of a = x0 h and h^2
// (tools/fit_double.py). Beyond, erfc(y) = exp(-y^2) / y times a polynomial of 1 / y^2.
#pragma once
#include "double_base.h"
#include "double_exp.h"
#include "tables.h"

namespace gt::math {

constexpr double kErfNear = 6;

// The point of the tables next to y, and in the low bits of `row` its row. A NaN has the last one.
template <int N> GT_INLINE Doubles<N> erf_point(Doubles<N> y, Bits<N>& row) {
  const Doubles<N> shifted = at_most_number(y, kErfNear) + 0x1.8p45;
  row = bits_of(shifted);
  return shifted - 0x1.8p45;
}

// The increase of erf from x0 to x0 + h, |h| <= 1/256. When it is added to erf, terms that matter for large
// x0 only are left out: erf is nearly 1 there.
template <bool beside_erf, int N>
GT_INLINE Doubles<N> erf_step(Doubles<N> x0, Doubles<N> slope, Doubles<N> h) {
  const Doubles<N> a = x0 * h, z = h * h, first = slope * h;
  Doubles<N> p, q, r;  // of h^0, h^2, h^4
  if constexpr (beside_erf) {
    p = horner(a, -1.0, 0x1.555555554bd85p-1, -0x1.555555554ad1dp-2, 0x1.111160b80eeddp-3,
               -0x1.6c172e8142f37p-5);
    q = horner(a, -0x1.55555555545fcp-2, 0x1.fffffffff5649p-2, -0x1.9999fba53900bp-2, 0x1.c71cf29181cc3p-3);
    r = horner(a, 0x1.9999563369277p-4, -0x1.55554d0d34c09p-3);
  } else {
    p = horner(a, -0x1.0000000000104p+0, 0x1.555555555561cp-1, -0x1.55555546e6395p-2, 0x1.11111108cf0cfp-3,
               -0x1.6c1d29e0d2197p-5, 0x1.a0204944776b4p-7);
    q = horner(a, -0x1.55555555558f3p-2, 0x1.ffffffc9c93cfp-2, -0x1.9999997cb5628p-2, 0x1.c72877e84dc0cp-3,
               -0x1.8620ed9a0dfa5p-4);
    r = horner(a, 0x1.99994d2791757p-4, -0x1.5567223b2e195p-3, 0x1.249cbf7badd7ap-3);
  }
  return fused(first, fused(a, p, z * fused(z, r, q)), first);
}

// One register after the other: two at once take half as long again.
GT_INLINE Doubles<1> erf(Doubles<1> x) {
  const Doubles<1> y = size_of(x);
  Bits<1> row;
  const Doubles<1> x0 = erf_point(y, row);
  const Known<Doubles<1>> known = look_up(gradtape_double_erf, row);
  return with_sign_of(x, known.value + erf_step<true>(x0, known.slope, at_most(y, kErfNear) - x0));
}
GT_INLINE Doubles<2> erf(Doubles<2> x) {
  return one_by_one<2>(
      [](auto y) __attribute__((always_inline)) { return erf(y); }, x);
}

// exp(-(y^2 + less)) w, with the square as a pair.
template <int N> GT_INLINE Doubles<N> exp_of_square(Doubles<N> y, Doubles<N> less, Doubles<N> w) {
  const Pair<N> square = two_product(y, y);
  ExpParts<N> e = exp_parts(-square.hi);
  e.r = e.r - (square.lo + less);
  const TwoFactors<N> f = factors_of(e.k);
  return fused(expm1_tail(e), w, times_head(e, w)) * f.first * f.second;
}
// erfc(x) for |x| = y + rest <= 6.
GT_INLINE Doubles<1> erfc_near(Doubles<1> x, Doubles<1> y, Doubles<1> rest) {
  Bits<1> row;
  const Doubles<1> x0 = erf_point(y, row);
  const Known<Doubles<1>> known = look_up(gradtape_double_erfc, row);
  const Doubles<1> tail = known.value - erf_step<false>(x0, known.slope, (y - x0) + rest);
  return pick(x < 0, 2 - tail, tail);
}
GT_INLINE Doubles<2> erfc_near(Doubles<2> x, Doubles<2> y, Doubles<2> rest) {
  return one_by_one<2>(
      [](auto... z) __attribute__((always_inline)) { return erfc_near(z...); }, x, y, rest);
}
template <int N> GT_RARE Doubles<N> erfc_anywhere(Doubles<N> x, Doubles<N> y, Doubles<N> rest) {
  const Doubles<N> near = erfc_near(x, pick(y < kErfNear, y, kErfNear), pick(y < kErfNear, rest, 0.0));
  const Doubles<N> far = at_most(at_least(y, 5.99), 27.5), u = 1 / far;
  const Pair<N> one = two_product(u, far);  // the rounding error of u goes into the exponent
  const Doubles<N> lacks = ((one.hi - 1) + one.lo) + (far + far) * rest;
  const Doubles<N> q =
      horner(u * u, 0x1.20dd750429b6cp-1, -0x1.20dd750428c4fp-2, 0x1.b14c2f83a0254p-2, -0x1.0ecf9cbf9adb2p+0,
             0x1.d9eae9d8b98e6p+1, -0x1.0a8d03200a85fp+4, 0x1.6dde7d0ff2900p+6, -0x1.2467fe4bdfc44p+9,
             0x1.f38910c244679p+11, -0x1.789096d8e54bfp+14, 0x1.4fe68a6bc25cdp+16);
  const Doubles<N> tail = exp_of_square(far, lacks, u * q);
  const Doubles<N> out = pick(y < kErfNear, near, pick(x < 0, 2 - tail, tail));
  return pick(x == x, out, x);
}
template <int N> GT_INLINE Doubles<N> erfc(Doubles<N> x) {
  if (any_beyond(x, kErfNear)) [[unlikely]]
    return erfc_anywhere(x, size_of(x), Doubles<N>{});
  return erfc_near(x, size_of(x), Doubles<N>{});
}

// The standard normal distribution function, erfc(-x / sqrt(2)) / 2, with the argument as a pair: erfc would
// magnify its rounding error to many ulps.
template <int N> GT_INLINE Doubles<N> normal_below(Doubles<N> x) {
  const Doubles<N> size = at_most(size_of(x), 40), y = size * 0x1.6a09e667f3bcdp-1;
  const Doubles<N> rest =
      two_product(size, Doubles<N>(0x1.6a09e667f3bcdp-1)).lo + size * -0x1.bdd3413b26456p-55;
  if (any_beyond(y, kErfNear)) [[unlikely]]
    return 0.5 * erfc_anywhere(-x, y, rest);
  return 0.5 * erfc_near(-x, y, rest);
}

}  // namespace gt::math
