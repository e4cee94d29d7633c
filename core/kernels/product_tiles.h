// How the products of products.h are computed, for any format of the elements. A format says how elements are
// loaded, multiplied and stored:
//
//   Element            as it lies in memory
//   kGroup             elements that one unit of four bytes holds
//   kInPlace           elements are such units already: operands can be read where they lie
//   kConverts          the units of a group are wider than the elements
//   load(x, n)         16 units from the first n elements of x, the others zero
//   load_rows(...)     16 units of neighbouring columns: of one row, or of kGroup rows
//   Sum                16 sums
//   multiply           sums + x * y
//   finish(s, f)       sums times a factor
//   add(s, from, m)    sums and those of memory, of which m are there
//   store(to, m, s)    as they are; store_narrow: rounded to elements
//
// A register tile is 6 rows by 4 vectors of columns: 24 sums, 4 vectors of b, one broadcast unit of a. The
// panel of b is read from the level-2 cache (4 lines for 24 instructions), the rows of a from where they lie.
#pragma once
#include <immintrin.h>

#include "products.h"

#ifndef GT_TILE_TARGET
#error "say what the functions here may use: nothing, or __attribute__((target(...)))"
#endif
#define GT_TILE_INLINE [[gnu::always_inline]] GT_TILE_TARGET inline

