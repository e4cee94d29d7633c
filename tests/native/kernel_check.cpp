// Compares every loop with a plain reference: float functions with long double ones (worst error
// in units of the last place), integers with 128-bit arithmetic, and each loop with itself at
// n = 1, in place, and with repeated operands. Prints a table; exits with 1 on a failure.
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <map>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "cpu.h"
#include "kernels/loops.h"
#include "reference.h"

using namespace gt;
using ld = long double;
constexpr ld kPi = std::numbers::pi_v<ld>;  // M_PIl is glibc's alone

static int failures = 0;
static void wrong(const std::string& what) {
  if (++failures <= 40) std::printf("WRONG %s\n", what.c_str());
}

template <class T> static int min_exponent() { return std::is_same_v<T, float> ? -149 : -1074; }
template <class T> static double ulps(T got, ld ref) {
  if (std::isnan(got) || std::isnan(ref)) return std::isnan(got) && std::isnan(ref) ? 0 : INFINITY;
  if (std::isinf(got) && T(ref) == got) return 0;
  if (std::isinf(got))
    got = std::copysign(std::numeric_limits<T>::max(), got);  // one step beyond the largest
  if (std::isinf(T(ref))) ref = std::copysign(ld(std::numeric_limits<T>::max()), ref);
  const int e = std::max(ref == 0 ? -20000 : int(std::ilogb(ref)) - std::numeric_limits<T>::digits + 1,
                         min_exponent<T>());
  return double(std::fabs(ld(got) - ref) / std::ldexp(ld(1), e));
}

struct Spec1 {
  ld (*f)(ld);
  double tol32 = 4, tol64 = 4;
  double lo = -INFINITY, hi = INFINITY;  // where the tolerance holds
  double near = 0;                       // results smaller than this are measured as if they were it
};
static ld sigm(ld x) { return 1 / (1 + expl(-x)); }
static ld digamma_ref(ld x) {
  if (x <= 0) {
    if (x == floorl(x)) return NAN;
    ld f = x - floorl(x);
    return digamma_ref(1 - x) - kPi / tanl(kPi * f);
  }
  ld s = 0;
  for (; x < 30; x += 1) s -= 1 / x;
  ld q = 1 / (x * x);
  return s + logl(x) - 0.5L / x -
         q * (1 / 12.0L -
              q * (1 / 120.0L - q * (1 / 252.0L - q * (1 / 240.0L - q * (1 / 132.0L - q * 691 / 32760.0L)))));
}
static ld erfinv_ref(ld x) {
  if (!(fabsl(x) <= 1)) return NAN;
  if (fabsl(x) == 1) return x * INFINITY;
  ld t = 1 - fabsl(x), y = t > 0.2L ? x : copysignl(sqrtl(-logl(t)), x);
  for (int k = 0; k < 60; ++k) {  // Newton; in the tail with erfc, which keeps its digits
    ld r = t > 0.2L ? erfl(y) - x : copysignl(t - erfcl(fabsl(y)), x);
    ld d = r / (2 / sqrtl(kPi) * expl(-y * y));
    d = d / (1 + y * d);
    y -= d;
    if (fabsl(d) <= 1e-19L * fabsl(y)) break;
  }
  return y;
}

