// A register of floats as a number to compute with: elementary functions are written once, for a float and
// for a register, and every compiler makes the same vector code of them.
//
// Compilers that turn loops over floats into vector code keep comparisons where the processor has a minimum
// of its own (a NaN would differ), and clang unrolls short loops before it looks for vectors in them.
#pragma once
#include <concepts>

#include "conv_vector.h"
#include "fused.h"

#if GT_ISA_LEVEL >= 2
#include <immintrin.h>
#endif

namespace gt::math {

struct Words {  // 32-bit numbers without a sign
  V<uint32_t> v;
  Words() = default;
  GT_INLINE Words(uint32_t x) : v(V<uint32_t>{} + x) {}
  GT_INLINE explicit Words(V<uint32_t> x) : v(x) {}
};
GT_INLINE Words operator+(Words a, Words b) { return Words(a.v + b.v); }
GT_INLINE Words operator-(Words a, Words b) { return Words(a.v - b.v); }
GT_INLINE Words operator&(Words a, Words b) { return Words(a.v & b.v); }
GT_INLINE Words operator|(Words a, Words b) { return Words(a.v | b.v); }
GT_INLINE Words operator^(Words a, Words b) { return Words(a.v ^ b.v); }
GT_INLINE Words operator<<(Words a, int n) { return Words(a.v << n); }

struct Floats {
  V<float> v;
  Floats() = default;
  GT_INLINE Floats(float x) : v(x - V<float>{}) {}
  GT_INLINE explicit Floats(V<float> x) : v(x) {}
};
GT_INLINE Floats operator+(Floats a, Floats b) { return Floats(a.v + b.v); }
GT_INLINE Floats operator-(Floats a, Floats b) { return Floats(a.v - b.v); }
GT_INLINE Floats operator*(Floats a, Floats b) { return Floats(a.v * b.v); }
GT_INLINE Floats operator/(Floats a, Floats b) { return Floats(a.v / b.v); }
GT_INLINE Floats operator-(Floats a) { return Floats(-a.v); }

struct Flags {  // all bits set, or none
  V<int32_t> v;
};
GT_INLINE Flags operator<(Floats a, Floats b) { return {a.v < b.v}; }
GT_INLINE Flags operator>(Floats a, Floats b) { return {a.v > b.v}; }
GT_INLINE Flags operator<=(Floats a, Floats b) { return {a.v <= b.v}; }
GT_INLINE Flags operator>=(Floats a, Floats b) { return {a.v >= b.v}; }
GT_INLINE Flags operator==(Floats a, Floats b) { return {a.v == b.v}; }
GT_INLINE Flags operator!=(Floats a, Floats b) { return {a.v != b.v}; }
GT_INLINE Flags operator<(Words a, Words b) { return {a.v < b.v}; }
GT_INLINE Flags operator==(Words a, Words b) { return {a.v == b.v}; }
GT_INLINE Flags operator&(Flags a, Flags b) { return {a.v & b.v}; }
GT_INLINE Flags operator|(Flags a, Flags b) { return {a.v | b.v}; }
GT_INLINE Flags operator^(Flags a, Flags b) { return {a.v ^ b.v}; }
GT_INLINE Flags operator!(Flags a) { return {~a.v}; }

// What functions of float are written for.
template <class X>
concept Real = std::same_as<X, float> || std::same_as<X, Floats>;

// x where c holds, otherwise y: both are computed.
GT_INLINE float pick(bool c, float x, float y) { return c ? x : y; }
GT_INLINE double pick(bool c, double x, double y) { return c ? x : y; }
GT_INLINE uint32_t pick(bool c, uint32_t x, uint32_t y) { return c ? x : y; }
GT_INLINE Floats pick(Flags c, Floats x, Floats y) { return Floats(c.v ? x.v : y.v); }
GT_INLINE Words pick(Flags c, Words x, Words y) { return Words(c.v ? x.v : y.v); }
// x or 0.
GT_INLINE float only_if(bool c, float x) { return c ? x : 0; }
GT_INLINE Floats only_if(Flags c, Floats x) { return Floats(c.v ? x.v : V<float>{}); }

// NaN or x.
GT_INLINE float nan_if(bool c, float x) { return c ? __builtin_nanf("") : x; }
GT_INLINE Floats nan_if(Flags c, Floats x) { return Floats(V<float>(V<int32_t>(x.v) | c.v)); }

GT_INLINE Words bits_of(Floats x) { return Words(V<uint32_t>(x.v)); }
GT_INLINE Floats from_bits(Words x) { return Floats(V<float>(x.v)); }
GT_INLINE Floats size_of(Floats x) { return from_bits(bits_of(x) & 0x7fffffffu); }
GT_INLINE Floats with_sign_of(Floats x, Floats size) {
  return from_bits(bits_of(size) | (bits_of(x) & 0x80000000u));
}
// With a sign: shifted down, the number, the larger and the smaller.
GT_INLINE uint32_t signed_shift(uint32_t x, int n) { return uint32_t(int32_t(x) >> n); }
GT_INLINE Words signed_shift(Words x, int n) { return Words(V<uint32_t>(V<int32_t>(x.v) >> n)); }
GT_INLINE float to_float(uint32_t x) { return float(int32_t(x)); }
GT_INLINE Floats to_float(Words x) { return Floats(__builtin_convertvector(V<int32_t>(x.v), V<float>)); }
GT_INLINE uint32_t whole(float x) { return uint32_t(int32_t(x)); }
GT_INLINE Words whole(Floats x) { return Words(V<uint32_t>(__builtin_convertvector(x.v, V<int32_t>))); }
GT_INLINE uint32_t signed_most(uint32_t x, uint32_t y) { return int32_t(x) > int32_t(y) ? x : y; }
GT_INLINE uint32_t signed_least(uint32_t x, uint32_t y) { return int32_t(x) < int32_t(y) ? x : y; }
GT_INLINE Words signed_most(Words x, Words y) { return Words(V<int32_t>(x.v) > V<int32_t>(y.v) ? x.v : y.v); }
GT_INLINE Words signed_least(Words x, Words y) {
  return Words(V<int32_t>(x.v) < V<int32_t>(y.v) ? x.v : y.v);
}

// The smaller and the larger of a bound and x: a NaN stays.
GT_INLINE float at_most(float bound, float x) { return bound < x ? bound : x; }
GT_INLINE float at_least(float bound, float x) { return bound > x ? bound : x; }

#if GT_ISA_LEVEL == 4
GT_INLINE Floats at_most(Floats bound, Floats x) {
  return Floats(V<float>(_mm512_maskz_min_ps(0xffff, __m512(bound.v), __m512(x.v))));
}
GT_INLINE Floats at_least(Floats bound, Floats x) {
  return Floats(V<float>(_mm512_maskz_max_ps(0xffff, __m512(bound.v), __m512(x.v))));
}
GT_INLINE Floats square_root(Floats x) { return Floats(V<float>(_mm512_maskz_sqrt_ps(0xffff, __m512(x.v)))); }
GT_INLINE Floats fused(Floats a, Floats b, Floats c) {
  return Floats(V<float>(_mm512_fmadd_ps(__m512(a.v), __m512(b.v), __m512(c.v))));
}
GT_INLINE Floats fused_from(Floats a, Floats b, Floats c) {
  return Floats(V<float>(_mm512_fnmadd_ps(__m512(a.v), __m512(b.v), __m512(c.v))));
}
GT_INLINE Floats fused_less(Floats a, Floats b, Floats c) {
  return Floats(V<float>(_mm512_fmsub_ps(__m512(a.v), __m512(b.v), __m512(c.v))));
}
GT_INLINE bool any(Flags x) { return _mm512_movepi32_mask(__m512i(x.v)) != 0; }
#elif GT_ISA_LEVEL == 3
GT_INLINE Floats at_most(Floats bound, Floats x) {
  return Floats(V<float>(_mm256_min_ps(__m256(bound.v), __m256(x.v))));
}
GT_INLINE Floats at_least(Floats bound, Floats x) {
  return Floats(V<float>(_mm256_max_ps(__m256(bound.v), __m256(x.v))));
}
GT_INLINE Floats square_root(Floats x) { return Floats(V<float>(_mm256_sqrt_ps(__m256(x.v)))); }
GT_INLINE Floats fused(Floats a, Floats b, Floats c) {
  return Floats(V<float>(_mm256_fmadd_ps(__m256(a.v), __m256(b.v), __m256(c.v))));
}
GT_INLINE Floats fused_from(Floats a, Floats b, Floats c) {
  return Floats(V<float>(_mm256_fnmadd_ps(__m256(a.v), __m256(b.v), __m256(c.v))));
}
GT_INLINE Floats fused_less(Floats a, Floats b, Floats c) {
  return Floats(V<float>(_mm256_fmsub_ps(__m256(a.v), __m256(b.v), __m256(c.v))));
}
GT_INLINE bool any(Flags x) { return _mm256_movemask_ps(__m256(x.v)) != 0; }
#else
#if GT_ISA_LEVEL == 2
GT_INLINE Floats at_most(Floats bound, Floats x) {
  return Floats(V<float>(_mm_min_ps(__m128(bound.v), __m128(x.v))));
}
GT_INLINE Floats at_least(Floats bound, Floats x) {
  return Floats(V<float>(_mm_max_ps(__m128(bound.v), __m128(x.v))));
}
GT_INLINE Floats square_root(Floats x) { return Floats(V<float>(_mm_sqrt_ps(__m128(x.v)))); }
GT_INLINE bool any(Flags x) { return _mm_movemask_ps(__m128(x.v)) != 0; }
#else
GT_INLINE Floats at_most(Floats bound, Floats x) { return pick(bound < x, bound, x); }
GT_INLINE Floats at_least(Floats bound, Floats x) { return pick(bound > x, bound, x); }
GT_INLINE Floats square_root(Floats x) {
  for (int j = 0; j < kLanes<float>; ++j) x.v[j] = __builtin_sqrtf(x.v[j]);
  return x;
}
GT_INLINE bool any(Flags x) {
  int32_t all = 0;
  for (int j = 0; j < kLanes<float>; ++j) all |= x.v[j];
  return all != 0;
}
#endif
#if GT_HAS_FMA
GT_INLINE Floats fused(Floats a, Floats b, Floats c) {
  for (int j = 0; j < kLanes<float>; ++j) c.v[j] = __builtin_fmaf(a.v[j], b.v[j], c.v[j]);
  return c;
}
GT_INLINE Floats fused_from(Floats a, Floats b, Floats c) { return fused(-a, b, c); }
GT_INLINE Floats fused_less(Floats a, Floats b, Floats c) { return fused(a, b, -c); }
#else
GT_INLINE Floats fused(Floats a, Floats b, Floats c) { return a * b + c; }
GT_INLINE Floats fused_from(Floats a, Floats b, Floats c) { return c - a * b; }
GT_INLINE Floats fused_less(Floats a, Floats b, Floats c) { return a * b - c; }
#endif
#endif
GT_INLINE float square_root(float x) { return __builtin_sqrtf(x); }
GT_INLINE bool any(bool x) { return x; }

#if GT_HAS_FMA
GT_INLINE float fused_from(float a, float b, float c) { return __builtin_fmaf(-a, b, c); }
GT_INLINE float fused_less(float a, float b, float c) { return __builtin_fmaf(a, b, -c); }
#else
GT_INLINE float fused_from(float a, float b, float c) { return c - a * b; }
GT_INLINE float fused_less(float a, float b, float c) { return a * b - c; }
#endif

// A register's floats as doubles, in two registers: for the steps whose roundings count fully.
struct WideFloats {
  V<double> low, high;
  WideFloats() = default;
  GT_INLINE WideFloats(double x) : low(x - V<double>{}), high(x - V<double>{}) {}
  GT_INLINE WideFloats(V<double> l, V<double> h) : low(l), high(h) {}
};
GT_INLINE WideFloats operator+(WideFloats a, WideFloats b) { return {a.low + b.low, a.high + b.high}; }
GT_INLINE WideFloats operator-(WideFloats a, WideFloats b) { return {a.low - b.low, a.high - b.high}; }
GT_INLINE WideFloats operator*(WideFloats a, WideFloats b) { return {a.low * b.low, a.high * b.high}; }
GT_INLINE WideFloats operator/(WideFloats a, WideFloats b) { return {a.low / b.low, a.high / b.high}; }
#if GT_ISA_LEVEL == 4
// A register's halves. (Those of the intrinsic functions warn of what they leave undefined.)
struct TwoHalves {
  __m256 low, high;
};
GT_INLINE WideFloats widened(Floats x) {
#if __has_builtin(__builtin_shufflevector)
  const __m256 low = __builtin_shufflevector(x.v, x.v, 0, 1, 2, 3, 4, 5, 6, 7);
  const __m256 high = __builtin_shufflevector(x.v, x.v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const auto [low, high] = std::bit_cast<TwoHalves>(x);
#endif
  return {V<double>(_mm512_maskz_cvtps_pd(0xff, low)), V<double>(_mm512_maskz_cvtps_pd(0xff, high))};
}
GT_INLINE Floats narrowed(WideFloats x) {
  const __m256 low = _mm512_maskz_cvtpd_ps(0xff, __m512d(x.low)),
               high = _mm512_maskz_cvtpd_ps(0xff, __m512d(x.high));
#if __has_builtin(__builtin_shufflevector)
  return Floats(
      V<float>(__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
#else
  return std::bit_cast<Floats>(TwoHalves{low, high});
#endif
}
GT_INLINE WideFloats fused(WideFloats a, WideFloats b, WideFloats c) {
  return {V<double>(_mm512_fmadd_pd(__m512d(a.low), __m512d(b.low), __m512d(c.low))),
          V<double>(_mm512_fmadd_pd(__m512d(a.high), __m512d(b.high), __m512d(c.high)))};
}
#elif GT_ISA_LEVEL == 3
GT_INLINE WideFloats widened(Floats x) {
  const __m256 all = __m256(x.v);
  return {V<double>(_mm256_cvtps_pd(_mm256_castps256_ps128(all))),
          V<double>(_mm256_cvtps_pd(_mm256_extractf128_ps(all, 1)))};
}
GT_INLINE Floats narrowed(WideFloats x) {
  return Floats(V<float>(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(__m256d(x.low))),
                                              _mm256_cvtpd_ps(__m256d(x.high)), 1)));
}
GT_INLINE WideFloats fused(WideFloats a, WideFloats b, WideFloats c) {
  return {V<double>(_mm256_fmadd_pd(__m256d(a.low), __m256d(b.low), __m256d(c.low))),
          V<double>(_mm256_fmadd_pd(__m256d(a.high), __m256d(b.high), __m256d(c.high)))};
}
#elif GT_ISA_LEVEL == 2
GT_INLINE WideFloats widened(Floats x) {
  const __m128 all = __m128(x.v);
  return {V<double>(_mm_cvtps_pd(all)), V<double>(_mm_cvtps_pd(_mm_movehl_ps(all, all)))};
}
GT_INLINE Floats narrowed(WideFloats x) {
  return Floats(V<float>(_mm_movelh_ps(_mm_cvtpd_ps(__m128d(x.low)), _mm_cvtpd_ps(__m128d(x.high)))));
}
GT_INLINE WideFloats fused(WideFloats a, WideFloats b, WideFloats c) { return a * b + c; }
#else
GT_INLINE WideFloats widened(Floats x) {
  WideFloats out;
  constexpr int half = kLanes<double>;
  for (int j = 0; j < half; ++j) out.low[j] = double(x.v[j]), out.high[j] = double(x.v[j + half]);
  return out;
}
GT_INLINE Floats narrowed(WideFloats x) {
  Floats out;
  constexpr int half = kLanes<double>;
  for (int j = 0; j < half; ++j) out.v[j] = float(x.low[j]), out.v[j + half] = float(x.high[j]);
  return out;
}
GT_INLINE WideFloats fused(WideFloats a, WideFloats b, WideFloats c) {
  for (int j = 0; j < kLanes<double>; ++j) {
    c.low[j] = fused(a.low[j], b.low[j], c.low[j]);
    c.high[j] = fused(a.high[j], b.high[j], c.high[j]);
  }
  return c;
}
#endif
GT_INLINE double widened(float x) { return double(x); }
GT_INLINE float narrowed(double x) { return float(x); }

// a * b + c rounded once, with or without an instruction for it.
#if GT_HAS_FMA
GT_INLINE Floats rounded_once(Floats a, Floats b, Floats c) { return fused(a, b, c); }
#else
GT_INLINE Floats rounded_once(Floats a, Floats b, Floats c) {
  return narrowed(widened(a) * widened(b) + widened(c));
}
#endif

}  // namespace gt::math
