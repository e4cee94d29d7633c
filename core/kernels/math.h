// Elementary functions of float, double and complex, for use inside vector loops. Those of double are
// our own (double_*.h). Most of float are the C library's; where that has vector variants (glibc's
// libmvec), loops call those. The most frequent are in explog.h and tanherf.h.
#pragma once
#include <math.h>

#include "arith.h"
#include "double_arc.h"
#include "double_erf.h"
#include "double_exp.h"
#include "double_log.h"
#include "double_pow.h"
#include "double_trig.h"
#include "explog.h"
#include "tanherf.h"

// glibc declares its vector variants under -ffast-math only, which would also make the compiler
// forget about NaN and infinity. So the declarations are here. 2.35 is the first to have all.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
extern "C" {
#define GT_VECTOR1(name) __attribute__((simd("notinbranch"))) float name##f(float) noexcept;
#define GT_VECTOR2(name) __attribute__((simd("notinbranch"))) float name##f(float, float) noexcept;
// clang-format off
GT_VECTOR1(exp) GT_VECTOR1(expm1) GT_VECTOR1(log) GT_VECTOR1(log1p)
GT_VECTOR1(sin) GT_VECTOR1(cos) GT_VECTOR1(tan) GT_VECTOR1(asin) GT_VECTOR1(acos) GT_VECTOR1(atan)
GT_VECTOR1(sinh) GT_VECTOR1(cosh) GT_VECTOR1(tanh) GT_VECTOR1(asinh) GT_VECTOR1(acosh) GT_VECTOR1(atanh)
GT_VECTOR1(erf) GT_VECTOR1(erfc)
GT_VECTOR2(pow) GT_VECTOR2(atan2) GT_VECTOR2(hypot)
// clang-format on
#undef GT_VECTOR1
#undef GT_VECTOR2
}
#define GT_VECTOR_LIBRARY 1
#endif
#endif
#if !defined(GT_VECTOR_LIBRARY)
#define GT_VECTOR_LIBRARY 0
#endif

namespace gt::math {

#define GT_REAL1(name)                                \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }
#define GT_REAL2(name)                                            \
  inline float name(float x, float y) { return ::name##f(x, y); } \
  inline double name(double x, double y) { return ::name(x, y); }
#define GT_FLOAT1(name) \
  inline float name(float x) { return ::name##f(x); }
#define GT_FLOAT2(name) \
  inline float name(float x, float y) { return ::name##f(x, y); }
// clang-format off
GT_FLOAT1(expm1) GT_FLOAT1(log1p)
GT_FLOAT1(sin) GT_FLOAT1(cos) GT_FLOAT1(tan) GT_FLOAT1(asin) GT_FLOAT1(acos) GT_FLOAT1(atan)
GT_FLOAT1(sinh) GT_FLOAT1(cosh) GT_FLOAT1(asinh) GT_FLOAT1(acosh) GT_FLOAT1(atanh)
GT_FLOAT1(erfc)
GT_FLOAT2(pow) GT_FLOAT2(atan2) GT_FLOAT2(hypot)
GT_REAL1(sqrt) GT_REAL1(floor) GT_REAL1(ceil) GT_REAL1(trunc) GT_REAL1(rint) GT_REAL1(fabs)
GT_REAL2(fmod) GT_REAL2(nextafter) GT_REAL2(copysign)
// clang-format on
#undef GT_REAL1
#undef GT_REAL2
#undef GT_FLOAT1
#undef GT_FLOAT2

#if GT_HAS_FMA
                    inline float tanh(float x) {
  return fused_tanh(x);
}
#else
                    inline float tanh(float x) {
  return ::tanhf(x);
}
#endif
// glibc's vector variant for AVX2 is faster than ours, and as exact; that for AVX-512 is neither.
#if GT_HAS_FMA && !(GT_VECTOR_LIBRARY && GT_ISA_LEVEL < 4)
inline float erf(float x) { return fused_erf(x); }
#else
inline float erf(float x) { return ::erff(x); }
#endif
inline double exp_half_square(double x) { return exp(-0.5 * x * x); }

// The C99 functions, reached without std::complex's templates: an out-of-line copy of those
// would be shared between instruction sets.
inline __complex__ float raw(c64 z) {
  __complex__ float r;
  __real__ r = z.real();
  __imag__ r = z.imag();
  return r;
}
inline __complex__ double raw(c128 z) {
  __complex__ double r;
  __real__ r = z.real();
  __imag__ r = z.imag();
  return r;
}
inline c64 cooked(__complex__ float z) { return c64(__real__ z, __imag__ z); }
inline c128 cooked(__complex__ double z) { return c128(__real__ z, __imag__ z); }
#define GT_COMPLEX1(name)                                                 \
  inline c64 name(c64 z) { return cooked(__builtin_c##name##f(raw(z))); } \
  inline c128 name(c128 z) { return cooked(__builtin_c##name(raw(z))); }
// clang-format off
GT_COMPLEX1(exp) GT_COMPLEX1(log) GT_COMPLEX1(sqrt)
GT_COMPLEX1(sin) GT_COMPLEX1(cos) GT_COMPLEX1(tan) GT_COMPLEX1(asin) GT_COMPLEX1(acos) GT_COMPLEX1(atan)
GT_COMPLEX1(sinh) GT_COMPLEX1(cosh) GT_COMPLEX1(tanh) GT_COMPLEX1(asinh) GT_COMPLEX1(acosh) GT_COMPLEX1(atanh)
// clang-format on
#undef GT_COMPLEX1

            inline float abs(c64 z) {
  return ::hypotf(z.real(), z.imag());
}
inline double abs(c128 z) { return hypot(z.real(), z.imag()); }

template <class Z> inline Z expm1(Z z) {
  const auto x = z.real(), y = z.imag(), s = sin(y / 2), e = expm1(x);
  // exp(x) cos(y) - 1 without cancellation near 0, and without inf - inf or inf * 0 where exp(x) overflows.
  return Z(e * cos(y) - 2 * s * s, y == 0 ? y : (e + 1) * sin(y));
}
template <class Z> inline Z log1p(Z z) {
  const auto x = z.real(), y = z.imag();
  // |1 + z|^2 - 1, without the cancellation that log|1 + z| would have near 0. Far from 0 the square itself
  // loses digits, or overflows.
  const auto t = x * (2 + x) + y * y;
  const auto log_size = t > -0.5f && t < 0.5f ? log1p(t) / 2 : log(abs(Z(1 + x, y)));
  return Z(log_size, atan2(y, 1 + x));
}

inline c64 pow(c64 x, c64 y) { return cooked(__builtin_cpowf(raw(x), raw(y))); }
inline c128 pow(c128 x, c128 y) { return cooked(__builtin_cpow(raw(x), raw(y))); }

template <class T> inline T sigmoid(T x) {
  if constexpr (kIsComplex<T>)
    return div(T(1), add(T(1), exp(neg(x))));
  else
    return 1 / (1 + exp(-x));
}
inline float softplus(float x) {
  const float y = log1p_unit(exp_negative(-fabs(x)));
  return x > 0 ? x + y : y;
}
inline double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

}  // namespace gt::math
