// Where the largest or smallest is: the first of equals; a NaN beats every number.
#include "all.h"
#include "reduce.h"

namespace gt {

namespace {

constexpr int kTile = 512;

// For float, double, int32 and int64. Other types are converted to one of these, a tile at a time.
template <bool largest, class A> struct Best {
  static bool beats(A x, A best) {
    const bool better = largest ? x > best : x < best;
    if constexpr (kIsReal<A>)
      return better | ((x != x) & (best == best));
    else
      return better;
  }
  static A better(A x, A y) { return largest ? larger(x, y) : smaller(x, y); }

  // The place of the best of m <= kTile numbers, or -1 if it is not better than `best`, which it replaces.
  // Vector code finds the best, then its place is looked for.
  static int in_tile(const A* p, int m, bool first, A& best) {
    constexpr int W = 2 * kBlock<A>;
    A top = p[0];
    int j = 0;
    if (m >= W) {
      A lane[W];
      for (int k = 0; k < W; ++k) lane[k] = p[k];
      for (j = W; j + W <= m; j += W) {
        GT_VECTOR_LOOP
        for (int k = 0; k < W; ++k) lane[k] = better(lane[k], p[j + k]);
      }
      top = lane[0];
      for (int k = 1; k < W; ++k) top = better(top, lane[k]);
    }
    for (; j < m; ++j) top = better(top, p[j]);
    if (!first && !beats(top, best)) return -1;
    best = top;
    int k = 0;
    while (!(p[k] == top || (p[k] != p[k] && top != top))) ++k;
    return k;
  }
  // Row r against the best of m <= kTile columns so far, and where they are.
  [[gnu::noinline]] static void in_columns(A* best, int64_t* at, const A* p, int m, int64_t r) {
    GT_VECTOR_LOOP
    for (int j = 0; j < m; ++j) {
      const bool win = r == 0 || beats(p[j], best[j]);
      best[j] = win ? p[j] : best[j];
      at[j] = win ? r : at[j];
    }
  }
};

template <class T>
using Compared =
    std::conditional_t<kIsInt<T>, std::conditional_t<sizeof(T) == 8, int64_t, int32_t>, Wider<T>>;
template <class T, class A> [[gnu::noinline]] void flip_bits(A* out, const T* x, int m, A bits) {
  GT_VECTOR_LOOP
  for (int j = 0; j < m; ++j) out[j] = A(x[j]) ^ bits;
}
// m numbers that can be compared: x itself, or a converted copy in `room`. The smallest integer is the
// largest after flipping all bits; flipping the first bit brings unsigned integers into the order of signed
// ones.
template <bool largest, class T> const Compared<T>* compared(const T* x, Compared<T>* room, int m) {
  using A = Compared<T>;
  if constexpr (kIsHalf<T>) {
    widen(room, x, m);
    return room;
  } else if constexpr (kIsInt<T>) {
    constexpr A first_bit = A(Wrap<A>(1) << (8 * sizeof(A) - 1));
    constexpr A bits = (largest ? 0 : -1) ^ (sizeof(T) == sizeof(A) && std::is_unsigned_v<T> ? first_bit : 0);
    if (bits == 0 && sizeof(T) == sizeof(A)) return reinterpret_cast<const A*>(x);
    flip_bits(room, x, m, bits);
    return room;
  } else {
    return x;
  }
}

template <bool largest, class T> void find_best(void* out_, const void* in_, int64_t size, int64_t inner) {
  using A = Compared<T>;
  using B = Best<largest || kIsInt<T>, A>;
  int64_t* out = static_cast<int64_t*>(out_);
  const T* in = static_cast<const T*>(in_);
  A room[std::is_same_v<T, A> && kIsReal<T> ? 1 : kTile], best[kTile];
  if (inner == 1) {
    out[0] = 0;
    for (int64_t i = 0; i < size; i += kTile) {
      const int m = int(size - i < kTile ? size - i : kTile);
      const int k = B::in_tile(compared<largest>(in + i, room, m), m, i == 0, best[0]);
      if (k >= 0) out[0] = i + k;
      if (best[0] != best[0]) break;  // the first NaN: nothing beats it
    }
    return;
  }
  for (int64_t j = 0; j < inner; j += kTile) {
    const int m = int(inner - j < kTile ? inner - j : kTile);
    for (int k = 0; k < m; ++k) out[j + k] = 0;
    for (int64_t r = 0; r < size; ++r)
      B::in_columns(best, out + j, compared<largest>(in + r * inner + j, room, m), m, r);
  }
}

template <bool largest> constexpr Reduction arg_row(const char* name) {
  Reduction r{name, {}, {}};
  each_type<kReal>([&]<class T>() {
    r.loop[int(DtypeOf<T>::value)] = find_best<largest, T>;
    r.out[int(DtypeOf<T>::value)] = Dtype::I64;
  });
  return r;
}

constexpr Reduction table[] = {arg_row<true>("argmax"), arg_row<false>("argmin")};

}  // namespace

Rows<Reduction> arg_rows() { return rows_of(table); }

}  // namespace gt
