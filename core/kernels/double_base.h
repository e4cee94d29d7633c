// What the functions of double (double_exp.h, double_log.h, double_trig.h, double_arc.h, double_erf.h,
// double_pow.h) share: range checks, and pairs of doubles for extra precision.
//
// A function has a fast path and a slow one (GT_RARE). If any argument in its registers needs the slow path
// (an infinity, an argument out of range, a subnormal result), all of them take it; the others get the same
// results there.
//
// Polynomials are fitted by tools/fit_double.py. tests/native/double_check.cpp compares with the C library's
// long double.
#pragma once
#include "registers.h"

namespace gt::math {

constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");

template <int N> GT_INLINE bool any_not_normal(Doubles<N> x) { return any_outside(x, 0x1p-1022, kInfinity); }

template <int N> GT_INLINE Mask<N> is_whole(Doubles<N> x) { return nearest_whole(x) == x; }

// f of one register after the other, for formulas that need most of the registers for one.
template <int N, class F, class... X> GT_INLINE Doubles<N> one_by_one(F f, X... x) {
  return GT_REGISTERS(double, f(Doubles<1>(x.at[k])...).at[0]);
}
// What loops take at a time. With registers of 512 bits, one is enough to keep the processor busy.
constexpr int kRegisters = kVectorBytes == 64 ? 1 : 2, kDoubles = kRegisters * kLanes<double>;

// Adding this rounds to an integer, which is then in the low bits; subtracting it again gives the integer as
// a double. Processors before AVX-512 have no conversion between double and 64-bit integers.
constexpr double kWhole = 0x1.8p52;

// An unevaluated sum of two doubles: Dekker, "A floating-point technique for extending the available
// precision", 1971.
template <int N> struct Pair { Doubles<N> hi, lo; };
// a + b without error, for any two (Knuth) and for |a| >= |b| or a = 0 (Dekker).
template <int N> GT_INLINE Pair<N> two_sum(Doubles<N> a, Doubles<N> b) {
  const Doubles<N> s = a + b, c = s - a;
  return {s, (a - (s - c)) + (b - c)};
}
template <int N> GT_INLINE Pair<N> quick_sum(Doubles<N> a, Doubles<N> b) {
  const Doubles<N> s = a + b;
  return {s, b - (s - a)};
}
// a * b without error (without FMA: but for the last bit of lo).
template <int N> GT_INLINE Pair<N> two_product(Doubles<N> a, Doubles<N> b) {
  const Doubles<N> p = a * b;
#if GT_HAS_FMA
  return {p, fused(a, b, -p)};
#else
  const Doubles<N> u = of_bits(bits_of(a) & 0xfffffffff8000000),
                   v = of_bits(bits_of(b) & 0xfffffffff8000000);  // 26 bits
  return {p, (((u * v - p) + u * (b - v)) + (a - u) * v) + (a - u) * (b - v)};
#endif
}

}  // namespace gt::math
