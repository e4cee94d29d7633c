// Sums, products, quotients and extrema of two operands.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

constexpr DtypeSet FC = kFloat | kComplex;

// |x - y|^2 of complex numbers, as TensorFlow has it.
template <class T> inline T squared(T d) {
  if constexpr (kIsComplex<T>)
    return T(d.real() * d.real() + d.imag() * d.imag(), 0);
  else
    return mul(d, d);
}

constexpr Elementwise table[] = {
    signed_too(binary<kNumberBits>("add", 0.1, [](auto x, auto y) { return add(x, y); })),
    signed_too(binary<kNumberBits>("sub", 0.1, [](auto x, auto y) { return sub(x, y); })),
    signed_too(binary<kNumberBits>("mul", 0.1, [](auto x, auto y) { return mul(x, y); })),
    binary<FC>("div", 0.2, [](auto x, auto y) { return div(x, y); }),
    binary<kReal>("maximum", 0.1, [](auto x, auto y) { return larger(x, y); }),
    binary<kReal>("minimum", 0.1, [](auto x, auto y) { return smaller(x, y); }),
    signed_too(
        binary<kNumberBits>("squared_difference", 0.1, [](auto x, auto y) { return squared(sub(x, y)); })),
    binary<FC>("div_no_nan", 0.2, [](auto x, auto y) { return is_zero(y) ? decltype(x)(0) : div(x, y); }),
    binary<FC>("mul_no_nan", 0.2, [](auto x, auto y) { return is_zero(y) ? decltype(x)(0) : mul(x, y); }),
    binary<FC>("xdivy", 0.2, [](auto x, auto y) { return is_zero(x) ? decltype(x)(0) : div(x, y); }),
};

}  // namespace

Rows<Elementwise> binary_arithmetic_rows() { return rows_of(table); }

}  // namespace gt
