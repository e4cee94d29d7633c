// Rounding, classification of floats, bit and truth complements.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

constexpr Elementwise same_ints = signed_too(unary<kBits>("", 0, [](auto x) { return x; }));

constexpr Elementwise table[] = {
    also<kInt>(unary<kFloat>("floor", 0.1, [](auto x) { return math::floor(x); }), same_ints),
    also<kInt>(unary<kFloat>("ceil", 0.1, [](auto x) { return math::ceil(x); }), same_ints),
    // The processor's default mode: halves go to the even neighbour.
    also<kInt>(unary<kFloat>("round", 0.1, [](auto x) { return math::rint(x); }), same_ints),
    unary<kFloat>("rint", 0.1, [](auto x) { return math::rint(x); }),
    also<kInt>(unary<kFloat>("trunc", 0.1, [](auto x) { return math::trunc(x); }), same_ints),
    unary<kFloat>("is_nan", 0.1, [](auto x) -> bool { return x != x; }),
    unary<kFloat>("is_inf", 0.1, [](auto x) -> bool { return math::fabs(x) == decltype(x)(INFINITY); }),
    unary<kFloat>("is_finite", 0.1, [](auto x) -> bool { return math::fabs(x) < decltype(x)(INFINITY); }),
    unary<kBool>("logical_not", 0.05, [](bool x) -> bool { return x ^ true; }),
    signed_too(unary<kBits>("invert", 0.1, [](auto x) { return decltype(x)(~x); })),
};

}  // namespace

Rows<Elementwise> rounding_rows() { return rows_of(table); }

}  // namespace gt
