// One number a function of double that depends on every bit of a million results: tools/same_results.py
// compiles this with several compilers and compares. Not part of the build.
#include <cstdio>
#include <random>
#include <vector>

#include "kernels/map.h"
#include "kernels/math.h"

namespace {

using namespace gt;

#define UNARY(name) unary_math<set_of(Dtype::F64)>(#name, 1, [](auto x) { return math::name(x); })
#define BINARY(name) \
  binary_math<set_of(Dtype::F64)>(#name, 1, [](auto x, auto y) { return math::name(x, y); })
constexpr Elementwise table[] = {UNARY(exp),   UNARY(expm1),  UNARY(log),          UNARY(log1p),
                                 UNARY(sinh),  UNARY(cosh),   UNARY(tanh),         UNARY(sin),
                                 UNARY(cos),   UNARY(tan),    UNARY(asinh),        UNARY(acosh),
                                 UNARY(atanh), UNARY(asin),   UNARY(acos),         UNARY(atan),
                                 UNARY(erf),   UNARY(erfc),   UNARY(normal_below), UNARY(exp_half_square),
                                 BINARY(pow),  BINARY(atan2), BINARY(hypot)};

}  // namespace

int main() {
  constexpr int64_t n = 1000000;
  std::vector<double> x(n), y(n), out(n);
  std::mt19937_64 random(99);
  // All sizes, and many near 1: near and far, subnormal numbers, infinities.
  auto draw = [&] {
    const uint64_t bits = random();
    const double any = std::bit_cast<double>(bits);
    const double near = (double(random() >> 11) * 0x1p-52 - 1) * double(uint64_t(1) << random() % 12);
    return random() % 8 ? near : any;
  };
  for (int64_t i = 0; i < n; ++i) x[i] = draw(), y[i] = draw();
  const void* in[] = {x.data(), y.data()};
  const uint8_t step[] = {1, 1};
  for (const Elementwise& row : table) {
    row.loop[int(Dtype::F64)](out.data(), in, step, n);
    uint64_t hash = 0;
    for (double v : out)
      hash = (hash ^ (v == v ? std::bit_cast<uint64_t>(v) : 1)) * 0x9e3779b97f4a7c15 + (hash >> 31);
    std::printf("%s %016llx\n", row.name, (unsigned long long)hash);
  }
}