static const std::map<std::string, Spec1> unary_specs = {
    {"neg", {[](ld x) { return -x; }, 0.5, 0.5}},
    {"abs", {fabsl, 0.5, 0.5}},
    {"sign", {[](ld x) -> ld { return x > 0   ? 1
                                      : x < 0 ? -1
                                              : x; }, 0.5, 0.5}},
    {"square", {[](ld x) { return x * x; }, 0.51, 0.51}},
    {"sqrt", {sqrtl, 0.51, 0.51}},
    {"rsqrt", {[](ld x) { return 1 / sqrtl(x); }, 1.6, 1.6}},
    {"reciprocal", {[](ld x) { return 1 / x; }, 0.51, 0.51}},
    {"positive", {[](ld x) -> ld { return x > 0; }, 0.5, 0.5}},
    {"relu", {[](ld x) -> ld { return x < 0 ? 0 : x; }, 0.5, 0.5}},
    {"relu6", {[](ld x) -> ld { return x < 0   ? 0
                                       : x > 6 ? 6
                                               : x; }, 0.5, 0.5}},
    {"floor", {floorl, 0.5, 0.5}},
    {"ceil", {ceill, 0.5, 0.5}},
    {"round", {rintl, 0.5, 0.5}},
    {"rint", {rintl, 0.5, 0.5}},
    {"trunc", {truncl, 0.5, 0.5}},
    {"exp", {expl}},
    {"expm1", {expm1l}},
    {"log", {logl}},
    {"log1p", {log1pl}},
    {"sinh", {sinhl}},
    {"cosh", {coshl}},
    {"tanh", {tanhl}},
    {"asinh", {asinhl}},
    {"acosh", {acoshl}},
    {"atanh", {atanhl}},
    {"sigmoid", {sigm, 4, 4, -85, INFINITY}},
    {"sin", {sinl}},
    {"cos", {cosl}},
    {"tan", {tanl}},
    {"asin", {asinl}},
    {"acos", {acosl}},
    {"atan", {atanl}},
    {"erf", {erfl}},
    {"erfc", {erfcl, 8, 8}},
    {"erfinv", {erfinv_ref, 8, 8}},
    {"lgamma", {lgammal, 4, 4, 0, INFINITY}},
    {"digamma", {digamma_ref, 1, 20, 0, INFINITY, 0.5}},
    {"elu", {[](ld x) { return x < 0 ? expm1l(x) : x; }}},
    {"selu",
     {[](ld x) {
        return 1.0507009873554804934193349852946L *
               (x < 0 ? 1.6732632423543772848170429916717L * expm1l(x) : x);
      },
      6, 6}},
    {"softplus",
     {[](ld x) { return std::isinf(x) ? (x > 0 ? x : 0)
                        : x > 100     ? x
                                      : log1pl(expl(x)); }, 6, 6, -80,
      INFINITY}},
    {"softsign", {[](ld x) { return std::isinf(x) ? ld(NAN) : x / (1 + fabsl(x)); }, 2, 2}},
    {"silu", {[](ld x) { return x * sigm(x); }, 5, 5, -80, INFINITY}},
    {"gelu",
     {[](ld x) { return x / 2 * erfcl(-x * 0.70710678118654752440084436210485L); }, 120, 120, -8, INFINITY}},
    {"gelu_tanh",
     {[](ld x) { return x * sigm(2 * 0.79788456080286535587989211986876L * (x + 0.044715L * x * x * x)); },
      100, 200, -8, 1e10}},
};

struct Spec2 {
  ld (*f)(ld, ld);
  double tol32 = 4, tol64 = 4;
};
static const std::map<std::string, Spec2> binary_specs = {
    {"add", {[](ld x, ld y) { return x + y; }, 0.51, 0.51}},
    {"sub", {[](ld x, ld y) { return x - y; }, 0.51, 0.51}},
    {"mul", {[](ld x, ld y) { return x * y; }, 0.51, 0.51}},
    {"div", {[](ld x, ld y) { return x / y; }, 0.51, 0.51}},
    {"maximum", {[](ld x, ld y) -> ld { return x != x || y != y ? NAN
                                               : x > y          ? x
                                                                : y; }, 0.5, 0.5}},
    {"minimum", {[](ld x, ld y) -> ld { return x != x || y != y ? NAN
                                               : x < y          ? x
                                                                : y; }, 0.5, 0.5}},
    {"pow", {pow_reference, 4, 4}},
    {"atan2", {atan2l, 4, 4}},
    {"hypot", {hypotl, 2, 2}},
    {"div_no_nan", {[](ld x, ld y) { return y == 0 ? 0 : x / y; }, 0.51, 0.51}},
    {"mul_no_nan", {[](ld x, ld y) { return y == 0 ? 0 : x * y; }, 0.51, 0.51}},
    {"xdivy", {[](ld x, ld y) { return x == 0 ? 0 : x / y; }, 0.51, 0.51}},
    {"xlogy", {[](ld x, ld y) { return x == 0 ? 0 : x * logl(y); }, 6, 6}},
    {"xlog1py", {[](ld x, ld y) { return x == 0 ? 0 : x * log1pl(y); }, 6, 6}},
    {"truncatemod", {fmodl, 0.5, 0.5}},
    {"leaky_relu", {[](ld x, ld y) { return x > 0 ? x : x * y; }, 0.51, 0.51}},
};

