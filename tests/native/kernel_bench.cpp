// Times the parts of the core that everything else stands on: memory, threads, each loop.
//   kernel_bench [part of a name]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cpu.h"
#include "kernels/loops.h"
#include "memory.h"
#include "threads.h"

using namespace gt;

// The fastest of several runs of at least a millisecond, in ns per call.
template <class F> double time_of(F&& f) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  int64_t calls = 1;
  for (int run = 0; run < 5;) {
    auto t0 = Clock::now();
    for (int64_t k = 0; k < calls; ++k) f();
    double ns = double(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - t0).count());
    if (ns < 1e6 && calls < (int64_t(1) << 40)) {
      calls *= 2;
      continue;
    }
    best = std::min(best, ns / double(calls));
    ++run;
  }
  return best;
}

static void fill(std::vector<char>& x, Dtype t, int64_t n, double scale) {
  x.resize(size_t(n) * dtype_size(t) + 64);
  std::vector<double> d(n);
  for (int64_t i = 0; i < n; ++i) d[i] = scale * (0.05 + 0.9 * double((i * 7919) % 1009) / 1009);
  find_cast(Dtype::F64, t)(x.data(), d.data(), n);
}

static void bench_loop(const Elementwise& e, Dtype t, int64_t large) {
  if (!e.loop[int(t)]) return;
  std::vector<char> in[3], out(size_t(large) * 16 + 64);
  const double scale = std::strcmp(e.name, "acosh") ? 1 : 40;
  for (int k = 0; k < e.arity; ++k)
    fill(in[k], k == 0 && !std::strcmp(e.name, "select") ? Dtype::Bool : t, large, scale);
  const void* p[3] = {in[0].data(), in[1].data(), in[2].data()};
  const uint8_t step[3] = {1, 1, 1};
  auto run = [&](int64_t n) { return time_of([&] { e.loop[int(t)](out.data(), p, step, n); }); };
  std::printf("%-20s %-10s n=1 %7.1f ns   n=1000 %7.3f ns/el   n=%lld %7.3f ns/el\n", e.name, dtype_name(t),
              run(1), run(1000) / 1000, (long long)large, run(large) / double(large));
}

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  std::printf("%s, %d threads\n", isa_name(), num_threads());
  if (only.empty() || only == "memory")
    for (size_t bytes : {size_t(4), size_t(4096), size_t(1) << 20, size_t(64) << 20})
      std::printf("allocate + recycle %9zu bytes %8.1f ns\n", bytes,
                  time_of([&] { unref(allocate(bytes)); }));
  if (only.empty() || only == "threads")
    for (int64_t n : {1, 2, 16}) {
      std::function<void(int64_t, int64_t)> f = [](int64_t, int64_t) {};
      std::printf("parallel_for %3lld empty chunks %8.1f ns\n", (long long)n,
                  time_of([&] { parallel_for(n, 1, f); }));
    }
  if (only == "memory" || only == "threads") return 0;
  const Dtype some[] = {Dtype::F32, Dtype::F64, Dtype::BF16, Dtype::F16,
                        Dtype::I32, Dtype::I8,  Dtype::C64,  Dtype::Bool};
  for (const auto& rows : kernels().elementwise)
    for (int k = 0; k < rows.count; ++k) {
      const Elementwise& e = rows.first[k];
      if (!only.empty() && only != e.name) continue;
      for (Dtype t : some)
        if (!only.empty() || t == Dtype::F32 || t == Dtype::F64 || !e.loop[int(Dtype::F32)])
          bench_loop(e, t, 1000000);
    }
  for (const auto& rows : kernels().reductions)
    for (int k = 0; k < rows.count; ++k) {
      const Reduction& r = rows.first[k];
      if (!only.empty() && only != r.name) continue;
      for (Dtype t : some) {
        if (!r.loop[int(t)]) continue;
        std::vector<char> in, out(1 << 24);
        const int64_t n = 1 << 20;
        fill(in, t, n, 1);
        std::printf("%-20s %-10s", r.name, dtype_name(t));
        for (int64_t inner : {1, 3, 16, 1024}) {
          double ns = time_of([&] { r.loop[int(t)](out.data(), in.data(), n / inner, inner); });
          std::printf("  inner %4lld %6.3f ns/el", (long long)inner, ns / double(n));
        }
        std::printf("  size 1: %.1f ns\n", time_of([&] { r.loop[int(t)](out.data(), in.data(), 1, 1); }));
      }
    }
}
