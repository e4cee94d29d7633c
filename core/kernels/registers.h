// The operations that elementary functions are written with, under the same names for a single number, for a
// vector register of floats and for one or two registers of doubles.
//
// Registers use the compilers' vector extension, so vectorisation does not depend on what a compiler makes of
// a loop. Whether a * b + c is contracted would depend on flags and compiler; so it is written out (`fused`),
// and files with elementary functions are compiled with -ffp-contract=off (CMakeLists.txt). Results are
// therefore the same whichever compiler built them.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "conv_vector.h"
#include "loops.h"

#if GT_ISA_LEVEL >= 2
#include <immintrin.h>
#endif

// Whether the processor has fused multiply-add.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
#define GT_HAS_FMA 1
#else
#define GT_HAS_FMA 0
#endif

namespace gt::math {

// A slow path: not inlined, so that it takes no registers from the fast one.
#define GT_RARE [[gnu::noinline, gnu::cold]] inline

// Types of the size of T.
template <class T> using BitsIn = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T> using SignedIn = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
template <class T> using RealIn = std::conditional_t<sizeof(T) == 8, double, float>;
template <class T>
concept Number = std::is_arithmetic_v<T>;

// ---- numbers -------------------------------------------------------------------------------------

// x where c holds, otherwise y: both are computed.
GT_INLINE float pick(bool c, float x, float y) { return c ? x : y; }
GT_INLINE double pick(bool c, double x, double y) { return c ? x : y; }
// NaN or x.
GT_INLINE float nan_if(bool c, float x) { return c ? __builtin_nanf("") : x; }
GT_INLINE bool any(bool c) { return c; }
template <std::signed_integral T> GT_INLINE bool any_above(T x, T y) { return x > y; }
// min and max with a bound; a NaN in x stays.
template <Number T> GT_INLINE T at_most(T x, std::type_identity_t<T> bound) { return bound < x ? bound : x; }
template <Number T> GT_INLINE T at_least(T x, std::type_identity_t<T> bound) { return bound > x ? bound : x; }

// The same; a NaN in x becomes the bound.
template <Number T> GT_INLINE T at_most_number(T x, std::type_identity_t<T> bound) {
  return x < bound ? x : bound;
}

template <Number T> GT_INLINE BitsIn<T> bits_of(T x) { return std::bit_cast<BitsIn<T>>(x); }
template <std::unsigned_integral T> GT_INLINE SignedIn<T> signed_of(T x) { return SignedIn<T>(x); }
template <std::unsigned_integral T> GT_INLINE RealIn<T> of_bits(T x) { return std::bit_cast<RealIn<T>>(x); }

GT_INLINE float square_root(float x) { return __builtin_sqrtf(x); }
GT_INLINE double square_root(double x) { return __builtin_sqrt(x); }
GT_INLINE float nearest_whole(float x) { return __builtin_rintf(x); }
GT_INLINE double nearest_whole(double x) { return __builtin_rint(x); }
GT_INLINE float whole_below(float x) { return __builtin_floorf(x); }
// a * b + c; the product is not rounded if the processor has an instruction for that.
#if GT_HAS_FMA
GT_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
GT_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
GT_INLINE float fused(float a, float b, float c) { return a * b + c; }
GT_INLINE double fused(double a, double b, double c) { return a * b + c; }
#endif

GT_INLINE float to_float(int32_t x) { return float(x); }
GT_INLINE double widened(float x) { return double(x); }
GT_INLINE float narrowed(double x) { return float(x); }

// ---- instructions that compilers do not generate from formulas -----------------------------------

template <class T> struct RegisterOf { typedef T Type __attribute__((vector_size(kVectorBytes))); };
template <class T> using Register = typename RegisterOf<T>::Type;

namespace instruction {

using F = Register<float>;
using D = Register<double>;
// As the instructions do it: y if either is NaN.
template <class R> GT_INLINE R smaller(R x, R y) { return x < y ? x : y; }
template <class R> GT_INLINE R larger(R x, R y) { return x > y ? x : y; }
#if GT_ISA_LEVEL >= 2
#if GT_ISA_LEVEL == 4  // (Without "maskz", gcc warns of uninitialised values in its headers.)
#define GT_PS(name, ...) _mm512_maskz_##name##_ps(0xffff, __VA_ARGS__)
#define GT_PD(name, ...) _mm512_maskz_##name##_pd(0xff, __VA_ARGS__)
GT_INLINE F nearest(F x) { return GT_PS(roundscale, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
GT_INLINE D nearest(D x) { return GT_PD(roundscale, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
GT_INLINE F below(F x) { return GT_PS(roundscale, x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
GT_INLINE bool any(Register<int32_t> c) { return _mm512_movepi32_mask(__m512i(c)) != 0; }
GT_INLINE bool any(Register<int64_t> c) { return _mm512_movepi64_mask(__m512i(c)) != 0; }
// (Of a comparison the compiler would make a register first.)
GT_INLINE bool any_above(Register<int32_t> x, int32_t y) {
  return _mm512_cmpgt_epi32_mask(__m512i(x), _mm512_set1_epi32(y)) != 0;
}
GT_INLINE bool any_above(Register<int64_t> x, int64_t y) {
  return _mm512_cmpgt_epi64_mask(__m512i(x), _mm512_set1_epi64(y)) != 0;
}
#else
#if GT_ISA_LEVEL == 3
#define GT_PS(name, ...) _mm256_##name##_ps(__VA_ARGS__)
#define GT_PD(name, ...) _mm256_##name##_pd(__VA_ARGS__)
#else
#define GT_PS(name, ...) _mm_##name##_ps(__VA_ARGS__)
#define GT_PD(name, ...) _mm_##name##_pd(__VA_ARGS__)
#endif
GT_INLINE F nearest(F x) { return GT_PS(round, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
GT_INLINE D nearest(D x) { return GT_PD(round, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
GT_INLINE F below(F x) { return GT_PS(round, x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
GT_INLINE bool any(Register<int32_t> c) { return GT_PS(movemask, F(c)) != 0; }
GT_INLINE bool any(Register<int64_t> c) { return GT_PD(movemask, D(c)) != 0; }
#endif
GT_INLINE F smaller(F x, F y) { return GT_PS(min, x, y); }
GT_INLINE D smaller(D x, D y) { return GT_PD(min, x, y); }
GT_INLINE F larger(F x, F y) { return GT_PS(max, x, y); }
GT_INLINE D larger(D x, D y) { return GT_PD(max, x, y); }
GT_INLINE F root(F x) { return GT_PS(sqrt, x); }
GT_INLINE D root(D x) { return GT_PD(sqrt, x); }
#if GT_HAS_FMA
GT_INLINE F fused(F a, F b, F c) { return GT_PS(fmadd, a, b, c); }
GT_INLINE D fused(D a, D b, D c) { return GT_PD(fmadd, a, b, c); }
#else
template <class R> GT_INLINE R fused(R a, R b, R c) { return a * b + c; }
#endif
#undef GT_PS
#undef GT_PD
#else
template <class R, class G> GT_INLINE R by_lane(G g) {
  R out;
  for (int j = 0; j < int(sizeof out / sizeof out[0]); ++j) out[j] = g(j);
  return out;
}
template <class R> GT_INLINE R nearest(R x) {
  return by_lane<R>([&](int j) { return nearest_whole(x[j]); });
}
template <class R> GT_INLINE R below(R x) {
  return by_lane<R>([&](int j) { return whole_below(x[j]); });
}
template <class R> GT_INLINE R root(R x) {
  return by_lane<R>([&](int j) { return square_root(x[j]); });
}
template <class R> GT_INLINE R fused(R a, R b, R c) {
  return by_lane<R>([&](int j) { return math::fused(a[j], b[j], c[j]); });
}
template <class R> GT_INLINE bool any(R c) {
  SignedIn<decltype(c[0] + 0)> all = 0;
  for (int j = 0; j < int(sizeof c / sizeof c[0]); ++j) all |= c[j];
  return all != 0;
}
#endif

#if GT_ISA_LEVEL != 4
template <class R> GT_INLINE bool any_above(R x, decltype(x[0] + 0) y) { return any(R(x > y)); }
#endif

}  // namespace instruction

// One or two registers; with two, the processor works on one while the other waits for a result. A number
// converts to registers filled with it. Comparisons give all ones where they hold, otherwise 0.
template <class T, int N> struct Several {
  Register<T> at[N];

  // f(k) for each register.
  template <class F> GT_INLINE static Several each(F f) {
    if constexpr (N == 1)
      return Several(f(0));
    else
      return Several(f(0), f(1));
  }
// Evaluates the expression for each register k of N; E is the type of its elements.
#define GT_REGISTERS(E, ...)                      \
  Several<E, N>::each([&]([[maybe_unused]] int k) \
                          __attribute__((always_inline)) { return Register<E>(__VA_ARGS__); })

  Several() = default;
  GT_INLINE Several(T x) : Several(GT_REGISTERS(T, x - Register<T>{})) {}
  GT_INLINE explicit Several(Register<T> x) requires(N == 1) : at{x} {}
  GT_INLINE Several(Register<T> x, Register<T> y) requires(N == 2) : at{x, y} {}
  GT_INLINE static Several load(const T* x) { return GT_REGISTERS(T, gt::load(x + k * kLanes<T>)); }
  GT_INLINE void store(T* out) const { GT_EACH(k, N) gt::store(out + k * kLanes<T>, V<T>(at[k])); }
  GT_INLINE T operator[](int j) const { return at[j / kLanes<T>][j % kLanes<T>]; }
  GT_INLINE void set(int j, T x) { at[j / kLanes<T>][j % kLanes<T>] = x; }

  // Friends, so that a number converts as either operand.
#define GT_OPERATOR(E, op)                                           \
  friend GT_INLINE Several<E, N> operator op(Several x, Several y) { \
    return GT_REGISTERS(E, x.at[k] op y.at[k]);                      \
  }
  // clang-format off
  GT_OPERATOR(T, +) GT_OPERATOR(T, -) GT_OPERATOR(T, *) GT_OPERATOR(T, /) GT_OPERATOR(T, &) GT_OPERATOR(T, |)
  GT_OPERATOR(T, ^) GT_OPERATOR(SignedIn<T>, <) GT_OPERATOR(SignedIn<T>, >) GT_OPERATOR(SignedIn<T>, <=)
  GT_OPERATOR(SignedIn<T>, >=) GT_OPERATOR(SignedIn<T>, ==) GT_OPERATOR(SignedIn<T>, !=)
  // clang-format on
#undef GT_OPERATOR
  GT_INLINE Several operator-() const { return GT_REGISTERS(T, -at[k]); }
  GT_INLINE Several operator~() const { return GT_REGISTERS(T, ~at[k]); }
  GT_INLINE Several operator!() const { return ~*this; }
  GT_INLINE Several operator<<(int n) const { return GT_REGISTERS(T, at[k] << n); }
  GT_INLINE Several operator>>(int n) const { return GT_REGISTERS(T, at[k] >> n); }
};
using Floats = Several<float, 1>;
using Ints = Several<int32_t, 1>;
template <int N> using Doubles = Several<double, N>;
template <int N> using Bits = Several<uint64_t, N>;
template <int N> using Mask = Several<int64_t, N>;

#define GT_ON_REGISTERS(E, declared, ...) \
  template <class T, int N> GT_INLINE Several<E, N> declared { return GT_REGISTERS(E, __VA_ARGS__); }
template <class T, int N> using OrNumber = std::type_identity_t<Several<T, N>>;
GT_ON_REGISTERS(BitsIn<T>, bits_of(Several<T, N> x), x.at[k])
GT_ON_REGISTERS(SignedIn<T>, signed_of(Several<T, N> x), x.at[k])
GT_ON_REGISTERS(RealIn<T>, of_bits(Several<T, N> x), x.at[k])
GT_ON_REGISTERS(RealIn<T>, pick(Several<T, N> c, OrNumber<RealIn<T>, N> x, OrNumber<RealIn<T>, N> y),
                c.at[k] ? x.at[k] : y.at[k])
GT_ON_REGISTERS(T, at_most(Several<T, N> x, OrNumber<T, N> bound), instruction::smaller(bound.at[k], x.at[k]))
GT_ON_REGISTERS(T, at_least(Several<T, N> x, OrNumber<T, N> bound), instruction::larger(bound.at[k], x.at[k]))
GT_ON_REGISTERS(T, at_most_number(Several<T, N> x, OrNumber<T, N> bound),
                instruction::smaller(x.at[k], bound.at[k]))
GT_ON_REGISTERS(T, square_root(Several<T, N> x), instruction::root(x.at[k]))
GT_ON_REGISTERS(T, nearest_whole(Several<T, N> x), instruction::nearest(x.at[k]))
GT_ON_REGISTERS(T, whole_below(Several<T, N> x), instruction::below(x.at[k]))
GT_ON_REGISTERS(T, fused(Several<T, N> a, OrNumber<T, N> b, OrNumber<T, N> c),
                instruction::fused(a.at[k], b.at[k], c.at[k]))
#undef GT_ON_REGISTERS
template <class T, int N> GT_INLINE auto nan_if(Several<T, N> c, Several<RealIn<T>, N> x) {
  return of_bits(bits_of(x) | bits_of(c));
}
template <class T, int N> GT_INLINE bool any(Several<T, N> c) {
  return instruction::any(N == 1 ? c.at[0] : Register<T>(c.at[0] | c.at[N - 1]));
}

template <class T, int N> GT_INLINE bool any_above(Several<T, N> x, T y) {
  if constexpr (N == 1)
    return instruction::any_above(x.at[0], y);
  else
    return any(x > y);
}

GT_INLINE Floats to_float(Ints x) { return Floats(__builtin_convertvector(x.at[0], Register<float>)); }
// Floats to doubles, which fill two registers, and back: for steps whose rounding errors would show in the
// result.
#if GT_ISA_LEVEL == 4
// (gcc warns of uninitialised values in the intrinsic functions for the halves of a register.)
struct TwoHalves {
  __m256 low, high;
};
GT_INLINE Doubles<2> widened(Floats x) {
#if __has_builtin(__builtin_shufflevector)
  const __m256 low = __builtin_shufflevector(x.at[0], x.at[0], 0, 1, 2, 3, 4, 5, 6, 7);
  const __m256 high = __builtin_shufflevector(x.at[0], x.at[0], 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const auto [low, high] = std::bit_cast<TwoHalves>(x);
#endif
  return {_mm512_maskz_cvtps_pd(0xff, low), _mm512_maskz_cvtps_pd(0xff, high)};
}
GT_INLINE Floats narrowed(Doubles<2> x) {
  const __m256 low = _mm512_maskz_cvtpd_ps(0xff, x.at[0]), high = _mm512_maskz_cvtpd_ps(0xff, x.at[1]);
#if __has_builtin(__builtin_shufflevector)
  return Floats(__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
#else
  return std::bit_cast<Floats>(TwoHalves{low, high});
#endif
}
#elif GT_ISA_LEVEL == 3
GT_INLINE Doubles<2> widened(Floats x) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(x.at[0])),
          _mm256_cvtps_pd(_mm256_extractf128_ps(x.at[0], 1))};
}
GT_INLINE Floats narrowed(Doubles<2> x) {
  return Floats(
      _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(x.at[0])), _mm256_cvtpd_ps(x.at[1]), 1));
}
#elif GT_ISA_LEVEL == 2
GT_INLINE Doubles<2> widened(Floats x) {
  return {_mm_cvtps_pd(x.at[0]), _mm_cvtps_pd(_mm_movehl_ps(x.at[0], x.at[0]))};
}
GT_INLINE Floats narrowed(Doubles<2> x) {
  return Floats(_mm_movelh_ps(_mm_cvtpd_ps(x.at[0]), _mm_cvtpd_ps(x.at[1])));
}
#else
GT_INLINE Doubles<2> widened(Floats x) {
  Doubles<2> out;
  for (int j = 0; j < kLanes<float>; ++j) out.set(j, double(x[j]));
  return out;
}
GT_INLINE Floats narrowed(Doubles<2> x) {
  Floats out;
  for (int j = 0; j < kLanes<float>; ++j) out.set(j, float(x[j]));
  return out;
}
#endif

// ---- for numbers and registers -------------------------------------------------------------------

// The argument types of functions of float.
template <class X>
concept OfFloat = std::same_as<X, float> || std::same_as<X, Floats>;
template <class X> using BitsOf = decltype(bits_of(X()));
// The type of an element.
template <class X> struct NumberOf { using Type = X; };
template <class T, int N> struct NumberOf<Several<T, N>> { using Type = T; };
template <class X> using NumberIn = typename NumberOf<X>::Type;

template <class X> constexpr auto kSignBit = BitsIn<NumberIn<X>>(1) << (8 * sizeof(NumberIn<X>) - 1);
template <class X> GT_INLINE auto sign_bit(X x) { return bits_of(x) & kSignBit<X>; }
template <class X> GT_INLINE X size_of(X x) { return of_bits(bits_of(x) & (kSignBit<X> - 1)); }
// `size` is not negative.
template <class X> GT_INLINE X with_sign_of(X x, X size) { return of_bits(bits_of(size) | sign_bit(x)); }
// -x where the lowest bit is set.
template <class X> GT_INLINE X negated_if(X x, BitsOf<X> odd) {
  return of_bits(bits_of(x) ^ (odd << (8 * int(sizeof(NumberIn<X>)) - 1)));
}

// Whether any |x| > y, or is NaN: bits of positive numbers compare as the numbers do.
template <class X> GT_INLINE bool any_beyond(X x, NumberIn<X> y) {
  return any_above(signed_of(bits_of(size_of(x))), signed_of(bits_of(y)));
}
// Whether any x is not in [least, most), for positive bounds: a single comparison, of the bits as signed
// integers.
template <class X> GT_INLINE bool any_outside(X x, NumberIn<X> least, NumberIn<X> most) {
  const auto from = bits_of(least) + kSignBit<X>;
  return any_above(signed_of(bits_of(x) - from), signed_of(bits_of(most) - from) - 1);
}

// c - a * b and a * b - c, with or without rounding the product as in `fused`.
template <class X> GT_INLINE X fused_from(X a, std::type_identity_t<X> b, std::type_identity_t<X> c) {
  return GT_HAS_FMA ? fused(a, -b, c) : c - a * b;
}
template <class X> GT_INLINE X fused_less(X a, std::type_identity_t<X> b, std::type_identity_t<X> c) {
  return GT_HAS_FMA ? fused(a, b, -c) : a * b - c;
}
// a * b + c rounded once on every processor: without FMA in double, where a product of floats is exact.
template <OfFloat X> GT_INLINE X rounded_once(X a, X b, X c) {
  return GT_HAS_FMA ? fused(a, b, c) : narrowed(widened(a) * widened(b) + widened(c));
}

// c0 + c1 x + c2 x^2 + ...: by Horner's rule, and (`polynomial`) as shorter chains that do not wait for each
// other: of even and odd powers, or without FMA, where a step takes twice the time, of pairs, pairs of pairs
// and so on (Estrin, "Organization of computer systems", 1960).
template <class X, class C> GT_INLINE X horner(X, C c) { return c; }
template <class X, class C, class... More> GT_INLINE X horner(X x, C c, More... more) {
  return fused(horner(x, more...), x, c);
}
#if GT_HAS_FMA
template <class X, class C> GT_INLINE X every_second(X, C c) { return c; }
template <class X, class C> GT_INLINE X every_second(X, C c, C) { return c; }
template <class X, class C, class... More> GT_INLINE X every_second(X square, C c, C, More... more) {
  return fused(every_second(square, more...), square, c);
}
template <class X, class C, class... More> GT_INLINE X polynomial(X x, C c, More... more) {
  const X square = x * x;
  return fused(every_second(square, more...), x, every_second(square, c, more...));
}
#else
template <class X, int... k> GT_INLINE X by_pairs(X x, const X* c, std::integer_sequence<int, k...>) {
  constexpr int n = sizeof...(k), half = (n + 1) / 2;
  if constexpr (n == 1) {
    return c[0];
  } else {
    const X next[] = {(2 * k + 1 < n ? fused(c[2 * k + 1 < n ? 2 * k + 1 : 0], x, c[2 * k < n ? 2 * k : 0])
                                     : c[2 * k < n ? 2 * k : 0])...};
    return by_pairs(x * x, next, std::make_integer_sequence<int, half>{});
  }
}
template <class X, class... C> GT_INLINE X polynomial(X x, C... c) {
  const X all[] = {X(c)...};
  return by_pairs(x, all, std::make_integer_sequence<int, int(sizeof...(c))>{});
}
#endif

}  // namespace gt::math
