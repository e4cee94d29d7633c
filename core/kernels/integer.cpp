// Division with remainder, bits and shifts. A zero divisor gives 0 here; that it is an error is
// found by whoever calls.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

// The processor traps on x / 0 and on the smallest integer / -1.
template <class T> inline T quotient(T x, T y) {
  if constexpr (kIsReal<T>)
    return math::trunc(x / y);
  else if (y == 0)
    return 0;
  else if (std::is_signed_v<T> && y == T(-1))
    return neg(x);
  else
    return T(x / y);
}
template <class T> inline T remainder(T x, T y) {
  if constexpr (kIsReal<T>)
    return math::fmod(x, y);
  else if (y == 0 || (std::is_signed_v<T> && y == T(-1)))
    return 0;
  else
    return T(x % y);
}
template <class T> inline T floor_quotient(T x, T y) {
  if constexpr (kIsReal<T>)
    return math::floor(x / y);
  else {
    const T q = quotient(x, y);
    return std::is_signed_v<T> && remainder(x, y) != 0 && (x < 0) != (y < 0) ? T(q - 1) : q;
  }
}
template <class T> inline T floor_remainder(T x, T y) {
  const T r = remainder(x, y);
  return r != 0 && (r < 0) != (y < 0) ? T(r + y) : r;
}

// A shift by the width or more has pushed everything out.
template <class T> inline T shift_left(T x, T y) {
  constexpr int width = 8 * sizeof(T);
  return y >= 0 && y < width ? T(Wrap<T>(x) << (y & (width - 1))) : T(0);
}
template <class T> inline T shift_right(T x, T y) {
  constexpr int width = 8 * sizeof(T);
  const bool all = !(y >= 0 && y < width);
  return T(x >> (all ? width - 1 : int(y & (width - 1)))) & (all && std::is_unsigned_v<T> ? T(0) : T(-1));
}

constexpr Elementwise table[] = {
    binary<kReal>("floordiv", 2, [](auto x, auto y) { return floor_quotient(x, y); }),
    binary<kReal>("floormod", 3, [](auto x, auto y) { return floor_remainder(x, y); }),
    binary<kReal>("truncatediv", 2, [](auto x, auto y) { return quotient(x, y); }),
    binary<kReal>("truncatemod", 3, [](auto x, auto y) { return remainder(x, y); }),
    signed_too(binary<kBits>("bitwise_and", 0.1, [](auto x, auto y) { return decltype(x)(x & y); })),
    signed_too(binary<kBits>("bitwise_or", 0.1, [](auto x, auto y) { return decltype(x)(x | y); })),
    signed_too(binary<kBits>("bitwise_xor", 0.1, [](auto x, auto y) { return decltype(x)(x ^ y); })),
    binary<kInt>("left_shift", 0.2, [](auto x, auto y) { return shift_left(x, y); }),
    binary<kInt>("right_shift", 0.2, [](auto x, auto y) { return shift_right(x, y); }),
};

}  // namespace

Rows<Elementwise> integer_rows() { return rows_of(table); }

}  // namespace gt
