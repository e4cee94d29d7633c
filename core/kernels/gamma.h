// The gamma family in double, with the elementary functions of math.h and not those of the C library, whose
// times depend on its version: logarithm and derivatives of gamma, zeta, the incomplete gamma function
// with its derivatives with respect to the shape parameter, the incomplete beta function.
#pragma once
#include "math.h"

namespace gt::gamma {

// The remainder of Stirling's formula for lgamma(x), x >= 10.
template <class X> GT_INLINE X stirling_rest(X x) {
  const X s = 1 / (x * x);
  return (1.0 / 12 -
          s * (1.0 / 360 -
               s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360 - s / 156)))))) /
         x;
}
// log(gamma(2 + z)) for z in [-1, 1/2], with z + 1: a product with both zeros, near which it is as accurate.
template <class X> GT_INLINE X lgamma_near_2(X z, X next) {
  const X more = math::polynomial(
      z, -0x1.9ae6509ea10a2p-4, 0x1.0e0c9df29355ep-5, -0x1.95ce223a9b80ep-7, 0x1.47974853b2522p-8,
      -0x1.145121fac6fb4p-9, 0x1.dfebcf7891fb5p-11, -0x1.a96a3f2a0aa39p-12, 0x1.7ed73da6373b5p-13,
      -0x1.5c86deaebd178p-14, 0x1.402cb8f8493e6p-15, -0x1.284e3fa8d00aep-16, 0x1.143434e80e848p-17,
      -0x1.01d7b9eb50ffdp-18, 0x1.d9405d19989c0p-20, -0x1.eb50463ccadbap-21, 0x1.114e0f76c3f7ap-21,
      0x1.5ae2a74a2902dp-24, 0x1.6227c03ad17b1p-24, -0x1.306fc1c6667adp-21, -0x1.c810b85e20ca8p-22,
      0x1.c8fe734defe84p-23, 0x1.3da78aa34b81ap-21, 0x1.8c8a7bd5cbc5fp-22, 0x1.7823fd8e5fd3ep-24);
  return z * next * math::fused(more, z, 0x1.b0ee6072093cep-2);
}
// log(gamma(x)) for x > 0: by gamma(x + 1) = x gamma(x) from an argument in [1, 2.5], by Stirling's formula
// from 10 on. What no argument needs is left out.
template <int N> GT_INLINE math::Doubles<N> lgamma_positive(math::Doubles<N> x) {
  using D = math::Doubles<N>;
  const auto large = x >= 10, above = x > 2.5, below = x < 1;
  D product = math::pick(below, x, 1.0), next = math::pick(below, x, x - 1), z = next - 1;
  if (math::any(above)) {
    D near = math::pick(large, 2.0, x);
    for (int k = 0; k < 8; ++k) {
      const auto on = near > 2.5;
      near = near - math::pick(on, 1.0, 0.0);
      product = product * math::pick(on, near, 1.0);
    }
    next = math::pick(above, near - 1, next), z = next - 1;
  }
  const D log = math::log(math::pick(large, x, product));
  const D out = lgamma_near_2(z, next) + math::pick(above, log, 0 - log);
  if (!math::any(large)) return out;
  return math::pick(large, (x - 0.5) * (log - 1) + (0.41893853320467274178 + stirling_rest(x)), out);
}
// log|gamma(x)|: below 0 by reflection, with a small absolute error near its zeros.
template <int N> GT_RARE math::Doubles<N> lgamma_anywhere(math::Doubles<N> x) {
  using D = math::Doubles<N>;
  const D positive = lgamma_positive(math::pick(x < 0, 1 - x, x));
  const D sine = math::sin(M_PI * (x - math::nearest_whole(x)));  // a difference without rounding
  const D negative = math::log(M_PI / math::size_of(sine)) - positive;
  const D out = math::pick(x < 0, math::pick(x > -1e-17, -math::log(-x), negative), positive);
  return math::pick((x <= 0) & (math::nearest_whole(x) == x), double(INFINITY), out);  // poles
}
template <int N> GT_INLINE math::Doubles<N> lgamma(math::Doubles<N> x) {
  if (math::any_not_normal(x)) [[unlikely]]
    return lgamma_anywhere(x);
  return lgamma_positive(x);
}
inline double lgamma(double x) { return lgamma(math::Doubles<1>(x))[0]; }
inline float lgamma(float x) { return float(lgamma(double(x))); }
GT_INLINE math::Floats lgamma(math::Floats x) { return math::narrowed(lgamma(math::widened(x))); }

