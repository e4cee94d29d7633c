// How exact functions of float are: compares every float, or a sample, with the C library's functions of
// double, on all levels the processor has at once, since the comparison takes longer than the functions.
//   float_check [every [name...]]   every 2^16-th float starts a block: with 64, every 64th block is looked
//   at
// Errors are in units of the last place of the exact result, as a float. What ought to be NaN, infinite or a
// zero of a sign has to be just that. Of two arguments there are 2^30 / every pairs. GRADTAPE_ISA is the
// highest level.
#include <algorithm>
#include <bit>
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

#define GT_COPY(level) extern "C" void gradtape_kernels_v##level(void* set);
GT_ISA_COPIES
#undef GT_COPY

using namespace gt;

namespace {

struct Function {
  const char* name;
  double (*one)(double);
  double (*two)(double, double);
};
const Function functions[] = {
    {"exp", exp, nullptr},     {"expm1", expm1, nullptr}, {"log", log, nullptr},
    {"log1p", log1p, nullptr}, {"sin", sin, nullptr},     {"cos", cos, nullptr},
    {"tan", tan, nullptr},     {"asin", asin, nullptr},   {"acos", acos, nullptr},
    {"atan", atan, nullptr},   {"sinh", sinh, nullptr},   {"cosh", cosh, nullptr},
    {"tanh", tanh, nullptr},   {"asinh", asinh, nullptr}, {"acosh", acosh_reference, nullptr},
    {"atanh", atanh, nullptr}, {"erf", erf, nullptr},     {"erfc", erfc, nullptr},
    {"pow", nullptr, pow},     {"atan2", nullptr, atan2}, {"hypot", nullptr, hypot},
};
constexpr double kBound = 2;

struct Copy {
  int level;
  KernelSet set;
};
std::vector<Copy> copies() {
  std::vector<Copy> all;
#define GT_COPY(n)                          \
  if (n <= cpu_level()) {                   \
    all.push_back({n, {}});                 \
    gradtape_kernels_v##n(&all.back().set); \
  }
  GT_ISA_COPIES
#undef GT_COPY
  return all;
}
Loop loop_of(const KernelSet& set, const char* name) {
  for (const auto& rows : set.elementwise)
    for (int k = 0; k < rows.count; ++k)
      if (!std::strcmp(rows.first[k].name, name)) return rows.first[k].loop[int(Dtype::F32)];
  return nullptr;
}

// Infinity counts as the number after the largest, so that rounding to either is no more than an ulp.
double error_of(float got, double exact) {
  const float rounded = float(exact);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(rounded) ? 0 : INFINITY;
  if (std::signbit(got) != std::signbit(exact)) return INFINITY;
  if (std::isinf(exact)) return got == rounded ? 0 : INFINITY;
  if (std::isinf(rounded) && got == rounded) return 0;
  const int e = std::max(std::ilogb(rounded), -126);
  const double value = std::isinf(got) ? std::copysign(0x1p128, double(got)) : double(got);
  return std::fabs(value - exact) / std::ldexp(1.0, std::min(e, 127) - 23);
}

struct Worst {
  double error = 0;
  float x = 0, y = 0, got = 0;
};

// Equal bits are not looked at again: the worst error is then at most 1/2, and shown as 0.
void compare(const Function& f, const std::vector<float>& x, const std::vector<float>& y,
             const std::vector<Loop>& loops, std::vector<Worst>& worst) {
  static std::vector<double> exact;
  static std::vector<float> out;
  exact.resize(x.size()), out.resize(x.size());
  if (f.one)
    for (size_t i = 0; i < x.size(); ++i) exact[i] = f.one(double(x[i]));
  else
    for (size_t i = 0; i < x.size(); ++i) exact[i] = f.two(double(x[i]), double(y[i]));
  const void* in[] = {x.data(), y.data()};
  const uint8_t step[] = {1, 1};
  for (size_t k = 0; k < loops.size(); ++k) {
    loops[k](out.data(), in, step, int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::bit_cast<uint32_t>(out[i]) == std::bit_cast<uint32_t>(float(exact[i]))) continue;
      const double e = error_of(out[i], exact[i]);
      if (!(e <= worst[k].error)) worst[k] = {e, x[i], f.two ? y[i] : 0, out[i]};
    }
  }
}

