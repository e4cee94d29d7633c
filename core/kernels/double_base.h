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

#define GT_INLINE [[gnu::always_inline]] inline
// The long way: out of the way of the other one's registers.
#define GT_RARE [[gnu::noinline, gnu::cold]] inline

typedef double DoubleRegister __attribute__((vector_size(kVectorBytes)));
typedef uint64_t BitRegister __attribute__((vector_size(kVectorBytes)));
typedef decltype(DoubleRegister{} < DoubleRegister{}) MaskRegister;
template <class R> using ElementIn = std::remove_cvref_t<decltype(R{}[0])>;

// What a function is called with: two registers side by side, so that while one waits for a result, the other
// goes on. 512 bits are worked off in halves anyway, or wait less.
constexpr int kRegisters = kVectorBytes == 64 ? 1 : 2, kInRegister = kVectorBytes / 8;
constexpr int kDoubles = kRegisters * kInRegister;
template <class R> struct Several {
  R at[kRegisters];
  GT_INLINE ElementIn<R> operator[](int j) const { return at[j / kInRegister][j % kInRegister]; }
  GT_INLINE void set(int j, ElementIn<R> x) { at[j / kInRegister][j % kInRegister] = x; }
};
using Doubles = Several<DoubleRegister>;
using Bits = Several<BitRegister>;
using Mask = Several<MaskRegister>;  // all ones where something holds, or 0

// f(k) for each register.
template <class F> GT_INLINE auto each(F f) {
  using R = decltype(f(0));
  if constexpr (kRegisters == 1)
    return Several<R>{{f(0)}};
  else
    return Several<R>{{f(0), f(1)}};
}
// The expression for each register k.
#define GT_REGISTERS(...) each([&]([[maybe_unused]] int k) __attribute__((always_inline)) { return __VA_ARGS__; })
template <class R> GT_INLINE R in_all(ElementIn<R> x) { return x - R{}; }

#define GT_OPERATOR(op)                                      \
  template <class R> GT_INLINE auto operator op(Several<R> x, Several<R> y) {              \
    return GT_REGISTERS(x.at[k] op y.at[k]);  \
  }                                                          \
  template <class R> GT_INLINE auto operator op(Several<R> x, ElementIn<R> y) {            \
    return GT_REGISTERS(x.at[k] op in_all<R>(y));                           \
  }                                                          \
  template <class R> GT_INLINE auto operator op(ElementIn<R> x, Several<R> y) {            \
    return GT_REGISTERS(in_all<R>(x) op y.at[k]);                           \
  }
// clang-format off
GT_OPERATOR(+) GT_OPERATOR(-) GT_OPERATOR(*) GT_OPERATOR(/) GT_OPERATOR(&) GT_OPERATOR(|) GT_OPERATOR(^)
GT_OPERATOR(<) GT_OPERATOR(>) GT_OPERATOR(>=) GT_OPERATOR(==)
// clang-format on
#undef GT_OPERATOR
template <class R> GT_INLINE Several<R> operator-(Several<R> x) {
  return GT_REGISTERS(-x.at[k]);
}
template <class R> GT_INLINE Several<R> operator~(Several<R> x) {
  return GT_REGISTERS(~x.at[k]);
}
GT_INLINE Bits operator<<(Bits x, int n) {
  return GT_REGISTERS(x.at[k] << n);
}
GT_INLINE Bits operator>>(Bits x, int n) {
  return GT_REGISTERS(x.at[k] >> n);
}

GT_INLINE Doubles load_doubles(const double* x) {
  return GT_REGISTERS(DoubleRegister(load(x + k * kInRegister)));
}
GT_INLINE void store_doubles(double* out, Doubles x) {
  GT_EACH(k, kRegisters) store(out + k * kInRegister, V<double>(x.at[k]));
}
GT_INLINE Doubles all(double x) {
  return each([&](int) { return in_all<DoubleRegister>(x); });
}
GT_INLINE Bits bits_of(Doubles x) {
  return GT_REGISTERS(BitRegister(x.at[k]));
}
GT_INLINE Bits bits_of(Mask x) {
  return GT_REGISTERS(BitRegister(x.at[k]));
}
GT_INLINE Mask signed_of(Bits x) {
  return GT_REGISTERS(MaskRegister(x.at[k]));
}
GT_INLINE Doubles of_bits(Bits x) {
  return GT_REGISTERS(DoubleRegister(x.at[k]));
}
GT_INLINE uint64_t bits_of(double x) { return std::bit_cast<uint64_t>(x); }
GT_INLINE double of_bits(uint64_t x) { return std::bit_cast<double>(x); }
GT_INLINE double size_of(double x) { return of_bits(bits_of(x) & 0x7fffffffffffffff); }

constexpr uint64_t kSignBit = 0x8000000000000000;
GT_INLINE Doubles size_of(Doubles x) { return of_bits(bits_of(x) & ~kSignBit); }
GT_INLINE Bits sign_bit(Doubles x) { return bits_of(x) & kSignBit; }
// `size` is not negative.
GT_INLINE Doubles with_sign_of(Doubles x, Doubles size) { return of_bits(bits_of(size) | sign_bit(x)); }
GT_INLINE Doubles negated_if(Doubles x, Bits odd) { return of_bits(bits_of(x) ^ (odd << 63)); }

