// exp, expm1, sinh, cosh and tanh of double.
//
// x = k log(2) + r with a whole k and |r| <= log(2) / 2 (Cody and Waite, "Software Manual for the Elementary
// Functions", 1980: log(2) in two parts, of which k times the first is exact), a polynomial of r, and 2^k
// from its exponent bits. Without FMA a polynomial takes twice as many steps: there r is what remains beside
// a multiple of log(2) / 256, and 2^(j / 256) comes from a table (Tang, "Table-driven implementation of the
// exponential function", 1989).
#pragma once
#include "double_base.h"
#include "tables.h"

namespace gt::math {

constexpr double kLog2Inverse = 0x1.71547652b82fep+0;
constexpr double kLog2 = 0x1.62e42fefa3800p-1, kLog2Rest = 0x1.ef35793c76730p-45;  // the first of 42 bits
constexpr double kExpNear = 708;  // up to there 2^k and the result are normal numbers
constexpr uint64_t kWholeBits = std::bit_cast<uint64_t>(kWhole);

template <int N> GT_INLINE Doubles<N> less_powers(Doubles<N> x, Doubles<N> k) {
  return fused(k, -kLog2Rest, fused(k, -kLog2, x));
}
// x less k log(2) with r from -0.4 to 0.6 log(2), and k + kWholeBits: k becomes 1 at larger results, where
// rounding errors matter less.
template <int N> struct Reduced {
  Doubles<N> r;
  Bits<N> k;
};
template <int N> GT_INLINE Reduced<N> late_reduced(Doubles<N> x) {
  const Doubles<N> shifted = fused(x, kLog2Inverse, -0.1) + kWhole;
  return {less_powers(x, shifted - kWhole), bits_of(shifted)};
}

// exp(r) - 1 with a relative error of 2^-61.
template <int N> GT_INLINE Doubles<N> expm1_small(Doubles<N> r) {
  const Doubles<N> p =
      polynomial(r, 0x1.0000000000000p-1, 0x1.5555555555553p-3, 0x1.55555555555bap-5, 0x1.1111111112300p-7,
                 0x1.6c16c16bcea1fp-10, 0x1.a01a01969a535p-13, 0x1.a01a03e2e23fcp-16, 0x1.71de52c75eb62p-19,
                 0x1.27dd4a47e122cp-22, 0x1.ae7f7cff08b9bp-26, 0x1.31eb1cd529c75p-29);
  return fused(p, r * r, r);
}

// exp(x) = 2^k h exp(r), k + kExpBias; h is 1 or from the table. exp_tail is h (exp(r) - 1), with an error of
// 2^-57, and expm1_tail the same with an error of 2^-61 of it; times_head is h x.
#if GT_HAS_FMA
constexpr uint64_t kExpBias = kWholeBits;
template <int N> using ExpParts = Reduced<N>;
template <int N> GT_INLINE ExpParts<N> exp_parts(Doubles<N> x) {
  const Doubles<N> shifted = fused(x, kLog2Inverse, kWhole);
  return {less_powers(x, shifted - kWhole), bits_of(shifted)};
}
template <int N> GT_INLINE ExpParts<N> late_exp_parts(Doubles<N> x) { return late_reduced(x); }
template <int N> GT_INLINE Doubles<N> exp_tail(ExpParts<N> e) {
  const Doubles<N> p =
      polynomial(e.r, 0x1.000000000000cp-1, 0x1.555555555555cp-3, 0x1.555555554fdedp-5, 0x1.111111110e9e6p-7,
                 0x1.6c16c1860fabep-10, 0x1.a01a01b450fe4p-13, 0x1.a019959d9650ap-16, 0x1.71ddee4e45516p-19,
                 0x1.28b115aeea0bap-22, 0x1.af6ec62e5ab79p-26);
  return fused(p, e.r * e.r, e.r);
}
template <int N> GT_INLINE Doubles<N> expm1_tail(ExpParts<N> e) { return expm1_small(e.r); }
template <int N> GT_INLINE Doubles<N> times_head(ExpParts<N>, Doubles<N> x) { return x; }
template <int N> GT_INLINE Doubles<N> head_and(ExpParts<N>, Doubles<N> tail) { return 1 + tail; }
#else
constexpr uint64_t kExpBias = kWholeBits >> 8;
template <int N> struct ExpParts {
  Doubles<N> r;
  Bits<N> k;
  Known<Doubles<N> > head;
};
template <int N> GT_INLINE ExpParts<N> exp_parts(Doubles<N> x) {
  const Doubles<N> shifted = x * (256 * kLog2Inverse) + kWhole, n = shifted - kWhole;
  const Bits<N> whole = bits_of(shifted);
  return {(x - n * 0x1.62e42fef80000p-9) - n * 0x1.1cf79abc9e3b4p-44, whole >> 8,
          look_up(gradtape_double_exp, whole & 255)};
}
template <int N> GT_INLINE ExpParts<N> late_exp_parts(Doubles<N> x) { return exp_parts(x); }
template <int N> GT_INLINE Doubles<N> expm1_tail(ExpParts<N> e) {
  const Doubles<N> p =
      polynomial(e.r, 0x1.fffffffffffe6p-2, 0x1.5555555555561p-3, 0x1.5555570a0910ap-5, 0x1.1111114e680b1p-7);
  return e.head.slope + e.head.value * (e.r + p * (e.r * e.r));
}
template <int N> GT_INLINE Doubles<N> exp_tail(ExpParts<N> e) {
  return e.head.value *
         (e.r +
          polynomial(e.r, 0x1.fffffffffffdbp-2, 0x1.555557227798ep-3, 0x1.55555740bd6cap-5) * (e.r * e.r));
}
template <int N> GT_INLINE Doubles<N> times_head(ExpParts<N> e, Doubles<N> x) { return e.head.value * x; }
template <int N> GT_INLINE Doubles<N> head_and(ExpParts<N> e, Doubles<N> tail) { return e.head.value + tail; }
#endif
// exp(r) h.
template <int N> GT_INLINE Doubles<N> exp_small(ExpParts<N> e) { return head_and(e, exp_tail(e)); }
// 2^k.
template <int N> GT_INLINE Doubles<N> power_of_two(Bits<N> k) {
  return of_bits((k << 52) + 0x3ff0000000000000);
}
// 2^k x; x and the result are normal numbers.
template <int N> GT_INLINE Doubles<N> scaled(Doubles<N> x, Bits<N> k) {
  return of_bits(bits_of(x) + (k << 52));
}
// 2^k as two factors, for -1080 <= k <= 1100: subnormal results are rounded once, and intermediate results do
// not overflow for k up to 1024.
template <int N> struct TwoFactors { Doubles<N> first, second; };
template <int N> GT_INLINE TwoFactors<N> factors_of(Bits<N> k) {
  const Bits<N> e = k - (kExpBias - 2046), half = e >> 1;
  return {of_bits(half << 52), of_bits((e - half) << 52)};
}

template <int N> GT_RARE Doubles<N> exp_anywhere(Doubles<N> x) {
  const ExpParts<N> e = exp_parts(at_most(at_least(x, -746), 710));
  const TwoFactors<N> f = factors_of(e.k);
  return exp_small(e) * f.first * f.second;
}
template <int N> GT_INLINE Doubles<N> exp(Doubles<N> x) {
  if constexpr (N > 1 && !GT_HAS_FMA) {  // look-ups take longer for two registers at once
    return one_by_one<N>(
        [](auto y) __attribute__((always_inline)) { return exp(y); }, x);
  } else {
    if (any_beyond(x, kExpNear)) [[unlikely]]
      return exp_anywhere(x);
    const ExpParts<N> e = exp_parts(x);
    return scaled(exp_small(e), e.k);
  }
}
// exp(-x^2 / 2), with the square as a pair: exp would magnify the rounding error of a large square to many
// ulps.
template <int N> GT_INLINE Doubles<N> exp_half_square(Doubles<N> x) {
  const Doubles<N> y = at_most(size_of(x), 39), u = -0.5 * y;
  const Pair<N> square = two_product(u, y);
  ExpParts<N> e = exp_parts(square.hi);
  e.r = e.r + square.lo;
  const TwoFactors<N> f = factors_of(e.k);
  return exp_small(e) * f.first * f.second;
}

// exp(x) - 1 = 2^k (h + p) - 1, computed without the second factor of 2^k, which is multiplied in at the end.
template <int N> GT_RARE Doubles<N> expm1_anywhere(Doubles<N> x) {
  const ExpParts<N> e = late_exp_parts(at_most(at_least(x, -40), 710));
  const TwoFactors<N> f = factors_of(e.k);
  const Doubles<N> inverse = of_bits(0x7fe0000000000000 - bits_of(f.second));
  return fused(expm1_tail(e), f.first, times_head(e, f.first) - inverse) * f.second;
}
template <int N> GT_INLINE Doubles<N> expm1(Doubles<N> x) {
  if (any_beyond(x, kExpNear)) [[unlikely]]
    return of_bits(bits_of(expm1_anywhere(x)) | sign_bit(x));
  const ExpParts<N> e = late_exp_parts(x);
  const Doubles<N> power = power_of_two(e.k);
  return of_bits(bits_of(fused(expm1_tail(e), power, times_head(e, power) - 1)) | sign_bit(x));
}

// sinh(r) and cosh(r) of the remainder are polynomials of r^2; no division is needed for exp(-x). With a =
// 2^k / 2 and b = 2^-k / 2, sinh(x) = (a - b) cosh(r) + (a + b) sinh(r).
template <int N> struct Hyperbolic { Doubles<N> sinh, cosh_less_1; };
template <int N> GT_INLINE Hyperbolic<N> hyperbolic_parts(Doubles<N> r) {
  const Doubles<N> z = r * r;
  const Doubles<N> s = polynomial(z, 0x1.5555555555555p-3, 0x1.1111111111276p-7, 0x1.a01a019f969d8p-13,
                                  0x1.71de3bb94f108p-19, 0x1.ae60bbd29c19bp-26, 0x1.650b8b407736ep-33);
  const Doubles<N> c = polynomial(z, 0x1.0000000000000p-1, 0x1.5555555555566p-5, 0x1.6c16c16c0f2a3p-10,
                                  0x1.a01a01c835c00p-16, 0x1.27e49905a0019p-22, 0x1.1fd1b270754c2p-29);
  return {fused(r * z, s, r), z * c};
}
// With 2^k / 8, which does not overflow; 2^-k is left out where it is too small to matter.
template <int N> GT_RARE Doubles<N> sinh_anywhere(Doubles<N> x) {
  const Doubles<N> y = at_most(size_of(x), 711);
  const Reduced<N> e = late_reduced(y);
  const Hyperbolic<N> h = hyperbolic_parts(e.r);
  const Bits<N> power = e.k << 52;
  const Doubles<N> a = of_bits(power + 0x3fc0000000000000);
  const Doubles<N> b = pick(y > 44, 0.0, of_bits(0x3fc0000000000000 - power));
  const Doubles<N> out = 4 * ((a - b) + fused(a - b, h.cosh_less_1, (a + b) * h.sinh));
  return with_sign_of(x, pick(y < 0x1p-28, y, out));
}
template <int N> GT_INLINE Doubles<N> sinh(Doubles<N> x) {
  if (any_beyond(x, kExpNear)) [[unlikely]]
    return sinh_anywhere(x);
  const Reduced<N> e = late_reduced(size_of(x));
  const Hyperbolic<N> h = hyperbolic_parts(e.r);
  const Bits<N> power = e.k << 52;
  const Doubles<N> a = of_bits(power + 0x3fe0000000000000), b = of_bits(0x3fe0000000000000 - power);
  return with_sign_of(x, (a - b) + fused(a - b, h.cosh_less_1, (a + b) * h.sinh));
}

// h + 1 / (4 h) with h = exp(|x|) / 2.
template <int N> GT_RARE Doubles<N> cosh_anywhere(Doubles<N> x) {
  const ExpParts<N> e = exp_parts(at_most(size_of(x), 711));
  const TwoFactors<N> f = factors_of(e.k);
  const Doubles<N> h = 0.125 * exp_small(e) * f.first * f.second;
  return 4 * (h + 0.015625 / h);
}
template <int N> GT_INLINE Doubles<N> cosh(Doubles<N> x) {
  if (any_beyond(x, kExpNear)) [[unlikely]]
    return cosh_anywhere(x);
  const ExpParts<N> e = exp_parts(size_of(x));
  const Doubles<N> h = scaled(0.5 * exp_small(e), e.k);
  return h + 0.25 / h;
}

// With e = exp(2 |x|) - 1: e / (e + 2), and near 1 as 1 - 2 / (e + 2), which the rounding errors of e hardly
// affect.
template <int N> GT_INLINE Doubles<N> tanh(Doubles<N> x) {
  const Doubles<N> y = at_most(size_of(x), 20);
  const Reduced<N> e = late_reduced(2 * y);
  const Doubles<N> p = expm1_small(e.r), power = power_of_two(e.k);
  const Doubles<N> less_1 = fused(p, power, power - 1), sum = fused(p, power, power + 1);
  const Mask<N> near_1 = y > 0.5;
  return with_sign_of(x, pick(near_1, 1.0, 0.0) + pick(near_1, -2.0, less_1) / sum);
}

}  // namespace gt::math
