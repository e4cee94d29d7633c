// What the functions of double (double_exp.h, double_log.h, double_trig.h, double_arc.h, double_erf.h,
// double_pow.h) are made of: named operations on a vector register, bits, pairs.
//
// They are written on the compilers' own vectors, so that no compiler has to find out how to make vector code
// of a formula, and results are the same whichever built them: these files are compiled with
// -ffp-contract=off, and where a product is added without being rounded is said by name. A function first
// asks whether an argument of its register needs more than the short way (a result that is no normal number,
// an infinity, an operand out of range), and then takes the long way for all of them, which gives the others
// the same results.
//
// The polynomials are fits of our own (tools/fit_double.py). tests/native/double_check.cpp compares with the
// C library's long double.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "conv_vector.h"
#include "fused.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gt::math {

// The long way: out of the way of the other one's registers.
#define GT_RARE [[gnu::noinline, gnu::cold]] inline

typedef double DoubleRegister __attribute__((vector_size(kVectorBytes)));
typedef uint64_t BitRegister __attribute__((vector_size(kVectorBytes)));
typedef decltype(DoubleRegister{} < DoubleRegister{}) MaskRegister;
template <class R> using ElementIn = std::remove_cvref_t<decltype(R{}[0])>;

// What a function takes and gives: some registers side by side, so that while one waits for a result, the
// other goes on.
constexpr int kInRegister = kVectorBytes / 8;
template <class R, int N> struct Several {
  R at[N];
  GT_INLINE ElementIn<R> operator[](int j) const { return at[j / kInRegister][j % kInRegister]; }
  GT_INLINE void set(int j, ElementIn<R> x) { at[j / kInRegister][j % kInRegister] = x; }
};
template <int N> using Doubles = Several<DoubleRegister, N>;
template <int N> using Bits = Several<BitRegister, N>;
template <int N> using Mask = Several<MaskRegister, N>;  // all ones where something holds, or 0

// f(k) for each register.
template <int N, class F> GT_INLINE auto each(F f) {
  using R = decltype(f(0));
  static_assert(N == 1 || N == 2);
  if constexpr (N == 1)
    return Several<R, 1>{{f(0)}};
  else
    return Several<R, 2>{{f(0), f(1)}};
}
// The expression for each register k of N.
#define GT_REGISTERS(...) \
  each<N>([&]([[maybe_unused]] int k) __attribute__((always_inline)) { return __VA_ARGS__; })
template <class R> GT_INLINE R in_all(ElementIn<R> x) { return x - R{}; }

#define GT_OPERATOR(op)                                                                    \
  template <class R, int N> GT_INLINE auto operator op(Several<R, N> x, Several<R, N> y) { \
    return GT_REGISTERS(x.at[k] op y.at[k]);                                               \
  }                                                                                        \
  template <class R, int N> GT_INLINE auto operator op(Several<R, N> x, ElementIn<R> y) {  \
    return GT_REGISTERS(x.at[k] op in_all<R>(y));                                          \
  }                                                                                        \
  template <class R, int N> GT_INLINE auto operator op(ElementIn<R> x, Several<R, N> y) {  \
    return GT_REGISTERS(in_all<R>(x) op y.at[k]);                                          \
  }
// clang-format off
GT_OPERATOR(+) GT_OPERATOR(-) GT_OPERATOR(*) GT_OPERATOR(/) GT_OPERATOR(&) GT_OPERATOR(|) GT_OPERATOR(^)
GT_OPERATOR(<) GT_OPERATOR(>) GT_OPERATOR(>=) GT_OPERATOR(==)
// clang-format on
#undef GT_OPERATOR
template <class R, int N> GT_INLINE Several<R, N> operator-(Several<R, N> x) {
  return GT_REGISTERS(-x.at[k]);
}
template <class R, int N> GT_INLINE Several<R, N> operator~(Several<R, N> x) {
  return GT_REGISTERS(~x.at[k]);
}
template <int N> GT_INLINE Bits<N> operator<<(Bits<N> x, int n) { return GT_REGISTERS(x.at[k] << n); }
template <int N> GT_INLINE Bits<N> operator>>(Bits<N> x, int n) { return GT_REGISTERS(x.at[k] >> n); }

