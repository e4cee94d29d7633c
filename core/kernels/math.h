// Elementary functions of float, double and complex, for use inside vector loops. Those of float are our own:
// explog.h, hyperbolic.h, power.h, tanherf.h, trig.h. Those of double are the C library's; where that has
// vector variants (glibc's libmvec), loops call those.
#pragma once
#include <math.h>

#include "arith.h"
#include "explog.h"
#include "hyperbolic.h"
#include "power.h"
#include "tanherf.h"
#include "trig.h"

// glibc declares its vector variants under -ffast-math only, which would also make the compiler
// forget about NaN and infinity. So the declarations are here. 2.35 is the first to have all.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
extern "C" {
#define GT_VECTOR1(name) __attribute__((simd("notinbranch"))) double name(double) noexcept;
#define GT_VECTOR2(name) __attribute__((simd("notinbranch"))) double name(double, double) noexcept;
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
#endif
#endif

namespace gt::math {

#define GT_REAL1(name)                                \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }
#define GT_REAL2(name)                                            \
  inline float name(float x, float y) { return ::name##f(x, y); } \
  inline double name(double x, double y) { return ::name(x, y); }
#define GT_DOUBLE1(name) \
  inline double name(double x) { return ::name(x); }
#define GT_DOUBLE2(name) \
  inline double name(double x, double y) { return ::name(x, y); }
// clang-format off
GT_REAL1(sqrt) GT_REAL1(floor) GT_REAL1(ceil) GT_REAL1(trunc) GT_REAL1(rint) GT_REAL1(fabs)
GT_REAL2(fmod) GT_REAL2(nextafter) GT_REAL2(copysign)
GT_DOUBLE1(exp) GT_DOUBLE1(log) GT_DOUBLE1(expm1) GT_DOUBLE1(log1p)
GT_DOUBLE1(sin) GT_DOUBLE1(cos) GT_DOUBLE1(tan) GT_DOUBLE1(asin) GT_DOUBLE1(acos) GT_DOUBLE1(atan)
GT_DOUBLE1(sinh) GT_DOUBLE1(cosh) GT_DOUBLE1(tanh) GT_DOUBLE1(asinh) GT_DOUBLE1(acosh) GT_DOUBLE1(atanh)
GT_DOUBLE1(erf) GT_DOUBLE1(erfc)
GT_DOUBLE2(pow) GT_DOUBLE2(atan2) GT_DOUBLE2(hypot)
// clang-format on
#undef GT_DOUBLE1
#undef GT_DOUBLE2
#undef GT_REAL1
#undef GT_REAL2

    // Sine and the others in a loop, and which arguments they are too far away for (trig.h); double has none
    // such.
    inline double near_sin(double x) {
  return sin(x);
}
inline double near_cos(double x) { return cos(x); }
inline double near_tan(double x) { return tan(x); }
inline bool is_far(double) { return false; }
inline double exp_half_square(double x) { return ::exp(-0.5 * x * x); }

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
  return hypot(z.real(), z.imag());
}
inline double abs(c128 z) { return ::hypot(z.real(), z.imag()); }

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
