// How a function of elements becomes a row of the table: loops over arrays, repeated operands,
// the tail, the 16-bit floats. The files beside this one hold the functions.
//
// A loop runs in blocks of one cache line. The compiler sees a constant number of iterations
// and turns a block into straight vector code; nothing else is generated, which keeps some
// thousand loops small. A repeated operand becomes one block of copies, so that one loop serves
// all patterns of steps.
#pragma once
#include <type_traits>
#include <utility>

#include "block.h"
#include "double_base.h"
#include "halves.h"
#include "loops.h"

namespace gt {

// How the loop treats a function.
enum class Way {
  Cheap,     // a few instructions: what does not fill a block is done one by one
  Vector,    // long formulas, or vector functions of the C library, which differ from its scalar ones in the
             // last bit: the tail is filled up with copies and goes through the same vector code
  Register,  // the same, and where numbers are float or double, f is called with registers of them
             // (registers.h)
  Single,    // no vector code exists: one by one throughout
};

constexpr int kBytes = 32;
// Where a result or condition is one byte wide, enough elements to fill a vector of those.
template <class Narrow, class T>
constexpr int kSpan = sizeof(Narrow) == 1 && sizeof(T) <= 8 && kBlock<T> < kBytes ? kBytes : kBlock<T>;
// Functions of double take their registers by kDoubles. Other long formulas keep a processor busy with one or
// two registers of elements; blocks of four, as a cache line is in SSE, would make twice the code.
constexpr bool is_long(Way way) { return way == Way::Vector || way == Way::Register; }
template <class R, class T, Way way>
constexpr int kWidthOf = way == Way::Register&& std::is_same_v<T, double>            ? math::kDoubles
                         : GT_ISA_LEVEL == 2 && is_long(way) && std::is_same_v<R, T> ? kBytes / int(sizeof(T))
                                                                                     : kSpan<R, T>;
// Where a function of 16-bit floats goes through the loop of float, a tile at a time: what converts them
// costs little beside a long formula, and is a third of its code. With AVX-512 the conversions are part of
// the loop.
constexpr bool in_tiles(Way way) { return way == Way::Single || (is_long(way) && GT_ISA_LEVEL < 4); }

// The type of f(T...): functions of small integers compute in int and give back their own type.
template <class F, class T, class... A> struct ResultOf {
  using Raw = decltype(F{}(A{}...));
  using Type = std::conditional_t<std::is_same_v<Raw, bool> || !std::is_integral_v<T>, Raw, T>;
};

template <int W, class T> inline const T* splat(T* block, T x) {
  for (int j = 0; j < W; ++j) block[j] = x;
  return block;
}
// A block whose first `n` elements are x's and the others copies of the last.
template <int W, class T> inline void pad(T* block, const T* x, int step, int n) {
  splat<W>(block, x[step * (n - 1)]);
  for (int j = 0; j < n - 1; ++j) {
    GT_SHORT_LOOP;
    block[j] = x[step * j];
  }
}

// Whether what does not fill a block is done one by one. Conversions of 16-bit floats are not worth that.
template <class T> constexpr bool one_by_one(Way way) { return way == Way::Cheap && !kIsHalf<T>; }

template <class A, Way way>
constexpr bool kFloatRegisters = way == Way::Register&& std::is_same_v<Wider<A>, float>;
template <class A, Way way>
constexpr bool kDoubleRegisters = way == Way::Register&& std::is_same_v<A, double>;
// out[j] = f(j) for every first j of a register of floats, as a register.
template <int N, class R, class G> [[gnu::always_inline]] inline void store_lanes(R* out, G f) {
  constexpr int L = kLanes<float>;
  if constexpr (kIsHalf<R>) {
    alignas(64) float room[N];
    for (int j = 0; j < N; j += L) f(j).store(room + j);
    narrow_block<N>(out, room);
  } else {
    for (int j = 0; j < N; j += L) f(j).store(out + j);
  }
}
[[gnu::always_inline]] inline math::Floats lanes_at(const float* x) { return math::Floats::load(x); }

// Whether there are arguments that a function's vector code is not made for: a block with one of them is done
// one by one, with the same result for the others.
template <class F, class A>
concept OfNear = std::is_same_v < Wider<A>,
float > &&requires(Wider<A> x) {
  F::near(x);
  F::is_far(x);
};
template <int N, class F, class T> [[gnu::always_inline]] inline bool any_far(const T* x) {
  if constexpr (std::is_same_v<T, float> && N % kLanes<float> == 0) {
    // The largest says it. A NaN does not get there, and what is near has code for it.
    math::Floats most = 0;
    for (int j = 0; j < N; j += kLanes<float>) most = math::at_least(most, math::size_of(lanes_at(x + j)));
    return math::any(F::is_far(most));
  } else {
    int far = 0;
#pragma omp simd reduction(| : far)
    for (int j = 0; j < N; ++j) far |= int(F::is_far(x[j]));
    return far != 0;
  }
}
constexpr int kBlocksLookedAt = 4;  // at once, for arguments that are far

// out = f(p) for a block of numbers.
template <int W, Way way, class R, class T, class F>
[[gnu::always_inline]] inline void store_each(R* out, const T* p, F f) {
  if constexpr (kFloatRegisters<T, way>)
    store_lanes<W>(out, [&](int j) { return f(lanes_at(p + j)); });
  else
    store_block<W>(out, f, p);
}

// A block of doubles through F. Nothing is called on the way but what the functions say is rare.
template <class F, int N, class... X> [[gnu::flatten]] inline void by_register(double* out, const X*... x) {
  constexpr int L = math::kDoubles;
  GT_EACH(j, N / L) F{}(math::Doubles<math::kRegisters>::load(x + j * L)...).store(out + j * L);
}

template <class F, class R, class A, Way way>
void map1(void* out_, const void* const* in, const uint8_t* step, int64_t n) {
  static constexpr int W = kWidthOf<R, A, way>;
  R* out = static_cast<R*>(out_);
  const A* a = static_cast<const A*>(in[0]);
  auto block = [](R* o, const A* x) {
    [[maybe_unused]] alignas(64) Wider<A> room[kIsHalf<A> ? W : 1];
    const Wider<A>* p = load_block<W>(x, room);
    if constexpr (kDoubleRegisters<A, way>) {
      by_register<F, W>(o, p);
    } else if constexpr (OfNear<F, A>) {
      if (any_far<W, F>(p)) [[unlikely]]
        for (int j = 0; j < W; ++j) {
          GT_SHORT_LOOP;
          o[j] = R(F{}(p[j]));
        }
      else
        store_each<W, way>(o, p, [](auto y) { return F::near(y); });
    } else {
      store_each<W, way>(o, p, F{});
    }
  };
  if (way == Way::Cheap && n == 1) {
    out[0] = R(F{}(number(a[0])));
    return;
  }
  if (way == Way::Single) {
    for (int64_t i = 0; i < n; ++i) {
      GT_SHORT_LOOP;
      out[i] = step[0] || i == 0 ? R(F{}(number(a[i]))) : out[0];
    }
    return;
  }
  int64_t i = 0;
  if constexpr (OfNear<F, A> && !kIsHalf<A>) {
    constexpr int many = kBlocksLookedAt * W;
    if (step[0])
      for (; i + many <= n; i += many) {
        const bool far = any_far<many, F>(a + i);
        for (int j = 0; j < many; j += W)
          if (far) [[unlikely]]
            block(out + i + j, a + i + j);
          else
            store_each<W, way>(out + i + j, a + i + j, [](auto y) { return F::near(y); });
      }
  }
  if (step[0]) {
    GT_TWO_AT_ONCE
    for (; i + W <= n; i += W) block(out + i, a + i);
  }
  if (i >= n) return;
  if (one_by_one<A>(way) && step[0]) {
    for (; i < n; ++i) {
      GT_SHORT_LOOP;
      out[i] = R(F{}(number(a[i])));
    }
    return;
  }
  A x[W];
  R r[W];
  pad<W>(x, a + i * step[0], step[0], int(n - i < W ? n - i : W));
  block(r, x);
  for (; i + W <= n; i += W)
    for (int j = 0; j < W; ++j) out[i + j] = r[j];
  for (int j = 0; i + j < n; ++j) {
    GT_SHORT_LOOP;
    out[i + j] = r[j];
  }
}

template <class F, class R, class A, class B, Way way>
void map2(void* out_, const void* const* in, const uint8_t* step, int64_t n) {
  static constexpr int W = kWidthOf<R, A, way>;
  R* out = static_cast<R*>(out_);
  const A* a = static_cast<const A*>(in[0]);
  const B* b = static_cast<const B*>(in[1]);
  auto block = [](R* o, const A* x, const B* y) {
    [[maybe_unused]] alignas(64) Wider<A> x_room[kIsHalf<A> ? W : 1];
    [[maybe_unused]] alignas(64) Wider<B> y_room[kIsHalf<B> ? W : 1];
    const auto *p = load_block<W>(x, x_room), *q = load_block<W>(y, y_room);
    if constexpr (kDoubleRegisters<A, way>)
      by_register<F, W>(o, p, q);
    else if constexpr (kFloatRegisters<A, way>)
      store_lanes<W>(o, [=](int j) { return F{}(lanes_at(p + j), lanes_at(q + j)); });
    else
      store_block<W>(o, F{}, p, q);
  };
  if (way == Way::Cheap && n == 1) {
    out[0] = R(F{}(number(a[0]), number(b[0])));
    return;
  }
  const int sa = step[0], sb = step[1];
  if (way == Way::Single) {
    for (int64_t i = 0; i < n; ++i, a += sa, b += sb) {
      GT_SHORT_LOOP;
      out[i] = R(F{}(number(*a), number(*b)));
    }
    return;
  }
  int64_t i = 0;
  if (n >= W) {
    A ra[W];
    B rb[W];
    const A* x = sa ? a : splat<W>(ra, a[0]);
    const B* y = sb ? b : splat<W>(rb, b[0]);
    const int dx = sa * W, dy = sb * W;
    GT_TWO_AT_ONCE
    for (; i + W <= n; i += W, x += dx, y += dy) block(out + i, x, y);
    if (i == n) return;
  }
  a += i * sa, b += i * sb, out += i;
  const int m = int(n - i);
  if (one_by_one<A>(way)) {
    for (int j = 0; j < m; ++j, a += sa, b += sb) {
      GT_SHORT_LOOP;
      out[j] = R(F{}(number(*a), number(*b)));
    }
    return;
  }
  A x[W];
  B y[W];
  R r[W];
  pad<W>(x, a, sa, m);
  pad<W>(y, b, sb, m);
  block(r, x, y);
  for (int j = 0; j < m; ++j) {
    GT_SHORT_LOOP;
    out[j] = r[j];
  }
}

template <class F, class R, class A, class B, class C>
void map3(void* out_, const void* const* in, const uint8_t* step, int64_t n) {
  static constexpr int W = kSpan<A, B>;
  R* out = static_cast<R*>(out_);
  const A* a = static_cast<const A*>(in[0]);
  const B* b = static_cast<const B*>(in[1]);
  const C* c = static_cast<const C*>(in[2]);
  if (n == 1) {
    out[0] = R(F{}(a[0], b[0], c[0]));
    return;
  }
  const int sa = step[0], sb = step[1], sc = step[2];
  int64_t i = 0;
  if (n >= W) {
    A ra[W];
    B rb[W];
    C rc[W];
    const A* x = sa ? a : splat<W>(ra, a[0]);
    const B* y = sb ? b : splat<W>(rb, b[0]);
    const C* z = sc ? c : splat<W>(rc, c[0]);
    const int dx = sa * W, dy = sb * W, dz = sc * W;
    GT_TWO_AT_ONCE
    for (; i + W <= n; i += W, x += dx, y += dy, z += dz) store_block<W>(out + i, F{}, x, y, z);
  }
  a += i * sa, b += i * sb, c += i * sc;
  for (; i < n; ++i, a += sa, b += sb, c += sc) {
    GT_SHORT_LOOP;
    out[i] = R(F{}(*a, *b, *c));
  }
}

// For functions of the 16-bit floats without loops of their own: a tile at a time through the loop of float.
template <Dtype type, Loop loop, int arity, Result result>
void in_float(void* out, const void* const* in, const uint8_t* step, int64_t n) {
  run_in_float(loop, arity, type, result, out, in, step, n);
}

// ---- rows of the table ---------------------------------------------------------------------

// Calls f.template operator()<T>() for each element type in S.
template <DtypeSet S, class G> constexpr void each_type(G g) {
  [&]<int... k>(std::integer_sequence<int, k...>) {
    (
        [&] {
          if constexpr (in(Dtype(k), S)) g.template operator()<typename ElementOf<Dtype(k)>::Type>();
        }(),
        ...);
  }
  (std::make_integer_sequence<int, kDtypes>{});
}

// Only functions with real results have vector variants.
template <class R> constexpr Way way_of(Way way) {
  return way >= Way::Vector && !std::is_floating_point_v<R> ? Way::Single : way;
}

template <int arity, class F, class T, Way way> constexpr void set_loop(Elementwise& row) {
  const int t = int(DtypeOf<T>::value);
  if constexpr (kIsHalf<T> && (arity == 3 || in_tiles(way))) {
    constexpr int f = int(Dtype::F32);
    constexpr Elementwise wide = [] {
      Elementwise w{};
      set_loop<arity, F, float, way>(w);
      return w;
    }();
    constexpr Result result = wide.out[f] == Dtype::F32 ? Result::Float : Result::Bool;
    row.loop[t] = in_float<DtypeOf<T>::value, wide.loop[f], arity, result>;
    row.out[t] = result == Result::Float ? DtypeOf<T>::value : wide.out[f];
  } else if constexpr (arity == 1) {
    using R = typename ResultOf<F, Wider<T>, Wider<T>>::Type;
    using Out = std::conditional_t<kIsHalf<T> && !std::is_same_v<R, bool>, T, R>;
    row.loop[t] = map1<F, Out, T, way_of<R>(way)>;
    row.out[t] = DtypeOf<Out>::value;
  } else if constexpr (arity == 2) {
    using R = typename ResultOf<F, Wider<T>, Wider<T>, Wider<T>>::Type;
    using Out = std::conditional_t<kIsHalf<T> && !std::is_same_v<R, bool>, T, R>;
    row.loop[t] = map2<F, Out, T, T, way_of<R>(way)>;
    row.out[t] = DtypeOf<Out>::value;
  } else {
    using R = typename ResultOf<F, T, T, T, T>::Type;
    row.loop[t] = map3<F, R, T, T, T>;
    row.out[t] = DtypeOf<R>::value;
  }
}

template <int arity, DtypeSet S, Way way, class F> constexpr Elementwise row(const char* name, double cost) {
  Elementwise r{name, arity, {}, {}, cost};
  each_type<S>([&]<class T>() { set_loop<arity, F, T, way>(r); });
  return r;
}

// unary<kFloat>("sqrt", cost, [](auto x) { ... }): cheap functions, made of a few instructions.
template <DtypeSet S, class F> constexpr Elementwise unary(const char* name, double cost, F) {
  return row<1, S, Way::Cheap, F>(name, cost);
}
template <DtypeSet S, class F> constexpr Elementwise binary(const char* name, double cost, F) {
  return row<2, S, Way::Cheap, F>(name, cost);
}
template <DtypeSet S, class F> constexpr Elementwise ternary(const char* name, double cost, F) {
  return row<3, S, Way::Cheap, F>(name, cost);
}
// The same for elementary functions (math.h) and formulas of them, which take registers as well.
template <DtypeSet S, class F> constexpr Elementwise unary_math(const char* name, double cost, F) {
  return row<1, S, Way::Register, F>(name, cost);
}
template <DtypeSet S, class F> constexpr Elementwise binary_math(const char* name, double cost, F) {
  return row<2, S, Way::Register, F>(name, cost);
}
// The same for functions that only exist one by one.
template <DtypeSet S, class F> constexpr Elementwise unary_single(const char* name, double cost, F) {
  return row<1, S, Way::Single, F>(name, cost);
}
template <DtypeSet S, class F> constexpr Elementwise binary_single(const char* name, double cost, F) {
  return row<2, S, Way::Single, F>(name, cost);
}
// For functions that treat signed integers as they treat unsigned ones, bit by bit: made for the
// unsigned types (kBits), shared with the signed.
constexpr DtypeSet kBits = kUnsigned, kNumberBits = kUnsigned | kFloat | kComplex;
template <class Row> constexpr Row signed_too(Row row) {
  constexpr int first = int(Dtype::I8), shift = int(Dtype::U8) - first;
  for (int t = first; t < first + 4; ++t) {
    row.loop[t] = row.loop[t + shift];
    row.out[t] = row.out[t + shift] == Dtype(t + shift) ? Dtype(t) : row.out[t + shift];
  }
  return row;
}
// One row from two: the loops of the types in S come from `more`.
template <DtypeSet S> constexpr Elementwise also(Elementwise row, const Elementwise& more) {
  for (int t = 0; t < kDtypes; ++t)
    if (in(Dtype(t), S)) row.loop[t] = more.loop[t], row.out[t] = more.out[t];
  return row;
}

template <class Row, int n> constexpr Rows<Row> rows_of(const Row (&table)[n]) { return {table, n}; }

}  // namespace gt
