// Arithmetic that is the same for all element types: integers wrap instead of being undefined,
// complex products are the plain formula.
#pragma once
#include <type_traits>

#include "../dtype.h"

namespace gt {

template <class T> constexpr bool kIsInt = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T> constexpr bool kIsComplex = std::is_same_v<T, c64> || std::is_same_v<T, c128>;
template <class T> constexpr bool kIsReal = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T> struct WrapOf { using Type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>; };
template <class T> using Wrap = typename WrapOf<T>::Type;

template <class T> inline T neg(T x) {
  if constexpr (kIsInt<T>)
    return T(Wrap<T>(0) - Wrap<T>(x));
  else if constexpr (kIsComplex<T>)
    return T(-x.real(), -x.imag());
  else
    return -x;
}
template <class T> inline T add(T x, T y) {
  if constexpr (kIsInt<T>)
    return T(Wrap<T>(x) + Wrap<T>(y));
  else if constexpr (kIsComplex<T>)
    return T(x.real() + y.real(), x.imag() + y.imag());
  else
    return x + y;
}
template <class T> inline T sub(T x, T y) {
  if constexpr (kIsInt<T>)
    return T(Wrap<T>(x) - Wrap<T>(y));
  else if constexpr (kIsComplex<T>)
    return T(x.real() - y.real(), x.imag() - y.imag());
  else
    return x - y;
}
template <class T> inline T mul(T x, T y) {
  if constexpr (kIsInt<T>)
    return T(Wrap<T>(x) * Wrap<T>(y));
  else if constexpr (kIsComplex<T>)
    return T(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
  else
    return x * y;
}
inline float div(float x, float y) { return x / y; }
inline double div(double x, double y) { return x / y; }
// In double nothing of a float overflows on the way.
inline c64 div(c64 x, c64 y) {
  const double a = x.real(), b = x.imag(), c = y.real(), d = y.imag(), s = c * c + d * d;
  return c64(float((a * c + b * d) / s), float((b * c - a * d) / s));
}
inline c128 div(c128 x, c128 y) {  // Smith 1962
  const double a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  if (__builtin_fabs(c) >= __builtin_fabs(d)) {
    const double r = d / c, s = c + d * r;
    if (c == 0) return c128(a / c, b / c);
    return c128((a + b * r) / s, (b - a * r) / s);
  }
  const double r = c / d, s = c * r + d;
  return c128((a * r + b) / s, (b * r - a) / s);
}

template <class T> inline bool is_zero(T x) {
  if constexpr (kIsComplex<T>)
    return x.real() == 0 && x.imag() == 0;
  else
    return x == T(0);
}
template <class T> inline bool same(T x, T y) {
  if constexpr (kIsComplex<T>)
    return x.real() == y.real() && x.imag() == y.imag();
  else
    return x == y;
}
// A NaN on either side wins, as in NumPy: y's because the comparison fails, x's because it is
// kept. The comparison alone is one instruction (maxps).
template <class T> inline T larger(T x, T y) {
  const T z = x > y ? x : y;
  if constexpr (kIsReal<T>)
    return x == x ? z : x;
  else
    return z;
}
template <class T> inline T smaller(T x, T y) {
  const T z = x < y ? x : y;
  if constexpr (kIsReal<T>)
    return x == x ? z : x;
  else
    return z;
}

}  // namespace gt
