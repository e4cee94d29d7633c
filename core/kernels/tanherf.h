// tanh, erf and erfc of float, within 2 ulps for every float (tests/native/float_check.cpp
// compares them all). The polynomials are minimax in relative error (tools/fit_float.py); values
// from tables (tables.h) come with a short Taylor series.
#pragma once
#include "explog.h"
#include "tables.h"

namespace gt::math {

// The row of the table next to y, its point y0, and y - y0. A NaN in y has the last row, and stays in y - y0.
template <OfFloat X> GT_INLINE X beyond_row(X y, float last, BitsOf<X>& row, X& y0) {
  const X shifted = at_most_number(y, last) + 0x1.8p17f;  // whole 64ths
  y0 = shifted - 0x1.8p17f;
  row = bits_of(shifted) & 0x3ff;
  return y - y0;
}

#if GT_HAS_FMA
// The addition theorem with y = k log(2) / 2 + r: tanh(k log(2) / 2) is a / b for a = 2^k - 1 and b = 2^k +
// 1, so tanh(y) = (t b + a) / (t a + b) for t = tanh(r), a polynomial. Near 1 it is computed as 1 + 2 (t - 1)
// / (t a + b), which rounding errors hardly affect. The factor for k is below 2 / log(2): k then changes
// where the result is just above a power of two, and an ulp is largest relative to it.
template <OfFloat X> GT_INLINE X tanh(X x) {
  const X y = at_most(size_of(x), 9.1f);                                    // 1 from 9.02 on; NaN stays
  const X shifted = fused(y, 2.7307f, 0x1.8p23f), k = shifted - 0x1.8p23f;  // as in exp
  const X r = fused_from(k, 0.346573591f, y), q = r * r;
  const X t = fused(horner(q, -3.333328664e-01f, 1.332757324e-01f, -5.194368213e-02f), q * r, r);
  const X half = of_bits((bits_of(shifted) << 23) + 0x3f000000u), a = half - 0.5f, b = half + 0.5f;
  const auto near_1 = k > 2;
  return with_sign_of(x, pick(near_1, t - 1, fused(t, b, a)) / fused(t, a, b) + pick(near_1, X(1), 0));
}
#else
// tanh(y0 + h) from a table: tanh(y0) + slope t / (1 + tanh(y0) t) with t = tanh(h), and series for both.
template <OfFloat X> GT_INLINE X tanh(X x) {
  const X y = at_most(size_of(x), 9.0625f);  // 1 from 9.02 on; NaN stays
  BitsOf<X> row;
  X y0;
  const X h = beyond_row(y, 9.0625f, row, y0);
  const Known<X> known = look_up(gradtape_float_tanh, row);
  const X a = known.value * h, first = known.slope * h;
  const X rest = fused(a, a, -a) - 3.333333333e-1f * (h * h);
  return with_sign_of(x, known.value + fused(first, rest, first));
}
#endif

#if GT_HAS_FMA && GT_ISA_LEVEL != 3
// -log(erfc(y)) / y - 1.
template <OfFloat X> GT_INLINE X erf_exponent(X y) {
  return polynomial(y, 1.283791661e-01f, 6.366193891e-01f, 1.027778387e-01f, -1.915307902e-02f,
                    -1.603699056e-04f, 1.667003031e-03f, -6.328242598e-04f, 1.176379083e-04f,
                    -9.255905752e-06f);
}
// 1 - exp(-m), where m = -log(erfc(y)) is a polynomial, computed as y + y (m / y - 1), so that its leading
// digits are exact.
template <OfFloat X> GT_INLINE X erf(X x) {
  const X y = at_most(size_of(x), 4);  // 1 from 3.92 on; NaN stays
  const X m = fused(erf_exponent(y), y, y);
  // exp(-m) - 1 = 2^k (p + 1) - 1 with p = exp(r) - 1.
  const X shifted = fused_from(m, 1.44269504f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  const X p = expm1_small(fused_from(k, 0.693147182f, -m));
  const X power = of_bits((bits_of(shifted) << 23) + 0x3f800000u);
  return with_sign_of(x, fused_from(power, p, 1 - power));
}
#else
// As erfc below, without terms that matter for large y0 only: erf is nearly 1 there.
template <OfFloat X> GT_INLINE X erf(X x) {
  const X y = at_most(size_of(x), 4);  // 1 from 3.92 on; NaN stays
  BitsOf<X> row;
  X y0;
  const X h = beyond_row(y, 4, row, y0), a = y0 * h;
  const Known<X> known = look_up(gradtape_float_erf, row);
  const X p = fused(a, 6.666666667e-1f, -1), first = known.slope * h;
  const X step = fused(first, fused(p, a, -3.333333333e-1f * (h * h)), first);
  return with_sign_of(x, known.value + step);
}
#endif

// erfc(y0) minus the integral of its slope to y0 + h, as a series in h and y0 h: Taylor's, with the last term
// of the main one spread over two others.
template <OfFloat X> GT_INLINE X erfc(X x) {
  const X y = at_most(size_of(x), 10.0625f);  // 0 from there on; NaN stays
  BitsOf<X> row;
  X y0;
  const X h = beyond_row(y, 10.0625f, row, y0), a = y0 * h;
  const Known<X> known = look_up(gradtape_float_erfc, row);
  const X p = fused(fused(a, 1.333333333e-1f, -3.336767e-1f), a * a, fused(a, 6.666666667e-1f, -0.9999995f));
  const X rest = fused(fused(a, -0.4f, 0.5f), a, -3.333333333e-1f);
  const X first = known.slope * h, step = fused(first, fused(p, a, rest * (h * h)), first);
  const X tail = known.value - step;
  return pick(x < 0, 2 - tail, tail);
}

}  // namespace gt::math
