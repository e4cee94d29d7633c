// The transforms of Winograd's convolutions F(2x2, 3x3): 2 by 2 results from 4 by 4 elements with 16
// products instead of 36 (S. Winograd 1980; A. Lavin and S. Gray, arXiv:1509.09308). All factors are
// 1 or 1/2, so that a result is about as exact as a plain sum. Vector code along the channels.
#include "conv.h"
#include "conv_vector.h"

namespace gt {

namespace {

// A vector or an element. Through V<T>, because a deduced X is a vector at its full alignment (to clang).
template <class X, class T> inline X get(const T* p) {
  if constexpr (sizeof(X) == sizeof(T))
    return *p;
  else
    return load(p);
}
template <class X, class T> inline void put(T* p, X x) {
  if constexpr (sizeof(X) == sizeof(T))
    *p = x;
  else
    store(p, x);
}

// One line of four elements of x; of four products back to two results; of three taps of a filter.
template <class X> inline void line_in(X (&t)[4], X a, X b, X c, X d) {
  t[0] = a - c, t[1] = b + c, t[2] = c - b, t[3] = b - d;
}
template <class X> inline void line_out(X (&t)[2], X a, X b, X c, X d) { t[0] = a + b + c, t[1] = b - c - d; }
template <class X> inline void line_filter(X (&t)[4], X a, X b, X c) {
  const X even = (a + c) * 0.5f, odd = b * 0.5f;
  t[0] = a, t[1] = even + odd, t[2] = even - odd, t[3] = c;
}
// And their transposes: of two cotangents, and of four sums back to three taps.
template <class X> inline void line_cotangent(X (&t)[4], X a, X b) {
  t[0] = a, t[1] = a + b, t[2] = a - b, t[3] = -b;
}
template <class X> inline void line_taps(X (&t)[3], X a, X b, X c, X d) {
  const X even = (b + c) * 0.5f;
  t[0] = a + even, t[1] = (b - c) * 0.5f, t[2] = even + d;
}

// Calls f(X, channel) along the channels: vectors, then what is left one by one.
template <class T, class F> inline void along(int64_t channels, F&& f) {
  int64_t c = 0;
  for (; c + kLanes<T> <= channels; c += kLanes<T>) f(V<T>{}, c);
  for (; c < channels; ++c) f(T{}, c);
}

template <class T> void input(const WinogradTile& t) {
  along<T>(t.channels, [&]<class X>(X, int64_t c) {
    X rows[4][4], line[4];
    for (int j = 0; j < 4; ++j) {
      X d[4];
      for (int i = 0; i < 4; ++i) d[i] = get<X>(static_cast<const T*>(t.in[4 * i + j]) + c);
      line_in(line, d[0], d[1], d[2], d[3]);
      for (int i = 0; i < 4; ++i) rows[i][j] = line[i];
    }
    T* to = static_cast<T*>(t.out) + c;
    for (int i = 0; i < 4; ++i) {
      line_in(line, rows[i][0], rows[i][1], rows[i][2], rows[i][3]);
      for (int j = 0; j < 4; ++j) put(to + (4 * i + j) * t.step, line[j]);
    }
  });
}

template <class T> void output(const WinogradTile& t) {
  along<T>(t.channels, [&]<class X>(X, int64_t c) {
    const T* m = static_cast<const T*>(t.in[0]) + c;
    X rows[2][4], line[2];
    for (int j = 0; j < 4; ++j) {
      X d[4];
      for (int i = 0; i < 4; ++i) d[i] = get<X>(m + (4 * i + j) * t.step);
      line_out(line, d[0], d[1], d[2], d[3]);
      rows[0][j] = line[0], rows[1][j] = line[1];
    }
    T* to = static_cast<T*>(t.out) + c;
    for (int i = 0; i < t.rows; ++i) {
      line_out(line, rows[i][0], rows[i][1], rows[i][2], rows[i][3]);
      for (int j = 0; j < t.columns; ++j) put(to + i * t.row_step + j * t.column_step, line[j]);
    }
  });
}

template <class T> void filter(const WinogradTile& t) {
  along<T>(t.channels, [&]<class X>(X, int64_t c) {
    X rows[4][3], line[4];
    for (int j = 0; j < 3; ++j) {
      X w[3];
      for (int i = 0; i < 3; ++i) w[i] = get<X>(static_cast<const T*>(t.in[3 * i + j]) + c);
      line_filter(line, w[0], w[1], w[2]);
      for (int i = 0; i < 4; ++i) rows[i][j] = line[i];
    }
    T* to = static_cast<T*>(t.out) + c;
    for (int i = 0; i < 4; ++i) {
      line_filter(line, rows[i][0], rows[i][1], rows[i][2]);
      for (int j = 0; j < 4; ++j) put(to + (4 * i + j) * t.step, line[j]);
    }
  });
}

template <class T> void cotangent(const WinogradTile& t) {
  along<T>(t.channels, [&]<class X>(X, int64_t c) {
    X rows[4][2], line[4];
    for (int j = 0; j < 2; ++j) {
      line_cotangent(line, get<X>(static_cast<const T*>(t.in[j]) + c),
                     get<X>(static_cast<const T*>(t.in[2 + j]) + c));
      for (int i = 0; i < 4; ++i) rows[i][j] = line[i];
    }
    T* to = static_cast<T*>(t.out) + c;
    for (int i = 0; i < 4; ++i) {
      line_cotangent(line, rows[i][0], rows[i][1]);
      for (int j = 0; j < 4; ++j) put(to + (4 * i + j) * t.step, line[j]);
    }
  });
}

template <class T> void taps(const WinogradTile& t) {
  along<T>(t.channels, [&]<class X>(X, int64_t c) {
    const T* m = static_cast<const T*>(t.in[0]) + c;
    X rows[3][4], line[3];
    for (int j = 0; j < 4; ++j) {
      X d[4];
      for (int i = 0; i < 4; ++i) d[i] = get<X>(m + (4 * i + j) * t.step);
      line_taps(line, d[0], d[1], d[2], d[3]);
      for (int i = 0; i < 3; ++i) rows[i][j] = line[i];
    }
    T* to = static_cast<T*>(t.out) + c;
    for (int i = 0; i < 3; ++i) {
      line_taps(line, rows[i][0], rows[i][1], rows[i][2], rows[i][3]);
      for (int j = 0; j < 3; ++j) put(to + i * t.row_step + j * t.column_step, line[j]);
    }
  });
}

}  // namespace

void add_winograd_loops(ConvLoops (&table)[3]) {
  table[0].winograd = {input<float>, output<float>, filter<float>, cotangent<float>, taps<float>};
  table[1].winograd = {input<double>, output<double>, filter<double>, cotangent<double>, taps<double>};
}

}  // namespace gt
