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

// n elements as numbers one can compute with: x itself, or a converted copy in `room`.
template <class T>
inline const Wider<T>* load(const T* x, [[maybe_unused]] Wider<T>* room, [[maybe_unused]] int n) {
  if constexpr (kIsHalf<T>) {
    widen(room, x, n);
    return room;
  } else {
    return x;
  }
}
// F offers: first(x), what one element is before it is combined; combine(a, b); empty<T>(); kInRegisters,
// where long lines are faster by vectors than by the loops that the compiler makes of arrays.
template <class F, class T> struct Reduce {
  using A = Wider<T>;
  static constexpr int kLanes = 4 * kVector / sizeof(A);  // four vector registers, or eight
  static constexpr int kDepth = 16;                       // additions in a chain
  static constexpr int kLeaf = kDepth * kLanes;           // elements of a leaf
  static constexpr int kFew = 16 / sizeof(A) > 2 ? 16 / sizeof(A) : 2;
  static constexpr int kHeld = kLanes / 4;         // what is kept of a leaf: one register, or two
  static constexpr int kWidth = 2048 / sizeof(A);  // columns done at a time
  static constexpr int kRows = 16;                 // rows of a leaf

  // The W results so far, in registers all the way.
  template <int W> [[gnu::always_inline]] static inline A fold(A* acc) {
    if constexpr (W > kFew) {
      GT_VECTOR_LOOP
      for (int j = 0; j < W / 2; ++j) acc[j] = F::combine(acc[j], acc[j + W / 2]);
      return fold<W / 2>(acc);
    } else {
      A a = acc[0];
      for (int j = 1; j < W; ++j) {
        GT_SHORT_LOOP;
        a = F::combine(a, acc[j]);
      }
      return a;
    }
  }
  // The W results so far and the last n < W elements, halving both. A store is only ever read
  // back whole or in parts: a load that spans two stores would wait for both to leave the core.
  template <int W> static A finish(A* acc, const A* x, int n) {
    constexpr int half = W / 2;
    if constexpr (W > kFew) {
      if (n >= half) {
        GT_VECTOR_LOOP
        for (int j = 0; j < half; ++j) acc[j] = F::combine(F::combine(acc[j], acc[j + half]), F::first(x[j]));
        return finish<half>(acc, x + half, n - half);
      }
      GT_VECTOR_LOOP
      for (int j = 0; j < half; ++j) acc[j] = F::combine(acc[j], acc[j + half]);
      return finish<half>(acc, x, n);
    } else {
      A a = fold<W>(acc);
      for (int i = 0; i < n; ++i) {
        GT_SHORT_LOOP;
        a = F::combine(a, F::first(x[i]));
      }
      return a;
    }
  }
  // Up to a leaf, in as many lanes as it fills.
  template <int W> static A lanes(const T* x, int n) {
    [[maybe_unused]] alignas(64) A room[kIsHalf<T> ? W : 1];
    if constexpr (W > kFew) {
      if (n < W) return lanes<W / 2>(x, n);
    } else if (n < W) {
      const A* p = load(x, room, n);
      A a = F::first(p[0]);
      for (int i = 1; i < n; ++i) {
        GT_SHORT_LOOP;
        a = F::combine(a, F::first(p[i]));
      }
      return a;
    }
    alignas(64) A acc[W];
    const A* p = load_block<W>(x, room);
    GT_VECTOR_LOOP
    for (int j = 0; j < W; ++j) acc[j] = F::first(p[j]);
    int i = W;
    if constexpr (W == kLanes)
      for (; i + W <= n; i += W) {
        p = load_block<W>(x + i, room);
        GT_VECTOR_LOOP
        for (int j = 0; j < W; ++j) acc[j] = F::combine(acc[j], F::first(p[j]));
      }
    return n == i ? fold<W>(acc) : finish<W>(acc, load(x + i, room, n - i), n - i);
  }
  // The same for small integers, which rarely come: what does not fill the lanes is filled up with what
  // changes nothing. (Here the order does not matter. A row shorter than a register is done one by one.)
  static A narrow_leaf(const T* x, int n) {
    alignas(64) A acc[kLanes], rest[kLanes];
    int i = 0;
    if (n < kFew) {
      A a = F::first(x[0]);
      while (++i < n) {
        GT_SHORT_LOOP;
        a = F::combine(a, F::first(x[i]));
      }
      return a;
    }
    splat<kLanes>(acc, F::template empty<A>());
    for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
      for (int j = 0; j < kLanes; ++j) acc[j] = F::combine(acc[j], F::first(x[i + j]));
    }
    if (i < n) {
      splat<kLanes>(rest, F::template empty<A>());
      __builtin_memcpy(rest, x + i, size_t(n - i) * sizeof(A));
#pragma omp simd
      for (int j = 0; j < kLanes; ++j) acc[j] = F::combine(acc[j], F::first(rest[j]));
    }
    return fold<kLanes>(acc);
  }
  // The same for real numbers in registers, where the end of a row is a part of one, filled up.
  static A real_leaf(const T* x, int n) {
    constexpr int L = gt::kLanes<A>, registers = kLanes / L;
    const A none = F::template empty<A>();
    auto combine = [](auto a, auto b) { return F::combine(a, b); };
    auto whole = [=](int i) { return F::first(Whole{}.load(x + i, none)); };
    auto part = [=](int i) { return F::first(Part{n - i}.load(x + i, none)); };
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
  [[gnu::noinline]] static A leaf(const T* x, int n) {
    if constexpr (kIsReal<A>)
      return real_leaf(x, n);
    else if constexpr (sizeof(T) <= 2)
      return narrow_leaf(x, n);
    else
      return lanes<kLanes>(x, n);
  }
  // A full leaf, to kHeld partial results.
  static void full_leaf(A* held, const T* x_) {
    if constexpr (kIsReal<A> && kHeld == gt::kLanes<A> && requires { F::kInRegisters; }) {
      constexpr int L = kHeld;
      const A none = F::template empty<A>();
      V<A> acc[4];
      GT_EACH(k, 4) acc[k] = F::first(Whole{}.load(x_ + k * L, none));
      for (int i = kLanes; i < kLeaf; i += kLanes)
        GT_EACH(k, 4) acc[k] = F::combine(acc[k], F::first(Whole{}.load(x_ + i + k * L, none)));
      return store(held, F::combine(F::combine(acc[0], acc[1]), F::combine(acc[2], acc[3])));
    }
    alignas(64) A acc[kLanes], room[kIsHalf<T> ? kLanes : 1];
    const A* x = load_block<kLanes>(x_, room);
    GT_VECTOR_LOOP
    for (int j = 0; j < kLanes; ++j) acc[j] = F::first(x[j]);
    for (int k = 1; k < kDepth; ++k) {
      x = load_block<kLanes>(x_ + k * kLanes, room);
      GT_VECTOR_LOOP
      for (int j = 0; j < kLanes; ++j) acc[j] = F::combine(acc[j], F::first(x[j]));
    }
    GT_VECTOR_LOOP
    for (int j = 0; j < kHeld; ++j)
      held[j] =
          F::combine(F::combine(acc[j], acc[j + kHeld]), F::combine(acc[j + 2 * kHeld], acc[j + 3 * kHeld]));
  }
  // Leaves are combined two by two, as a binary counter carries: held[d] is a result that waits
  // for its neighbour.
  [[gnu::noinline]] static A line(const T* x, int64_t n) {
    if (n <= kLeaf) return leaf(x, int(n));
    alignas(64) A held[64][kHeld];
    const int64_t leaves = n / kLeaf;
    int depth = 0;
    for (int64_t k = 0; k < leaves; ++k) {
      full_leaf(held[depth], x + k * kLeaf);
      for (int64_t bits = k; bits & 1; bits >>= 1, --depth) {
        GT_VECTOR_LOOP
        for (int j = 0; j < kHeld; ++j) held[depth - 1][j] = F::combine(held[depth - 1][j], held[depth][j]);
      }
      ++depth;
    }
    while (--depth > 0) {
      GT_VECTOR_LOOP
      for (int j = 0; j < kHeld; ++j) held[depth - 1][j] = F::combine(held[depth - 1][j], held[depth][j]);
    }
    const A a = fold<kHeld>(held[0]);
    const int rest = int(n - leaves * kLeaf);
    return rest ? F::combine(a, leaf(x + leaves * kLeaf, rest)) : a;
  }

  [[gnu::noinline]] static void merge(A* acc, const A* other, int width) {
    GT_VECTOR_LOOP
    for (int j = 0; j < width; ++j) acc[j] = F::combine(acc[j], other[j]);
  }
  // acc[j] = reduction of column j of `rows` rows, `stride` elements apart.
  [[gnu::noinline]] static void columns(A* acc, const T* x, int64_t rows, int64_t stride, int width) {
    A room[kIsHalf<T> ? kWidth : 1];
    if (rows <= kRows) {
      // In registers, as long as there are enough columns for them.
      for (; width >= kLanes; width -= kLanes, acc += kLanes, x += kLanes) {
        alignas(64) A lane[kLanes], block[kIsHalf<T> ? kLanes : 1];
        const A* p = load_block<kLanes>(x, block);
        GT_VECTOR_LOOP
        for (int j = 0; j < kLanes; ++j) lane[j] = F::first(p[j]);
        for (int64_t r = 1; r < rows; ++r) {
          p = load_block<kLanes>(x + r * stride, block);
          GT_VECTOR_LOOP
          for (int j = 0; j < kLanes; ++j) lane[j] = F::combine(lane[j], F::first(p[j]));
        }
        GT_VECTOR_LOOP
        for (int j = 0; j < kLanes; ++j) acc[j] = lane[j];
      }
      const A* p = load(x, room, width);
      GT_VECTOR_LOOP
      for (int j = 0; j < width; ++j) acc[j] = F::first(p[j]);
      for (int64_t r = 1; r < rows; ++r) {
        p = load(x + r * stride, room, width);
        GT_VECTOR_LOOP
        for (int j = 0; j < width; ++j) acc[j] = F::combine(acc[j], F::first(p[j]));
      }
      return;
    }
    const int64_t cut = ((rows + 1) / 2 + kRows - 1) / kRows * kRows;
    A other[kWidth];
    columns(acc, x, cut, stride, width);
    columns(other, x + cut * stride, rows - cut, stride, width);
    merge(acc, other, width);
  }

  static void run(void* out_, const void* in_, int64_t size, int64_t inner) {
    A* out = static_cast<A*>(out_);
    const T* in = static_cast<const T*>(in_);
    if (size == 0) {
      for (int64_t j = 0; j < inner; ++j) out[j] = F::template empty<A>();
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
      for (int64_t k = 1; k < fold; ++k) merge(acc, acc + k * w, w);
      if (rest) {
        A other[kWidth];
        columns(other, in + wide * width, rest, inner, w);
        merge(acc, other, w);
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
    r.loop[int(t)] = Reduce<F, T>::run;
    r.out[int(t)] = DtypeOf<Wider<T>>::value;
  });
  return r;
}

}  // namespace gt
