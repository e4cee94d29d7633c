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
  if constexpr (kIsComplex<T>)
    return complex_pow(x, y);
  else
    return int_pow(x, y);
}

// One exponent for all is mostly 2, and then worth a look.
template <class T> void pow_loop(void* out, const void* const* in, const uint8_t* step, int64_t n) {
  const T y = *static_cast<const T*>(in[1]);
  constexpr auto square = [](T x) { return x * x; };
  constexpr auto cube = [](T x) { return x * x * x; };
  constexpr auto inverse = [](T x) { return 1 / x; };
  constexpr auto root = [](T x) { return x == -T(INFINITY) ? T(INFINITY) : math::sqrt(x + 0); };
  constexpr auto any = [](auto a, auto b) { return math::pow(a, b); };
  if (step[1] || n == 1)
    map2<decltype(any), T, T, T, Way::Register>(out, in, step, n);
  else if (y == 2)
    map1<decltype(square), T, T, Way::Cheap>(out, in, step, n);
  else if (y == 3)
    map1<decltype(cube), T, T, Way::Cheap>(out, in, step, n);
  else if (y == -1)
    map1<decltype(inverse), T, T, Way::Cheap>(out, in, step, n);
  else if (y == T(0.5))
    map1<decltype(root), T, T, Way::Vector>(out, in, step, n);
  else
    map2<decltype(any), T, T, T, Way::Register>(out, in, step, n);
}
constexpr Elementwise pow_row() {
  Elementwise r = binary_math<kInt | kComplex>("pow", 2, [](auto x, auto y) { return power(x, y); });
  r.loop[int(Dtype::F32)] = pow_loop<float>;
  r.loop[int(Dtype::F64)] = pow_loop<double>;
  r.loop[int(Dtype::F16)] = in_float<Dtype::F16, pow_loop<float>, 2, Result::Float>;
  r.loop[int(Dtype::BF16)] = in_float<Dtype::BF16, pow_loop<float>, 2, Result::Float>;
  for (Dtype t : {Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64}) r.out[int(t)] = t;
  return r;
}

// TensorFlow's logarithm in 16 bits is rounded before it is multiplied.
template <class H> struct RoundedXLogY {
  float operator()(float x, float y) const { return x == 0 ? 0.0f : x * float(H(math::log(y))); }
};
template <class H> struct RoundedXLog1pY {
  float operator()(float x, float y) const { return x == 0 ? 0.0f : x * float(H(math::log1p(y))); }
};
template <template <class> class F> constexpr Elementwise rounded_in_half(Elementwise row) {
  row.loop[int(Dtype::F16)] =
      in_float<Dtype::F16, map2<F<half>, float, float, float, Way::Single>, 2, Result::Float>;
  row.loop[int(Dtype::BF16)] =
      in_float<Dtype::BF16, map2<F<bfloat>, float, float, float, Way::Single>, 2, Result::Float>;
  return row;
}

constexpr Elementwise table[] = {
    pow_row(),
    binary_math<kFloat>("atan2", 1, [](auto y, auto x) { return math::atan2(y, x); }),
    binary_math<kFloat>("hypot", 0.5, [](auto x, auto y) { return math::hypot(x, y); }),
    binary<set_of(Dtype::F32) | set_of(Dtype::F64)>("nextafter", 2,
                                                    [](auto x, auto y) { return math::nextafter(x, y); }),
    rounded_in_half<RoundedXLogY>(binary_math<kFloat | kComplex>(
        "xlogy", 0.5, [](auto x, auto y) { return math::product_from_0(x, math::log(y)); })),
    rounded_in_half<RoundedXLog1pY>(binary_math<kFloat | kComplex>(
        "xlog1py", 0.7, [](auto x, auto y) { return math::product_from_0(x, math::log1p(y)); })),
};

}  // namespace

Rows<Elementwise> binary_math_rows() { return rows_of(table); }

}  // namespace gt
