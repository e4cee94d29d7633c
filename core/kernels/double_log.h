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

}  // namespace gt::math
