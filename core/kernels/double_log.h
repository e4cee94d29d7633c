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
GT_INLINE Bits log_bits(Doubles x) { return bits_of(x) + (0x3ff0000000000000 - kRootHalf); }
GT_INLINE Doubles mantissa_of(Bits off) { return of_bits((off & kMantissa) + kRootHalf); }
// Numbers below 2^52 as double, less `bias`.
GT_INLINE Doubles whole_less(Bits n, double bias) {
  return of_bits(n | 0x4330000000000000) - (0x1p52 + bias);
}

// e log(2) + log(1 + f).
GT_INLINE Doubles log_sum(Doubles e, Doubles f) {
  const Doubles s = f / (2 + f), z = s * s, half = (0.5 * f) * f;
  const Doubles r = z * polynomial(z, 0x1.5555555555594p-1, 0x1.999999997f6f4p-2, 0x1.2492494241b12p-2,
                                   0x1.c71c51cf81392p-3, 0x1.746649bd8c994p-3, 0x1.39a0b5fbbc616p-3,
                                   0x1.2f0f1d6b58c47p-3);
  return fused(e, kLog2, f - (half - fused(s, half + r, e * kLog2Rest)));
}

GT_RARE Doubles log_anywhere(Doubles x) {
  const Mask tiny = x < 0x1p-1022;
  const Bits off = log_bits(pick(tiny, x * 0x1p54, x));
  const Doubles e = whole_less(off >> 52, 1023) - pick(tiny, 54.0, 0.0);
  const Doubles out = log_sum(e, mantissa_of(off) - 1);
  const Doubles other = pick(x == 0, -kInfinity, pick(x < 0, kNan, x));
  return pick((x > 0) & (x < kInfinity), out, other);  // infinity, NaN
}
GT_INLINE Doubles log(Doubles x) {
  if (any(not_normal(x))) [[unlikely]]
    return log_anywhere(x);
  const Bits off = log_bits(x);
  return log_sum(whole_less(off >> 52, 1023), mantissa_of(off) - 1);
}

// log(u + c) + extra log(2) for a normal u from 2^-1000 to 2^1000, and a c that is small beside it.
GT_INLINE Doubles log_of_pair(Doubles u, Doubles c, Doubles extra) {
  const Bits off = log_bits(u);
  const Doubles down = of_bits(0x7fe0000000000000 - (off & ~kMantissa));  // 2^-e
  return log_sum(whole_less(off >> 52, 1023) + extra, fused(c, down, mantissa_of(off) - 1));
}
GT_RARE Doubles log1p_anywhere(Doubles x) {
  const Mask large = x > 0x1p1000;
  const Doubles y = pick(large, 0x1p-24 * x, x);
  const Pair u = two_sum(all(1), y);
  const Doubles out = log_of_pair(pick(large, y, u.hi), pick(large, 0.0, u.lo), pick(large, 24.0, 0.0));
  const Doubles other = pick(x == -1, -kInfinity, pick(x < -1, kNan, x));
  return pick((x > -1) & (x < kInfinity), out, other);
}
GT_INLINE Doubles log1p(Doubles x) {
  if (any(~((x > -1) & (x < 0x1p1000)))) [[unlikely]]
    return of_bits(bits_of(log1p_anywhere(x)) | sign_bit(x));
  const Pair u = two_sum(all(1), x);
  return of_bits(bits_of(log_of_pair(u.hi, u.lo, Doubles{})) | sign_bit(x));
}

