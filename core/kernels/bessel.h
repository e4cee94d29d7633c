// Bessel functions of order 0 and 1 in double, by series and integrals instead of tables.
#pragma once
#include "math.h"

namespace gt::bessel {

// exp(-|x|) I_n(x): the power series, whose terms are all positive; from 30 on the asymptotic one, which is
// accurate there.
template <int n> inline double scaled_i(double x) {
  const double u = ::fabs(x), sign = n && x < 0 ? -1 : 1;
  if (u == INFINITY) return 0 * sign;
  if (u != u) return u;
  if (u < 30) {
    const double q = u * u / 4;
    double term = n ? u / 2 : 1, sum = term;
    for (int k = 1; k < 100 && term > sum * 1e-18; ++k) sum += term *= q / (k * (k + n));
    return sign * math::exp(-u) * sum;
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 30; ++k) {
    const double next = -term * (4.0 * n * n - (2 * k - 1) * (2 * k - 1)) / (8 * k * u);
    if (::fabs(next) > ::fabs(term)) break;
    sum += term = next;
  }
  return sign * sum / ::sqrt(2 * M_PI * u);
}
template <int n> inline double plain_i(double x) {
  const double scaled = scaled_i<n>(x);
  return scaled == 0 ? (::fabs(x) == INFINITY ? NAN : scaled) : math::exp(::fabs(x)) * scaled;
}

// exp(x) K_n(x): the integral of exp(-x (cosh t - 1)) cosh(n t) over t > 0, where cosh t - 1 is 2
// sinh(t/2)^2. The trapezoidal rule converges exponentially, since the integrand is smooth and decays doubly
// exponentially. Below 1, where it is wide, the series is used.
template <int n> inline double scaled_k(double x) {
  if (x <= 0) return INFINITY;
  if (x == INFINITY) return 0;
  if (!(x < 1)) {
    const double step = 0.35 / (::sqrt(x) + 0.4);
    double sum = 0.5;
    for (int k = 1; k < 100; ++k) {
      const double s = math::sinh(k * step / 2), value = math::exp(-2 * x * s * s) * (n ? 1 + 2 * s * s : 1);
      sum += value;
      if (value < 1e-17 * sum) break;
    }
    return sum == sum ? step * sum : x;
  }
  constexpr double euler = 0.57721566490153286061;
  const double q = x * x / 4, log_half = math::log(x / 2);
  double term = n ? x / 2 : 1, harmonic = n ? 0.5 - euler : -euler,
         sum = 0;  // harmonic: the mean of psi(k + 1) and psi(k + n + 1)
  for (int k = 0; k < 30; ++k) {
    sum += term * (harmonic - log_half);
    harmonic += n ? 0.5 / (k + 1) + 0.5 / (k + 2) : 1.0 / (k + 1);
    term *= q / ((k + 1) * (k + 1 + n));
    if (term < 1e-18 * ::fabs(sum)) break;
  }
  return math::exp(x) * (n ? 1 / x - sum : sum);
}
template <int n> inline double plain_k(double x) {
  return x <= 0 ? INFINITY : math::exp(-x) * scaled_k<n>(x);
}

inline double y0(double x) { return x <= 0 ? -INFINITY : x == INFINITY ? NAN : ::y0(x); }
inline double y1(double x) { return x <= 0 ? -INFINITY : x == INFINITY ? NAN : ::y1(x); }
inline double j0(double x) { return ::fabs(x) == INFINITY ? NAN : ::j0(x); }
inline double j1(double x) { return ::fabs(x) == INFINITY ? NAN : ::j1(x); }

}  // namespace gt::bessel