template <class T> static std::vector<T> inputs() {
  const T inf = INFINITY, big = std::numeric_limits<T>::max(), small = std::numeric_limits<T>::min(),
          tiny = std::numeric_limits<T>::denorm_min();
  std::vector<T> x = {0,
                      -T(0),
                      inf,
                      -inf,
                      T(NAN),
                      big,
                      -big,
                      small,
                      -small,
                      tiny,
                      -tiny,
                      1,
                      -1,
                      2,
                      -2,
                      T(0.5),
                      T(-0.5),
                      3,
                      T(1.5),
                      T(2.5),
                      T(-2.5),
                      T(88.7),
                      T(-88.7),
                      T(88.8),
                      T(-104),
                      T(-87.4),
                      T(709.7),
                      T(709.9),
                      T(-745),
                      T(-746),
                      T(1e5),
                      T(-1e5),
                      T(1e10),
                      T(1e15),
                      T(1e22),
                      T(-1e30),
                      std::nextafter(T(1), T(0)),
                      std::nextafter(T(1), T(2)),
                      std::nextafter(T(-1), T(0)),
                      T(M_PI),
                      T(M_PI_2),
                      T(-M_PI)};
  std::mt19937_64 r(1);
  std::uniform_real_distribution<double> u(-1, 1);
  for (int k = 0; k < 20000; ++k) {
    x.push_back(T(u(r)));
    x.push_back(T(10 * u(r)));
    x.push_back(T(100 * u(r)));
    x.push_back(T(1 + 1e-3 * u(r)));
    x.push_back(T(std::copysign(std::exp((std::is_same_v<T, float> ? 80 : 600) * u(r)), u(r))));
    x.push_back(T(std::copysign(std::exp(12 * u(r)), u(r))));
  }
  return x;
}

// The loop one element at a time, repeated, and in place must give what it gives at once.
template <class T>
static void consistent(const Elementwise& e, const std::vector<T>& x, const std::vector<T>& y,
                       const std::vector<T>& out) {
  const Loop loop = e.loop[int(DtypeOf<T>::value)];
  const uint8_t ones[2] = {1, 1}, zeros[2] = {0, 0};
  auto same_bits = [](T a, T b) { return std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b); };
  for (size_t i = 0; i < 600; ++i) {
    const void* p[2] = {&x[i], &y[i]};
    T one, many[37];
    loop(&one, p, ones, 1);
    loop(many, p, zeros, 37);
    // pow treats one exponent for all by itself.
    if (!std::strcmp(e.name, "pow") && (y[i] == 2 || y[i] == 3 || y[i] == -1 || y[i] == T(0.5)))
      many[0] = many[36] = one;
    if (!same_bits(one, out[i]) || !same_bits(many[0], one) || !same_bits(many[36], one))
      wrong(std::string(e.name) + " depends on the place: x=" + std::to_string(x[i]) +
            ", y=" + std::to_string(y[i]) + ": " + std::to_string(one) + " alone, " + std::to_string(out[i]));
  }
  for (size_t n : {2u, 5u, 15u, 16u, 17u, 31u, 100u}) {
    std::vector<T> a(x.begin(), x.begin() + n), guard(n + 1, T(77));
    const void* p[2] = {a.data(), y.data()};
    loop(guard.data(), p, ones, int64_t(n));
    if (guard[n] != T(77)) wrong(std::string(e.name) + " writes past the end");
    loop(a.data(), p, ones, int64_t(n));
    for (size_t i = 0; i < n; ++i)
      if (!same_bits(a[i], out[i]) || !same_bits(guard[i], out[i]))
        wrong(std::string(e.name) + " in place, n=" + std::to_string(n));
  }
}

