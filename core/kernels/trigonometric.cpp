// Sine, cosine, tangent and their inverses.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

constexpr DtypeSet S = kFloat | kComplex;

#define GT_OF_NEAR(Name, name)                                              \
  struct Name {                                                             \
    template <class X> auto operator()(X x) const { return math::name(x); } \
    template <class X> static X near(X x) { return math::near_##name(x); }  \
    template <class X> static auto is_far(X x) { return math::is_far(x); }  \
  };
GT_OF_NEAR(Sin, sin)
GT_OF_NEAR(Cos, cos)
GT_OF_NEAR(Tan, tan)

constexpr Elementwise table[] = {
    unary_math<S>("sin", 0.5, Sin{}),
    unary_math<S>("cos", 0.5, Cos{}),
    unary_math<S>("tan", 0.8, Tan{}),
    unary_math<S>("asin", 0.8, [](auto x) { return math::asin(x); }),
    unary_math<S>("acos", 0.8, [](auto x) { return math::acos(x); }),
    unary_math<S>("atan", 0.8, [](auto x) { return math::atan(x); }),
};

}  // namespace

Rows<Elementwise> trigonometric_rows() { return rows_of(table); }

}  // namespace gt
