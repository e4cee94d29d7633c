// The tables of core/tables (tools/fit_tables.py), and how a register looks rows of them up.
#pragma once
#include "registers.h"

extern "C" {
[[gnu::visibility("hidden")]] extern const float gradtape_float_erf[257][2];
[[gnu::visibility("hidden")]] extern const float gradtape_float_erfc[645][2];
[[gnu::visibility("hidden")]] extern const float gradtape_float_tanh[581][2];
[[gnu::visibility("hidden")]] extern const double gradtape_double_exp[256][2];
[[gnu::visibility("hidden")]] extern const double gradtape_double_erf[769][2];
[[gnu::visibility("hidden")]] extern const double gradtape_double_erfc[769][2];
}

namespace gt::math {

// The numbers of rows, the low 32 bits of each element, through memory: compilers would move them out of a
// register one by one.
template <class T, int N> struct RowNumbers {
  alignas(kVectorBytes) T at[N * kLanes<T>];
  GT_INLINE RowNumbers(Several<T, N> rows) {
    rows.store(at);
    __asm__("" : "+m"(at));
  }
  GT_INLINE uint32_t operator[](int j) const { return uint32_t(at[j]); }
};

// A known value of a function, and its slope (of exp: what rounding took from the value).
template <class X> struct Known { X value, slope; };
GT_INLINE Known<float> look_up(const float (*table)[2], uint32_t row) {
  return {table[row][0], table[row][1]};
}
GT_INLINE Known<Floats> look_up(const float (*table)[2], Several<uint32_t, 1> numbers) {
  const RowNumbers rows(numbers);
#if GT_ISA_LEVEL >= 2
  auto two = [&](int j) __attribute__((always_inline)) {
    auto at = [&](int k) { return reinterpret_cast<const __m64*>(table[rows[k]]); };
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
    out.value.set(j, table[rows[j]][0]), out.slope.set(j, table[rows[j]][1]);
  return out;
#endif
}

template <int N> GT_INLINE Known<Doubles<N>> look_up(const double (*table)[2], Bits<N> numbers) {
  const double* const first = table[0];
  const RowNumbers<uint64_t, N> places(numbers + numbers);
  Known<Doubles<N>> out;
  GT_EACH(k, N) {
    auto at = [&](int j) __attribute__((always_inline)) { return first + places[k * kLanes<double> + j]; };
#if GT_ISA_LEVEL == 4
    auto half = [&](int j) __attribute__((always_inline)) {
      __m512d x = _mm512_maskz_broadcast_f64x2(0xff, _mm_loadu_pd(at(j)));
      x = _mm512_maskz_insertf64x2(0xff, x, _mm_loadu_pd(at(j + 2)), 1);
      x = _mm512_maskz_insertf64x2(0xff, x, _mm_loadu_pd(at(j + 4)), 2);
      return _mm512_maskz_insertf64x2(0xff, x, _mm_loadu_pd(at(j + 6)), 3);
    };
    const __m512d a = half(0), b = half(1);
    out.value.at[k] = _mm512_maskz_unpacklo_pd(0xff, a, b);
    out.slope.at[k] = _mm512_maskz_unpackhi_pd(0xff, a, b);
#elif GT_ISA_LEVEL == 3
    auto half = [&](int j) __attribute__((always_inline)) {
      return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(at(j))), _mm_loadu_pd(at(j + 2)), 1);
    };
    const __m256d a = half(0), b = half(1);
    out.value.at[k] = _mm256_unpacklo_pd(a, b);
    out.slope.at[k] = _mm256_unpackhi_pd(a, b);
#else
    const double *a = at(0), *b = at(1);
    out.value.at[k] = Register<double>{a[0], b[0]};
    out.slope.at[k] = Register<double>{a[1], b[1]};
#endif
  }
  return out;
}

}  // namespace gt::math