inline double digamma(double x) {
  double sum = 0;
  if (x <= 0) {
    if (x == ::floor(x)) return NAN;                  // a pole
    sum = -M_PI / math::tan(M_PI * (x - ::rint(x)));  // a difference without rounding, also near 0
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  const double s = 1 / (x * x);
  const double series =
      s *
      (1.0 / 12 -
       s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
  return sum + math::log(x) - 0.5 / x - series;
}

// Hurwitz' zeta, the sum of (q + k)^-s, by Euler and Maclaurin.
inline double zeta(double s, double q) {
  if (s == 1) return INFINITY;
  if (!(s > 1) || q != q) return NAN;
  if (q <= 0) {
    if (q == ::floor(q)) return ::fmod(s, 2) == 0 ? INFINITY : NAN;  // a pole, with a sign if s is odd
    if (s != ::floor(s)) return NAN;                                 // a power of a negative number
  }
  if (q == INFINITY) return 0;
  if (q < -64) {  // the terms of negative numbers are those of positive ones: (a - k)^-s for k = 1, ..., m
    const double m = -::floor(q), a = q + m;
    const double negative = zeta(s, 1 - a) - zeta(s, m + 1 - a);
    return zeta(s, a) + (::fmod(s, 2) == 0 ? negative : -negative);
  }
  double sum = 0;
  for (; q < 12 + s; q += 1) {
    const double term = math::pow(q, -s);
    sum += term;
    if (q > 1 && term <= 1e-18 * sum) return sum;  // both are 0 if s is large
  }
  // B_2j / (2j)! for j = 1, 2, ...
  constexpr double bernoulli[] = {1.0 / 12,
                                  -1.0 / 720,
                                  1.0 / 30240,
                                  -1.0 / 1209600,
                                  1.0 / 47900160,
                                  -691.0 / 1307674368000.,
                                  1.0 / 74724249600.,
                                  -3617.0 / 10670622842880000.,
                                  43867.0 / 5109094217170944000.};
  const double power = math::pow(q, -s);
  if (power == 0) return sum;
  sum += power * q / (s - 1) + power / 2;
  double term = power * s / q;
  for (int j = 0; j < 9; ++j) {
    sum += bernoulli[j] * term;
    term *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q);
    if (term < sum * 1e-18) break;
  }
  return sum;
}
inline double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (!(n > 0) || n != ::floor(n)) return NAN;
  const double value = math::exp(lgamma(n + 1)) * zeta(n + 1, x);
  return ::fmod(n, 2) == 1 ? value : -value;
}

// log(1 + x) - x without the cancellation near 0.
inline double log1p_minus(double x) {
  if (::fabs(x) > 0.25) return math::log1p(x) - x;
  double power = x, sum = 0;
  for (int k = 2; k < 40; ++k) {
    power *= -x;
    sum += power / k;
    if (::fabs(power) < 1e-18 * ::fabs(sum)) break;
  }
  return sum;
}
// x^a exp(-x) / gamma(a + 1): for large a by Stirling's formula, which does not subtract large numbers.
inline double gamma_power(double a, double x) {
  if (a < 10) return math::exp(a * math::log(x) - x - lgamma(a + 1));
  return math::exp(a * log1p_minus((x - a) / a) - stirling_rest(a)) / ::sqrt(2 * M_PI * a);
}

// A Taylor polynomial: a value and its derivatives with respect to a parameter, divided by factorials.
constexpr int kOrders = 5;
struct Jet {
  double c[kOrders] = {};
  Jet() = default;
  Jet(double x) { c[0] = x; }
};
inline Jet operator+(Jet x, const Jet& y) {
  for (int k = 0; k < kOrders; ++k) x.c[k] += y.c[k];
  return x;
}
inline Jet operator-(Jet x, const Jet& y) {
  for (int k = 0; k < kOrders; ++k) x.c[k] -= y.c[k];
  return x;
}
inline Jet operator*(const Jet& x, const Jet& y) {
  Jet out;
  for (int k = 0; k < kOrders; ++k)
    for (int j = 0; j <= k; ++j) out.c[k] += x.c[j] * y.c[k - j];
  return out;
}
inline Jet operator/(const Jet& x, const Jet& y) {
  Jet out;
  for (int k = 0; k < kOrders; ++k) {
    double rest = x.c[k];
    for (int j = 1; j <= k; ++j) rest -= y.c[j] * out.c[k - j];
    out.c[k] = rest / y.c[0];
  }
  return out;
}
inline double size_of(double x) { return ::fabs(x); }
inline double size_of(const Jet& x) {
  double most = 0;
  for (double c : x.c) most = most > ::fabs(c) ? most : ::fabs(c);
  return most;
}

constexpr int kMostTerms = 100000;  // for x and a near each other it takes a few times sqrt(a)

// igamma(a, x) = gamma_power(a, x) * this: the sum of x^n / ((a + 1) ... (a + n)).
template <class T> inline T lower_series(T a, double x) {
  T term = 1, sum = 1;
  for (int n = 1; n < kMostTerms; ++n) {
    term = term * T(x) / (a + T(n));
    sum = sum + term;
    if (size_of(term) < 1e-17 * size_of(sum)) break;
  }
  return sum;
}
// igammac(a, x) = gamma_power(a, x) * a * this: 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), from
// above by Lentz' method.
template <class T> inline T upper_fraction(T a, double x) {
  T b = T(x + 1) - a, d = T(1) / b, out = d, c = T(1e300);
  for (int n = 1; n < kMostTerms; ++n) {
    const T an = T(-n) * (T(n) - a);
    b = b + T(2);
    d = an * d + b;
    if (size_of(d) < 1e-300) d = T(1e-300);
    c = b + an / c;
    if (size_of(c) < 1e-300) c = T(1e-300);
    d = T(1) / d;
    const T factor = c * d;
    out = out * factor;
    if (size_of(factor - T(1)) < 1e-16) break;
  }
  return out;
}
inline bool use_series(double a, double x) { return x <= 1 || x <= a; }

