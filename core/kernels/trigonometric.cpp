// Sine, cosine, tangent and their inverses.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

constexpr DtypeSet S = kFloat | kComplex;

constexpr Elementwise table[] = {
    unary_math<S>("sin", 0.5, [](auto x) { return math::sin(x); }),
    unary_math<S>("cos", 0.5, [](auto x) { return math::cos(x); }),
    unary_math<S>("tan", 0.8, [](auto x) { return math::tan(x); }),
    unary_math<S>("asin", 0.8, [](auto x) { return math::asin(x); }),
    unary_math<S>("acos", 0.8, [](auto x) { return math::acos(x); }),
    unary_math<S>("atan", 0.8, [](auto x) { return math::atan(x); }),
};

}  // namespace

Rows<Elementwise> trigonometric_rows() { return rows_of(table); }

}  // namespace gt
