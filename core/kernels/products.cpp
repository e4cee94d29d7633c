// bfloat16 products with AVX512_BF16, which multiplies pairs of them and adds to float.
//
// A register tile is 6 rows by 4 vectors of columns: 24 sums, 4 vectors of b, one broadcast pair of a. The
// panel of b is read from the level-2 cache (4 lines for 24 instructions), the rows of a from where they lie.
// Numbers below 2^-126 count as zero: that is how the instruction is made.
#include "products.h"

#include "all.h"

#if GT_ISA_LEVEL == 4 && defined(__GNUC__)
#include <immintrin.h>
#define GT_BF16 __attribute__((target("avx512bf16")))
#define GT_INLINE_BF16 GT_BF16 [[gnu::always_inline]] inline

namespace gt {
namespace {

constexpr int64_t kBlockDepth = 512;  // rows of b at a time

// ---- packing ----

// Two rows of 32 elements to 32 pairs.
GT_INLINE_BF16 void interleave(__m512i x, __m512i y, __m512i& first, __m512i& second) {
  // Words of x and y in turn: 0, 32, 1, 33, ...; then from 16, 48 on.
  const __m512i step = _mm512_set1_epi32(0x00010001);
  alignas(64) static constexpr uint16_t kOrder[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                      37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                      11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low = _mm512_load_si512(kOrder), high = _mm512_add_epi16(low, _mm512_slli_epi16(step, 4));
  first = _mm512_permutex2var_epi16(x, low, y);
  second = _mm512_permutex2var_epi16(x, high, y);
}

// [k][columns] to pairs of rows, [k / 2][width][2]; zeros where there is nothing.
GT_BF16 void pack_rows(uint16_t* to, int64_t width, const uint16_t* x, int64_t ld, int64_t k,
                       int64_t columns) {
  for (int64_t l = 0; l < k; l += 2, to += 2 * width) {
    const uint16_t *even = x + l * ld, *odd = even + ld;
    // The processor guesses what comes next within a page; here it is as far away as a row is long.
    const uint16_t* soon = even + 16 * ld;
    for (int64_t j = 0; j < columns && l + 18 <= k; j += 32) {
      _mm_prefetch(soon + j, _MM_HINT_T1);
      _mm_prefetch(soon + ld + j, _MM_HINT_T1);
    }
    for (int64_t j = 0; j < width; j += 32) {
      const int64_t left = columns - j;
      const __mmask32 here = left >= 32 ? ~__mmask32(0) : left > 0 ? (__mmask32(1) << left) - 1 : 0;
      const __m512i u = _mm512_maskz_loadu_epi16(here, even + j),
                    v = _mm512_maskz_loadu_epi16(l + 1 < k ? here : 0, odd + j);
      __m512i first, second;
      interleave(u, v, first, second);
      _mm512_storeu_si512(to + 2 * j, first);
      if (j + 16 < width) _mm512_storeu_si512(to + 2 * j + 32, second);
    }
  }
}

// 16 x 16 pairs, turned: neighbours two by two, then twos, then lanes of four.
using Pairs = int __attribute__((vector_size(64)));
[[gnu::always_inline]] inline Pairs even_lanes(Pairs x, Pairs y) {
  return __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
[[gnu::always_inline]] inline Pairs odd_lanes(Pairs x, Pairs y) {
  return __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}
[[gnu::always_inline]] inline void turn(Pairs (&r)[16]) {
  Pairs t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    t[i + 1] =
        __builtin_shufflevector(r[i], r[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      const Pairs x = t[i + j], y = t[i + j + 2];
      r[i + 2 * j] = __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      r[i + 2 * j + 1] =
          __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  for (int i = 0; i < 16; i += 8)
    for (int j = i; j < i + 4; ++j) t[j] = even_lanes(r[j], r[j + 4]), t[j + 4] = odd_lanes(r[j], r[j + 4]);
  for (int j = 0; j < 8; ++j) r[j] = even_lanes(t[j], t[j + 8]), r[j + 8] = odd_lanes(t[j], t[j + 8]);
}

// [columns][k] to the same.
GT_BF16 void pack_columns(uint16_t* to, int64_t width, const uint16_t* x, int64_t ld, int64_t k,
                          int64_t columns) {
  const int64_t pairs = (k + 1) / 2;
  for (int64_t l = 0; l < k; l += 32, to += 32 * width) {
    const int64_t left = k - l, rows = pairs - l / 2 < 16 ? pairs - l / 2 : 16;
    const __mmask32 here = left >= 32 ? ~__mmask32(0) : (__mmask32(1) << left) - 1;
    for (int64_t j = 0; j < width; j += 16) {
      Pairs r[16];
      for (int i = 0; i < 16; ++i)
        r[i] = (Pairs)_mm512_maskz_loadu_epi16(j + i < columns ? here : 0,
                                               x + (j + i < columns ? j + i : 0) * ld + l);
      turn(r);
      uint16_t* at = to + 2 * j;
      if (rows == 16)
        for (int i = 0; i < 16; ++i) _mm512_storeu_si512(at + 2 * i * width, (__m512i)r[i]);
      else
        for (int i = 0; i < 16; ++i)
          if (i < rows) _mm512_storeu_si512(at + 2 * i * width, (__m512i)r[i]);
    }
  }
}

int64_t width_of(int64_t columns) { return (columns + kPanelVector - 1) / kPanelVector * kPanelVector; }

void pack(void* panel, const PanelSource& b) {
  (b.transposed ? pack_columns : pack_rows)(static_cast<uint16_t*>(panel), width_of(b.columns),
                                            static_cast<const uint16_t*>(b.b), b.ld, b.k, b.columns);
}

// ---- the register tile ----

struct TileCall {
  const char* a;      // pair l of row i is at a + i * row + l * pair
  int64_t row, pair;  // bytes
  const char* b;
  int64_t pairs;
  const float* from;  // sums so far; nullptr: none
  int64_t from_step;
  char* to;
  int64_t to_step;  // bytes
  bool wide;
  __mmask16 last;  // of the last vector, which columns there are
};

template <int R, int V> GT_BF16 void tile(const TileCall& t) {
  __m512 sum[R][V];
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < V; ++j)
      sum[i][j] = t.from ? _mm512_loadu_ps(t.from + i * t.from_step + 16 * j) : _mm512_setzero_ps();
  const char *a = t.a, *b = t.b;
  const int64_t row = t.row, pair = t.pair;
  const char* a3 = a + 3 * row;
  for (int64_t l = 0; l < t.pairs; ++l, a += pair, a3 += pair, b += 64 * V) {
    __m512bh y[V];
    for (int j = 0; j < V; ++j) y[j] = (__m512bh)_mm512_loadu_si512(b + 64 * j);
    for (int i = 0; i < R; ++i) {
      int x;
      __builtin_memcpy(&x, i < 3 ? a + i * row : a3 + (i - 3) * row, 4);
      const __m512bh z = (__m512bh)_mm512_set1_epi32(x);
      for (int j = 0; j < V; ++j) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], z, y[j]);
    }
  }
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < V; ++j) {
      const __mmask16 here = j == V - 1 ? t.last : __mmask16(~0);
      char* to = t.to + i * t.to_step;
      if (t.wide)
        _mm512_mask_storeu_ps(to + 64 * j, here, sum[i][j]);
      else
        _mm256_mask_storeu_epi16(to + 32 * j, here, (__m256i)_mm512_cvtneps_pbh(sum[i][j]));
    }
}

using Tile = void (*)(const TileCall&);
template <int R> constexpr Tile kOfRows[4] = {tile<R, 1>, tile<R, 2>, tile<R, 3>, tile<R, 4>};
constexpr const Tile* kTiles[kPanelRows] = {kOfRows<1>, kOfRows<2>, kOfRows<3>,
                                            kOfRows<4>, kOfRows<5>, kOfRows<6>};

// ---- rows ----

// What `rows` writes on the way: a block of a that cannot be read in place (as pairs of rows when it is
// transposed, else with a zero after the last of an odd number of elements), a block of a panel, sums that
// wait for more terms.
struct Room {
  int64_t copied, panel, sums;  // bytes
  explicit Room(const ProductRows& p) {
    const int64_t depth = p.b.k < kBlockDepth ? p.b.k + p.b.k % 2 : kBlockDepth;
    copied = p.transposed || p.b.k % 2 ? depth * width_of(p.rows) * 2 : 0;
    panel = p.panels ? 0 : depth * width_of(p.b.columns < kPanel ? p.b.columns : kPanel) * 2;
    sums = p.b.k > kBlockDepth ? p.rows * width_of(p.b.columns) * 4 : 0;
  }
};
int64_t room(const ProductRows& p) {
  const Room r(p);
  return r.copied + r.panel + r.sums;
}

void rows(const ProductRows& p) {
  const uint16_t *a = static_cast<const uint16_t*>(p.a), *b = static_cast<const uint16_t*>(p.b.b);
  const Room r(p);
  uint16_t* copied = static_cast<uint16_t*>(p.room);
  char* packed = static_cast<char*>(p.room) + r.copied;
  float* sums = reinterpret_cast<float*>(packed + r.panel);
  const int64_t all = p.b.columns, sum_step = width_of(all), size = p.wide ? 4 : 2;
  for (int64_t l = 0; l < p.b.k; l += kBlockDepth) {
    const int64_t depth = p.b.k - l < kBlockDepth ? p.b.k - l : kBlockDepth;
    const bool first = l == 0, last = l + depth == p.b.k;
    TileCall t;
    t.pairs = (depth + 1) / 2;
    if (p.transposed) {
      const int64_t width = width_of(p.rows);
      pack_rows(copied, width, a + l * p.lda, p.lda, depth, p.rows);
      t.a = reinterpret_cast<const char*>(copied), t.row = 4, t.pair = 4 * width;
    } else if (depth % 2) {
      for (int64_t i = 0; i < p.rows; ++i) {
        uint16_t* to = copied + i * (depth + 1);
        __builtin_memcpy(to, a + i * p.lda + l, size_t(2 * depth));
        to[depth] = 0;
      }
      t.a = reinterpret_cast<const char*>(copied), t.row = 2 * (depth + 1), t.pair = 4;
    } else {
      t.a = reinterpret_cast<const char*>(a + l), t.row = 2 * p.lda, t.pair = 4;
    }
    const char* block = t.a;
    for (int64_t j = 0; j < all; j += kPanel) {
      const int64_t columns = all - j < kPanel ? all - j : kPanel, width = width_of(columns);
      if (p.panels) {
        t.b = static_cast<const char*>(p.panels[j / kPanel]) + l * width * 2;
      } else {
        const int64_t at = p.b.transposed ? j * p.b.ld + l : l * p.b.ld + j;
        pack(packed, {b + at, p.b.ld, p.b.transposed, depth, columns});
        t.b = packed;
      }
      t.last = __mmask16(0xffffu >> (width - columns));
      for (int64_t i = 0; i < p.rows; i += kPanelRows) {
        const int64_t count = p.rows - i < kPanelRows ? p.rows - i : kPanelRows;
        t.a = block + i * t.row;
        t.from = first ? nullptr : sums + i * sum_step + j, t.from_step = sum_step;
        if (last) {
          t.to = static_cast<char*>(p.c) + (i * p.ldc + j) * size, t.to_step = p.ldc * size, t.wide = p.wide;
        } else {
          t.to = reinterpret_cast<char*>(sums + i * sum_step + j), t.to_step = 4 * sum_step, t.wide = true;
        }
        kTiles[count - 1][width / kPanelVector - 1](t);
      }
    }
  }
}

constexpr ProductLoops kLoops{pack, rows, room};

}  // namespace

const ProductLoops* product_loops() { return __builtin_cpu_supports("avx512bf16") ? &kLoops : nullptr; }

}  // namespace gt

#else

namespace gt {
const ProductLoops* product_loops() { return nullptr; }
}  // namespace gt

#endif
