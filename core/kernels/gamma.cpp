// The gamma family: its functions are in gamma.h, in double for all types.
#include "gamma.h"

#include "all.h"
#include "map.h"

namespace gt {

namespace {

// The derivatives of igamma with respect to a.
template <int order> constexpr Elementwise by_a(const char* name) {
  return binary_single<kFloat>(name, 800, [](auto a, auto x) {
    return decltype(x)(gamma::igamma_derivative(order, double(a), double(x)));
  });
}

constexpr Elementwise table[] = {
    unary_math<kFloat>("lgamma", 5, [](auto x) { return gamma::lgamma(x); }),
    unary_single<kFloat>("digamma", 20, [](auto x) { return decltype(x)(gamma::digamma(double(x))); }),
    binary_single<kFloat>("polygamma", 200,
                          [](auto n, auto x) { return decltype(x)(gamma::polygamma(double(n), double(x))); }),
    binary_single<kFloat>("zeta", 200,
                          [](auto s, auto q) { return decltype(s)(gamma::zeta(double(s), double(q))); }),
    binary_single<kFloat>("igamma", 200,
                          [](auto a, auto x) { return decltype(x)(gamma::igamma(double(a), double(x))); }),
    binary_single<kFloat>("igammac", 200,
                          [](auto a, auto x) { return decltype(x)(gamma::igammac(double(a), double(x))); }),
    binary_single<kFloat>(
        "gamma_sample_grad", 400,
        [](auto a, auto x) { return decltype(x)(gamma::gamma_sample_derivative(double(a), double(x))); }),
    by_a<1>("igamma_grad_a1"),
    by_a<2>("igamma_grad_a2"),
    by_a<3>("igamma_grad_a3"),
    by_a<4>("igamma_grad_a4"),
    ternary<kFloat>(
        "betainc", 300,
        [](auto a, auto b, auto x) { return decltype(x)(gamma::betainc(double(a), double(b), double(x))); }),
};

}  // namespace

Rows<Elementwise> gamma_rows() { return rows_of(table); }

}  // namespace gt
