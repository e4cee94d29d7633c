// log, log1p, asinh, acosh and atanh of double.
//
// x = 2^e m with m in [sqrt(1/2), sqrt(2)), and log(m) = 2 atanh(s) for s = f / (2 + f), f = m - 1, as f - s
// (f - R): the first term is exact (Tang, "Table-driven implementation of the logarithm function", 1990,
// discusses the splitting; fdlibm's log has the form). R is a polynomial of s^2.
#pragma once
#include "double_base.h"
#include "double_exp.h"

namespace gt::math {

// The bits of a positive normal number, shifted so that the exponent field is e + 1023 and the bits below it,
// plus kRootHalf, are m.
constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd, kMantissa = 0x000fffffffffffff;
template <int N> GT_INLINE Bits<N> log_bits(Doubles<N> x) {
  return bits_of(x) + (0x3ff0000000000000 - kRootHalf);
}
template <int N> GT_INLINE Doubles<N> mantissa_of(Bits<N> off) {
  return of_bits((off & kMantissa) + kRootHalf);
}
// 2^-e.
template <int N> GT_INLINE Doubles<N> inverse_power(Bits<N> off) {
  return of_bits(0x7fe0000000000000 - (off & ~kMantissa));
}
// n - bias in double, for integers n below 2^52.
template <int N> GT_INLINE Doubles<N> whole_less(Bits<N> n, double bias) {
  return of_bits(n | 0x4330000000000000) - (0x1p52 + bias);
}

// e log(2) + log(1 + f).
template <int N> GT_INLINE Doubles<N> log_sum(Doubles<N> e, Doubles<N> f) {
  const Doubles<N> s = f / (2 + f), z = s * s, first = fused(s, f, e * -kLog2Rest);
  const Doubles<N> p =
      polynomial(z, 0x1.5555555555594p-1, 0x1.999999997f6f4p-2, 0x1.2492494241b12p-2, 0x1.c71c51cf81392p-3,
                 0x1.746649bd8c994p-3, 0x1.39a0b5fbbc616p-3, 0x1.2f0f1d6b58c47p-3);
  return fused(e, kLog2, f - fused_from(s * z, p, first));
}

template <int N> GT_RARE Doubles<N> log_anywhere(Doubles<N> x) {
  const Mask<N> tiny = x < 0x1p-1022;
  const Bits<N> off = log_bits(pick(tiny, x * 0x1p54, x));
  const Doubles<N> e = whole_less(off >> 52, 1023) - pick(tiny, 54.0, 0.0);
  const Doubles<N> out = log_sum(e, mantissa_of(off) - 1);
  const Doubles<N> other = pick(x == 0, -kInfinity, pick(x < 0, kNan, x));
  return pick((x > 0) & (x < kInfinity), out, other);  // infinity, NaN
}
template <int N> GT_INLINE Doubles<N> log(Doubles<N> x) {
  if (any_not_normal(x)) [[unlikely]]
    return log_anywhere(x);
  const Bits<N> off = log_bits(x);
  return log_sum(whole_less(off >> 52, 1023), mantissa_of(off) - 1);
}

// log(u + c) + more log(2) for 2^-1000 <= u <= 2^1000 and |c| much smaller than u.
template <int N, class... More> GT_INLINE Doubles<N> log_of_pair(Doubles<N> u, Doubles<N> c, More... more) {
  const Bits<N> off = log_bits(u);
  return log_sum((whole_less(off >> 52, 1023) + ... + more),
                 fused(c, inverse_power(off), mantissa_of(off) - 1));
}
// log(1 + x) + more log(2), u = 1 + x rounded: with 2^e near u, m - 1 = 2^-e x + (2^-e - 1), which is rounded
// once.
template <int N, class... More> GT_INLINE Doubles<N> log1p_of(Doubles<N> x, Doubles<N> u, More... more) {
  const Bits<N> off = log_bits(u);
  const Doubles<N> down = inverse_power(off);
  return log_sum((whole_less(off >> 52, 1023) + ... + more), fused(x, down, down - 1));
}
template <int N> GT_RARE Doubles<N> log1p_anywhere(Doubles<N> x) {
  const Mask<N> large = x > 0x1p1000;
  const Doubles<N> y = pick(large, 0x1p-24 * x, x), out = log1p_of(y, 1 + y, pick(large, 24.0, 0.0));
  const Doubles<N> other = pick(x == -1, -kInfinity, pick(x < -1, kNan, x));
  return pick((x > -1) & (x < kInfinity), out, other);
}
template <int N> GT_INLINE Doubles<N> log1p(Doubles<N> x) {
  const Doubles<N> u = 1 + x;
  if (any_outside(u, 0x1p-60, 0x1p1000)) [[unlikely]]
    return of_bits(bits_of(log1p_anywhere(x)) | sign_bit(x));
  return of_bits(bits_of(log1p_of(x, u)) | sign_bit(x));
}

// sqrt(hi + lo) as a pair (Dekker 1971).
template <int N> GT_INLINE Pair<N> root_of(Doubles<N> hi, Doubles<N> lo) {
  const Doubles<N> h = square_root(hi);
  const Pair<N> square = two_product(h, h);
  return {h, (((hi - square.hi) - square.lo) + lo) / (2 * h)};
}
// asinh: log(|x| + sqrt(x^2 + 1)), and log(2 |x|) for large x.
constexpr double kLargeRoot = 0x1p30;
template <int N> GT_INLINE Pair<N> asinh_argument(Doubles<N> y) {
  const Pair<N> square = two_product(y, y), sum = two_sum(Doubles<N>(1), square.hi);
  const Pair<N> root = root_of(sum.hi, sum.lo + square.lo), u = two_sum(y, root.hi);
  return {u.hi, u.lo + root.lo};
}
// log(2 x) for large x, otherwise log(u).
template <int N> GT_INLINE Doubles<N> log_or_twice(Doubles<N> x, Mask<N> large, Pair<N> u) {
  return log_of_pair(pick(large, 0x1p-24 * x, u.hi), pick(large, 0.0, u.lo), pick(large, 25.0, 0.0));
}
template <int N> GT_RARE Doubles<N> asinh_anywhere(Doubles<N> y) {
  const Mask<N> large = y > kLargeRoot;
  const Doubles<N> out = log_or_twice(y, large, asinh_argument(pick(large, 0.0, y)));
  return pick(y < 0x1p-28, y, pick(y < kInfinity, out, y));
}
template <int N> GT_INLINE Doubles<N> asinh(Doubles<N> x) {
  const Doubles<N> y = size_of(x);
  if (any_outside(y, 0x1p-28, kLargeRoot)) [[unlikely]]
    return with_sign_of(x, asinh_anywhere(y));
  const Pair<N> u = asinh_argument(y);
  return with_sign_of(x, log_of_pair(u.hi, u.lo));
}
// acosh: log(x + sqrt((x - 1) (x + 1))).
template <int N> GT_INLINE Pair<N> acosh_argument(Doubles<N> x) {
  const Doubles<N> t = x - 1;
  const Pair<N> more = two_sum(x, Doubles<N>(1)), square = two_product(t, more.hi);
  const Pair<N> root = root_of(square.hi, fused(t, more.lo, square.lo)), u = two_sum(x, root.hi);
  return {u.hi, u.lo + root.lo};
}
template <int N> GT_RARE Doubles<N> acosh_anywhere(Doubles<N> x) {
  const Mask<N> large = x > kLargeRoot;
  const Doubles<N> out = log_or_twice(x, large, acosh_argument(pick(large, 2.0, x)));
  const Doubles<N> other = pick(x == 1, 0.0, pick(x < 1, kNan, x));
  return pick((x > 1) & (x < kInfinity), out, other);
}
template <int N> GT_INLINE Doubles<N> acosh(Doubles<N> x) {
  if (any_outside(x, 1 + 0x1p-52, kLargeRoot)) [[unlikely]]
    return acosh_anywhere(x);
  const Pair<N> u = acosh_argument(x);
  return log_of_pair(u.hi, u.lo);
}
// log((1 + x) / (1 - x)) / 2: with an integer e near log2 of the quotient, found from the bits of both, |s|
// <= 1/4 for s = (1 + x - 2^e (1 - x)) / (1 + x + 2^e (1 - x)), so that there is one division.
template <int N> GT_INLINE Doubles<N> atanh_of(Doubles<N> y) {
  const Mask<N> small = y < 0.25;
  const Pair<N> a = quick_sum(Doubles<N>(1), y), b = quick_sum(Doubles<N>(1), -y);
  const Bits<N> near = (bits_of(a.hi) - bits_of(b.hi) + 0x0008000000000000) >> 52,
                whole = near & bits_of(!small);
  const Doubles<N> power = of_bits((whole + 1023) << 52), e = 0.5 * whole_less(whole, 0), c = power * b.hi;
  const Doubles<N> top = (a.hi - c) + fused(-power, b.lo, a.lo);
  const Doubles<N> s = pick(small, y, top / (a.hi + c)), z = s * s;
  const Doubles<N> r =
      (0.5 * z) * polynomial(z, 0x1.555555555555ap-1, 0x1.99999999982c4p-2, 0x1.24924925c85fap-2,
                             0x1.c71c70c46ac30p-3, 0x1.745d54514bd9fp-3, 0x1.3b0b0270919b1p-3,
                             0x1.11d2e9eff4bcap-3, 0x1.cdb8afd7f5706p-4, 0x1.1fbf39e1ecb74p-3);
  return fused(e, kLog2, s + fused(s, r, e * kLog2Rest));
}
template <int N> GT_RARE Doubles<N> atanh_anywhere(Doubles<N> x) {
  const Doubles<N> y = size_of(x);
  return with_sign_of(x, pick(y < 1, atanh_of(y), pick(y == 1, kInfinity, kNan)));
}
template <int N> GT_INLINE Doubles<N> atanh(Doubles<N> x) {
  if (any_beyond(x, 1 - 0x1p-53)) [[unlikely]]
    return atanh_anywhere(x);
  return with_sign_of(x, atanh_of(size_of(x)));
}

}  // namespace gt::math
