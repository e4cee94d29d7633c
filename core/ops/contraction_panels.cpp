// Products by kernels of our own, for which the OpenBLAS of the wheel is slower: it has no 16-bit floats, and
// packs operands that can be read in place. The second operand is packed at most once, for all threads; each
// then computes rows of the result. Which rows depends on the sizes only.
#include <algorithm>
#include <vector>

#include "../kernels/loops.h"
#include "../kernels/products.h"
#include "contraction.h"
#include "strided.h"

namespace gt {
namespace {

int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

template <class T> const ProductLoops& loops() {
  return kernels().products[std::is_same_v<T, float>    ? 0
                            : std::is_same_v<T, half>   ? 1
                            : std::is_same_v<T, bfloat> ? 2
                                                        : 3];
}

// In operations of float; pairs are multiplied two at a time.
template <class T> double work(int64_t m, int64_t n, int64_t k) {
  return double(m) * double(n) * double(k) * (loops<T>().group == 1 ? 2 : 1);
}

// b in panels, at `places`.
struct Panels {
  Tensor room;
  std::vector<const void*> places;

  template <class T> void pack(const Product<T>& p) {
    const int64_t group = loops<T>().group, count = (p.n + kPanel - 1) / kPanel,
                  row = up(p.k, group) / group * 4, bytes = row * panel_width(p.n);
    room = empty(Dtype::U8, Shape(&bytes, 1));
    places.resize(size_t(count));
    for (int64_t j = 0; j < count; ++j) places[size_t(j)] = room.data + j * kPanel * row;
    constexpr int64_t kElements = 1 << 15;  // worth a thread
    each_chunk(count, std::max<int64_t>(1, kElements / (p.k * kPanel)), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const Product<T> q = p.columns(j * kPanel, std::min(kPanel, p.n - j * kPanel));
        loops<T>().pack(const_cast<void*>(places[size_t(j)]), {q.b, q.ldb, q.tb, q.k, q.n});
      }
    });
  }
};

template <class T> ProductRows rows_of(const Product<T>& p, const void* const* panels) {
  return {p.a, p.lda, p.ta, p.m, {p.b, p.ldb, p.tb, p.k, p.n}, panels, p.c, p.ldc, sizeof(*p.c) == 4};
}

template <class T> void run_rows(ProductRows&& r) {
  const ProductLoops& f = loops<T>();
  const int64_t bytes = f.room(r);
  alignas(64) char few[4096];
  Tensor room;
  if (bytes > int64_t(sizeof few)) room = empty(Dtype::U8, Shape(&bytes, 1));
  r.room = room.data ? room.data : few;
  f.rows(r);
}

// Small result, long sum (the gradient of a weight over a large batch): parts of the sum, combined in order.
// Both operands are read once.
template <class T> bool run_depth_parts(const Product<T>& p, double total) {
  constexpr int64_t kMost = 1 << 17, kLeast = 512;
  int64_t parts = std::min<int64_t>(8, int64_t(total / kWorthAThread));
  const int64_t size = p.m * p.n;
  if (parts < 2 || p.k < kLeast * parts || p.k < 4 * std::max(p.m, p.n) || size > kMost) return false;
  const int64_t step = up((p.k + parts - 1) / parts, 2);
  parts = (p.k + step - 1) / step;
  const int64_t length = parts * size;
  using Sum = std::conditional_t<std::is_same_v<T, octet>, int32_t, float>;
  Tensor sums = empty(DtypeOf<Sum>::value, Shape(&length, 1));
  Sum* part = sums.as<Sum>();
  each_chunk(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ProductRows r = rows_of(p.depth(i * step, std::min(step, p.k - i * step), nullptr), nullptr);
      r.c = part + i * size, r.wide = true;
      run_rows<T>(std::move(r));
    }
  });
  each_chunk(p.m, std::max<int64_t>(1, (1 << 16) / (p.n * parts)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        Sum s = part[i * p.n + j];
        for (int64_t q = 1; q < parts; ++q) s += part[q * size + i * p.n + j];
        p.c[i * p.ldc + j] = typename Product<T>::C(s);
      }
  });
  return true;
}

