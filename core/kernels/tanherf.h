// tanh, erf and erfc of float, as explog.h has exp and log, to 2 units of the last place for every float
// (tests/native/float_check.cpp looks at all of them). Coefficients are those of least largest relative
// error, tables those of core/float_tables.cpp with a short series (both: tools/fit_kernels.py).
#pragma once
#include "explog.h"

extern "C" [[gnu::visibility("hidden")]] const float gradtape_float_erf[257][2];
extern "C" [[gnu::visibility("hidden")]] const float gradtape_float_erfc[645][2];
extern "C" [[gnu::visibility("hidden")]] const float gradtape_float_tanh[581][2];

namespace gt::math {

// A known value and a slope, from a table of both.
template <class X> struct Known { X value, slope; };
GT_INLINE Known<float> look_up(const float (*table)[2], uint32_t row) {
  return {table[row][0], table[row][1]};
}
GT_INLINE Known<Floats> look_up(const float (*table)[2], Words row) {
  alignas(kVectorBytes) uint32_t rows[kLanes<float>];
  store(rows, row.v);
  // Through memory, where compilers would move numbers out of a register one by one.
  __asm__("" : "+m"(rows));
#if GT_ISA_LEVEL >= 2
  auto at = [&](int j) __attribute__((always_inline)) {
    return reinterpret_cast<const __m64*>(table[rows[j]]);
  };
  auto two = [&](int j) __attribute__((always_inline)) {
    return _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), at(j)), at(j + 1));
  };
#endif
#if GT_ISA_LEVEL == 4
  auto half = [&](int j) __attribute__((always_inline)) {
    __m512 x = _mm512_maskz_broadcast_f32x4(0xffff, two(j));
    x = _mm512_maskz_insertf32x4(0xffff, x, two(j + 4), 1);
    x = _mm512_maskz_insertf32x4(0xffff, x, two(j + 8), 2);
    return _mm512_maskz_insertf32x4(0xffff, x, two(j + 12), 3);
  };
  const __m512 a = half(0), b = half(2);
  return {Floats(V<float>(_mm512_maskz_shuffle_ps(0xffff, a, b, 0x88))),
          Floats(V<float>(_mm512_maskz_shuffle_ps(0xffff, a, b, 0xdd)))};
#elif GT_ISA_LEVEL == 3
  const __m256 a = _mm256_insertf128_ps(_mm256_castps128_ps256(two(0)), two(4), 1),
               b = _mm256_insertf128_ps(_mm256_castps128_ps256(two(2)), two(6), 1);
  return {Floats(V<float>(_mm256_shuffle_ps(a, b, 0x88))), Floats(V<float>(_mm256_shuffle_ps(a, b, 0xdd)))};
#elif GT_ISA_LEVEL == 2
  const __m128 a = two(0), b = two(2);
  return {Floats(V<float>(_mm_shuffle_ps(a, b, 0x88))), Floats(V<float>(_mm_shuffle_ps(a, b, 0xdd)))};
#else
  Known<Floats> out;
  for (int j = 0; j < kLanes<float>; ++j)
    out.value.v[j] = table[rows[j]][0], out.slope.v[j] = table[rows[j]][1];
  return out;
#endif
}
// The row of y (core/float_tables.cpp) and what y has beyond it. A NaN in y stays, and has the last row.
template <Real X> GT_INLINE X beyond_row(X y, float last, BitsOf<X>& row, X& y0) {
  const X shifted = at_most(y, X(last)) + 0x1.8p17f;  // whole 64ths
  y0 = shifted - 0x1.8p17f;
  row = bits_of(shifted) & 0x3ffu;
  return y - y0;
}

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
// tanh(y0 + h) from a table: tanh(y0) + slope t / (1 + tanh(y0) t) with t = tanh(h), both of which are
// series.
template <Real X> GT_INLINE X tanh(X x) {
  const X y = at_most(X(9.0625f), size_of(x));  // 1 from 9.02 on; NaN stays
  BitsOf<X> row;
  X y0;
  const X h = beyond_row(y, 9.0625f, row, y0);
  const Known<X> known = look_up(gradtape_float_tanh, row);
  const X a = known.value * h, first = known.slope * h;
  const X rest = fused(a, a, -a) - 3.333333333e-1f * (h * h);
  return with_sign_of(x, known.value + fused(first, rest, first));
}
#endif

#if GT_HAS_FMA
// -log(erfc(y)) / y - 1.
template <Real X> GT_INLINE X erf_exponent(X y) {
  return by_halves(y, y * y, 1.283791661e-01f, 6.366193891e-01f, 1.027778387e-01f, -1.915307902e-02f,
                   -1.603699056e-04f, 1.667003031e-03f, -6.328242598e-04f, 1.176379083e-04f,
                   -9.255905752e-06f);
}
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
// As erfc below; beside erf, terms that count for large y0 only vanish.
template <Real X> GT_INLINE X erf(X x) {
  const X y = at_most(X(4), size_of(x));  // 1 from 3.92 on; NaN stays
  BitsOf<X> row;
  X y0;
  const X h = beyond_row(y, 4, row, y0), a = y0 * h;
  const Known<X> known = look_up(gradtape_float_erf, row);
  const X p = fused(a, 6.666666667e-1f, -1), first = known.slope * h;
  const X step = fused(first, fused(p, a, -3.333333333e-1f * (h * h)), first);
  return with_sign_of(x, known.value + step);
}
#endif

// erfc(y0) less the integral of its slope to y0 + h, by the series in h and y0 h (Taylor's, but for the last
// of the main one, which is spread over two others).
template <Real X> GT_INLINE X erfc(X x) {
  const X y = at_most(X(10.0625f), size_of(x));  // 0 from there on; NaN stays
  BitsOf<X> row;
  X y0;
  const X h = beyond_row(y, 10.0625f, row, y0), a = y0 * h;
  const Known<X> known = look_up(gradtape_float_erfc, row);
  const X p = fused(fused(a, 1.333333333e-1f, -3.336767e-1f), a * a, fused(a, 6.666666667e-1f, -0.9999995f));
  const X rest = fused(fused(a, -0.4f, 0.5f), a, -3.333333333e-1f);
  const X first = known.slope * h, step = fused(first, fused(p, a, rest * (h * h)), first);
  const X tail = known.value - step;
  return pick(x < X(0), 2 - tail, tail);
}

}  // namespace gt::math
