// asin, acos, atan and atan2 of double, and hypot.
#pragma once
#include "double_base.h"
#include "double_trig.h"

namespace gt::math {

// (asin(s) - s) / s of z = s^2 up to 1/4.
[[gnu::always_inline]] inline double asin_rest(double z) {
  return z * polynomial(z, 0x1.5555555555395p-3, 0x1.333333336d843p-4, 0x1.6db6db433ceaap-5,
                        0x1.f1c72bf551c59p-6, 0x1.6e89facbc58b7p-6, 0x1.1c6b7e07b7951p-6,
                        0x1.c7056900b8cb8p-7, 0x1.8e9161a3184a0p-7, 0x1.ad748a00a4d74p-8,
                        0x1.3edae7161b658p-6, -0x1.0823ffc9d530dp-6, 0x1.04dd9b774c7a7p-5);
}
// Above 1/2, asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) (Cody and Waite 1980).
[[gnu::always_inline]] inline double asin(double x) {
  const double y = size_of(x);
  const bool far = y > 0.5;
  const double z = far ? fused(y, -0.5, 0.5) : y * y, s = far ? __builtin_sqrt(z) : y, p = s * asin_rest(z);
  const double out = far ? kHalfPi - (2 * s - (kHalfPiRest - 2 * p)) : s + p;
  return with_sign_of(x, out);
}
[[gnu::always_inline]] inline double acos(double x) {
  const double y = size_of(x);
  const bool far = y > 0.5;
  const double z = far ? fused(y, -0.5, 0.5) : y * y, s = far ? __builtin_sqrt(z) : x, p = s * asin_rest(z);
  const double near = kHalfPi - (s - (kHalfPiRest - p)), twice = 2 * (s + p);
  const double left = 2 * kHalfPi - (2 * s - (2 * kHalfPiRest - 2 * p));
  return far ? (x < 0 ? left : twice) : near;
}

// atan(t) - t for |t| <= sqrt(2) - 1.
[[gnu::always_inline]] inline double atan_rest(double t) {
  const double z = t * t;
  return t * z *
         polynomial(z, -0x1.555555555553bp-2, 0x1.9999999995498p-3, -0x1.2492492297e5cp-3,
                    0x1.c71c70de5c836p-4, -0x1.745cf80df30a9p-4, 0x1.3b110b976228fp-4, -0x1.10eb2666dffd2p-4,
                    0x1.df0760ef9d65dp-5, -0x1.9cb08bf3be8b8p-5, 0x1.37820fe200368p-5, -0x1.24b9b0ac584a0p-6);
}
constexpr double kTanEighth = 0.41421356237309503;  // tan(pi/8)

// atan(t), pi/4 + atan((t - 1) / (t + 1)) or pi/2 - atan(1 / t): one division.
[[gnu::always_inline]] inline double atan(double x) {
  const double y = size_of(x);
  const bool middle = y > kTanEighth, far = y > 2.414213562373095;
  const double top = far      ? -1.0
                     : middle ? y - 1
                              : y,
               bottom = far      ? y
                        : middle ? y + 1
                                 : 1.0,
               t = top / bottom;
  const double turn = far ? kHalfPi : middle ? 0.5 * kHalfPi : 0.0;
  const double rest = far ? kHalfPiRest : middle ? 0.5 * kHalfPiRest : 0.0;
  return with_sign_of(x, turn + (t + (atan_rest(t) + rest)));
}
// The angle of the smaller to the larger coordinate, as atan has it; then mirrored.
[[gnu::always_inline]] inline double atan2(double y, double x) {
  double a = size_of(y), b = size_of(x);
  const bool steep = a > b;
  double large = steep ? a : b, small = steep ? b : a;
  // Nothing overflows or loses digits on the way; of two infinities the quotient is 1, of two zeros 0.
  const double scale = large > 0x1p1000 ? 0x1p-100 : large < 0x1p-900 ? 0x1p100 : 1.0;
  large *= scale, small *= scale;
  const bool both = small == kInfinity, none = large == 0;
  large = both || none ? 1.0 : large, small = both ? 1.0 : small;
  const bool middle = small > kTanEighth * large;
  const double t = (middle ? small - large : small) / (middle ? small + large : large);
  const double angle = t + atan_rest(t);
  // turn + angle, pi/2 - it where steep, pi - that on the left: all multiples of pi/4 are exact sums of the
  // pair.
  const double eighth = middle ? 0.5 : 0.0;
  const bool left = (bits_of(x) >> 63) != 0;
  double turn = steep ? 1 - eighth : eighth, sign = steep ? -1.0 : 1.0;
  turn = left ? 2 - turn : turn, sign = left ? -sign : sign;
  const double out = fused(turn, kHalfPi, 0) + fused(turn, kHalfPiRest, sign * angle);
  return x == x && y == y ? with_sign_of(y, out) : x + y;
}

// sqrt(x^2 + y^2); the squares neither overflow nor vanish.
[[gnu::always_inline]] inline double hypot(double x, double y) {
  const double a = size_of(x), b = size_of(y), large = a > b ? a : b, small = a > b ? b : a;
  const double down = large > 0x1p500 ? 0x1p-600 : large < 0x1p-400 ? 0x1p600 : 1.0;
  const double up = large > 0x1p500 ? 0x1p600 : large < 0x1p-400 ? 0x1p-600 : 1.0;
  const double u = large * down, v = small * down;
  const double out = up * __builtin_sqrt(fused(u, u, v * v));
  const double plain = x == x && y == y ? out : x + y;
  return a == kInfinity || b == kInfinity ? kInfinity : plain;
}

}  // namespace gt::math