constexpr uint32_t kBlock = 1 << 12;  // arguments at a time, neighbours of each other

void all_floats(uint64_t every, auto&& take) {
  std::vector<float> x(kBlock), none;
  for (uint64_t start = 0; start < uint64_t(1) << 32; start += every << 16)
    for (uint32_t part = 0; part < 1 << 16; part += kBlock) {
      for (uint32_t i = 0; i < kBlock; ++i) x[i] = std::bit_cast<float>(uint32_t(start) + part + i);
      take(x, none);
    }
}
// Special values with each other; then any bits, sizes near 1, powers near overflow and underflow.
void pairs(uint64_t every, auto&& take) {
  std::vector<float> x, y;
  const float edges[] = {0,       1e-45f,   1e-38f, 0.5f,     1,    1.5f,     2,         3,       127,
                         0x1p24f, 0xffffff, 3e38f,  INFINITY, NAN,  -0.f,     -1e-45f,   -1e-38f, -0.5f,
                         -1,      -1.5f,    -2,     -3,       -127, -0x1p24f, -0xffffff, -3e38f,  -INFINITY};
  for (float a : edges)
    for (float b : edges) x.push_back(a), y.push_back(b);
  take(x, y);
  x.resize(kBlock), y.resize(kBlock);
  std::mt19937_64 random(7);
  auto unit = [&] { return double(random() >> 11) * 0x1p-52 - 1; };
  for (uint64_t k = 0; k < (uint64_t(1) << 30) / kBlock / every; ++k) {
    for (uint32_t i = 0; i < kBlock; ++i) {
      const uint64_t bits = random();
      const double sign = bits & 1 ? 1 : -1;
      switch (k % 4) {
        case 0:
          x[i] = std::bit_cast<float>(uint32_t(bits)), y[i] = std::bit_cast<float>(uint32_t(bits >> 32));
          break;
        case 1: x[i] = float(std::exp(4 * unit())), y[i] = float(sign * std::exp(4 * unit())); break;
        case 2: x[i] = float(sign * std::exp(4 * unit())), y[i] = std::rint(float(16 * unit())); break;
        default:
          x[i] = std::bit_cast<float>(uint32_t(bits) & 0x7fffffffu);
          y[i] = float(150 * unit() / std::log2(double(x[i])));
      }
    }
    take(x, y);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t every = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  if (every < 1) return std::puts("float_check [every [name...]]"), 2;
  const std::vector<Copy> all = copies();
  bool good = true;
  for (const Function& f : functions) {
    if (argc > 2 && !std::any_of(argv + 2, argv + argc, [&](char* a) { return !std::strcmp(a, f.name); }))
      continue;
    std::vector<Loop> loops;
    for (const Copy& c : all) loops.push_back(loop_of(c.set, f.name));
    std::vector<Worst> worst(loops.size());
    auto take = [&](const auto& x, const auto& y) { compare(f, x, y, loops, worst); };
    f.one ? all_floats(every, take) : pairs(every, take);
    for (size_t k = 0; k < loops.size(); ++k) {
      const Worst& w = worst[k];
      std::printf("%-6s level %d: %.3f ulp at %a", f.name, all[k].level, w.error, double(w.x));
      if (f.two) std::printf(", %a", double(w.y));
      std::printf(": %a%s\n", double(w.got), w.error <= kBound ? "" : "  <-- too much");
      good &= w.error <= kBound;
    }
    std::fflush(stdout);
  }
  return good ? 0 : 1;
}
