// asin, acos, atan and atan2 of double, and hypot.
#pragma once
#include "double_base.h"
#include "double_trig.h"

namespace gt::math {

// (asin(s) - s) / s of z = s^2 up to 1/4.
template <int N> GT_INLINE Doubles<N> asin_rest(Doubles<N> z) {
  return z * polynomial(z, 0x1.5555555555395p-3, 0x1.333333336d843p-4, 0x1.6db6db433ceaap-5,
                        0x1.f1c72bf551c59p-6, 0x1.6e89facbc58b7p-6, 0x1.1c6b7e07b7951p-6,
                        0x1.c7056900b8cb8p-7, 0x1.8e9161a3184a0p-7, 0x1.ad748a00a4d74p-8,
                        0x1.3edae7161b658p-6, -0x1.0823ffc9d530dp-6, 0x1.04dd9b774c7a7p-5);
}
// Above 1/2, asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) (Cody and Waite 1980).
template <int N> GT_INLINE Doubles<N> asin(Doubles<N> x) {
  const Doubles<N> y = size_of(x);
  const Mask<N> far = y > 0.5;
  const Doubles<N> z = pick(far, fused(y, -0.5, 0.5), y * y), s = pick(far, square_root(z), y),
                   p = s * asin_rest(z);
  const Doubles<N> out = pick(far, kHalfPi - (2 * s - (kHalfPiRest - 2 * p)), s + p);
  return with_sign_of(x, out);
}
template <int N> GT_INLINE Doubles<N> acos(Doubles<N> x) {
  const Doubles<N> y = size_of(x);
  const Mask<N> far = y > 0.5;
  const Doubles<N> z = pick(far, fused(y, -0.5, 0.5), y * y), s = pick(far, square_root(z), x),
                   p = s * asin_rest(z);
  const Doubles<N> near = kHalfPi - (s - (kHalfPiRest - p)), twice = 2 * (s + p);
  const Doubles<N> left = 2 * kHalfPi - (2 * s - (2 * kHalfPiRest - 2 * p));
  return pick(far, pick(x < 0, left, twice), near);
}

// atan(t) for |t| <= 1/2.
template <int N> GT_INLINE Doubles<N> small_atan(Doubles<N> t) {
  const Doubles<N> z = t * t;
  return fused(
      t * z,
      polynomial(z, -0x1.5555555555511p-2, 0x1.999999999091ep-3, -0x1.24924921376a5p-3, 0x1.c71c70855444bp-4,
                 -0x1.745cf3c4c4d89p-4, 0x1.3b112f07cd9ebp-4, -0x1.10f293d6d5d4cp-4, 0x1.dfe29907cbdfap-5,
                 -0x1.a37bb9aa4c467p-5, 0x1.56a9d67da5d73p-5, -0x1.c098a58bf84e7p-6, 0x1.4a50027ef1b34p-7),
      t);
}

// atan(t), pi/4 + atan((t - 1) / (t + 1)) or pi/2 - atan(1 / t): one division.
template <int N> GT_INLINE Doubles<N> atan(Doubles<N> x) {
  const Doubles<N> y = size_of(x);
  const Mask<N> middle = y > 0.5, far = y > 2;
  const Doubles<N> t = pick(far, -1.0, y - pick(middle, 1.0, 0.0)) / pick(far, y, 1 + pick(middle, y, 0.0));
  const Doubles<N> turn = pick(middle, 0.5, 0.0) + pick(far, 0.5, 0.0);
  return with_sign_of(x, fused(turn, kHalfPi, fused(turn, kHalfPiRest, small_atan(t))));
}

// The angle between the axis of the larger coordinate and the point, as in atan; then reflected.
template <int N>
GT_INLINE Doubles<N> angle_of(Doubles<N> y, Doubles<N> x, Doubles<N> small, Doubles<N> large, Mask<N> steep) {
  const Mask<N> middle = small + small > large;
  const Doubles<N> t = (small - pick(middle, large, 0.0)) / (large + pick(middle, small, 0.0));
  const Doubles<N> angle = small_atan(t), eighth = pick(middle, 0.5, 0.0);
  // Where steep pi/2 - that, and for negative x pi - that. The turns are added up in units of pi/2.
  const Bits<N> left = sign_bit(x), turned = left ^ (bits_of(steep) & kSignBit<double>);
  const Doubles<N> side = of_bits(left >> 1);  // 2 or 0
  const Doubles<N> turn = size_of(side - size_of(pick(steep, 1.0, 0.0) - eighth));
  const Doubles<N> turned_angle = of_bits(bits_of(angle) ^ turned);
  const Doubles<N> whole = turn * kHalfPi;
#if GT_HAS_FMA
  const Doubles<N> rest = fused(turn, kHalfPi, -whole) + fused(turn, kHalfPiRest, turned_angle);
#else
  const Doubles<N> rest = fused(turn, kHalfPiRest, turned_angle);
#endif
  return with_sign_of(y, whole + rest);
}
template <int N> GT_RARE Doubles<N> atan2_anywhere(Doubles<N> y, Doubles<N> x) {
  const Doubles<N> a = size_of(y), b = size_of(x);
  const Mask<N> steep = a > b;
  Doubles<N> large = pick(steep, a, b), small = pick(steep, b, a);
  // Scaled, so that nothing overflows or becomes subnormal. The quotient of two infinities is 1, of two zeros
  // 0.
  const Doubles<N> scale = pick(large > 0x1p1000, 0x1p-100, pick(large < 0x1p-900, 0x1p100, 1));
  large = large * scale, small = small * scale;
  const Mask<N> both = small == kInfinity, none = large == 0;
  const Doubles<N> out = angle_of(y, x, pick(both, 1.0, small), pick(both | none, 1.0, large), steep);
  return pick((x == x) & (y == y), out, x + y);
}
template <int N> GT_INLINE Doubles<N> atan2(Doubles<N> y, Doubles<N> x) {
  const Doubles<N> a = size_of(y), b = size_of(x);
  if (any_outside(a + b, 0x1p-900, 0x1p1000)) [[unlikely]]
    return atan2_anywhere(y, x);
  return angle_of(y, x, at_most(a, b), at_least(a, b), a > b);
}

// sqrt(x) of a normal number far from overflow.
template <int N> GT_INLINE Doubles<N> root_of_normal(Doubles<N> x) {
#if GT_ISA_LEVEL == 4
  // Two Newton steps from the approximate 1 / sqrt(x) of 14 bits: faster than the instruction for the square
  // root.
  const Doubles<N> g(Register<double>(_mm512_maskz_rsqrt14_pd(0xff, x.at[0]))),
      half = of_bits(bits_of(g) - 0x0010000000000000);
  const Doubles<N> s = x * g, e = fused(-s, half, 0.5), better = fused(s, e, s);
  return fused(fused(half, e, half), fused(-better, better, x), better);
#else
  return square_root(x);
#endif
}
// sqrt(x^2 + y^2), of scaled arguments where the squares might overflow or underflow.
template <int N> GT_INLINE Doubles<N> sum_of_squares(Doubles<N> x, Doubles<N> y) { return x * x + y * y; }
template <int N> GT_RARE Doubles<N> hypot_anywhere(Doubles<N> x, Doubles<N> y) {
  const Doubles<N> a = size_of(x), b = size_of(y), large = pick(a > b, a, b);
  const Mask<N> huge = large > 0x1p500, tiny = large < 0x1p-400;
  const Doubles<N> down = pick(huge, 0x1p-600, pick(tiny, 0x1p600, 1));
  const Doubles<N> up = pick(huge, 0x1p600, pick(tiny, 0x1p-600, 1));
  const Doubles<N> square = sum_of_squares(a * down, b * down);
  const Mask<N> none = square < 0x1p-1000;
  const Doubles<N> root = pick(none, 0.0, up * root_of_normal(pick(none, 1.0, square)));
  const Doubles<N> out = pick((x == x) & (y == y), root, x + y);
  return pick((a == kInfinity) | (b == kInfinity), kInfinity, out);
}
template <int N> GT_INLINE Doubles<N> hypot(Doubles<N> x, Doubles<N> y) {
  const Doubles<N> square = sum_of_squares(x, y);
  if (any_outside(square, 0x1p-800, 0x1p1000)) [[unlikely]]
    return hypot_anywhere(x, y);
  return root_of_normal(square);
}

}  // namespace gt::math
