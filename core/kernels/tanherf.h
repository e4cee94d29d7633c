// tanh and erf of float without branches, as explog.h has exp and log, to 2 units of the last place for every
// float (tests/native/float_check.cpp looks at all of them). The coefficients are those of least largest
// relative error (tools/fit_kernels.py).
#pragma once
#include "explog.h"

namespace gt::math {

#if GT_HAS_FMA
// The addition theorem with y = k log(2) / 2 + r: tanh(k log(2) / 2) is a / b for a = 2^k - 1 and b = 2^k +
// 1, so tanh(y) = (t b + a) / (t a + b) for t = tanh(r), a polynomial. Near 1 the roundings of both count
// fully, and it is 1 + 2 (t - 1) / (t a + b), which they hardly change. k comes from a factor below 2 /
// log(2): its steps then lie where the result is just above a power of two, and roundings count least.
template <Real X> GT_INLINE X tanh(X x) {
  const X y = at_most(X(9.1f), size_of(x));                                 // 1 from 9.02 on; NaN stays
  const X shifted = fused(y, 2.7307f, 0x1.8p23f), k = shifted - 0x1.8p23f;  // as in exp
  const X r = fused_from(k, 0.346573591f, y), q = r * r;
  const X t = fused(horner(q, -3.333328664e-01f, 1.332757324e-01f, -5.194368213e-02f), q * r, r);
  const X half = from_bits((bits_of(shifted) << 23) + 0x3f000000u), a = half - 0.5f, b = half + 0.5f;
  const auto near_1 = k > X(2);
  return with_sign_of(x, pick(near_1, t - 1, fused(t, b, a)) / fused(t, a, b) + only_if(near_1, X(1)));
}
#else
// A polynomial up to 0.625, beyond it 1 - 2 / (exp(2 y) + 1), whose second part has to have fewer digits.
template <Real X> GT_INLINE X tanh(X x) {
  const X y = at_most(X(9.1f), size_of(x)), q = y * y;
  const X low = fused(by_halves(q, q * q, -3.333327770e-01f, 1.333133131e-01f, -5.373000726e-02f,
                                2.060617879e-02f, -5.666978657e-03f),
                      q * y, y);
  X k;
  const X p = exp_small(exp_remainder(2 * y, k));
  const X high = 1 - 2 / (p * power_of_two(whole(k)) + 1);
  return with_sign_of(x, pick(y < X(0.625f), low, high));
}
#endif

// -log(erfc(y)) / y - 1.
template <Real X> GT_INLINE X erf_exponent(X y) {
  return by_halves(y, y * y, 1.283791661e-01f, 6.366193891e-01f, 1.027778387e-01f, -1.915307902e-02f,
                   -1.603699056e-04f, 1.667003031e-03f, -6.328242598e-04f, 1.176379083e-04f,
                   -9.255905752e-06f);
}
#if GT_HAS_FMA
// 1 - exp(-m), where m = -log(erfc(y)) is a polynomial; it is y (1 + m / y - 1), the first digits being
// exact.
template <Real X> GT_INLINE X erf(X x) {
  const X y = at_most(X(4), size_of(x));  // 1 from 3.92 on; NaN stays
  const X m = fused(erf_exponent(y), y, y);
  // exp(-m) - 1 = 2^k (p + 1) - 1 with p = exp(r) - 1.
  const X shifted = fused_from(m, 1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const X p = expm1_small(fused_from(k, 0.693147182f, -m));
  const X power = from_bits((bits_of(shifted) << 23) + 0x3f800000u);
  return with_sign_of(x, fused_from(power, p, 1 - power));
}
#else
// The same from 1 on; below, a polynomial.
template <Real X> GT_INLINE X erf(X x) {
  const X y = at_most(X(4), size_of(x)), q = x * x;
  const X low = fused(by_halves(q, q * q, 1.283791661e-01f, -3.761262596e-01f, 1.128358543e-01f,
                                -2.685381286e-02f, 5.188329611e-03f, -8.010208257e-04f, 7.853905117e-05f),
                      x, x);
  X k;
  const X p = exp_small(exp_remainder(-(erf_exponent(y) * y + y), k));
  return pick(y < X(1), low, with_sign_of(x, 1 - p * power_of_two(whole(k))));
}
#endif

// For y = |x|, erfc(y) = exp(-y^2) t Q(t) with t = 1 / (1 + 3/8 y), after Shepherd and Laframboise 1981. The
// steps whose roundings count fully are in double: t, the last of Q, the remainder of y^2, the product.
template <Real X> GT_INLINE X erfc(X x) {
  const X y = at_most(X(10.5f), size_of(x));  // 0 from 10.06 on; NaN stays
  using Wide = decltype(widened(x));
  const Wide wide = widened(y), d = fused(wide, Wide(0.375), Wide(1));
  const X t = 1 / narrowed(d);
  const Wide first = widened(t), u = first * (Wide(2) - d * first);  // a step of Newton's
  const X p =
      horner(t, 2.729372978e-01f, -2.282422036e-01f, 4.313449264e-01f, -2.868046463e-01f, 6.142714620e-02f);
  Wide ratio = fused(u, widened(p), Wide(1.218321621e-01));
  ratio = fused(ratio, u, Wide(2.052315623e-01));
  ratio = fused(ratio, u, Wide(2.106609344e-01));
  ratio = fused(ratio, u, Wide(2.116128206e-01)) * u;
  const X shifted = fused_from(y * y, 1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const Wide r = fused(widened(k), Wide(-0.69314718055994531), Wide(0) - wide * wide);
  const X e = expm1_small(narrowed(r));
  const BitsOf<X> power = bits_of(shifted) - bits_of(0x1.8p23f), half = signed_shift(power, 1);
  const X tail = narrowed(fused(ratio, widened(e), ratio)) * power_of_two(half) * power_of_two(power - half);
  return pick(x < X(0), 2 - tail, tail);
}

}  // namespace gt::math
