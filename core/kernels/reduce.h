// How a function of two elements becomes a reduction over the middle of [outer, size, inner].
//
// Sums are pairwise, down to leaves of a few dozen additions in a chain, so that the rounding
// error grows with the logarithm of the size. The order of the additions depends on the sizes
// only.
#pragma once
#include "arith.h"
#include "halves.h"
#include "loops.h"
#include "map.h"
#include "vector_rows.h"

namespace gt {

constexpr int kVector = GT_ISA_LEVEL == 4 ? 64 : 32;  // bytes

// Reductions of 16-bit floats compute in float (Wider) and give it, because their results may be parts of
// others.

// F offers: first(x), what one element is before it is combined; combine(a, b); empty<T>(), an element that
// changes nothing; kInRegisters, where long lines are faster by vectors than by the loops that the compiler
// makes of arrays.
template <class F, class T> struct Reduce {
  using A = Wider<T>;
  using Numbers = Reduce<F, A>;
  // Whether 16-bit floats are widened a tile at a time and then reduced as floats: without the instructions
  // of x86-64-v3, conversions in registers are much code.
  static constexpr bool kWidened = kIsHalf<T> && GT_ISA_LEVEL == 2;
  [[no_unique_address]] F f{};

  static constexpr int kLanes = 4 * kVector / sizeof(A);  // four vector registers, or eight
  static constexpr int kDepth = 16;                       // additions in a chain
  static constexpr int kLeaf = kDepth * kLanes;           // elements of a leaf
  static constexpr int kFew = 16 / sizeof(A) > 2 ? 16 / sizeof(A) : 2;
  static constexpr int kHeld = kLanes / 4;         // what is kept of a leaf: one register, or two
  static constexpr int kWidth = 2048 / sizeof(A);  // columns done at a time
  static constexpr int kRows = 16;                 // rows of a leaf
  static constexpr int kTile = 4 * kLanes;         // columns of 16-bit floats widened at a time

  // n elements as numbers one can compute with: x itself, or a converted copy in `room`.
  static const A* numbers(const T* x, [[maybe_unused]] A* room, [[maybe_unused]] int n) {
    if constexpr (kIsHalf<T>) {
      widen(room, x, n);
      return room;
    } else {
      return x;
    }
  }
  // The W results so far, in registers all the way.
  template <int W> [[gnu::always_inline]] inline A fold(A* acc) {
    if constexpr (W > kFew) {
      GT_VECTOR_LOOP
      for (int j = 0; j < W / 2; ++j) acc[j] = f.combine(acc[j], acc[j + W / 2]);
      return fold<W / 2>(acc);
    } else {
      A a = acc[0];
      for (int j = 1; j < W; ++j) {
        GT_SHORT_LOOP;
        a = f.combine(a, acc[j]);
      }
      return a;
    }
  }
  // The W results so far and the last n < W elements, halving both. A store is only ever read
  // back whole or in parts: a load that spans two stores would wait for both to leave the core.
  template <int W> A finish(A* acc, const A* x, int n) {
    constexpr int half = W / 2;
    if constexpr (W > kFew) {
      if (n >= half) {
        GT_VECTOR_LOOP
        for (int j = 0; j < half; ++j) acc[j] = f.combine(f.combine(acc[j], acc[j + half]), f.first(x[j]));
        return finish<half>(acc, x + half, n - half);
      }
      GT_VECTOR_LOOP
      for (int j = 0; j < half; ++j) acc[j] = f.combine(acc[j], acc[j + half]);
      return finish<half>(acc, x, n);
    } else {
      A a = fold<W>(acc);
      for (int i = 0; i < n; ++i) {
        GT_SHORT_LOOP;
        a = f.combine(a, f.first(x[i]));
      }
      return a;
    }
  }
  // Up to a leaf of complex numbers, in as many lanes as it fills.
  template <int W> A lanes(const T* x, int n) {
    if constexpr (W > kFew) {
      if (n < W) return lanes<W / 2>(x, n);
    } else if (n < W) {
      A a = f.first(x[0]);
      for (int i = 1; i < n; ++i) {
        GT_SHORT_LOOP;
        a = f.combine(a, f.first(x[i]));
      }
      return a;
    }
    alignas(64) A acc[W];
    GT_VECTOR_LOOP
    for (int j = 0; j < W; ++j) acc[j] = f.first(x[j]);
    int i = W;
    if constexpr (W == kLanes)
      for (; i + W <= n; i += W) {
        GT_VECTOR_LOOP
        for (int j = 0; j < W; ++j) acc[j] = f.combine(acc[j], f.first(x[i + j]));
      }
    return n == i ? fold<W>(acc) : finish<W>(acc, x + i, n - i);
  }
  // A whole line of integers, for which the order does not matter: what does not fill the lanes is filled up
  // with what changes nothing. A row shorter than a register is done one by one.
  A integers(const T* x, int64_t n) {
    if (n < kFew) {
      A a = f.first(x[0]);
      for (int i = 1; i < n; ++i) {
        GT_SHORT_LOOP;
        a = f.combine(a, f.first(x[i]));
      }
      return a;
    }
    alignas(64) A acc[kLanes], rest[kLanes];
    splat<kLanes>(acc, f.first(f.template empty<A>()));
    for (; n > 0; n -= kLanes, x += kLanes) {
      if (n < kLanes) {
        splat<kLanes>(rest, f.template empty<A>());
        __builtin_memcpy(rest, x, size_t(n) * sizeof(A));
        x = rest;
      }
      GT_VECTOR_LOOP
      for (int j = 0; j < kLanes; ++j) acc[j] = f.combine(acc[j], f.first(x[j]));
    }
    return fold<kLanes>(acc);
  }
  // The same for real numbers in registers, where the end of a row is a part of one, filled up.
  A real_leaf(const T* x, int n) {
    constexpr int L = gt::kLanes<A>, registers = kLanes / L;
    const A none = f.template empty<A>();
    auto combine = [this](auto a, auto b) { return f.combine(a, b); };
    auto whole = [=, this](int i) { return f.first(Whole{}.load(x + i, none)); };
    auto part = [=, this](int i) { return f.first(Part{n - i}.load(x + i, none)); };
    if (n < kLanes) {
      V<A> a = n < L ? part(0) : whole(0);
      int i = L;
      for (; i + L <= n; i += L) a = combine(a, whole(i));
      return folded<A>(i < n ? combine(a, part(i)) : a, combine);
    }
    V<A> acc[registers];
    GT_EACH(k, registers) acc[k] = whole(k * L);
    int i = kLanes;
    for (; i + kLanes <= n; i += kLanes) GT_EACH(k, registers) acc[k] = combine(acc[k], whole(i + k * L));
    GT_EACH(k, registers - 1) {
      if (i + L <= n) acc[k] = combine(acc[k], whole(i)), i += L;
    }
    if (i < n) acc[registers - 1] = combine(acc[registers - 1], part(i));
    for (int w = registers / 2; w > 0; w /= 2) GT_EACH(k, w) acc[k] = combine(acc[k], acc[k + w]);
    return folded<A>(acc[0], combine);
  }
  [[gnu::noinline]] A leaf(const T* x, int n) {
    if constexpr (kWidened) {
      alignas(64) A room[kLeaf];
      widen(room, x, n);
      return Numbers{f}.leaf(room, n);
    } else if constexpr (kIsReal<A>) {
      return real_leaf(x, n);
    } else {
      return lanes<kLanes>(x, n);
    }
  }
  // A full leaf, to kHeld partial results.
  void full_leaf(A* held, const T* x) {
    if constexpr (kWidened) {
      alignas(64) A room[kLeaf];
      widen(room, x, kLeaf);
      return Numbers{f}.full_leaf(held, room);
    } else if constexpr (kIsReal<A> && kHeld == gt::kLanes<A> && requires { F::kInRegisters; }) {
      constexpr int L = kHeld;
      const A none = f.template empty<A>();
      V<A> acc[4];
      GT_EACH(k, 4) acc[k] = f.first(Whole{}.load(x + k * L, none));
      for (int i = kLanes; i < kLeaf; i += kLanes)
        GT_EACH(k, 4) acc[k] = f.combine(acc[k], f.first(Whole{}.load(x + i + k * L, none)));
      return store(held, f.combine(f.combine(acc[0], acc[1]), f.combine(acc[2], acc[3])));
    } else {
      alignas(64) A acc[kLanes], room[kIsHalf<T> ? kLanes : 1];
      const A* p = load_block<kLanes>(x, room);
      GT_VECTOR_LOOP
      for (int j = 0; j < kLanes; ++j) acc[j] = f.first(p[j]);
      for (int k = 1; k < kDepth; ++k) {
        p = load_block<kLanes>(x + k * kLanes, room);
        GT_VECTOR_LOOP
        for (int j = 0; j < kLanes; ++j) acc[j] = f.combine(acc[j], f.first(p[j]));
      }
      GT_VECTOR_LOOP
      for (int j = 0; j < kHeld; ++j)
        held[j] =
            f.combine(f.combine(acc[j], acc[j + kHeld]), f.combine(acc[j + 2 * kHeld], acc[j + 3 * kHeld]));
    }
  }
  // Leaves are combined two by two, as a binary counter carries: held[d] is a result that waits
  // for its neighbour.
  [[gnu::noinline]] A line(const T* x, int64_t n) {
    if constexpr (kIsInt<T>) {
      return integers(x, n);
    } else {
      if (n <= kLeaf) return leaf(x, int(n));
      alignas(64) A held[64][kHeld];
      const int64_t leaves = n / kLeaf;
      int depth = 0;
      for (int64_t k = 0; k < leaves; ++k) {
        full_leaf(held[depth], x + k * kLeaf);
        for (int64_t bits = k; bits & 1; bits >>= 1, --depth) {
          GT_VECTOR_LOOP
          for (int j = 0; j < kHeld; ++j) held[depth - 1][j] = f.combine(held[depth - 1][j], held[depth][j]);
        }
        ++depth;
      }
      while (--depth > 0) {
        GT_VECTOR_LOOP
        for (int j = 0; j < kHeld; ++j) held[depth - 1][j] = f.combine(held[depth - 1][j], held[depth][j]);
      }
      const A a = fold<kHeld>(held[0]);
      const int rest = int(n - leaves * kLeaf);
      return rest ? f.combine(a, leaf(x + leaves * kLeaf, rest)) : a;
    }
  }

  [[gnu::noinline]] void merge(A* acc, const A* other, int width) {
    GT_VECTOR_LOOP
    for (int j = 0; j < width; ++j) acc[j] = f.combine(acc[j], other[j]);
  }
  // Columns of a leaf: in registers, as long as there are enough for them.
  [[gnu::noinline]] void few_rows(A* acc, const T* x, int64_t rows, int64_t stride, int width) {
    if constexpr (kWidened) {
      alignas(64) A room[kRows * kTile];
      for (int j = 0; j < width; j += kTile) {
        const int m = width - j < kTile ? width - j : kTile;
        for (int64_t r = 0; r < rows; ++r) widen(room + r * m, x + r * stride + j, m);
        Numbers{f}.few_rows(acc + j, room, rows, m, m);
      }
    } else {
      for (; width >= kLanes; width -= kLanes, acc += kLanes, x += kLanes) {
        alignas(64) A lane[kLanes], room[kIsHalf<T> ? kLanes : 1];
        const A* p = load_block<kLanes>(x, room);
        GT_VECTOR_LOOP
        for (int j = 0; j < kLanes; ++j) lane[j] = f.first(p[j]);
        for (int64_t r = 1; r < rows; ++r) {
          p = load_block<kLanes>(x + r * stride, room);
          GT_VECTOR_LOOP
          for (int j = 0; j < kLanes; ++j) lane[j] = f.combine(lane[j], f.first(p[j]));
        }
        GT_VECTOR_LOOP
        for (int j = 0; j < kLanes; ++j) acc[j] = lane[j];
      }
      A room[kIsHalf<T> ? kLanes : 1];
      const A* p = numbers(x, room, width);
      GT_VECTOR_LOOP
      for (int j = 0; j < width; ++j) acc[j] = f.first(p[j]);
      for (int64_t r = 1; r < rows; ++r) {
        p = numbers(x + r * stride, room, width);
        GT_VECTOR_LOOP
        for (int j = 0; j < width; ++j) acc[j] = f.combine(acc[j], f.first(p[j]));
      }
    }
  }
  // acc[j] = reduction of column j of `rows` rows, `stride` elements apart.
  [[gnu::noinline]] void columns(A* acc, const T* x, int64_t rows, int64_t stride, int width) {
    if constexpr (kIsInt<T>) {
      const F g = f;  // which no result overwrites
      splat<kWidth>(acc, g.first(g.template empty<A>()));
      for (int64_t r = 0; r < rows; ++r, x += stride) {
        GT_VECTOR_LOOP
        for (int j = 0; j < width; ++j) acc[j] = g.combine(acc[j], g.first(x[j]));
      }
    } else {
      if (rows <= kRows) return few_rows(acc, x, rows, stride, width);
      const int64_t cut = ((rows + 1) / 2 + kRows - 1) / kRows * kRows;
      A other[kWidth];
      columns(acc, x, cut, stride, width);
      columns(other, x + cut * stride, rows - cut, stride, width);
      Numbers{f}.merge(acc, other, width);
    }
  }

  void run(void* out_, const void* in_, int64_t size, int64_t inner) {
    A* out = static_cast<A*>(out_);
    const T* in = static_cast<const T*>(in_);
    if (size == 0) {
      for (int64_t j = 0; j < inner; ++j) out[j] = f.first(f.template empty<A>());
      return;
    }
    if (inner == 1) {
      out[0] = line(in, size);
      return;
    }
    A acc[kWidth];
    // Few columns: several rows side by side make one long row, folded at the end.
    const int64_t fold = kWidth / inner;
    if (fold > 1 && size >= 2 * fold) {
      const int64_t wide = size / fold, rest = size - wide * fold;
      const int width = int(fold * inner), w = int(inner);
      columns(acc, in, wide, width, width);
      for (int64_t k = 1; k < fold; ++k) Numbers{f}.merge(acc, acc + k * w, w);
      if (rest) {
        A other[kWidth];
        columns(other, in + wide * width, rest, inner, w);
        Numbers{f}.merge(acc, other, w);
      }
      __builtin_memcpy(out, acc, size_t(w) * sizeof(A));
      return;
    }
    for (int64_t j = 0; j < inner; j += kWidth) {
      const int width = int(inner - j < kWidth ? inner - j : kWidth);
      columns(acc, in + j, size, inner, width);
      __builtin_memcpy(out + j, acc, size_t(width) * sizeof(A));
    }
  }
};

template <DtypeSet S, class F> constexpr Reduction reduction(const char* name, F) {
  Reduction r{name, {}, {}};
  each_type<S>([&]<class T>() {
    const Dtype t = DtypeOf<T>::value;
    r.loop[int(t)] = [](void* out, const void* in, int64_t size, int64_t inner) {
      Reduce<F, T>{}.run(out, in, size, inner);
    };
    r.out[int(t)] = DtypeOf<Wider<T>>::value;
  });
  return r;
}

}  // namespace gt
