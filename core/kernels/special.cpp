// Error functions, the normal quantile, Bessel functions and other integrals.
#include "all.h"
#include "bessel.h"
#include "integrals.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

// Giles 2010, "Approximating the erfinv function": two polynomials in w = -log(1 - x^2).
template <math::OfFloat X> GT_INLINE X erfinv(X x) {
  const X w = -math::log((1 - x) * (1 + x)), u = w - 2.5f, v = math::square_root(w) - 3;
  const X p = math::horner(u, 1.50140941f, 0.246640727f, -0.00417768164f, -0.00125372503f, 0.00021858087f,
                           -4.39150654e-06f, -3.5233877e-06f, 3.43273939e-07f, 2.81022636e-08f);
  const X q = math::horner(v, 2.83297682f, 1.00167406f, 0.00943887047f, -0.0076224613f, 0.00573950773f,
                           -0.00367342844f, 0.00134934322f, 0.000100950558f, -0.000200214257f);
  return math::pick(math::size_of(x) == 1, x * INFINITY, math::pick(w < 5, p, q) * x);
}

// Wichura 1988, algorithm AS 241: the quantile of the normal distribution at a distance q from the middle,
// with the smaller of the two tails given as well.
inline double normal_quantile(double q, double tail) {
  constexpr double a[] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                          45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                          133.14166789178437745, 3.387132872796366608};
  constexpr double b[] = {
      5226.495278852545925,  28729.085735721942674, 39307.89580009271061,  21213.794301586595867,
      5394.1960214247511077, 687.1870074920579083,  42.313330701600911252, 1};
  constexpr double c[] = {7.7454501427834140764e-4, .0227238449892691845833, .24178072517745061177,
                          1.27045825245236838258,   3.64784832476320460504,  5.7694972214606914055,
                          4.6303378461565452959,    1.42343711074968357734};
  constexpr double d[] = {
      1.05075007164441684324e-9, 5.475938084995344946e-4, .0151986665636164571966, .14810397642748007459,
      .68976733498510000455,     1.6763848301838038494,   2.05319162663775882187,  1};
  constexpr double e[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, .0012426609473880784386,
                          .026532189526576123093,    .29656057182850489123,     1.7848265399172913358,
                          5.4637849111641143699,     6.6579046435011037772};
  constexpr double f[] = {
      2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
      .0148753612908506148525,    .13692988092273580531,    .59983220655588793769,    1};
  auto ratio = [](const double* top, const double* bottom, double r) {
    double p = top[0], q = bottom[0];
    for (int k = 1; k < 8; ++k) p = math::fused(p, r, top[k]), q = math::fused(q, r, bottom[k]);
    return p / q;
  };
  if (!(tail >= 0)) return NAN;
  if (tail == 0) return math::copysign(double(INFINITY), q);
  if (math::fabs(q) <= 0.425) return q * ratio(a, b, 0.180625 - q * q);
  const double r = math::sqrt(-math::log(tail));
  return math::copysign(r <= 5 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5), q);
}
inline double erfinv(double x) {
  return 0.70710678118654752440 * normal_quantile(x / 2, (1 - math::fabs(x)) / 2);
}
inline double ndtri(double p) { return normal_quantile(p - 0.5, p < 0.5 ? p : 1 - p); }
inline double erfcinv(double x) { return -0.70710678118654752440 * ndtri(x / 2); }

// A function of double for all floats.
#define GT_IN_DOUBLE(name, cost, function) \
  unary_single<kFloat>(name, cost, [](auto x) { return decltype(x)(function(double(x))); })

constexpr Elementwise table[] = {
    unary_math<kFloat>("erf", 0.6, [](auto x) { return math::erf(x); }),
    unary_math<kFloat>("erfc", 0.8, [](auto x) { return math::erfc(x); }),
    also<set_of(Dtype::F64)>(
        unary_math<kHalf | set_of(Dtype::F32)>("erfinv", 2, [](auto x) { return erfinv(x); }),
        unary_single<set_of(Dtype::F64)>("", 0, [](auto x) { return erfinv(x); })),
    GT_IN_DOUBLE("erfcinv", 30, erfcinv),
    GT_IN_DOUBLE("ndtri", 30, ndtri),
    GT_IN_DOUBLE("bessel_i0", 50, bessel::plain_i<0>),
    GT_IN_DOUBLE("bessel_i0e", 50, bessel::scaled_i<0>),
    GT_IN_DOUBLE("bessel_i1", 50, bessel::plain_i<1>),
    GT_IN_DOUBLE("bessel_i1e", 50, bessel::scaled_i<1>),
    GT_IN_DOUBLE("bessel_j0", 50, bessel::j0),
    GT_IN_DOUBLE("bessel_j1", 50, bessel::j1),
    GT_IN_DOUBLE("bessel_k0", 200, bessel::plain_k<0>),
    GT_IN_DOUBLE("bessel_k0e", 200, bessel::scaled_k<0>),
    GT_IN_DOUBLE("bessel_k1", 200, bessel::plain_k<1>),
    GT_IN_DOUBLE("bessel_k1e", 200, bessel::scaled_k<1>),
    GT_IN_DOUBLE("bessel_y0", 60, bessel::y0),
    GT_IN_DOUBLE("bessel_y1", 60, bessel::y1),
    GT_IN_DOUBLE("dawsn", 100, integrals::dawsn),
    GT_IN_DOUBLE("expint", 100, integrals::expint),
    GT_IN_DOUBLE("fresnel_cos", 200, integrals::fresnel_cos),
    GT_IN_DOUBLE("fresnel_sin", 200, integrals::fresnel_sin),
    GT_IN_DOUBLE("spence", 60, integrals::spence),
};

}  // namespace

Rows<Elementwise> special_rows() { return rows_of(table); }

}  // namespace gt
