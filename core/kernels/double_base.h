// What the functions of double (double_exp.h, double_log.h, double_trig.h, double_arc.h, double_erf.h,
// double_pow.h) share: which arguments are out of range, pairs of doubles.
//
// A function first asks whether an argument of its registers needs more than the short way (a result that is
// no normal number, an infinity, an operand out of range), and then takes the long way for all of them, which
// gives the others the same results.
//
// The polynomials are fits of our own (tools/fit_double.py). tests/native/double_check.cpp compares with the
// C library's long double.
#pragma once
#include "registers.h"

namespace gt::math {

// The long way: out of the way of the other one's registers.
#define GT_RARE [[gnu::noinline, gnu::cold]] inline

// Where x is larger than y in size, or NaN: bits of numbers without a sign compare as the numbers do.
template <int N> GT_INLINE Mask<N> beyond(Doubles<N> x, double y) {
  return signed_of(bits_of(size_of(x))) > int64_t(bits_of(y));
}
// Where x is not from 2^-1022 up to the largest finite number: one comparison, of the bits as signed numbers.
template <int N> GT_INLINE Mask<N> not_normal(Doubles<N> x) {
  return signed_of(bits_of(x) - 0x8010000000000000) >= int64_t(0x7fe0000000000000 + kSignBit<double>);
}

template <int N> GT_INLINE Mask<N> is_whole(Doubles<N> x) { return nearest_whole(x) == x; }

// f of one register after the other, for formulas that fill all of them.
template <int N, class F, class... X> GT_INLINE Doubles<N> one_by_one(F f, X... x) {
  return GT_REGISTERS(double, f(Doubles<1>(x.at[k])...).at[0]);
}
// What loops take at a time. 512 bits are worked off in halves anyway, and wait less.
constexpr int kRegisters = kVectorBytes == 64 ? 1 : 2, kDoubles = kRegisters * kLanes<double>;

constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");

// Adding and subtracting this rounds to a whole number and leaves it in the low bits: processors before
// AVX-512 have no conversion between double and 64-bit integers.
constexpr double kWhole = 0x1.8p52;
// 2^k for a k that kWhole was added to, in the range of normal numbers.
template <int N> GT_INLINE Doubles<N> power_of_two(Doubles<N> shifted) {
  return of_bits((bits_of(shifted) << 52) + 0x3ff0000000000000);
}

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
