// Exponentials, logarithms and the hyperbolic functions.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

constexpr DtypeSet S = kFloat | kComplex;

constexpr Elementwise table[] = {
    unary_math<S>("exp", 0.4, [](auto x) { return math::exp(x); }),
    binary_math<kFloat>("exp_sub", 0.5, [](auto x, auto y) { return math::exp(x - y); }),  // for softmax
    unary_math<S>("expm1", 0.6, [](auto x) { return math::expm1(x); }),
    unary_math<S>("log", 0.4, [](auto x) { return math::log(x); }),
    unary_math<S>("log1p", 0.6, [](auto x) { return math::log1p(x); }),
    unary_math<S>("sinh", 0.8, [](auto x) { return math::sinh(x); }),
    unary_math<S>("cosh", 0.8, [](auto x) { return math::cosh(x); }),
    unary_math<S>("tanh", 0.5, [](auto x) { return math::tanh(x); }),
    unary_math<S>("asinh", 1, [](auto x) { return math::asinh(x); }),
    unary_math<S>("acosh", 1, [](auto x) { return math::acosh(x); }),
    unary_math<S>("atanh", 1, [](auto x) { return math::atanh(x); }),
    unary_math<S>("sigmoid", 0.5, [](auto x) { return math::sigmoid(x); }),
};

}  // namespace

Rows<Elementwise> exponential_rows() { return rows_of(table); }

}  // namespace gt