template <class T> static void check_floats() {
  const int t = int(DtypeOf<T>::value);
  const bool single = std::is_same_v<T, float>;
  const std::vector<T> x = inputs<T>();
  std::vector<T> y = x, out(x.size());
  const uint8_t ones[2] = {1, 1};
  const void* p[2] = {x.data(), y.data()};
  for (const auto& [name, spec] : unary_specs) {
    const Elementwise* e = find_elementwise(name);
    if (!e || !e->loop[t]) {
      wrong("no loop " + name);
      continue;
    }
    e->loop[t](out.data(), p, ones, int64_t(x.size()));
    double worst = 0, at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const bool inside = !(x[i] < T(spec.lo)) && !(x[i] > T(spec.hi));
      const ld ref = spec.f(ld(x[i]));
      double u = ulps(out[i], ref);
      if (std::fabs(ref) < spec.near) u *= double(std::ldexp(ld(1), std::ilogb(ref) - std::ilogb(spec.near)));
      if (inside && u > worst) worst = u, at = double(x[i]);
      if (!inside && std::isnan(out[i]) && !std::isinf(x[i]) && !std::isnan(spec.f(ld(x[i]))))
        wrong(name + " is NaN at " + std::to_string(x[i]));
    }
    const bool bad = worst > (single ? spec.tol32 : spec.tol64);
    std::printf("%-12s %-8s worst %8.2f ulp at %-24.17g%s\n", name.c_str(), dtype_name(Dtype(t)), worst, at,
                bad ? "  <-- too much" : "");
    failures += bad;
    consistent(*e, x, x, out);
  }
  std::mt19937_64 r(2);
  for (size_t i = 42; i < y.size(); ++i) std::swap(y[i], y[42 + r() % (y.size() - 42)]);
  for (const auto& [name, spec] : binary_specs) {
    const Elementwise* e = find_elementwise(name);
    if (!e || !e->loop[t]) {
      wrong("no loop " + name);
      continue;
    }
    double worst = 0, ax = 0, ay = 0;
    auto look = [&](T a, T b, T got) {
      const double u = ulps(got, spec.f(ld(a), ld(b)));
      if (u > worst) worst = u, ax = double(a), ay = double(b);
    };
    e->loop[t](out.data(), p, ones, int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i) look(x[i], y[i], out[i]);
    consistent(*e, x, y, out);
    for (size_t i = 0; i < 42; ++i) {  // all pairs of the special values
      std::vector<T> some(42);
      const void* q[2] = {&x[i], x.data()};
      const uint8_t steps[2] = {0, 1};
      e->loop[t](some.data(), q, steps, 42);
      for (size_t j = 0; j < 42; ++j) look(x[i], x[j], some[j]);
    }
    const bool bad = worst > (single ? spec.tol32 : spec.tol64);
    std::printf("%-12s %-8s worst %8.2f ulp at %.9g, %.9g%s\n", name.c_str(), dtype_name(Dtype(t)), worst, ax,
                ay, bad ? "  <-- too much" : "");
    failures += bad;
  }
}

