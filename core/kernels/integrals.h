// Integrals without a closed form, in double: Dawson, the exponential integral, Fresnel, the dilogarithm.
#pragma once
#include "math.h"

namespace gt::integrals {

// Rybicki 1989: a sum of Gaussians at odd multiples of h, with an error of exp(-(pi / 2h)^2).
inline double dawsn(double x) {
  const double u = ::fabs(x);
  if (u < 0.5) {  // the power series: (-2)^k x^(2k+1) / (2k+1)!!
    double term = x, sum = x;
    for (int k = 1; k < 20; ++k) sum += term *= -2 * x * x / (2 * k + 1);
    return sum;
  }
  if (u > 1e8) return 0.5 / x;
  constexpr double h = 0.25;
  constexpr int reach = 27;  // terms beyond are less than 1e-19
  const int center = 2 * int(::fmin(::floor(0.5 * u / h + 0.5), 1e9));
  double sum = 0;
  if (u > 7) {  // no Gaussian that matters is near 0: the asymptotic series
    double term = 0.5 / u, q = 1 / (2 * u * u);
    sum = term;
    for (int k = 1; k < 30; ++k) {
      const double next = term * (2 * k - 1) * q;
      if (next > term || next < 1e-17 * sum) break;
      sum += term = next;
    }
    return ::copysign(sum, x);
  }
  for (int n = center - reach; n <= center + reach; n += 2) {
    const double away = u - n * h;
    sum += math::exp(-away * away) / n;
  }
  return ::copysign(sum * 0.56418958354775628695, x);  // 1 / sqrt(pi)
}

// Ei(x) of positive x; TensorFlow's has no other domain.
inline double expint(double x) {
  if (!(x >= 0) || x == INFINITY) return NAN;
  if (x == 0) return -INFINITY;
  double sum = 0, term = 1;
  if (x < 40) {
    for (int k = 1; k < 200; ++k) {
      term *= x / k;
      sum += term / k;
      if (term < 1e-18 * k * sum) break;
    }
    return 0.57721566490153286061 + math::log(x) + sum;
  }
  sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double next = term * k / x;
    if (next > term || next < 1e-18) break;
    sum += term = next;
  }
  return math::exp(x) / x * sum;
}

// The Fresnel integrals: power series, then the continued fraction of the complex error function
// (Press et al., Numerical Recipes, 6.8.1), the first as C, the second as S.
inline void fresnel(double x, double& c, double& s) {
  const double u = ::fabs(x);
  if (u != u) {
    c = s = u;
    return;
  }
  if (u < 1.6) {
    const double t = M_PI / 2 * u * u;
    double term = u, cs = 0, ss = 0;  // u t^k / k!, with the signs ++--
    for (int k = 0; k < 60; ++k) {
      const double part = term / (2 * k + 1);
      (k % 2 ? ss : cs) += k % 4 < 2 ? part : -part;
      term *= t / (k + 1);
      if (k > 3 && term < 1e-18 * ss) break;
    }
    c = ::copysign(cs, x), s = ::copysign(ss, x);
    return;
  }
  if (u > 1e7) {  // the oscillation around 1/2 is smaller than 1/(pi u)
    c = s = ::copysign(0.5, x);
    return;
  }
  struct Z {
    double re, im;
  };
  auto mul = [](Z a, Z b) { return Z{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; };
  auto inverse = [](Z a) {
    const double n = a.re * a.re + a.im * a.im;
    return Z{a.re / n, -a.im / n};
  };
  const double square = M_PI * u * u;
  Z b{1, -square}, cc{1e300, 0}, d = inverse(b), h = d;
  for (int k = 1; k < 400; ++k) {
    const double a = -(2.0 * k - 1) * (2 * k);
    b.re += 4;
    d = inverse(Z{a * d.re + b.re, a * d.im + b.im});
    const Z r = inverse(cc);
    cc = Z{b.re + a * r.re, b.im + a * r.im};
    const Z step = mul(cc, d);
    h = mul(h, step);
    if (::fabs(step.re - 1) + ::fabs(step.im) < 1e-16) break;
  }
  h = mul(Z{u, -u}, h);
  // The phase pi/2 u^2, reduced while it is exact: u = n + f.
  const double n = ::rint(u), f = u - n, phase = M_PI / 2 * (::fmod(n * n, 4) + ::fmod(2 * n * f, 4) + f * f);
  const Z wave{math::cos(phase), math::sin(phase)}, rest = mul(wave, h);
  const Z cs = mul(Z{0.5, 0.5}, Z{1 - rest.re, -rest.im});
  c = ::copysign(cs.re, x), s = ::copysign(cs.im, x);
}
inline double fresnel_cos(double x) {
  double c, s;
  fresnel(x, c, s);
  return c;
}
inline double fresnel_sin(double x) {
  double c, s;
  fresnel(x, c, s);
  return s;
}

// The integral of log(t) / (1 - t) from 1 to x, which is the dilogarithm of 1 - x: for x in [1/2, 2] a series
// in log(x) with Bernoulli numbers, elsewhere by reflection.
inline double spence(double x) {
  if (!(x >= 0) || x == INFINITY) return NAN;
  constexpr double sixth = M_PI * M_PI / 6;
  if (x == 0) return sixth;
  if (x < 0.5) return sixth - math::log(x) * math::log1p(-x) - spence(1 - x);
  if (x > 2) return -0.5 * math::log(x) * math::log(x) - spence(1 / x);
  // B_2k / (2k + 1)!
  constexpr double b[] = {1.0 / 36,
                          -1.0 / 3600,
                          1.0 / 211680,
                          -1.0 / 10886400,
                          1.0 / 526901760,
                          -691.0 / 16999766784000.,
                          1.0 / 1120863744000.,
                          -3617.0 / 181400588328960000.,
                          43867.0 / 97072790126247936000.,
                          -174611.0 / 16860010916664115200000.};
  const double u = -math::log(x), q = u * u;
  double sum = 0;
  for (int k = 9; k >= 0; --k) sum = sum * q + b[k];
  return u - q / 4 + u * q * sum;
}

}  // namespace gt::integrals
