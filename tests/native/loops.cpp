// What each element-wise loop takes and gives, for benchmarks/compilers.py to compare across compilers.
//   loops times [name...]    lines of name, type, nanoseconds an element: the least of a few short turns
//   loops hashes [name...]   lines of name, type, a hash of the results at a million arguments (floating
//   point only)
// GRADTAPE_ISA chooses the kernels.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "cpu.h"
#include "kernels/loops.h"

using namespace gt;

namespace {

// ---- times -------------------------------------------------------------------------------------

constexpr int kElements = 1024;  // stay in the first cache

// A quarter of a page apart: a load waits for an earlier store whose address has the same last 12 bits.
constexpr size_t kArray = kElements * 16 + 1024;
alignas(4096) char arrays[4][kArray];

void fill(void* x, Dtype t, double scale) {
  std::vector<double> d(kElements);
  for (int i = 0; i < kElements; ++i) d[size_t(i)] = scale * (0.05 + 0.9 * double((i * 7919) % 1009) / 1009);
  find_cast(Dtype::F64, t)(x, d.data(), kElements);
}

double nanoseconds(const Elementwise& e, Dtype t) {
  const double scale = t == Dtype::I8 || t == Dtype::I32 || !std::strcmp(e.name, "acosh") ? 40 : 1;
  for (int k = 0; k < e.arity; ++k)
    fill(arrays[k], k == 0 && !std::strcmp(e.name, "select") ? Dtype::Bool : t, scale);
  const void* p[3] = {arrays[0], arrays[1], arrays[2]};
  const uint8_t step[3] = {1, 1, 1};
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  int64_t calls = 1;
  for (int turn = 0; turn < 5;) {
    const auto start = Clock::now();
    for (int64_t k = 0; k < calls; ++k) e.loop[int(t)](arrays[3], p, step, kElements);
    const double ns = double(std::chrono::nanoseconds(Clock::now() - start).count());
    if (ns < 5e4)
      calls *= 2;
    else
      best = std::min(best, ns / double(calls)), ++turn;
  }
  return best / kElements;
}

// ---- hashes ------------------------------------------------------------------------------------

// The next number of a sequence (Steele, Lea and Flood 2014, "splitmix").
uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Any bits, and sizes at which functions have digits: within 1, close to 1, within 32, positive ones.
template <class T> T argument(uint64_t& state) {
  const uint64_t bits = next(state);
  const double unit = double(next(state) >> 11) * 0x1p-52 - 1;
  T any;
  std::memcpy(&any, &bits, sizeof any);
  switch (bits >> 61) {
    case 0:
    case 1: return any;
    case 2: return T(unit);
    case 3: return T(1 + unit / 1024);
    case 4:
    case 5: return T(32 * unit);
    default: return T(8 + 8 * unit);
  }
}

// Which NaN a result is depends on the order of operands, which compilers choose: all NaNs count as one.
template <class T> uint64_t hash_of(const Elementwise& e, Dtype t) {
  constexpr int kBatch = 1000, kBatches = 1000;
  std::vector<T> in[3], out(kBatch * 2);
  for (auto& x : in) x.resize(kBatch);
  uint64_t state = 1, hash = 0xcbf29ce484222325u;
  const int size = dtype_size(e.out[int(t)]);
  for (int k = 0; k < kBatches; ++k) {
    for (int j = 0; j < e.arity; ++j)
      for (T& x : in[j]) x = argument<T>(state);
    const void* p[3] = {in[0].data(), in[1].data(), in[2].data()};
    const uint8_t step[3] = {1, 1, 1};
    e.loop[int(t)](out.data(), p, step, kBatch);
    if (e.out[int(t)] == t)
      for (int i = 0; i < kBatch; ++i)
        if (out[size_t(i)] != out[size_t(i)]) out[size_t(i)] = T(NAN);
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(out.data());
    for (int i = 0; i < kBatch * size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode != "times" && mode != "hashes") return std::puts("loops times|hashes [name...]"), 2;
  auto wanted = [&](const char* name) {
    return argc == 2 || std::any_of(argv + 2, argv + argc, [&](char* a) { return !std::strcmp(a, name); });
  };
  const Dtype timed[] = {Dtype::F32, Dtype::F64, Dtype::BF16, Dtype::F16,
                         Dtype::I32, Dtype::I8,  Dtype::C64,  Dtype::Bool};
  for (const auto& rows : kernels().elementwise)
    for (int k = 0; k < rows.count; ++k) {
      const Elementwise& e = rows.first[k];
      if (e.arity < 1 || e.arity > 3 || !wanted(e.name)) continue;  // others: whole clusters
      if (mode == "times") {
        for (Dtype t : timed)
          if (e.loop[int(t)]) std::printf("%s %s %.4f\n", e.name, dtype_name(t), nanoseconds(e, t));
      } else if (std::strcmp(e.name, "select")) {
        const int f = int(Dtype::F32), d = int(Dtype::F64);
        if (e.loop[f])
          std::printf("%s float32 %016llx\n", e.name, (unsigned long long)hash_of<float>(e, Dtype::F32));
        if (e.loop[d])
          std::printf("%s float64 %016llx\n", e.name, (unsigned long long)hash_of<double>(e, Dtype::F64));
      }
    }
}