// The 16-bit floats give the float result, rounded.
template <class H> static void check_halves() {
  const int t = int(DtypeOf<H>::value), f = int(Dtype::F32);
  std::vector<H> x(65536), got(65536);
  for (int i = 0; i < 65536; ++i) x[i].bits = uint16_t(i);
  std::vector<float> wide(65536), out(65536);
  for (int i = 0; i < 65536; ++i) wide[i] = float(x[i]);
  const uint8_t ones[2] = {1, 1};
  for (const auto& [name, spec] : unary_specs) {
    const Elementwise* e = find_elementwise(name);
    if (!e) continue;
    const void *p[1] = {x.data()}, *q[1] = {wide.data()};
    if (!e->loop[t]) {
      wrong(name + " has no 16-bit loop");
      continue;
    }
    e->loop[t](got.data(), p, ones, 65536);
    e->loop[f](out.data(), q, ones, 65536);
    for (int i = 0; i < 65536; ++i)
      if (H want(out[i]); want.bits != got[i].bits && out[i] == out[i]) {
        wrong(name + " " + dtype_name(Dtype(t)) + " at " + std::to_string(wide[i]));
        break;
      }
  }
}

// Complex functions, against std::complex of long double, relative to the size of the result.
template <class R> static void check_complex() {
  using Z = std::complex<R>;
  using L = std::complex<ld>;
  const int t = int(DtypeOf<Z>::value);
  const std::map<std::string, L (*)(L)> unary = {
      {"neg", [](L z) { return -z; }},
      {"square", [](L z) { return z * z; }},
      {"sqrt", [](L z) { return std::sqrt(z); }},
      {"rsqrt", [](L z) { return L(1) / std::sqrt(z); }},
      {"reciprocal", [](L z) { return L(1) / z; }},
      {"exp", [](L z) { return std::exp(z); }},
      {"expm1", [](L z) { return std::exp(z) - L(1); }},
      {"log", [](L z) { return std::log(z); }},
      {"log1p", [](L z) { return std::log(L(1) + z); }},
      {"sin", [](L z) { return std::sin(z); }},
      {"cos", [](L z) { return std::cos(z); }},
      {"tan", [](L z) { return std::tan(z); }},
      {"asin", [](L z) { return std::asin(z); }},
      {"acos", [](L z) { return std::acos(z); }},
      {"atan", [](L z) { return std::atan(z); }},
      {"sinh", [](L z) { return std::sinh(z); }},
      {"cosh", [](L z) { return std::cosh(z); }},
      {"tanh", [](L z) { return std::tanh(z); }},
      {"asinh", [](L z) { return std::asinh(z); }},
      {"acosh", [](L z) { return std::acosh(z); }},
      {"atanh", [](L z) { return std::atanh(z); }},
      {"sigmoid", [](L z) { return L(1) / (L(1) + std::exp(-z)); }},
      {"sign", [](L z) { return z / std::abs(z); }},
      {"conj", [](L z) { return std::conj(z); }}};
  const std::map<std::string, L (*)(L, L)> binary = {
      {"add", [](L x, L y) { return x + y; }},
      {"sub", [](L x, L y) { return x - y; }},
      {"mul", [](L x, L y) { return x * y; }},
      {"div", [](L x, L y) { return x / y; }},
      {"pow", [](L x, L y) { return std::pow(x, y); }},
      {"squared_difference", [](L x, L y) { return L(std::norm(x - y)); }},
      {"xlogy", [](L x, L y) { return x * std::log(y); }}};
  std::mt19937_64 r(4);
  std::normal_distribution<R> g;
  std::vector<Z> x(1003), y(1003), out(1003);
  for (auto& z : x) z = Z(g(r), g(r));
  for (auto& z : y) z = Z(g(r), g(r));
  y[0] = Z(2), y[1] = Z(-3), y[2] = Z(0);
  const void* p[2] = {x.data(), y.data()};
  const uint8_t ones[2] = {1, 1};
  const ld tol = 40 * std::numeric_limits<R>::epsilon();
  auto look = [&](const std::string& name, auto ref) {
    const Elementwise* e = find_elementwise(name);
    e->loop[t](out.data(), p, ones, 1003);
    for (size_t i = 0; i < x.size(); ++i)
      if (const L want = ref(i);
          std::isfinite(std::abs(want)) &&
          !(std::abs(L(out[i].real(), out[i].imag()) - want) <= tol * (1 + std::abs(want)))) {
        wrong(name + " " + dtype_name(Dtype(t)) + " at " + std::to_string(x[i].real()) + ", " +
              std::to_string(x[i].imag()));
        break;
      }
  };
  auto wide = [](Z z) { return L(z.real(), z.imag()); };
  for (const auto& [name, f] : unary) look(name, [&, f = f](size_t i) { return f(wide(x[i])); });
  for (const auto& [name, f] : binary) look(name, [&, f = f](size_t i) { return f(wide(x[i]), wide(y[i])); });
  std::vector<R> real(1003);
  for (const char* name : {"abs", "angle", "real", "imag"}) {
    find_elementwise(name)->loop[t](real.data(), p, ones, 1003);
    for (size_t i = 0; i < x.size(); ++i) {
      const L z = wide(x[i]);
      const ld want = name[1] == 'b'   ? std::abs(z)
                      : name[1] == 'n' ? std::arg(z)
                      : name[0] == 'r' ? z.real()
                                       : z.imag();
      if (std::fabs(real[i] - want) > tol * (1 + std::fabs(want))) wrong(name);
    }
  }
}