// sqrt(hi + lo) as a pair: Dekker's.
GT_INLINE Pair root_of(Doubles hi, Doubles lo) {
  const Doubles h = sqrt(hi);
  const Pair square = two_product(h, h);
  return {h, (((hi - square.hi) - square.lo) + lo) / (2 * h)};
}
// log(|x| + sqrt(x^2 + 1)), and log(2 |x|) for large ones.
constexpr double kLargeRoot = 0x1p30;
GT_INLINE Pair asinh_argument(Doubles y) {
  const Pair square = two_product(y, y), sum = two_sum(all(1), square.hi);
  const Pair root = root_of(sum.hi, sum.lo + square.lo), u = two_sum(y, root.hi);
  return {u.hi, u.lo + root.lo};
}
// log(2 x) for large ones, by the argument for the others.
GT_INLINE Doubles log_or_twice(Doubles x, Mask large, Pair u) {
  return log_of_pair(pick(large, 0x1p-24 * x, u.hi), pick(large, 0.0, u.lo), pick(large, 25.0, 0.0));
}
GT_RARE Doubles asinh_anywhere(Doubles y) {
  const Mask large = y > kLargeRoot;
  const Doubles out = log_or_twice(y, large, asinh_argument(pick(large, 0.0, y)));
  return pick(y < 0x1p-28, y, pick(y < kInfinity, out, y));
}
GT_INLINE Doubles asinh(Doubles x) {
  const Doubles y = size_of(x);
  if (any(~((y < kLargeRoot) & (y > 0x1p-28)))) [[unlikely]]
    return with_sign_of(x, asinh_anywhere(y));
  const Pair u = asinh_argument(y);
  return with_sign_of(x, log_of_pair(u.hi, u.lo, Doubles{}));
}
// log(x + sqrt((x - 1) (x + 1))).
GT_INLINE Pair acosh_argument(Doubles x) {
  const Doubles t = x - 1;
  const Pair more = two_sum(x, all(1)), square = two_product(t, more.hi);
  const Pair root = root_of(square.hi, fused(t, more.lo, square.lo)), u = two_sum(x, root.hi);
  return {u.hi, u.lo + root.lo};
}
GT_RARE Doubles acosh_anywhere(Doubles x) {
  const Mask large = x > kLargeRoot;
  const Doubles out = log_or_twice(x, large, acosh_argument(pick(large, 2.0, x)));
  const Doubles other = pick(x == 1, 0.0, pick(x < 1, kNan, x));
  return pick((x > 1) & (x < kInfinity), out, other);
}
GT_INLINE Doubles acosh(Doubles x) {
  if (any(~((x > 1) & (x < kLargeRoot)))) [[unlikely]]
    return acosh_anywhere(x);
  const Pair u = acosh_argument(x);
  return log_of_pair(u.hi, u.lo, Doubles{});
}
// log((1 + x) / (1 - x)) / 2: with a whole e near log2 of the quotient, which the bits of both give, s = (1 +
// x - 2^e (1 - x)) / (1 + x + 2^e (1 - x)) is within 1/4, and one division does.
GT_INLINE Doubles atanh(Doubles x) {
  const Doubles y = size_of(x);
  const Mask small = y < 0.25;
  const Pair a = quick_sum(all(1), y), b = quick_sum(all(1), -y);
  const Bits near = (bits_of(a.hi) - bits_of(b.hi) + 0x0008000000000000) >> 52, whole = near & bits_of(~small);
  const Doubles power = of_bits((whole + 1023) << 52), e = 0.5 * whole_less(whole, 0), c = power * b.hi;
  const Doubles top = (a.hi - c) + fused(-power, b.lo, a.lo);
  const Doubles s = pick(small, y, top / (a.hi + c)), z = s * s;
  const Doubles r = (0.5 * z) * polynomial(z, 0x1.555555555555ap-1, 0x1.99999999982c4p-2,
                                           0x1.24924925c85fap-2, 0x1.c71c70c46ac30p-3, 0x1.745d54514bd9fp-3,
                                           0x1.3b0b0270919b1p-3, 0x1.11d2e9eff4bcap-3, 0x1.cdb8afd7f5706p-4,
                                           0x1.1fbf39e1ecb74p-3);
  const Doubles out = fused(e, kLog2, s + fused(s, r, e * kLog2Rest));
  return with_sign_of(x, pick(y < 1, out, pick(y == 1, kInfinity, kNan)));
}

}  // namespace gt::math
