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

// exp(r) - 1 = 2^k (p + 1) - 1; divided by the second factor on the way.
[[gnu::always_inline]] inline double expm1(double x) {
  double y = x < -40.0 ? -40.0 : x;
  y = y > 710.0 ? 710.0 : y;
  double shifted;
  const double r = exp_remainder(y, shifted);
  const double p = fused(
      polynomial(r, 0x1.0000000000000p-1, 0x1.5555555555559p-3, 0x1.555555555554cp-5, 0x1.111111110f651p-7,
                 0x1.6c16c16c1b31fp-10, 0x1.a01a01b0061dap-13, 0x1.a01a018b4a6a1p-16, 0x1.71ddf8068c420p-19,
                 0x1.27e5196a67d85p-22, 0x1.af5f3f34a801ap-26, 0x1.1f106eeccb14cp-29),
      r * r, r);
  const TwoFactors f = factors_of(shifted);
  const double inverse = of_bits(0x7fe0000000000000 - bits_of(f.second));
  return with_sign_of(x, fused(p, f.first, f.first - inverse) * f.second);
}

}  // namespace gt::math