template <class T> static void check_ints() {
  const int t = int(DtypeOf<T>::value);
  const T lo = std::numeric_limits<T>::min(), hi = std::numeric_limits<T>::max();
  std::vector<T> v = {0, 1, 2, 3, 7, T(-1), T(-2), T(-7), lo, T(lo + 1), hi, T(hi - 1), 5, 64, 31};
  using big = __int128;
  auto floor_div = [](big a, big b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); };
  for (const char* name : {"add", "sub", "mul", "floordiv", "floormod", "truncatediv", "truncatemod",
                           "maximum", "minimum", "squared_difference"}) {
    const Elementwise* e = find_elementwise(name);
    const std::string s = name;
    for (T a : v)
      for (int n : {1, 150}) {
        std::vector<T> y, out(150);
        for (int k = 0; k < 150; ++k) y.push_back(v[size_t(k) % v.size()]);
        const void* p[2] = {&a, y.data()};
        const uint8_t steps[2] = {0, 1};
        e->loop[t](out.data(), p, steps, n);
        for (int k = 0; k < n; ++k) {
          const big x = a, b = y[k];
          big want = 0;
          if (s == "add")
            want = x + b;
          else if (s == "sub")
            want = x - b;
          else if (s == "mul")
            want = big((unsigned __int128)x * (unsigned __int128)b);
          else if (s == "maximum")
            want = std::max(x, b);
          else if (s == "minimum")
            want = std::min(x, b);
          else if (s == "squared_difference") {
            const big d = big(T(x - b));
            want = big((unsigned __int128)d * (unsigned __int128)d);
          } else if (b == 0)
            want = 0;
          else if (s == "floordiv")
            want = floor_div(x, b);
          else if (s == "floormod")
            want = x - floor_div(x, b) * b;
          else if (s == "truncatediv")
            want = x / b;
          else
            want = x % b;
          if (T(want) != out[k])
            wrong(s + " " + dtype_name(Dtype(t)) + " " + std::to_string(a) + ", " + std::to_string(y[k]));
        }
      }
  }
}

