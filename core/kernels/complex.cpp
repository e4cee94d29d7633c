// What only complex numbers have: parts, angle, conjugate.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

constexpr Elementwise table[] = {
    unary<kComplex>("conj", 0.2, [](auto z) { return decltype(z)(z.real(), -z.imag()); }),
    unary<kComplex>("real", 0.2, [](auto z) { return z.real(); }),
    unary<kComplex>("imag", 0.2, [](auto z) { return z.imag(); }),
    unary_math<kComplex>("angle", 1, [](auto z) { return math::atan2(z.imag(), z.real()); }),
    binary<set_of(Dtype::F32)>("complex", 0.2, [](float x, float y) { return c64(x, y); }),
};
constexpr Elementwise both[] = {
    table[0],
    table[1],
    table[2],
    table[3],
    also<set_of(Dtype::F64)>(
        table[4], binary<set_of(Dtype::F64)>("complex", 0.2, [](double x, double y) { return c128(x, y); })),
};

}  // namespace

Rows<Elementwise> complex_rows() { return rows_of(both); }

}  // namespace gt