GT_INLINE Doubles pick(Mask m, Doubles a, Doubles b) {
  return GT_REGISTERS(m.at[k] ? a.at[k] : b.at[k]);
}
GT_INLINE Doubles pick(Mask m, double a, Doubles b) { return pick(m, all(a), b); }
GT_INLINE Doubles pick(Mask m, Doubles a, double b) { return pick(m, a, all(b)); }
GT_INLINE Doubles pick(Mask m, double a, double b) { return pick(m, all(a), all(b)); }
GT_INLINE Doubles at_most(Doubles x, double y) { return pick(x > y, y, x); }  // NaN stays
GT_INLINE Doubles at_least(Doubles x, double y) { return pick(x < y, y, x); }

GT_INLINE bool any(Mask mask) {
  MaskRegister m = mask.at[0];
  if constexpr (kRegisters == 2) m |= mask.at[kRegisters - 1];
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
GT_INLINE Mask beyond(Doubles x, double y) { return signed_of(bits_of(size_of(x))) > int64_t(bits_of(y)); }
// Where x is not from 2^-1022 up to the largest finite number: one comparison, of the bits as signed numbers.
GT_INLINE Mask not_normal(Doubles x) {
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
GT_INLINE Doubles fused(Doubles a, Doubles b, Doubles c) {
  return GT_REGISTERS(fused(a.at[k], b.at[k], c.at[k]));
}
GT_INLINE Doubles fused(Doubles a, double b, Doubles c) { return fused(a, all(b), c); }
GT_INLINE Doubles fused(Doubles a, Doubles b, double c) { return fused(a, b, all(c)); }
GT_INLINE Doubles fused(Doubles a, double b, double c) { return fused(a, all(b), all(c)); }
GT_INLINE DoubleRegister sqrt(DoubleRegister x) {
#if GT_ISA_LEVEL == 4
  return _mm512_sqrt_pd(x);
#elif GT_ISA_LEVEL == 3
  return _mm256_sqrt_pd(x);
#elif GT_ISA_LEVEL == 2
  return _mm_sqrt_pd(x);
#else
  return DoubleRegister{__builtin_sqrt(x[0]), __builtin_sqrt(x[1])};
#endif
}
GT_INLINE Doubles sqrt(Doubles x) {
  return GT_REGISTERS(sqrt(x.at[k]));
}
GT_INLINE DoubleRegister nearest_whole(DoubleRegister x) {
#if GT_ISA_LEVEL == 4
  return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif GT_ISA_LEVEL == 3
  return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif GT_ISA_LEVEL == 2
  return _mm_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  return DoubleRegister{__builtin_rint(x[0]), __builtin_rint(x[1])};
#endif
}
GT_INLINE Mask is_whole(Doubles x) {
  return GT_REGISTERS(MaskRegister(nearest_whole(x.at[k]) == x.at[k]));
}

GT_INLINE Doubles twice(DoubleRegister x) { return GT_REGISTERS(x); }


constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");

// Adding and subtracting this rounds to a whole number and leaves it in the low bits: processors before
// AVX-512 have no conversion between double and 64-bit integers.
constexpr double kWhole = 0x1.8p52;
// 2^k for a k that kWhole was added to, in the range of normal numbers.
GT_INLINE Doubles power_of_two(Doubles shifted) {
  return of_bits((bits_of(shifted) << 52) + 0x3ff0000000000000);
}

// c0 + c1 x + c2 x^2 + ...: even and odd powers as two chains, which need not wait for one another.
template <class... C> GT_INLINE Doubles polynomial(Doubles x, C... c) {
  constexpr int n = sizeof...(C), even = (n - 1) / 2 * 2, odd = (n - 2) / 2 * 2 + 1;
  const double coefficients[] = {c...};
  const Doubles z = x * x;
  Doubles p = all(coefficients[even]), q = all(coefficients[odd]);
  GT_EACH(k, even / 2) p = fused(p, z, coefficients[even - 2 - 2 * k]);
  GT_EACH(k, odd / 2) q = fused(q, z, coefficients[odd - 2 - 2 * k]);
  return fused(q, x, p);
}

// An unevaluated sum of two doubles: Dekker, "A floating-point technique for extending the available
// precision", 1971.
struct Pair {
  Doubles hi, lo;
};
// a + b without error, for any two (Knuth) and for |a| >= |b| or a = 0 (Dekker).
GT_INLINE Pair two_sum(Doubles a, Doubles b) {
  const Doubles s = a + b, c = s - a;
  return {s, (a - (s - c)) + (b - c)};
}
GT_INLINE Pair quick_sum(Doubles a, Doubles b) {
  const Doubles s = a + b;
  return {s, b - (s - a)};
}
// a * b without error (without FMA: but for the last bit of lo).
GT_INLINE Pair two_product(Doubles a, Doubles b) {
  const Doubles p = a * b;
#if GT_HAS_FMA
  return {p, fused(a, b, -p)};
#else
  const Doubles u = of_bits(bits_of(a) & 0xfffffffff8000000),
                v = of_bits(bits_of(b) & 0xfffffffff8000000);  // 26 bits
  return {p, (((u * v - p) + u * (b - v)) + (a - u) * v) + (a - u) * (b - v)};
#endif
}

}  // namespace gt::math