static void check_casts() {
  const double values[] = {
      0,       1,      -1,       2.5,       -2.5,         127,          128,           -129,
      255,     256,    65504,    1e6,       2147483647.0, 2147483648.0, -2147483649.0, 9.3e18,
      -9.3e18, 1.9e19, INFINITY, -INFINITY, NAN};
  for (int k = 0; k < kDtypes; ++k)
    for (int m = 0; m < kDtypes; ++m)
      if (!is_held(Dtype(k)) && !is_held(Dtype(m)) && !find_cast(Dtype(k), Dtype(m))) wrong("no cast");
  for (Dtype from : {Dtype::F32, Dtype::F64})
    for (int to = 1; to <= 8; ++to)
      for (double v : values) {
        char in[8 * 40], out[8 * 40], back[8 * 40];
        double many[40];
        for (double& d : many) d = v;
        find_cast(Dtype::F64, from)(in, many, 40);
        find_cast(from, Dtype(to))(out, in, 40);
        visit(Dtype(to), [&](auto zero) {
          using T = decltype(zero);
          if constexpr (std::is_integral_v<T>) {
            const ld x = from == Dtype::F32 ? ld(float(v)) : ld(v), lo = std::numeric_limits<T>::min(),
                     hi = std::numeric_limits<T>::max();
            const T want = std::isnan(v) ? T(0) : x >= hi ? T(hi) : x <= lo ? T(lo) : T(x);
            for (int k : {0, 7, 39})
              if (T got; std::memcpy(&got, out + k * sizeof(T), sizeof(T)), got != want)
                wrong(std::string("cast ") + dtype_name(from) + " to " + dtype_name(Dtype(to)) + " of " +
                      std::to_string(v));
          }
        });
        find_cast(Dtype(to), Dtype::Bool)(back, out, 40);
      }
}

static void check_reductions() {
  std::mt19937_64 r(3);
  std::normal_distribution<float> g;
  for (int64_t inner : {1, 2, 3, 16, 100, 700, 3000})
    for (int64_t size : {1, 2, 7, 63, 64, 65, 1000, 3333}) {
      std::vector<float> x(size_t(size * inner)), out(size_t(inner), -1);
      for (float& v : x) v = g(r) + 1;
      std::vector<int64_t> at(size_t(inner), -1);
      auto column = [&](int64_t j, auto f) {
        for (int64_t i = 0; i < size; ++i) f(x[size_t(i * inner + j)], i);
      };
      const std::string where = " size " + std::to_string(size) + " inner " + std::to_string(inner);
      const int t = int(Dtype::F32);
      find_reduction("sum")->loop[t](out.data(), x.data(), size, inner);
      for (int64_t j = 0; j < inner; ++j) {
        double s = 0, a = 0;
        column(j, [&](float v, int64_t) { s += v, a += std::fabs(v); });
        if (std::fabs(out[size_t(j)] - s) > 2e-6 * a) wrong("sum" + where);
      }
      for (int nan = 0; nan < 2; ++nan) {
        if (nan) x[x.size() / 2] = NAN;
        find_reduction("max")->loop[t](out.data(), x.data(), size, inner);
        find_reduction("argmin")->loop[t](at.data(), x.data(), size, inner);
        for (int64_t j = 0; j < inner; ++j) {
          float top = -INFINITY, low = INFINITY;
          int64_t k = 0;
          bool seen = false;
          column(j, [&](float v, int64_t i) {
            top = v != v || top != top ? NAN : std::max(top, v);
            if (!seen && (v != v || v < low)) low = v, k = i, seen = v != v;
          });
          if (out[size_t(j)] != top && (out[size_t(j)] == out[size_t(j)] || top == top)) wrong("max" + where);
          if (at[size_t(j)] != k) wrong("argmin" + where);
        }
      }
    }
  std::vector<float> x(10000000, 0.1f);
  float s = 0;
  find_reduction("sum")->loop[int(Dtype::F32)](&s, x.data(), int64_t(x.size()), 1);
  std::printf("sum of 1e7 times 0.1f: %.9g (exact %.9g)\n", s, 1e7 * double(0.1f));
  if (std::fabs(s - 1e7 * double(0.1f)) > 0.2) wrong("sum is not accurate");
}

int main() {
  std::printf("%s\n", isa_name());
  check_floats<float>();
  check_floats<double>();
  check_halves<half>();
  check_halves<bfloat>();
  check_complex<float>();
  check_complex<double>();
  check_ints<int8_t>(), check_ints<int16_t>(), check_ints<int32_t>(), check_ints<int64_t>();
  check_ints<uint8_t>(), check_ints<uint16_t>(), check_ints<uint32_t>(), check_ints<uint64_t>();
  check_casts();
  check_reductions();
  std::printf(failures ? "%d failures\n" : "all right\n", failures);
  return failures != 0;
}
