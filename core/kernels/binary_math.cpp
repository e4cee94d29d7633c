// Powers and other functions of two operands that are more than an instruction.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

template <class T> inline T int_pow(T x, T y) {
  if (y < 0) return x == 1 ? T(1) : x == T(-1) ? (y & 1 ? T(-1) : T(1)) : T(0);
  T out = 1;
  for (; y; y = T(y >> 1), x = mul(x, x))
    if (y & 1) out = mul(out, x);
  return out;
}
// Whole exponents by products: exact where the C library goes through exp(y log x).
template <class Z> inline Z complex_pow(Z x, Z y) {
  const auto p = y.real();
  if (y.imag() == 0 && p == math::rint(p) && math::fabs(p) <= 64) {
    Z out(1);
    for (int k = int(math::fabs(p)); k; k >>= 1, x = mul(x, x))
      if (k & 1) out = mul(out, x);
    return p < 0 ? div(Z(1), out) : out;
  }
  if (is_zero(x) && p > 0) return Z(0);
  return math::pow(x, y);
}
template <class T> inline T power(T x, T y) {
  if constexpr (kIsComplex<T>) return complex_pow(x, y);
  else if constexpr (kIsInt<T>) return int_pow(x, y);
  else return math::pow(x, y);
}

constexpr Elementwise table[] = {
    binary_math<kNumber>("pow", 2, [](auto x, auto y) { return power(x, y); }),
    binary_math<kFloat>("atan2", 1, [](auto y, auto x) { return math::atan2(y, x); }),
    binary_math<kFloat>("hypot", 0.5, [](auto x, auto y) { return math::hypot(x, y); }),
    binary<set_of(Dtype::F32) | set_of(Dtype::F64)>("nextafter", 2, [](auto x, auto y) { return math::nextafter(x, y); }),
    binary_math<kFloat | kComplex>("xlogy", 0.5, [](auto x, auto y) { return is_zero(x) ? decltype(x)(0) : mul(x, math::log(y)); }),
    binary_math<kFloat | kComplex>("xlog1py", 0.7, [](auto x, auto y) { return is_zero(x) ? decltype(x)(0) : mul(x, math::log1p(y)); }),
};

}  // namespace

Rows<Elementwise> binary_math_rows() { return rows_of(table); }

}  // namespace gt
