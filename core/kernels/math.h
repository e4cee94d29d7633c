// Elementary functions of float, double and complex, for use inside vector loops. Those of real numbers are
// our own: explog.h, hyperbolic.h, power.h, tanherf.h, trig.h of float, double_*.h of double. Those of
// complex ones are the C library's.
#pragma once
#ifndef GT_NO_CONTRACTION
#error \
    "CMakeLists.txt lists the files that use elementary functions: they are compiled with -ffp-contract=off"
#endif
#include <math.h>

#include "arith.h"
#include "double_arc.h"
#include "double_erf.h"
#include "double_exp.h"
#include "double_log.h"
#include "double_pow.h"
#include "double_trig.h"
#include "explog.h"
#include "hyperbolic.h"
#include "power.h"
#include "registers.h"
#include "tanherf.h"
#include "trig.h"

namespace gt::math {

#define GT_REAL1(name)                                \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }
#define GT_REAL2(name)                                            \
  inline float name(float x, float y) { return ::name##f(x, y); } \
  inline double name(double x, double y) { return ::name(x, y); }
// clang-format off
GT_REAL1(sqrt) GT_REAL1(floor) GT_REAL1(ceil) GT_REAL1(trunc) GT_REAL1(rint) GT_REAL1(fabs)
GT_REAL2(fmod) GT_REAL2(nextafter) GT_REAL2(copysign)
// clang-format on
#undef GT_REAL1
#undef GT_REAL2

template <class T, int N> GT_INLINE Several<T, N> sqrt(Several<T, N> x) { return square_root(x); }
template <class T, int N> GT_INLINE Several<T, N> fabs(Several<T, N> x) { return size_of(x); }
// A single double goes through a register as well.
#define GT_LANE1(name) \
  inline double name(double x) { return name(Doubles<1>(x))[0]; }
#define GT_LANE2(name) \
  inline double name(double x, double y) { return name(Doubles<1>(x), Doubles<1>(y))[0]; }
// clang-format off
GT_LANE1(exp) GT_LANE1(expm1) GT_LANE1(sinh) GT_LANE1(cosh) GT_LANE1(tanh) GT_LANE1(exp_half_square)
GT_LANE1(log) GT_LANE1(log1p) GT_LANE1(asinh) GT_LANE1(acosh) GT_LANE1(atanh)
GT_LANE1(sin) GT_LANE1(cos) GT_LANE1(tan) GT_LANE1(asin) GT_LANE1(acos) GT_LANE1(atan)
GT_LANE1(erf) GT_LANE1(erfc) GT_LANE1(normal_below) GT_LANE2(pow) GT_LANE2(atan2) GT_LANE2(hypot)
// clang-format on
#undef GT_LANE1
#undef GT_LANE2

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

inline float abs(c64 z) { return hypot(z.real(), z.imag()); }
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
// log(1 + exp(x)) - max(x, 0) = log(1 + exp(-|x|)).
template <OfFloat X> GT_INLINE X softplus_rest(X x) { return log1p_unit(exp_negative(-size_of(x))); }
template <int N> GT_INLINE Doubles<N> softplus_rest(Doubles<N> x) {
  const Doubles<N> e = exp(-size_of(x));
  return log1p_of(e, 1 + e);
}
inline double softplus_rest(double x) { return softplus_rest(Doubles<1>(x))[0]; }
template <class X> GT_INLINE X softplus(X x) { return at_least(x, 0) + softplus_rest(x); }

// x y, but 0 for any y if x is 0.
template <class T> GT_INLINE T product_from_0(T x, T y) { return is_zero(x) ? T(0) : mul(x, y); }
template <class T, int N> GT_INLINE Several<T, N> product_from_0(Several<T, N> x, Several<T, N> y) {
  return pick(x == 0, 0, x * y);
}

}  // namespace gt::math

namespace gt {

inline math::Floats div(math::Floats x, math::Floats y) { return x / y; }

}  // namespace gt
