// Functions of one operand that are a few machine instructions: sign, absolute value, square.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

template <class T> inline auto magnitude(T x) {
  if constexpr (kIsReal<T>)
    return math::fabs(x);
  else if constexpr (std::is_unsigned_v<T>)
    return x;
  else
    return x < 0 ? neg(x) : x;
}
template <class T> inline T sign(T x) {
  if constexpr (kIsComplex<T>) {
    const auto r = math::abs(x);
    return r == 0 ? T(0) : T(x.real() / r, x.imag() / r);
  } else if constexpr (std::is_unsigned_v<T>) {
    return x > 0;
  } else {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // NaN and -0 stay
  }
}
template <class T> inline T reciprocal(T x) {
  if constexpr (kIsInt<T>)
    return x == 1 ? T(1) : std::is_signed_v<T> && x == T(-1) ? x : T(0);
  else
    return div(T(1), x);
}

constexpr Elementwise table[] = {
    signed_too(unary<kNumberBits>("neg", 0.1, [](auto x) { return neg(x); })),
    also<kComplex>(unary<kReal>("abs", 0.1, [](auto x) { return magnitude(x); }),
                   unary_math<kComplex>("", 1, [](auto x) { return math::abs(x); })),
    also<kComplex>(unary<kReal>("sign", 0.1, [](auto x) { return sign(x); }),
                   unary_math<kComplex>("", 1, [](auto x) { return sign(x); })),
    signed_too(unary<kNumberBits>("square", 0.1, [](auto x) { return mul(x, x); })),
    unary_vector<kFloat | kComplex>("sqrt", 0.3, [](auto x) { return math::sqrt(x); }),
    unary_vector<kFloat | kComplex>("rsqrt", 0.5, [](auto x) { return div(decltype(x)(1), math::sqrt(x)); }),
    unary<kNumber>("reciprocal", 0.3, [](auto x) { return reciprocal(x); }),
    unary<kReal>("positive", 0.1, [](auto x) { return decltype(x)(x > 0); }),
    signed_too(unary<kNumberBits | kBool>("zero", 0.1, [](auto x) { return decltype(x)(0); })),
    unary<kReal>("relu", 0.1, [](auto x) { return x < 0 ? decltype(x)(0) : x; }),
    unary<kReal>("relu6", 0.1, [](auto x) { return x < 0   ? decltype(x)(0)
                                                   : x > 6 ? decltype(x)(6)
                                                           : x; }),
};

}  // namespace

Rows<Elementwise> arithmetic_rows() { return rows_of(table); }

}  // namespace gt