namespace gt {
namespace {

constexpr int64_t kBlockDepth = 384;  // rows of b at a time

using Units = int __attribute__((vector_size(64)));

GT_TILE_INLINE __mmask16 first_of_16(int64_t n) {
  return n >= 16 ? __mmask16(~0) : n > 0 ? __mmask16((1u << n) - 1) : __mmask16(0);
}
GT_TILE_INLINE __mmask32 first_of_32(int64_t n) {
  return n >= 32 ? ~__mmask32(0) : n > 0 ? (__mmask32(1) << n) - 1 : __mmask32(0);
}

// ---- packing ----

// 16 x 16 units, turned: neighbours two by two, then twos, then lanes of four.
[[gnu::always_inline]] inline Units even_lanes(Units x, Units y) {
  return __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
[[gnu::always_inline]] inline Units odd_lanes(Units x, Units y) {
  return __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}
[[gnu::always_inline]] inline void turn(Units (&r)[16]) {
  Units t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    t[i + 1] =
        __builtin_shufflevector(r[i], r[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      const Units x = t[i + j], y = t[i + j + 2];
      r[i + 2 * j] = __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      r[i + 2 * j + 1] =
          __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  for (int i = 0; i < 16; i += 8)
    for (int j = i; j < i + 4; ++j) t[j] = even_lanes(r[j], r[j + 4]), t[j + 4] = odd_lanes(r[j], r[j + 4]);
  for (int j = 0; j < 8; ++j) r[j] = even_lanes(t[j], t[j + 8]), r[j + 8] = odd_lanes(t[j], t[j + 8]);
}

struct FloatSums {
  using Sum = __m512;
  GT_TILE_INLINE static __m512 finish(__m512 sum, float factor) {
    return _mm512_mul_ps(sum, _mm512_set1_ps(factor));
  }
  GT_TILE_INLINE static __m512 add(__m512 sum, const char* from, __mmask16 here) {
    return _mm512_add_ps(sum, _mm512_maskz_loadu_ps(here, from));
  }
  GT_TILE_INLINE static void store(char* to, __mmask16 here, __m512 x) { _mm512_mask_storeu_ps(to, here, x); }
};

template <class F> struct Products {
  using Element = typename F::Element;
  using Sum = typename F::Sum;
  static constexpr int64_t kUnit = 4, kGroup = F::kGroup;

  static int64_t groups(int64_t k) { return (k + kGroup - 1) / kGroup; }

  // [k][columns] to [groups][width] units; zeros where there is nothing.
  GT_TILE_TARGET static void pack_rows(char* to, int64_t width, const Element* x, int64_t ld, int64_t k,
                                       int64_t columns) {
    for (int64_t l = 0; l < k; l += kGroup, to += kUnit * width) {
      const Element* row = x + l * ld;
      // The processor guesses what comes next within a page; here it is as far away as a row is long.
      constexpr int64_t kAhead = 16 * kGroup, kLine = 64 / sizeof(Element);
      for (int64_t g = 0; g < kGroup && l + kAhead + g < k; ++g)
        for (int64_t j = 0; j < columns; j += kLine) _mm_prefetch(row + (kAhead + g) * ld + j, _MM_HINT_T1);
      for (int64_t j = 0; j < width; j += 16)
        _mm512_storeu_si512(to + kUnit * j, (__m512i)F::load_rows(row + j, ld, k - l, columns - j));
    }
  }

  // [columns][k] to the same.
  GT_TILE_TARGET static void pack_columns(char* to, int64_t width, const Element* x, int64_t ld, int64_t k,
                                          int64_t columns) {
    for (int64_t l = 0; l < k; l += 16 * kGroup, to += 16 * kUnit * width) {
      const int64_t rows = groups(k - l) < 16 ? groups(k - l) : 16;
      for (int64_t j = 0; j < width; j += 16) {
        Units r[16];
        for (int i = 0; i < 16; ++i) {
          const bool here = j + i < columns;
          r[i] = F::load(x + (here ? j + i : 0) * ld + l, here ? k - l : 0);
        }
        turn(r);
        char* at = to + kUnit * j;
        if (rows == 16)
          for (int i = 0; i < 16; ++i) _mm512_storeu_si512(at + kUnit * i * width, (__m512i)r[i]);
        else
          for (int i = 0; i < 16; ++i)
            if (i < rows) _mm512_storeu_si512(at + kUnit * i * width, (__m512i)r[i]);
      }
    }
  }

  static void pack(void* panel, const PanelSource& b) {
    (b.transposed ? pack_columns : pack_rows)(static_cast<char*>(panel), panel_width(b.columns),
                                              static_cast<const Element*>(b.b), b.ld, b.k, b.columns);
  }

  // [rows][k] to [rows][width] units.
  GT_TILE_TARGET static void copy_rows(char* to, int64_t width, const Element* x, int64_t ld, int64_t k,
                                       int64_t rows) {
    for (int64_t i = 0; i < rows; ++i, x += ld, to += kUnit * width)
      for (int64_t l = 0; l < width; l += 16)
        _mm512_storeu_si512(to + kUnit * l, (__m512i)F::load(x + kGroup * l, k - kGroup * l));
  }

  // ---- the register tile ----

  struct TileCall {
    const char* a;       // unit l of row i is at a + i * row + l * group
    int64_t row, group;  // bytes
    const char* b;       // unit l of column j is at b + l * b_row + 4 * j
    int64_t b_row;
    int64_t b_ld, k, columns;  // of b as it lies, where it is put in order on the way
    int64_t groups;
    const char* from;   // sums so far; nullptr: none
    int64_t from_step;  // sums
    float scale;
    char* to;
    int64_t to_step;  // bytes
    bool wide;
    __mmask16 last;  // of the last vector, which columns there are
  };

  // Steps over the sums, or over rows of them, of a tile. Templates instead of loops: an index that is no
  // constant when the compiler decides what lives in registers keeps the sums in memory.
  template <int R, int V, int I = 0> GT_TILE_INLINE static void clear(Sum (&sum)[R][V]) {
    sum[I / V][I % V] = Sum{};
    if constexpr (I + 1 < R * V) clear<R, V, I + 1>(sum);
  }
  template <int R, int V, int I = 0>
  GT_TILE_INLINE static void add(Sum (&sum)[R][V], const char* a, int64_t row, const Units (&y)[V]) {
    constexpr int i = I / V, j = I % V;
    int x;
    __builtin_memcpy(&x, a + i * row, 4);
    sum[i][j] = F::multiply(sum[i][j], (Units)_mm512_set1_epi32(x), y[j]);
    if constexpr (I + 1 < R * V) add<R, V, I + 1>(sum, a, row, y);
  }
  template <int R, int V, int I = 0>
  GT_TILE_INLINE static void finish(const TileCall& t, const Sum (&sum)[R][V]) {
    constexpr int i = I / V, j = I % V;
    const __mmask16 here = j == V - 1 ? t.last : __mmask16(~0);
    Sum s = F::finish(sum[i][j], t.scale);
    if (t.from) s = F::add(s, t.from + kUnit * (i * t.from_step + 16 * j), here);
    char* to = t.to + i * t.to_step;
    if (t.wide)
      F::store(to + 64 * j, here, s);
    else
      F::store_narrow(to + 16 * j * int64_t(sizeof(Element)), here, s);
    if constexpr (I + 1 < R * V) finish<R, V, I + 1>(t, sum);
  }

  // `kPacked`: b lies in a panel, or as a panel would; else it is put in order on the way, for a single tile.
  template <int R, int V, bool kPacked> GT_TILE_TARGET static void tile(const TileCall& t) {
    Sum sum[R][V];
    clear(sum);
    const char *a = t.a, *b = t.b;
    const int64_t row = t.row, group = t.group, b_row = t.b_row, groups = t.groups;
    const __mmask16 last = t.last;
    for (int64_t l = 0; l < groups; ++l, a += group, b += b_row) {
      Units y[V];
      if constexpr (kPacked) {
        for (int j = 0; j < V - 1; ++j) y[j] = (Units)_mm512_loadu_si512(b + 64 * j);
        y[V - 1] = (Units)_mm512_maskz_loadu_epi32(last, b + 64 * (V - 1));
      } else {
        const Element* x = reinterpret_cast<const Element*>(b);
        for (int j = 0; j < V; ++j)
          y[j] = F::load_rows(x + 16 * j, t.b_ld, t.k - l * kGroup, t.columns - 16 * j);
      }
      add(sum, a, row, y);
    }
    finish(t, sum);
  }

  using Tile = void (*)(const TileCall&);
  template <int R, bool P>
  static constexpr Tile kOfRows[4] = {tile<R, 1, P>, tile<R, 2, P>, tile<R, 3, P>, tile<R, 4, P>};
  template <bool P>
  static constexpr const Tile* kTiles[kPanelRows] = {kOfRows<1, P>, kOfRows<2, P>, kOfRows<3, P>,
                                                     kOfRows<4, P>, kOfRows<5, P>, kOfRows<6, P>};

  // ---- rows ----

  // How the rows of a product are computed, and what it needs on the way: a block of a that cannot be read in
  // place, a block of a panel, sums that wait for more terms.
  struct Plan {
    bool copies_a, packs_b, direct, keeps;
    int64_t a_width, copied, panel, sum_step, sums;  // bytes; sum_step: elements
    explicit Plan(const ProductRows& p) {
      const int64_t depth = p.b.k < kBlockDepth ? p.b.k : kBlockDepth, units = groups(depth);
      copies_a = F::kInPlace ? p.transposed && p.b.columns > kPanel
                             : p.transposed || F::kConverts || p.b.k % kGroup != 0;
      direct = !F::kInPlace && !p.panels && !p.b.transposed && p.rows <= kPanelRows;
      packs_b = !p.panels && !direct && !(F::kInPlace && !p.b.transposed);
      keeps = p.b.k > kBlockDepth && !p.wide;
      a_width = p.transposed ? panel_width(p.rows) : panel_width(units);
      copied = copies_a ? kUnit * a_width * (p.transposed ? units : p.rows) : 0;
      panel = packs_b ? kUnit * units * panel_width(p.b.columns < kPanel ? p.b.columns : kPanel) : 0;
      sum_step = panel_width(p.b.columns);
      sums = keeps ? p.rows * sum_step * 4 : 0;
    }
  };
  static int64_t room(const ProductRows& p) {
    const Plan plan(p);
    return plan.copied + plan.panel + plan.sums;
  }

  static void rows(const ProductRows& p) {
    const Element *a = static_cast<const Element*>(p.a), *b = static_cast<const Element*>(p.b.b);
    const Plan plan(p);
    char *copied = static_cast<char*>(p.room), *packed = copied + plan.copied;
    char* sums = packed + plan.panel;
    const int64_t all = p.b.columns, size = p.wide ? 4 : int64_t(sizeof(Element));
    TileCall t;
    t.scale = p.scale;
    for (int64_t l = 0; l < p.b.k; l += kBlockDepth) {
      const int64_t depth = p.b.k - l < kBlockDepth ? p.b.k - l : kBlockDepth;
      const bool first = l == 0, last = l + depth == p.b.k;
      t.groups = groups(depth);
      if (!plan.copies_a) {
        t.a = reinterpret_cast<const char*>(p.transposed ? a + l * p.lda : a + l);
        t.row = int64_t(sizeof(Element)) * (p.transposed ? 1 : p.lda);
        t.group = int64_t(sizeof(Element)) * (p.transposed ? p.lda : kGroup);
      } else if (p.transposed) {
        pack_rows(copied, plan.a_width, a + l * p.lda, p.lda, depth, p.rows);
        t.a = copied, t.row = kUnit, t.group = kUnit * plan.a_width;
      } else {
        copy_rows(copied, plan.a_width, a + l, p.lda, depth, p.rows);
        t.a = copied, t.row = kUnit * plan.a_width, t.group = kUnit;
      }
      const char* block = t.a;
      for (int64_t j = 0; j < all; j += kPanel) {
        const int64_t columns = all - j < kPanel ? all - j : kPanel, width = panel_width(columns);
        const Element* at = b + (p.b.transposed ? j * p.b.ld + l : l * p.b.ld + j);
        t.b_row = kUnit * width;
        if (p.panels) {
          t.b = static_cast<const char*>(p.panels[j / kPanel]) + groups(l) * t.b_row;
        } else if (plan.packs_b) {
          pack(packed, {at, p.b.ld, p.b.transposed, depth, columns});
          t.b = packed;
        } else {
          t.b = reinterpret_cast<const char*>(at), t.b_row = kGroup * int64_t(sizeof(Element)) * p.b.ld;
          t.b_ld = p.b.ld, t.k = depth, t.columns = columns;
        }
        t.last = __mmask16(0xffffu >> (width - columns));
        // Tiles as even as can be: one of few rows takes nearly as long as a full one.
        int64_t tiles = (p.rows + kPanelRows - 1) / kPanelRows;
        for (int64_t i = 0, count; i < p.rows; i += count, --tiles) {
          count = (p.rows - i + tiles - 1) / tiles;
          t.a = block + i * t.row;
          char* c = static_cast<char*>(p.c) + (i * p.ldc + j) * size;
          char* kept = sums + kUnit * (i * plan.sum_step + j);
          const bool done = last || !plan.keeps;
          t.to = done ? c : kept;
          t.to_step = done ? p.ldc * size : 4 * plan.sum_step;
          t.wide = p.wide || !done;
          t.from = first && !p.add ? nullptr : plan.keeps ? kept : c;
          t.from_step = plan.keeps ? plan.sum_step : p.ldc;
          const int64_t v = width / kPanelVector - 1;
          if constexpr (F::kInPlace)
            kTiles<true>[count - 1][v](t);
          else
            (plan.direct ? kTiles<false> : kTiles<true>)[count - 1][v](t);
        }
      }
    }
  }

  static constexpr ProductLoops kLoops{kGroup, pack, rows, room};
};

}  // namespace
}  // namespace gt