template <int N> GT_INLINE Doubles<N> load_doubles(const double* x) {
  return GT_REGISTERS(DoubleRegister(load(x + k * kInRegister)));
}
template <int N> GT_INLINE void store_doubles(double* out, Doubles<N> x) {
  GT_EACH(k, N) store(out + k * kInRegister, V<double>(x.at[k]));
}
template <int N> GT_INLINE Doubles<N> all(double x) { return GT_REGISTERS(in_all<DoubleRegister>(x)); }
template <int N> GT_INLINE Bits<N> bits_of(Doubles<N> x) { return GT_REGISTERS(BitRegister(x.at[k])); }
template <int N> GT_INLINE Bits<N> bits_of(Mask<N> x) { return GT_REGISTERS(BitRegister(x.at[k])); }
template <int N> GT_INLINE Mask<N> signed_of(Bits<N> x) { return GT_REGISTERS(MaskRegister(x.at[k])); }
template <int N> GT_INLINE Doubles<N> of_bits(Bits<N> x) { return GT_REGISTERS(DoubleRegister(x.at[k])); }
GT_INLINE uint64_t bits_of(double x) { return std::bit_cast<uint64_t>(x); }
GT_INLINE double of_bits(uint64_t x) { return std::bit_cast<double>(x); }
GT_INLINE double size_of(double x) { return of_bits(bits_of(x) & 0x7fffffffffffffff); }

constexpr uint64_t kSignBit = 0x8000000000000000;
template <int N> GT_INLINE Doubles<N> size_of(Doubles<N> x) { return of_bits(bits_of(x) & ~kSignBit); }
template <int N> GT_INLINE Bits<N> sign_bit(Doubles<N> x) { return bits_of(x) & kSignBit; }
// `size` is not negative.
template <int N> GT_INLINE Doubles<N> with_sign_of(Doubles<N> x, Doubles<N> size) {
  return of_bits(bits_of(size) | sign_bit(x));
}
template <int N> GT_INLINE Doubles<N> negated_if(Doubles<N> x, Bits<N> odd) {
  return of_bits(bits_of(x) ^ (odd << 63));
}

template <int N> GT_INLINE Doubles<N> pick(Mask<N> m, Doubles<N> a, Doubles<N> b) {
  return GT_REGISTERS(m.at[k] ? a.at[k] : b.at[k]);
}
template <int N> GT_INLINE Doubles<N> pick(Mask<N> m, double a, Doubles<N> b) {
  return pick(m, all<N>(a), b);
}
template <int N> GT_INLINE Doubles<N> pick(Mask<N> m, Doubles<N> a, double b) {
  return pick(m, a, all<N>(b));
}
template <int N> GT_INLINE Doubles<N> pick(Mask<N> m, double a, double b) {
  return pick(m, all<N>(a), all<N>(b));
}
template <int N> GT_INLINE Doubles<N> at_most(Doubles<N> x, double y) {
  return pick(x > y, y, x);
}  // NaN stays
template <int N> GT_INLINE Doubles<N> at_least(Doubles<N> x, double y) { return pick(x < y, y, x); }

template <int N> GT_INLINE bool any(Mask<N> mask) {
  MaskRegister m = mask.at[0];
  if constexpr (N == 2) m |= mask.at[N - 1];
#if GT_ISA_LEVEL == 4
  return _mm512_movepi64_mask(__m512i(m)) != 0;
#elif GT_ISA_LEVEL == 3
  return _mm256_movemask_pd(__m256d(m)) != 0;
#elif GT_ISA_LEVEL == 2
  return _mm_movemask_pd(__m128d(m)) != 0;
#else
  return (m[0] | m[1]) != 0;
#endif
}
// Where x is larger than y in size, or NaN: bits of numbers without a sign compare as the numbers do.
template <int N> GT_INLINE Mask<N> beyond(Doubles<N> x, double y) {
  return signed_of(bits_of(size_of(x))) > int64_t(bits_of(y));
}
// Where x is not from 2^-1022 up to the largest finite number: one comparison, of the bits as signed numbers.
template <int N> GT_INLINE Mask<N> not_normal(Doubles<N> x) {
  return signed_of(bits_of(x) - 0x8010000000000000) >= int64_t(0x7fe0000000000000 + kSignBit);
}

