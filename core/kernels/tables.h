// The tables of core/float_tables.cpp and core/double_tables.cpp (tools/fit_tables.py), and how a register
// looks rows of them up.
#pragma once
#include "registers.h"

extern "C" {
[[gnu::visibility("hidden")]] extern const float gradtape_float_erf[257][2];
[[gnu::visibility("hidden")]] extern const float gradtape_float_erfc[645][2];
[[gnu::visibility("hidden")]] extern const float gradtape_float_tanh[581][2];
[[gnu::visibility("hidden")]] extern const double gradtape_double_erf[385][4];
}

namespace gt::math {

// The numbers of rows, for each register, through memory: compilers would move them out of a register one by
// one.
template <class T, int N> struct RowNumbers {
  alignas(kVectorBytes) T at[N * kLanes<T>];
  GT_INLINE RowNumbers(Several<T, N> rows) {
    rows.store(at);
    __asm__("" : "+m"(at));
  }
};

// A known value of a function, and its slope.
template <class X> struct Known { X value, slope; };
GT_INLINE Known<float> look_up(const float (*table)[2], uint32_t row) {
  return {table[row][0], table[row][1]};
}
GT_INLINE Known<Floats> look_up(const float (*table)[2], Several<uint32_t, 1> numbers) {
  const RowNumbers rows(numbers);
#if GT_ISA_LEVEL >= 2
  auto two = [&](int j) __attribute__((always_inline)) {
    auto at = [&](int k) { return reinterpret_cast<const __m64*>(table[rows.at[k]]); };
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
  return {Floats(_mm512_maskz_shuffle_ps(0xffff, a, b, 0x88)),
          Floats(_mm512_maskz_shuffle_ps(0xffff, a, b, 0xdd))};
#elif GT_ISA_LEVEL == 3
  const __m256 a = _mm256_insertf128_ps(_mm256_castps128_ps256(two(0)), two(4), 1),
               b = _mm256_insertf128_ps(_mm256_castps128_ps256(two(2)), two(6), 1);
  return {Floats(_mm256_shuffle_ps(a, b, 0x88)), Floats(_mm256_shuffle_ps(a, b, 0xdd))};
#elif GT_ISA_LEVEL == 2
  const __m128 a = two(0), b = two(2);
  return {Floats(_mm_shuffle_ps(a, b, 0x88)), Floats(_mm_shuffle_ps(a, b, 0xdd))};
#else
  Known<Floats> out;
  for (int j = 0; j < kLanes<float>; ++j)
    out.value.set(j, table[rows.at[j]][0]), out.slope.set(j, table[rows.at[j]][1]);
  return out;
#endif
}

// A point, erf and erfc there, and the slope of erf.
template <int N> struct ErfRow { Doubles<N> x, erf, erfc, slope; };
template <int N> GT_INLINE ErfRow<N> look_up(const double (*table)[4], Bits<N> numbers) {
  const RowNumbers rows(numbers);
  ErfRow<N> out;
  GT_EACH(k, N) {
    auto at = [&](int j) __attribute__((always_inline)) { return table[rows.at[k * kLanes<double> + j]]; };
#if GT_ISA_LEVEL == 4
    auto two = [&](int j) __attribute__((always_inline)) {
      return _mm512_maskz_insertf64x4(0xff, _mm512_maskz_broadcast_f64x4(0xff, _mm256_loadu_pd(at(j))),
                                      _mm256_loadu_pd(at(j + 4)), 1);
    };
    const __m512d a = two(0), b = two(1), c = two(2), d = two(3);
    const __m512d even = _mm512_maskz_unpacklo_pd(0xff, a, b), odd = _mm512_maskz_unpackhi_pd(0xff, a, b);
    const __m512d more_even = _mm512_maskz_unpacklo_pd(0xff, c, d),
                  more_odd = _mm512_maskz_unpackhi_pd(0xff, c, d);
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                  high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    out.x.at[k] = _mm512_permutex2var_pd(even, low, more_even);
    out.erf.at[k] = _mm512_permutex2var_pd(odd, low, more_odd);
    out.erfc.at[k] = _mm512_permutex2var_pd(even, high, more_even);
    out.slope.at[k] = _mm512_permutex2var_pd(odd, high, more_odd);
#elif GT_ISA_LEVEL == 3
    const __m256d a = _mm256_loadu_pd(at(0)), b = _mm256_loadu_pd(at(1)), c = _mm256_loadu_pd(at(2)),
                  d = _mm256_loadu_pd(at(3));
    const __m256d even = _mm256_unpacklo_pd(a, b), odd = _mm256_unpackhi_pd(a, b);
    const __m256d more_even = _mm256_unpacklo_pd(c, d), more_odd = _mm256_unpackhi_pd(c, d);
    out.x.at[k] = _mm256_permute2f128_pd(even, more_even, 0x20);
    out.erf.at[k] = _mm256_permute2f128_pd(odd, more_odd, 0x20);
    out.erfc.at[k] = _mm256_permute2f128_pd(even, more_even, 0x31);
    out.slope.at[k] = _mm256_permute2f128_pd(odd, more_odd, 0x31);
#else
    const double *a = at(0), *b = at(1);
    out.x.at[k] = Register<double>{a[0], b[0]};
    out.erf.at[k] = Register<double>{a[1], b[1]};
    out.erfc.at[k] = Register<double>{a[2], b[2]};
    out.slope.at[k] = Register<double>{a[3], b[3]};
#endif
  }
  return out;
}

}  // namespace gt::math
