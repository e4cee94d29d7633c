// What the functions of double (double_exp.h, double_log.h, double_trig.h, double_erf.h, double_pow.h) are
// made of: named operations, bits, pairs. No function there has a branch or calls another library, so that
// compilers turn a block of map.h into vector code; results are the same whichever compiler built them (these
// files are compiled with -ffp-contract=off, and where a product is rounded before it is added is said by
// name).
//
// The polynomials are fits of our own (tools/fit_double.py). tests/native/double_check.cpp compares with the
// C library's long double.
#pragma once
#include <bit>
#include <cstdint>

#include "fused.h"

namespace gt::math {

[[gnu::always_inline]] inline uint64_t bits_of(double x) { return std::bit_cast<uint64_t>(x); }
[[gnu::always_inline]] inline double of_bits(uint64_t x) { return std::bit_cast<double>(x); }
[[gnu::always_inline]] inline double size_of(double x) { return of_bits(bits_of(x) & 0x7fffffffffffffff); }
[[gnu::always_inline]] inline double with_sign_of(double x, double size) {
  return of_bits((bits_of(size) & 0x7fffffffffffffff) | (bits_of(x) & 0x8000000000000000));
}
constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");

// Adding and subtracting this rounds to a whole number and leaves it in the low bits: processors before
// AVX-512 have no conversion between double and 64-bit integers.
constexpr double kWhole = 0x1.8p52;
// 2^k for a k that kWhole was added to, in the range of normal numbers.
[[gnu::always_inline]] inline double power_of_two(double shifted) {
  return of_bits((bits_of(shifted) << 52) + 0x3ff0000000000000);
}

// c0 + c1 x + c2 x^2 + ..., Horner's way.
[[gnu::always_inline]] inline double polynomial(double, double c) { return c; }
template <class... C> [[gnu::always_inline]] inline double polynomial(double x, double c, C... more) {
  return fused(polynomial(x, more...), x, c);
}

// An unevaluated sum of two doubles: Dekker, "A floating-point technique for extending the available
// precision", 1971.
struct Pair {
  double hi, lo;
};
// a + b without error, for any two (Knuth) and for |a| >= |b| or a = 0 (Dekker).
[[gnu::always_inline]] inline Pair two_sum(double a, double b) {
  const double s = a + b, c = s - a;
  return {s, (a - (s - c)) + (b - c)};
}
[[gnu::always_inline]] inline Pair quick_sum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}
// a * b without error (without FMA: but for the last bit of lo).
[[gnu::always_inline]] inline Pair two_product(double a, double b) {
  const double p = a * b;
#if GT_HAS_FMA
  return {p, __builtin_fma(a, b, -p)};
#else
  const double u = of_bits(bits_of(a) & 0xfffffffff8000000),
               v = of_bits(bits_of(b) & 0xfffffffff8000000);  // 26 bits
  return {p, (((u * v - p) + u * (b - v)) + (a - u) * v) + (a - u) * (b - v)};
#endif
}

}  // namespace gt::math
