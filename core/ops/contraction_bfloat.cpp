// Products of bfloat16 by kernels of our own: OpenBLAS as the wheel has it knows float and wider. The second
// operand is packed once, for all threads; each then computes rows of the result. Which rows depends on the
// sizes only.
#include <algorithm>
#include <vector>

#include "../kernels/loops.h"
#include "../kernels/products.h"
#include "contraction.h"
#include "strided.h"

namespace gt {
namespace {

int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// b in panels, at `places`.
struct Panels {
  Tensor room;
  std::vector<const void*> places;

  void pack(const Product<bfloat>& p) {
    const int64_t count = (p.n + kPanel - 1) / kPanel, row = up(p.k, 2) * int64_t(sizeof(bfloat)),
                  bytes = row * up(p.n, kPanelVector);
    room = empty(Dtype::U8, Shape(&bytes, 1));
    places.resize(size_t(count));
    for (int64_t j = 0; j < count; ++j) places[size_t(j)] = room.data + j * kPanel * row;
    constexpr int64_t kElements = 1 << 15;  // worth a thread
    each_chunk(count, std::max<int64_t>(1, kElements / (p.k * kPanel)), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const Product<bfloat> q = p.columns(j * kPanel, std::min(kPanel, p.n - j * kPanel));
        kernels().products->pack(const_cast<void*>(places[size_t(j)]), {q.b, q.ldb, q.tb, q.k, q.n});
      }
    });
  }
};

// p on this thread, to c: float or bfloat16.
void run_rows(const Product<bfloat>& p, const void* const* panels, void* c, bool wide) {
  ProductRows r{p.a, p.lda, p.ta, p.m, {p.b, p.ldb, p.tb, p.k, p.n}, panels, c, p.ldc, wide, nullptr};
  const ProductLoops& loops = *kernels().products;
  const int64_t bytes = loops.room(r);
  alignas(64) char few[4096];
  Tensor room;
  if (bytes > int64_t(sizeof few)) room = empty(Dtype::U8, Shape(&bytes, 1));
  r.room = room.data ? room.data : few;
  loops.rows(r);
}

// Small result, long sum (the gradient of a weight over a large batch): parts of the sum, put together in
// their order.
bool run_depth_parts(const Product<bfloat>& p, double total) {
  int64_t parts = std::min<int64_t>(8, int64_t(total / kWorthAThread));
  if (parts < 2 || p.k < 512 * parts || p.m * p.n > 16384) return false;
  const int64_t size = p.m * p.n, step = up((p.k + parts - 1) / parts, 2);
  parts = (p.k + step - 1) / step;
  const int64_t length = parts * size;
  Tensor sums = empty(Dtype::F32, Shape(&length, 1));
  float* part = sums.as<float>();
  each_chunk(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      run_rows(p.depth(i * step, std::min(step, p.k - i * step), nullptr), nullptr, part + i * size, true);
  });
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      float s = part[i * p.n + j];
      for (int64_t q = 1; q < parts; ++q) s += part[q * size + i * p.n + j];
      p.c[i * p.ldc + j] = bfloat(s);
    }
  return true;
}

// The sides of the blocks of the result that a thread takes at a time: rows and columns that keep what they
// meet in the level-2 cache, fewer where that leaves work for less than eight threads.
constexpr int64_t kMostRows = 96;
struct Block {
  int64_t m, n;
};
Block block_of(const Product<bfloat>& p) {
  constexpr int64_t kLeast = 4 * kPanelRows, kWide = 512;
  const int64_t down = (p.m + kMostRows - 1) / kMostRows, across = (p.n + kWide - 1) / kWide;
  Block b{up((p.m + down - 1) / down, kPanelRows), up((p.n + across - 1) / across, kPanel)};
  auto count = [&] { return ((p.m + b.m - 1) / b.m) * ((p.n + b.n - 1) / b.n); };
  while (count() < 8 && double(b.m) * double(b.n) * double(p.k) > 2 * kWorthAThread) {
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

}  // namespace

bool multiplies_bfloat() {
  static const bool can = kernels().products != nullptr;
  return can;
}

void run_product(const Product<bfloat>& p) {
  const double total = double(p.m) * double(p.n) * double(p.k);
  if (p.m <= kMostRows && total < 2 * kWorthAThread) return run_rows(p, nullptr, p.c, false);
  const Block block = block_of(p);
  const int64_t down = (p.m + block.m - 1) / block.m, across = (p.n + block.n - 1) / block.n;
  if (down * across < 4 && run_depth_parts(p, total)) return;
  Panels b;
  if (down > 1) b.pack(p);
  const double each = total / double(down * across);
  each_chunk(down * across, std::max<int64_t>(1, int64_t(kWorthAThread / each)),
             [&](int64_t begin, int64_t end) {
               for (int64_t t = begin; t < end; ++t) {
                 const int64_t i = t / across * block.m, j = t % across * block.n;
                 const Product<bfloat> q =
                     p.rows(i, std::min(block.m, p.m - i)).columns(j, std::min(block.n, p.n - j));
                 run_rows(q, down > 1 ? b.places.data() + j / kPanel : nullptr, q.c, false);
               }
             });
}

}  // namespace gt