GT_INLINE DoubleRegister fused(DoubleRegister a, DoubleRegister b, DoubleRegister c) {
#if GT_ISA_LEVEL == 4
  return _mm512_fmadd_pd(a, b, c);
#elif GT_ISA_LEVEL == 3
  return _mm256_fmadd_pd(a, b, c);
#elif GT_HAS_FMA
  return DoubleRegister{__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
#else
  return a * b + c;
#endif
}
template <int N> GT_INLINE Doubles<N> fused(Doubles<N> a, Doubles<N> b, Doubles<N> c) {
  return GT_REGISTERS(fused(a.at[k], b.at[k], c.at[k]));
}
template <int N> GT_INLINE Doubles<N> fused(Doubles<N> a, double b, Doubles<N> c) {
  return fused(a, all<N>(b), c);
}
template <int N> GT_INLINE Doubles<N> fused(Doubles<N> a, Doubles<N> b, double c) {
  return fused(a, b, all<N>(c));
}
template <int N> GT_INLINE Doubles<N> fused(Doubles<N> a, double b, double c) {
  return fused(a, all<N>(b), all<N>(c));
}
GT_INLINE DoubleRegister sqrt(DoubleRegister x) {
#if GT_ISA_LEVEL == 4
  return _mm512_maskz_sqrt_pd(0xff, x);
#elif GT_ISA_LEVEL == 3
  return _mm256_sqrt_pd(x);
#elif GT_ISA_LEVEL == 2
  return _mm_sqrt_pd(x);
#else
  return DoubleRegister{__builtin_sqrt(x[0]), __builtin_sqrt(x[1])};
#endif
}
template <int N> GT_INLINE Doubles<N> sqrt(Doubles<N> x) { return GT_REGISTERS(sqrt(x.at[k])); }
GT_INLINE DoubleRegister nearest_whole(DoubleRegister x) {
#if GT_ISA_LEVEL == 4
  return _mm512_maskz_roundscale_pd(0xff, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif GT_ISA_LEVEL == 3
  return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif GT_ISA_LEVEL == 2
  return _mm_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  return DoubleRegister{__builtin_rint(x[0]), __builtin_rint(x[1])};
#endif
}
template <int N> GT_INLINE Mask<N> is_whole(Doubles<N> x) {
  return GT_REGISTERS(MaskRegister(nearest_whole(x.at[k]) == x.at[k]));
}

// f of one register after the other, for formulas that fill all of them.
template <int N, class F, class... X> GT_INLINE Doubles<N> one_by_one(F f, X... x) {
  return GT_REGISTERS(f(Doubles<1>{{x.at[k]}}...).at[0]);
}
// What loops take at a time. 512 bits are worked off in halves anyway, and wait less.
constexpr int kRegisters = kVectorBytes == 64 ? 1 : 2, kDoubles = kRegisters * kInRegister;

constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");

// Adding and subtracting this rounds to a whole number and leaves it in the low bits: processors before
// AVX-512 have no conversion between double and 64-bit integers.
constexpr double kWhole = 0x1.8p52;
// 2^k for a k that kWhole was added to, in the range of normal numbers.
template <int N> GT_INLINE Doubles<N> power_of_two(Doubles<N> shifted) {
  return of_bits((bits_of(shifted) << 52) + 0x3ff0000000000000);
}

// c0 + c1 x + c2 x^2 + ...: even and odd powers as two chains, which need not wait for one another.
template <int N, class... C> GT_INLINE Doubles<N> polynomial(Doubles<N> x, C... c) {
  constexpr int n = sizeof...(C), even = (n - 1) / 2 * 2, odd = (n - 2) / 2 * 2 + 1;
  const double coefficients[] = {c...};
  const Doubles<N> z = x * x;
  Doubles<N> p = all<N>(coefficients[even]), q = all<N>(coefficients[odd]);
  GT_EACH(k, even / 2) p = fused(p, z, coefficients[even - 2 - 2 * k]);
  GT_EACH(k, odd / 2) q = fused(q, z, coefficients[odd - 2 - 2 * k]);
  return fused(q, x, p);
}

// An unevaluated sum of two doubles: Dekker, "A floating-point technique for extending the available
// precision", 1971.
template <int N> struct Pair { Doubles<N> hi, lo; };
// a + b without error, for any two (Knuth) and for |a| >= |b| or a = 0 (Dekker).
template <int N> GT_INLINE Pair<N> two_sum(Doubles<N> a, Doubles<N> b) {
  const Doubles<N> s = a + b, c = s - a;
  return {s, (a - (s - c)) + (b - c)};
}
template <int N> GT_INLINE Pair<N> quick_sum(Doubles<N> a, Doubles<N> b) {
  const Doubles<N> s = a + b;
  return {s, b - (s - a)};
}
// a * b without error (without FMA: but for the last bit of lo).
template <int N> GT_INLINE Pair<N> two_product(Doubles<N> a, Doubles<N> b) {
  const Doubles<N> p = a * b;
#if GT_HAS_FMA
  return {p, fused(a, b, -p)};
#else
  const Doubles<N> u = of_bits(bits_of(a) & 0xfffffffff8000000),
                   v = of_bits(bits_of(b) & 0xfffffffff8000000);  // 26 bits
  return {p, (((u * v - p) + u * (b - v)) + (a - u) * v) + (a - u) * (b - v)};
#endif
}

}  // namespace gt::math
