// Where the largest or smallest is: the first of equals; a NaN beats every number.
#include "all.h"
#include "reduce.h"

namespace gt {

namespace {

template <bool largest, class T> inline bool beats(T x, T best) {
  const bool better = largest ? x > best : x < best;
  if constexpr (kIsReal<T>)
    return better | ((x != x) & (best == best));
  else
    return better;
}

template <bool largest, class T> struct Arg {
  using A = Wider<T>;
  static constexpr int kTile = 512;

  // Finds the best value of a tile in vector code, then its place if it beats the one so far.
  static int64_t line(const T* x, int64_t n) {
    A room[kIsHalf<T> ? kTile : 1], best = A(0);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i += kTile) {
      const int m = int(n - i < kTile ? n - i : kTile);
      const A* p = load(x + i, room, m);
      A top = p[0];
      int j = 0;
      constexpr int W = 2 * kBlock<A>;
      if (m >= W) {
        A lane[W];
        for (int k = 0; k < W; ++k) lane[k] = p[k];
        for (j = W; j + W <= m; j += W) {
          GT_VECTOR_LOOP
          for (int k = 0; k < W; ++k)
            lane[k] = largest ? larger(lane[k], p[j + k]) : smaller(lane[k], p[j + k]);
        }
        top = lane[0];
        for (int k = 1; k < W; ++k) top = largest ? larger(top, lane[k]) : smaller(top, lane[k]);
      }
      for (; j < m; ++j) top = largest ? larger(top, p[j]) : smaller(top, p[j]);
      if (i == 0 || beats<largest>(top, best)) {
        best = top;
        int k = 0;
        while (!(p[k] == top || (p[k] != p[k] && top != top))) ++k;
        at = i + k;
      }
      if (best != best) break;  // the first NaN: nothing beats it
    }
    return at;
  }

  static void run(void* out_, const void* in_, int64_t size, int64_t inner) {
    int64_t* out = static_cast<int64_t*>(out_);
    const T* in = static_cast<const T*>(in_);
    if (inner == 1) {
      out[0] = line(in, size);
      return;
    }
    A room[kIsHalf<T> ? kTile : 1], best[kTile];
    for (int64_t j0 = 0; j0 < inner; j0 += kTile) {
      const int m = int(inner - j0 < kTile ? inner - j0 : kTile);
      int64_t* o = out + j0;
      for (int j = 0; j < m; ++j) o[j] = 0;
      for (int64_t r = 0; r < size; ++r) {
        const A* p = load(in + r * inner + j0, room, m);
        GT_VECTOR_LOOP
        for (int j = 0; j < m; ++j) {
          const bool win = r == 0 || beats<largest>(p[j], best[j]);
          best[j] = win ? p[j] : best[j];
          o[j] = win ? r : o[j];
        }
      }
    }
  }
};

template <bool largest> constexpr Reduction arg_row(const char* name) {
  Reduction r{name, {}, {}};
  each_type<kReal>([&]<class T>() {
    r.loop[int(DtypeOf<T>::value)] = Arg<largest, T>::run;
    r.out[int(DtypeOf<T>::value)] = Dtype::I64;
  });
  return r;
}

constexpr Reduction table[] = {arg_row<true>("argmax"), arg_row<false>("argmin")};

}  // namespace

Rows<Reduction> arg_rows() { return rows_of(table); }

}  // namespace gt
