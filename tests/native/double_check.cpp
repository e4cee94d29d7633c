// How exact functions of double are: compares random and special arguments with the C library's long double.
//   double_check [count [name]]
// Errors are in units of the last place of the exact result. What ought to be NaN, infinite or a zero of a
// sign has to be just that. GRADTAPE_ISA chooses the kernels. Where long double has no more digits than
// double, there is no referee.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "cpu.h"
#include "kernels/loops.h"
#include "reference.h"

using namespace gt;

namespace {

using Long = long double;

// Bounds above 2 are where the last roundings would cost another pair of doubles: a quotient of two rounded
// functions (tanh, tan), a product of three beyond 6 (erfc), sums that cancel (sinh, expm1).
struct Function {
  const char* name;
  Long (*one)(Long);
  Long (*two)(Long, Long);
  double least, most;  // where results change; arguments elsewhere are drawn as well
  double bound, bound_without_fma;
};

const Function functions[] = {
    {"exp", expl, nullptr, -746, 711, 1.1, 1.1},   {"expm1", expm1l, nullptr, -40, 711, 2.5, 2.5},
    {"log", logl, nullptr, 0, 100, 1, 1.1},        {"log1p", log1pl, nullptr, -1, 100, 2, 2},
    {"sinh", sinhl, nullptr, -711, 711, 2.5, 2.5}, {"cosh", coshl, nullptr, -711, 711, 2, 2},
    {"tanh", tanhl, nullptr, -20, 20, 3, 3},       {"asinh", asinhl, nullptr, -10, 10, 2, 2},
    {"acosh", acoshl, nullptr, 1, 10, 2, 2},       {"atanh", atanhl, nullptr, -1, 1, 2, 2},
    {"sin", sinl, nullptr, -100, 100, 2, 2},       {"cos", cosl, nullptr, -100, 100, 2, 2},
    {"tan", tanl, nullptr, -100, 100, 4, 4},       {"asin", asinl, nullptr, -1, 1, 2, 2},
    {"acos", acosl, nullptr, -1, 1, 2, 2},         {"atan", atanl, nullptr, -10, 10, 2, 2},
    {"erf", erfl, nullptr, -6, 6, 2, 2},           {"erfc", erfcl, nullptr, -6, 28, 4, 4},
    {"pow", nullptr, pow_reference, 0, 30, 2, 2},  {"atan2", nullptr, atan2l, -10, 10, 2, 2},
    {"hypot", nullptr, hypotl, -10, 10, 2, 2},
};

const double kAllOnes = __builtin_nan("0x7ffffffffffff");
const double specials[] = {
    0.0,          -0.0,         INFINITY, -INFINITY, NAN,     DBL_MAX, -DBL_MAX,  DBL_MIN,
    -DBL_MIN,     5e-324,       -5e-324,  1e-310,    -1e-310, 1.0,     -1.0,      0.5,
    -0.5,         2.0,          -2.0,     3.0,       -3.0,    1.5,     -1.5,      -2.5,
    10.0,         -10.0,        1e-8,     -1e-8,     1e-17,   -1e-17,  1e-200,    -1e-200,
    1e200,        -1e200,       709.0,    709.78,    709.79,  710.47,  -708.4,    -745.1,
    -745.2,       -746.0,       711.0,    1e22,      -1e22,   0x1p52,  -0x1p52,   0x1p53,
    0x1.8p53,     0x1p-53,      0x1p1023, 26.5,      27.2,    27.3,    1 - 1e-16, 1 + 3e-16,
    -1 + 1.2e-16, 0x1p53 - 1.0, 5.9,      6.0,       1e5,     1e9,     -1e9,      kAllOnes};

double ulp_of(double y) {
  y = std::fabs(y);
  return y < DBL_MIN                                   ? 0x1p-1074
         : y > DBL_MAX                                 ? 0x1p971
         : std::nextafter(y, INFINITY) - y < 0x1p-1074 ? 0x1p-1074
                                                       : std::ldexp(1.0, std::ilogb(y) - 52);
}
// Infinity counts as the number after the largest, so that rounding to either is no more than an ulp.
double error_of(double got, Long exact) {
  const double rounded = double(exact);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(rounded) ? 0 : INFINITY;
  if (std::isinf(exact)) return got == rounded ? 0 : INFINITY;
  if (std::isinf(rounded) && got == rounded) return 0;
  const Long value = std::isinf(got) ? copysignl(0x1p1024L, got) : Long(got);
  return double(fabsl(value - exact) / Long(ulp_of(rounded)));
}

double unit(std::mt19937_64& random) { return double(random() >> 11) * 0x1p-53; }
double argument(std::mt19937_64& random, const Function& f, int kind) {
  const double at = f.least + (f.most - f.least) * unit(random);
  double x;
  const uint64_t bits = random();
  switch (kind) {
    case 0: std::memcpy(&x, &bits, 8); return x;         // any double
    case 1: return at;                                   // where results change
    case 2: return std::ldexp(at, -int(random() % 60));  // towards 0
    case 3: return 1 + std::ldexp(unit(random) - 0.5, -int(random() % 50));
    default: return std::ldexp(unit(random) * 2 - 1, int(random() % 24));
  }
}

bool check(const Function& f, int64_t count) {
  const Elementwise* row = find_elementwise(f.name);
  const Loop loop = row ? row->loop[int(Dtype::F64)] : nullptr;
  if (!loop) return std::printf("%s: no loop\n", f.name), false;
  constexpr int kBatch = 4096;
  std::mt19937_64 random(1234567);
  std::vector<double> x, y(kBatch), out(kBatch);
  double worst = 0, worst_x = 0, worst_y = 0, worst_out = 0;
  auto run = [&] {
    const void* in[] = {x.data(), y.data()};
    const uint8_t step[] = {1, 1};
    out.resize(x.size());
    loop(out.data(), in, step, int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const double e = error_of(out[i], f.one ? f.one(x[i]) : f.two(x[i], y[i]));
      if (!(e <= worst)) worst = e, worst_x = x[i], worst_y = y[i], worst_out = out[i];
    }
  };
  y.clear();
  for (double a : specials)
    if (f.one)
      x.push_back(a), y.push_back(0);
    else
      for (double b : specials) x.push_back(a), y.push_back(b);
  run();
  y.resize(kBatch);
  for (int64_t done = 0; done < count; done += kBatch) {
    x.resize(kBatch);
    for (int i = 0; i < kBatch; ++i) {
      x[i] = argument(random, f, int(random() % 5));
      y[i] = argument(random, f, int(random() % 5));
      // Powers near overflow and underflow.
      if (!std::strcmp(f.name, "pow") && i % 2) {
        x[i] = std::fabs(x[i]);
        y[i] = (unit(random) * 2 - 1) * 746 / std::log(x[i]);
      }
    }
    run();
  }
  const double bound = isa_level() == 2 ? f.bound_without_fma : f.bound;
  std::printf("%-6s %6.3f ulp (bound %g) at %a", f.name, worst, bound, worst_x);
  if (f.two) std::printf(", %a", worst_y);
  std::printf(": %a\n", worst_out);
  return worst <= bound;
}

}  // namespace

int main(int argc, char** argv) {
  if (LDBL_MANT_DIG <= DBL_MANT_DIG)
    return std::puts("long double is double here: nothing to compare with"), 0;
  const int64_t count = argc > 1 ? std::atoll(argv[1]) : 100000;
  bool good = true;
  std::printf("%s, %lld arguments\n", isa_name(), (long long)count);
  for (const Function& f : functions)
    if (argc < 3 || !std::strcmp(argv[2], f.name)) good &= check(f, count);
  return good ? 0 : 1;
}