inline double igamma(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return NAN;
  if (x == 0) return 0;
  if (a == 0) return NAN;
  if (a == INFINITY) return x == INFINITY ? NAN : 0;
  if (x == INFINITY) return 1;
  const double power = gamma_power(a, x);
  return use_series(a, x) ? power * lower_series<double>(a, x) : 1 - power * a * upper_fraction<double>(a, x);
}
inline double igammac(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return NAN;
  if (x == 0) return 1;
  if (a == INFINITY) return x == INFINITY ? NAN : 1;
  if (x == INFINITY) return 0;
  const double power = gamma_power(a, x);
  return use_series(a, x) ? 1 - power * lower_series<double>(a, x) : power * a * upper_fraction<double>(a, x);
}

// The Taylor polynomial of gamma_power by a, divided by its value.
inline Jet power_jet(double a, double x) {
  Jet exponent(0);  // (a + t) log x - lgamma(a + t + 1), without its constant
  exponent.c[1] =
      (a < 10 ? math::log(x) - digamma(a + 1) : math::log1p((x - a) / a) - (digamma(a + 1) - math::log(a)));
  double factorial = 1;
  for (int k = 2; k < kOrders; ++k) exponent.c[k] = -polygamma(k - 1, a + 1) / (factorial *= k);
  Jet out(1);  // its exponential: k out_k = sum of j exponent_j out_(k-j)
  for (int k = 1; k < kOrders; ++k)
    for (int j = 1; j <= k; ++j) out.c[k] += j * exponent.c[j] * out.c[k - j] / k;
  return out;
}
// igamma's derivatives with respect to a, divided by `power`: the Taylor polynomial, exact from the first
// order on.
inline Jet igamma_jet(double a, double x) {
  Jet at(a);
  at.c[1] = 1;
  if (use_series(a, x)) return power_jet(a, x) * lower_series<Jet>(at, x);
  return Jet(0) - power_jet(a, x) * at * upper_fraction<Jet>(at, x);
}
// The derivative of igamma with respect to a, of order 1 to kOrders - 1.
inline double igamma_derivative(int order, double a, double x) {
  if (!(a > 0) || !(x >= 0)) return NAN;
  if (x == 0 || x == INFINITY || a == INFINITY) return 0;
  double factorial = 1;
  for (int k = 2; k <= order; ++k) factorial *= k;
  return gamma_power(a, x) * factorial * igamma_jet(a, x).c[order];
}
// The derivative of a sample x of the gamma distribution with respect to its parameter a, at a constant
// quantile (Figurnov, Mohamed and Mnih 2018): -(d igamma / da) / density, where gamma_power cancels.
inline double gamma_sample_derivative(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return NAN;
  if (x == 0) return 0;
  return -igamma_jet(a, x).c[1] * x / a;
}

// The regularised incomplete beta function, by the continued fraction of DiDonato and Morris;
// for large parameters its factor comes from Stirling's formula.
inline double beta_fraction(double a, double b, double x) {
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (::fabs(d) < 1e-300) d = 1e-300;
  d = 1 / d;
  double out = d;
  for (int m = 1; m < kMostTerms; ++m) {
    for (int odd = 0; odd < 2; ++odd) {
      const double top = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                             : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 + top * d;
      if (::fabs(d) < 1e-300) d = 1e-300;
      c = 1 + top / c;
      if (::fabs(c) < 1e-300) c = 1e-300;
      d = 1 / d;
      out *= c * d;
    }
    if (::fabs(c * d - 1) < 1e-16) break;
  }
  return out;
}
// x^a (1 - x)^b / beta(a, b).
inline double beta_power(double a, double b, double x) {
  if (a < 10 && b < 10)
    return math::exp(a * math::log(x) + b * math::log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b));
  if (a < 10 || b < 10) {  // lgamma(a + b) - lgamma(the larger) by Stirling's formula
    const double large = a < b ? b : a, small = a < b ? a : b, total = a + b;
    const double for_large = large * ((a < b ? math::log1p(-x) : math::log(x)) + math::log1p(small / large));
    const double for_small = small * ((a < b ? math::log(x) : math::log1p(-x)) + math::log(total) - 1);
    return math::exp(for_large + for_small - 0.5 * math::log1p(small / large) + stirling_rest(total) -
                     stirling_rest(large) - lgamma(small));
  }
  const double away = (x * (a + b) - a);  // the linear terms of the two logarithms cancel
  const double exponent = a * log1p_minus(away / a) + b * log1p_minus(-away / b);
  return ::sqrt(a * b / (2 * M_PI * (a + b))) *
         math::exp(exponent + stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b));
}
inline double betainc(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) return NAN;
  if (x == 0 || x == 1) return x;
  if (x < (a + 1) / (a + b + 2)) return beta_power(a, b, x) * beta_fraction(a, b, x) / a;
  return 1 - beta_power(a, b, x) * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace gt::gamma
