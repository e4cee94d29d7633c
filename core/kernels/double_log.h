// log, log1p, asinh, acosh and atanh of double.
//
// x = 2^e m with m in [sqrt(1/2), sqrt(2)), and log(m) = 2 atanh(s) for s = f / (2 + f), f = m - 1, as f - s
// (f - R): the first term is exact (Tang, "Table-driven implementation of the logarithm function", 1990,
// discusses the splitting; fdlibm's log has the form). R is a polynomial of s^2.
#pragma once
#include "double_base.h"
#include "double_exp.h"

namespace gt::math {

// The bits of a positive normal number as those of m and e + 1023, where (bits & mantissa) + kRootHalf is m.
constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kMantissa = 0x000fffffffffffff;
[[gnu::always_inline]] inline uint64_t log_bits(double x) {
  return bits_of(x) + (0x3ff0000000000000 - kRootHalf);
}
[[gnu::always_inline]] inline double mantissa_of(uint64_t off) {
  return of_bits((off & kMantissa) + kRootHalf);
}
// A number below 2^52 as double, less `bias`.
[[gnu::always_inline]] inline double whole_less(uint64_t n, double bias) {
  return of_bits(n | 0x4330000000000000) - (0x1p52 + bias);
}

// e log(2) + log(1 + f).
[[gnu::always_inline]] inline double log_sum(double e, double f) {
  const double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
  const double r =
      z * polynomial(z, 0x1.5555555555594p-1, 0x1.999999997f6f4p-2, 0x1.2492494241b12p-2,
                     0x1.c71c51cf81392p-3, 0x1.746649bd8c994p-3, 0x1.39a0b5fbbc616p-3, 0x1.2f0f1d6b58c47p-3);
  return fused(e, kLog2, f - (half - fused(s, half + r, e * kLog2Rest)));
}

[[gnu::always_inline]] inline double log(double x) {
  const bool tiny = x < 0x1p-1022;
  const uint64_t off = log_bits(tiny ? x * 0x1p54 : x);
  const double e = whole_less(off >> 52, 1023) - (tiny ? 54.0 : 0.0);
  const double out = log_sum(e, mantissa_of(off) - 1);
  const double other = x == 0 ? -kInfinity : x < 0 ? kNan : x;
  return x > 0 && x < kInfinity ? out : other;  // infinity, NaN
}

// log(u + c) + extra log(2) for a normal u > 2^-1000 and a c that is small beside it.
[[gnu::always_inline]] inline double log_of_pair(double u, double c, double extra) {
  const uint64_t off = log_bits(u), e = off >> 52;
  const double down = of_bits((2047 - e) << 52);  // 2 / 2^e; 0 for the largest u, whose c does not count
  return log_sum(whole_less(e, 1023) + extra, (mantissa_of(off) - 1) + c * (0.5 * down));
}
[[gnu::always_inline]] inline double log1p(double x) {
  const Pair u = two_sum(1, x);
  const double out = with_sign_of(x, log_of_pair(u.hi, u.lo, 0));
  const double other = x == -1 ? -kInfinity : x < -1 ? kNan : x;
  return x > -1 && x < kInfinity ? out : other;
}

// sqrt(hi + lo) as a pair: Dekker's.
[[gnu::always_inline]] inline Pair root_of(double hi, double lo) {
  const double h = __builtin_sqrt(hi);
  const Pair square = two_product(h, h);
  return {h, (((hi - square.hi) - square.lo) + lo) / (2 * h)};
}
// log(|x| + sqrt(x^2 + 1)), and log(2 |x|) for large ones.
[[gnu::always_inline]] inline double asinh(double x) {
  const double y = size_of(x), t = y > 0x1p30 ? 0.0 : y;
  const Pair square = two_product(t, t), sum = two_sum(1, square.hi);
  const Pair root = root_of(sum.hi, sum.lo + square.lo), u = two_sum(y, root.hi);
  const bool large = y > 0x1p30;
  const double out = log_of_pair(large ? y : u.hi, large ? 0.0 : u.lo + root.lo, large ? 1.0 : 0.0);
  return y < 0x1p-28 ? x : with_sign_of(x, y < kInfinity ? out : y);
}
// log(x + sqrt((x - 1) (x + 1))).
[[gnu::always_inline]] inline double acosh(double x) {
  const double y = x > 0x1p30 ? 2.0 : x, t = y - 1;
  const Pair more = two_sum(y, 1), square = two_product(t, more.hi);
  const Pair root = root_of(square.hi, fused(t, more.lo, square.lo)), u = two_sum(y, root.hi);
  const bool large = x > 0x1p30;
  const double out = log_of_pair(large ? x : u.hi, large ? 0.0 : u.lo + root.lo, large ? 1.0 : 0.0);
  const double other = x == 1 ? 0.0 : x < 1 ? kNan : x;
  return x > 1 && x < kInfinity ? out : other;
}
// log((1 + x) / (1 - x)) / 2: with a whole e near log2 of the quotient, which the bits of both give, s = (1 +
// x - 2^e (1 - x)) / (1 + x + 2^e (1 - x)) is within 1/4, and one division does.
[[gnu::always_inline]] inline double atanh(double x) {
  const double y = size_of(x);
  const Pair a = quick_sum(1, y), b = quick_sum(1, -y);
  const uint64_t near = (bits_of(a.hi) - bits_of(b.hi) + 0x0008000000000000) >> 52,
                 whole = y < 0.25 ? 0 : near;
  const double power = of_bits((whole + 1023) << 52), e = 0.5 * whole_less(whole, 0), c = power * b.hi;
  const double top = (a.hi - c) + fused(-power, b.lo, a.lo);
  const double s = y < 0.25 ? y : top / (a.hi + c), z = s * s;
  const double r = 0.5 * z *
                   polynomial(z, 0x1.555555555555ap-1, 0x1.99999999982c4p-2, 0x1.24924925c85fap-2,
                              0x1.c71c70c46ac30p-3, 0x1.745d54514bd9fp-3, 0x1.3b0b0270919b1p-3,
                              0x1.11d2e9eff4bcap-3, 0x1.cdb8afd7f5706p-4, 0x1.1fbf39e1ecb74p-3);
  const double out = fused(e, kLog2, s + fused(s, r, e * kLog2Rest));
  const double other = y == 1 ? kInfinity : kNan;
  return with_sign_of(x, y < 1 ? out : other);
}

}  // namespace gt::math
