// exp, expm1, sinh, cosh and tanh of double.
//
// x = k log(2) + r with a whole k and |r| <= log(2) / 2 (Cody and Waite, "Software Manual for the Elementary
// Functions", 1980: log(2) in two parts, of which k times the first is exact), a polynomial of r, 2^k by its
// bits.
#pragma once
#include "double_base.h"

namespace gt::math {

constexpr double kLog2Inverse = 0x1.71547652b82fep+0;
constexpr double kLog2 = 0x1.62e42fefa3800p-1, kLog2Rest = 0x1.ef35793c76730p-45;  // the first of 42 bits

// x less k log(2); `shifted` is kWhole + k.
[[gnu::always_inline]] inline double exp_remainder(double x, double& shifted) {
  shifted = fused(x, kLog2Inverse, kWhole);
  const double k = shifted - kWhole;
  return fused(k, -kLog2Rest, fused(k, -kLog2, x));
}
// The same with r from -0.4 to 0.6 log(2): the first step of k comes where results are larger, and roundings
// beside them smaller.
[[gnu::always_inline]] inline double late_remainder(double x, double& shifted) {
  shifted = fused(x, kLog2Inverse, -0.1) + kWhole;
  const double k = shifted - kWhole;
  return fused(k, -kLog2Rest, fused(k, -kLog2, x));
}
// (exp(r) - 1 - r) / r^2, to 2^-57 of exp(r).
[[gnu::always_inline]] inline double exp_polynomial(double r) {
  return polynomial(r, 0x1.000000000000cp-1, 0x1.555555555555cp-3, 0x1.555555554fdedp-5, 0x1.111111110e9e6p-7,
                    0x1.6c16c1860fabep-10, 0x1.a01a01b450fe4p-13, 0x1.a019959d9650ap-16,
                    0x1.71ddee4e45516p-19, 0x1.28b115aeea0bap-22, 0x1.af6ec62e5ab79p-26);
}
// 2^k as two factors: results below the smallest normal number round once, and exponents up to 1024 pass
// without overflow on the way. -1080 <= k <= 1100.
struct TwoFactors {
  double first, second;
};
[[gnu::always_inline]] inline TwoFactors factors_of(double shifted) {
  const uint64_t e = bits_of(shifted) - bits_of(kWhole) + 2046, half = e >> 1;
  return {of_bits(half << 52), of_bits((e - half) << 52)};
}

[[gnu::always_inline]] inline double exp(double x) {
  x = x < -746.0 ? -746.0 : x;
  x = x > 710.0 ? 710.0 : x;  // NaN stays
  double shifted;
  const double r = exp_remainder(x, shifted), p = fused(exp_polynomial(r), r * r, r);
  const TwoFactors f = factors_of(shifted);
  return fused(p, f.first, f.first) * f.second;
}

// (exp(r) - 1 - r) / r^2, to 2^-61 of exp(r) - 1.
[[gnu::always_inline]] inline double expm1_polynomial(double r) {
  return polynomial(r, 0x1.0000000000000p-1, 0x1.5555555555553p-3, 0x1.55555555555bap-5, 0x1.1111111112300p-7,
                    0x1.6c16c16bcea1fp-10, 0x1.a01a01969a535p-13, 0x1.a01a03e2e23fcp-16,
                    0x1.71de52c75eb62p-19, 0x1.27dd4a47e122cp-22, 0x1.ae7f7cff08b9bp-26,
                    0x1.31eb1cd529c75p-29);
}
// exp(x) - 1 = 2^k (p + 1) - 1; divided by the second factor on the way.
[[gnu::always_inline]] inline double expm1(double x) {
  double y = x < -40.0 ? -40.0 : x;
  y = y > 710.0 ? 710.0 : y;
  double shifted;
  const double r = late_remainder(y, shifted);
  const double p = fused(expm1_polynomial(r), r * r, r);
  const TwoFactors f = factors_of(shifted);
  const double inverse = of_bits(0x7fe0000000000000 - bits_of(f.second));
  return with_sign_of(x, fused(p, f.first, f.first - inverse) * f.second);
}

// sinh(r) and cosh(r) of the remainder are polynomials of r^2, exp(r) and exp(-r) their sum and difference:
// no division. With a = 2^k / 8 and b = 2^-k / 8, sinh(x) / 4 = (a - b) cosh(r) + (a + b) sinh(r), and
// cosh(x) / 4 the other way round.
struct Hyperbolic {
  double plus, minus, sinh, cosh_less_1;
};
[[gnu::always_inline]] inline Hyperbolic hyperbolic_parts(double size) {
  size = size > 711.0 ? 711.0 : size;
  double shifted;
  const double r = late_remainder(size, shifted), z = r * r;
  const double s = polynomial(z, 0x1.5555555555555p-3, 0x1.1111111111276p-7, 0x1.a01a019f969d8p-13,
                              0x1.71de3bb94f108p-19, 0x1.ae60bbd29c19bp-26, 0x1.650b8b407736ep-33);
  const double c = polynomial(z, 0x1.0000000000000p-1, 0x1.5555555555566p-5, 0x1.6c16c16c0f2a3p-10,
                              0x1.a01a01c835c00p-16, 0x1.27e49905a0019p-22, 0x1.1fd1b270754c2p-29);
  const uint64_t power = bits_of(shifted) << 52;
  const double a = of_bits(power + 0x3fc0000000000000);
  const double b = size > 44.0 ? 0.0 : of_bits(0x3fc0000000000000 - power);
  return {a + b, a - b, fused(r * z, s, r), z * c};
}
[[gnu::always_inline]] inline double sinh(double x) {
  const double y = size_of(x);
  const Hyperbolic h = hyperbolic_parts(y);
  const double out = 4 * (h.minus + fused(h.minus, h.cosh_less_1, h.plus * h.sinh));
  return y < 0x1p-28 ? x : with_sign_of(x, out);
}
[[gnu::always_inline]] inline double cosh(double x) {
  const Hyperbolic h = hyperbolic_parts(size_of(x));
  return 4 * (h.plus + fused(h.plus, h.cosh_less_1, h.minus * h.sinh));
}

// With e = exp(2 |x|) - 1: e / (e + 2), and where that is near 1, 1 - 2 / (e + 2), which the roundings of e
// hardly change.
[[gnu::always_inline]] inline double tanh(double x) {
  double y = size_of(x);
  y = y > 20.0 ? 20.0 : y;
  double shifted;
  const double r = late_remainder(2 * y, shifted);
  const double p = fused(expm1_polynomial(r), r * r, r), power = power_of_two(shifted);
  const double e = fused(p, power, power - 1);
  const double top = y > 0.5 ? -2.0 : e, first = y > 0.5 ? 1.0 : 0.0;
  return with_sign_of(x, first + top / (e + 2));
}

}  // namespace gt::math
