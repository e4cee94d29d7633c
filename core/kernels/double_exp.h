// exp, expm1, sinh, cosh and tanh of double.
//
// x = k log(2) + r with a whole k and |r| <= log(2) / 2 (Cody and Waite, "Software Manual for the Elementary
// Functions", 1980: log(2) in two parts, of which k times the first is exact), a polynomial of r, and 2^k
// from its exponent bits.
#pragma once
#include "double_base.h"

namespace gt::math {

constexpr double kLog2Inverse = 0x1.71547652b82fep+0;
constexpr double kLog2 = 0x1.62e42fefa3800p-1, kLog2Rest = 0x1.ef35793c76730p-45;  // the first of 42 bits
constexpr double kExpNear = 708;  // up to there 2^k and the result are normal numbers

template <int N> GT_INLINE Doubles<N> less_powers(Doubles<N> x, Doubles<N> k) {
  return fused(k, -kLog2Rest, fused(k, -kLog2, x));
}
// x less k log(2); `shifted` is kWhole + k.
template <int N> GT_INLINE Doubles<N> exp_remainder(Doubles<N> x, Doubles<N>& shifted) {
  shifted = fused(x, kLog2Inverse, kWhole);
  return less_powers(x, shifted - kWhole);
}
// The same with r from -0.4 to 0.6 log(2): k becomes 1 at larger results, where rounding errors matter less.
template <int N> GT_INLINE Doubles<N> late_remainder(Doubles<N> x, Doubles<N>& shifted) {
  shifted = fused(x, kLog2Inverse, -0.1) + kWhole;
  return less_powers(x, shifted - kWhole);
}
// exp(r) with a relative error of 2^-57.
template <int N> GT_INLINE Doubles<N> exp_small(Doubles<N> r) {
  const Doubles<N> p =
      polynomial(r, 0x1.000000000000cp-1, 0x1.555555555555cp-3, 0x1.555555554fdedp-5, 0x1.111111110e9e6p-7,
                 0x1.6c16c1860fabep-10, 0x1.a01a01b450fe4p-13, 0x1.a019959d9650ap-16, 0x1.71ddee4e45516p-19,
                 0x1.28b115aeea0bap-22, 0x1.af6ec62e5ab79p-26);
  return 1 + fused(p, r * r, r);
}
// 2^k x of shifted = kWhole + k; x and the result are normal numbers.
template <int N> GT_INLINE Doubles<N> scaled(Doubles<N> x, Doubles<N> shifted) {
  return of_bits(bits_of(x) + (bits_of(shifted) << 52));
}
// 2^k as two factors, for -1080 <= k <= 1100: subnormal results are rounded once, and intermediate results do
// not overflow for k up to 1024.
template <int N> struct TwoFactors { Doubles<N> first, second; };
template <int N> GT_INLINE TwoFactors<N> factors_of(Doubles<N> shifted) {
  const Bits<N> e = bits_of(shifted) - (std::bit_cast<uint64_t>(kWhole) - 2046), half = e >> 1;
  return {of_bits(half << 52), of_bits((e - half) << 52)};
}

template <int N> GT_RARE Doubles<N> exp_anywhere(Doubles<N> x) {
  x = at_most(at_least(x, -746), 710);
  Doubles<N> shifted;
  const Doubles<N> e = exp_small(exp_remainder(x, shifted));
  const TwoFactors<N> f = factors_of(shifted);
  return e * f.first * f.second;
}
template <int N> GT_INLINE Doubles<N> exp(Doubles<N> x) {
  if (any_beyond(x, kExpNear)) [[unlikely]]
    return exp_anywhere(x);
  Doubles<N> shifted;
  const Doubles<N> e = exp_small(exp_remainder(x, shifted));
  return scaled(e, shifted);
}
// exp(-x^2 / 2), with the square as a pair: exp would magnify the rounding error of a large square to many
// ulps.
template <int N> GT_INLINE Doubles<N> exp_half_square(Doubles<N> x) {
  const Doubles<N> y = at_most(size_of(x), 39), u = -0.5 * y;
  const Pair<N> square = two_product(u, y);
  Doubles<N> shifted;
  const Doubles<N> e = exp_small(exp_remainder(square.hi, shifted) + square.lo);
  const TwoFactors<N> f = factors_of(shifted);
  return e * f.first * f.second;
}

// exp(r) - 1 with a relative error of 2^-61.
template <int N> GT_INLINE Doubles<N> expm1_small(Doubles<N> r) {
  const Doubles<N> p =
      polynomial(r, 0x1.0000000000000p-1, 0x1.5555555555553p-3, 0x1.55555555555bap-5, 0x1.1111111112300p-7,
                 0x1.6c16c16bcea1fp-10, 0x1.a01a01969a535p-13, 0x1.a01a03e2e23fcp-16, 0x1.71de52c75eb62p-19,
                 0x1.27dd4a47e122cp-22, 0x1.ae7f7cff08b9bp-26, 0x1.31eb1cd529c75p-29);
  return fused(p, r * r, r);
}
// exp(x) - 1 = 2^k (p + 1) - 1, computed without the second factor of 2^k, which is multiplied in at the end.
template <int N> GT_RARE Doubles<N> expm1_anywhere(Doubles<N> x) {
  Doubles<N> shifted;
  const Doubles<N> p = expm1_small(late_remainder(at_most(at_least(x, -40), 710), shifted));
  const TwoFactors<N> f = factors_of(shifted);
  const Doubles<N> inverse = of_bits(0x7fe0000000000000 - bits_of(f.second));
  return fused(p, f.first, f.first - inverse) * f.second;
}
template <int N> GT_INLINE Doubles<N> expm1(Doubles<N> x) {
  if (any_beyond(x, kExpNear)) [[unlikely]]
    return of_bits(bits_of(expm1_anywhere(x)) | sign_bit(x));
  Doubles<N> shifted;
  const Doubles<N> p = expm1_small(late_remainder(x, shifted)), power = power_of_two(shifted);
  return of_bits(bits_of(fused(p, power, power - 1)) | sign_bit(x));
}

// sinh(r) and cosh(r) of the remainder are polynomials of r^2; no division is needed for exp(-x). With a =
// 2^k / 2 and b = 2^-k / 2, sinh(x) = (a - b) cosh(r) + (a + b) sinh(r).
template <int N> struct Hyperbolic { Doubles<N> sinh, cosh_less_1; };
template <int N> GT_INLINE Hyperbolic<N> hyperbolic_parts(Doubles<N> r) {
  const Doubles<N> z = r * r;
  const Doubles<N> s = polynomial(z, 0x1.5555555555555p-3, 0x1.1111111111276p-7, 0x1.a01a019f969d8p-13,
                                  0x1.71de3bb94f108p-19, 0x1.ae60bbd29c19bp-26, 0x1.650b8b407736ep-33);
  const Doubles<N> c = polynomial(z, 0x1.0000000000000p-1, 0x1.5555555555566p-5, 0x1.6c16c16c0f2a3p-10,
                                  0x1.a01a01c835c00p-16, 0x1.27e49905a0019p-22, 0x1.1fd1b270754c2p-29);
  return {fused(r * z, s, r), z * c};
}
// With 2^k / 8, which does not overflow; 2^-k is left out where it is too small to matter.
template <int N> GT_RARE Doubles<N> sinh_anywhere(Doubles<N> x) {
  const Doubles<N> y = at_most(size_of(x), 711);
  Doubles<N> shifted;
  const Hyperbolic<N> h = hyperbolic_parts(late_remainder(y, shifted));
  const Bits<N> power = bits_of(shifted) << 52;
  const Doubles<N> a = of_bits(power + 0x3fc0000000000000);
  const Doubles<N> b = pick(y > 44, 0.0, of_bits(0x3fc0000000000000 - power));
  const Doubles<N> out = 4 * ((a - b) + fused(a - b, h.cosh_less_1, (a + b) * h.sinh));
  return with_sign_of(x, pick(y < 0x1p-28, y, out));
}
template <int N> GT_INLINE Doubles<N> sinh(Doubles<N> x) {
  if (any_beyond(x, kExpNear)) [[unlikely]]
    return sinh_anywhere(x);
  Doubles<N> shifted;
  const Hyperbolic<N> h = hyperbolic_parts(late_remainder(size_of(x), shifted));
  const Bits<N> power = bits_of(shifted) << 52;
  const Doubles<N> a = of_bits(power + 0x3fe0000000000000), b = of_bits(0x3fe0000000000000 - power);
  return with_sign_of(x, (a - b) + fused(a - b, h.cosh_less_1, (a + b) * h.sinh));
}

// h + 1 / (4 h) with h = exp(|x|) / 2.
template <int N> GT_RARE Doubles<N> cosh_anywhere(Doubles<N> x) {
  const Doubles<N> y = at_most(size_of(x), 711);
  Doubles<N> shifted;
  const Doubles<N> e = exp_small(exp_remainder(y, shifted));
  const TwoFactors<N> f = factors_of(shifted);
  const Doubles<N> h = 0.125 * e * f.first * f.second;
  return 4 * (h + 0.015625 / h);
}
template <int N> GT_INLINE Doubles<N> cosh(Doubles<N> x) {
  if (any_beyond(x, kExpNear)) [[unlikely]]
    return cosh_anywhere(x);
  Doubles<N> shifted;
  const Doubles<N> e = exp_small(exp_remainder(size_of(x), shifted));
  const Doubles<N> h = scaled(0.5 * e, shifted);
  return h + 0.25 / h;
}

// With e = exp(2 |x|) - 1: e / (e + 2), and near 1 as 1 - 2 / (e + 2), which the rounding errors of e hardly
// affect.
template <int N> GT_INLINE Doubles<N> tanh(Doubles<N> x) {
  const Doubles<N> y = at_most(size_of(x), 20);
  Doubles<N> shifted;
  const Doubles<N> p = expm1_small(late_remainder(2 * y, shifted)), power = power_of_two(shifted);
  const Doubles<N> e = fused(p, power, power - 1), sum = fused(p, power, power + 1);
  const Mask<N> near_1 = y > 0.5;
  return with_sign_of(x, pick(near_1, 1.0, 0.0) + pick(near_1, -2.0, e) / sum);
}

}  // namespace gt::math
