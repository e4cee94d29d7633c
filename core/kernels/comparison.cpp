// Comparisons and the logic of truth values.
#include "all.h"
#include "arith.h"
#include "map.h"

namespace gt {

namespace {

constexpr Elementwise table[] = {
    signed_too(binary<kNumberBits | kBool>("equal", 0.1, [](auto x, auto y) -> bool { return same(x, y); })),
    signed_too(
        binary<kNumberBits | kBool>("not_equal", 0.1, [](auto x, auto y) -> bool { return !same(x, y); })),
    binary<kReal>("less", 0.1, [](auto x, auto y) -> bool { return x < y; }),
    binary<kReal>("less_equal", 0.1, [](auto x, auto y) -> bool { return x <= y; }),
    binary<kReal>("greater", 0.1, [](auto x, auto y) -> bool { return x > y; }),
    binary<kReal>("greater_equal", 0.1, [](auto x, auto y) -> bool { return x >= y; }),
    binary<kBool>("logical_and", 0.05, [](bool x, bool y) -> bool { return x & y; }),
    binary<kBool>("logical_or", 0.05, [](bool x, bool y) -> bool { return x | y; }),
    binary<kBool>("logical_xor", 0.05, [](bool x, bool y) -> bool { return x ^ y; }),
};

}  // namespace

Rows<Elementwise> comparison_rows() { return rows_of(table); }

}  // namespace gt
