// What the checks compare with, where a C library is wrong: musl 1.2.5 has +inf where a power of a negative
// number overflows, whatever its sign, and -inf for some arguments of acosh below 1.
#pragma once
#include <cmath>

inline long double pow_reference(long double x, long double y) {
  if (!(x < 0 && std::isfinite(y) && y == std::floor(y))) return std::pow(x, y);
  const long double size = std::pow(-x, y);
  return std::fmod(y, 2.0L) == 0 ? size : -size;
}

inline double acosh_reference(double x) { return x < 1 ? NAN : std::acosh(x); }