// The sides of the blocks of the result that a thread takes: rows and columns whose operands stay in the
// level-2 cache, fewer where that leaves work for less than eight threads.
constexpr int64_t kMostRows = 192;
struct Block {
  int64_t m, n;
};
template <class T> Block block_of(const Product<T>& p) {
  constexpr int64_t kLeast = 4 * kPanelRows, kWide = 512;
  const int64_t down = (p.m + kMostRows - 1) / kMostRows, across = (p.n + kWide - 1) / kWide;
  Block b{up((p.m + down - 1) / down, kPanelRows), up((p.n + across - 1) / across, kPanel)};
  auto count = [&] { return ((p.m + b.m - 1) / b.m) * ((p.n + b.n - 1) / b.n); };
  while (count() < 8 && work<T>(b.m, b.n, p.k) > 2 * kWorthAThread) {
    const int64_t m = up((b.m + 1) / 2, kPanelRows), n = up((b.n + 1) / 2, kPanel);
    if (n < b.n && (b.n > 2 * b.m || m < kLeast))
      b.n = n;
    else if (m >= kLeast && m < b.m)
      b.m = m;
    else
      break;
  }
  return b;
}

// Whether b is packed before rows of the result are computed: it is read by several blocks, and cannot be
// read in place, or is too large to stay in the cache while many rows use it.
template <class T> bool packs(const Product<T>& p, int64_t down) {
  constexpr int64_t kCached = 1 << 18;
  return down > 1 && (!std::is_same_v<T, float> || p.tb || (p.k * p.n > kCached && p.m > 2 * kMostRows));
}

}  // namespace

template <class T> bool multiplies_panels() {
  static const bool can = kernels().products && loops<T>().rows;
  return can;
}

template <class T> void run_panels_here(const Product<T>& p, float* sums, float scale, bool add) {
  ProductRows r = rows_of(p, nullptr);
  r.c = sums, r.wide = true, r.scale = scale, r.add = add;
  run_rows<T>(std::move(r));
}
template <class T> void run_panels_here(const Product<T>& p) { run_rows<T>(rows_of(p, nullptr)); }

template <class T> void run_panels(const Product<T>& p) {
  const double total = work<T>(p.m, p.n, p.k);
  if (p.m <= kMostRows && total < 2 * kWorthAThread) return run_panels_here(p);
  if (run_depth_parts(p, total)) return;
  const Block block = block_of(p);
  const int64_t down = (p.m + block.m - 1) / block.m, across = (p.n + block.n - 1) / block.n;
  Panels b;
  if (packs(p, down)) b.pack(p);
  const double each = total / double(down * across);
  each_chunk(
      down * across, std::max<int64_t>(1, int64_t(kWorthAThread / each)), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t i = t / across * block.m, j = t % across * block.n;
          const Product<T> q = p.rows(i, std::min(block.m, p.m - i)).columns(j, std::min(block.n, p.n - j));
          run_rows<T>(rows_of(q, b.places.empty() ? nullptr : b.places.data() + j / kPanel));
        }
      });
}

template bool multiplies_panels<float>();
template bool multiplies_panels<half>();
template bool multiplies_panels<bfloat>();
template bool multiplies_panels<octet>();
template void run_panels(const Product<float>&);
template void run_panels(const Product<half>&);
template void run_panels(const Product<bfloat>&);
template void run_panels(const Product<octet>&);
template void run_panels_here(const Product<float>&);
template void run_panels_here(const Product<half>&);
template void run_panels_here(const Product<bfloat>&);
template void run_panels_here(const Product<octet>&);
template void run_panels_here(const Product<float>&, float*, float, bool);
template void run_panels_here(const Product<half>&, float*, float, bool);
template void run_panels_here(const Product<bfloat>&, float*, float, bool);

}  // namespace gt
