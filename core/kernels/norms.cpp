// Means, variances and normalisation of rows and of columns. Sums run in lanes over at most kChunk elements
// of a float type and are added up in double.
#include "norms.h"

#include "all.h"

namespace gt {

namespace {

constexpr int64_t kChunk = 4096;
constexpr int64_t kRowsOfChunk = 64;  // of columns
constexpr int kTile = 256;            // columns that are summed at a time

// The first two sums of W lanes, added up in halves. In registers all the way: W is a constant.
template <int W, class T> [[gnu::always_inline]] inline double fold(T* acc) {
  if constexpr (W > 2) {
    GT_VECTOR_LOOP
    for (int j = 0; j < W / 2; ++j) acc[j] += acc[j + W / 2];
    return fold<W / 2>(acc);
  } else {
    return double(acc[0]) + double(acc[1]);
  }
}

// The sum of f(i) for first <= i < n, of less than 2 W elements.
template <int W, class T, class F>
[[gnu::always_inline]] inline double rest_of(int64_t first, int64_t n, F f) {
  if constexpr (W >= 4) {
    double total = 0;
    if (n - first >= W) {
      alignas(64) T acc[W];
      GT_VECTOR_LOOP
      for (int j = 0; j < W; ++j) acc[j] = f(first + j);
      total = fold<W>(acc);
      first += W;
    }
    return total + rest_of<W / 2, T>(first, n, f);
  } else {
    T rest = 0;
    for (; first < n; ++first) rest += f(first);
    return double(rest);
  }
}

// The sum of f(i) for i < n.
template <class T, class F> [[gnu::always_inline]] inline double sum_of(int64_t n, F f) {
  constexpr int lanes = 256 / sizeof(T);
  double total = 0;
  int64_t i = 0;
  while (n - i >= lanes) {
    alignas(64) T acc[lanes] = {};
    const int64_t end = n - i > kChunk ? i + kChunk : i + (n - i) / lanes * lanes;
    for (; i < end; i += lanes) {
      GT_VECTOR_LOOP
      for (int j = 0; j < lanes; ++j) acc[j] += f(i + j);
    }
    total += fold<lanes>(acc);
  }
  return total + rest_of<lanes / 2, T>(i, n, f);
}
// Two sums at once: f(i, a, b) adds to both.
template <class T, class F>
[[gnu::always_inline]] inline void sums_of(int64_t n, double& first, double& second, F f) {
  constexpr int lanes = 128 / sizeof(T);
  first = second = 0;
  int64_t i = 0;
  while (n - i >= lanes) {
    alignas(64) T a[lanes] = {}, b[lanes] = {};
    const int64_t end = n - i > kChunk ? i + kChunk : i + (n - i) / lanes * lanes;
    for (; i < end; i += lanes) {
      GT_VECTOR_LOOP
      for (int j = 0; j < lanes; ++j) f(i + j, a[j], b[j]);
    }
    first += fold<lanes>(a), second += fold<lanes>(b);
  }
  T a = 0, b = 0;
  for (; i < n; ++i) f(i, a, b);
  first += double(a), second += double(b);
}

template <class T> void row_moments(const void* x_, int64_t n, double* mean, double* squares) {
  const T* x = static_cast<const T*>(x_);
  *mean = sum_of<T>(n, [=](int64_t i) { return x[i]; }) / double(n);
  const T m = T(*mean);
  // The mean is rounded to T: what that moves the squares by is taken away again.
  const double off = *mean - double(m);
  *squares = sum_of<T>(n, [=](int64_t i) { return (x[i] - m) * (x[i] - m); }) - off * off * double(n);
  if (*squares < 0) *squares = 0;
}

template <class T> void rows(const RowNorm& a) {
  const T *scale = static_cast<const T*>(a.scale), *offset = static_cast<const T*>(a.offset);
  const int64_t n = a.n;
  for (int64_t r = a.begin; r < a.end; ++r) {
    const T* x = static_cast<const T*>(a.x) + r * n;
    T* out = static_cast<T*>(a.out) + r * n;
    if (offset) {
      double mean, squares;
      row_moments<T>(x, n, &mean, &squares);
      const T m = T(mean), s = T(1 / __builtin_sqrt(squares / double(n) + a.epsilon));
      static_cast<T*>(a.mean)[r] = m, static_cast<T*>(a.rstd)[r] = s;
      GT_VECTOR_LOOP
      for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - m) * s * scale[i] + offset[i];
    } else {
      const double squares = sum_of<T>(n, [=](int64_t i) { return x[i] * x[i]; });
      const T s = T(1 / __builtin_sqrt(squares / double(n) + a.epsilon));
      static_cast<T*>(a.rstd)[r] = s;
      GT_VECTOR_LOOP
      for (int64_t i = 0; i < n; ++i) out[i] = x[i] * s * scale[i];
    }
  }
}

template <class T> void rows_grad(const RowNormGrad& a) {
  const T* __restrict scale = static_cast<const T*>(a.scale);
  T* __restrict gscale = static_cast<T*>(a.gscale), * __restrict goffset = static_cast<T*>(a.goffset);
  const int64_t n = a.n;
  for (int64_t r = a.begin; r < a.end; ++r) {
    const T* __restrict g = static_cast<const T*>(a.g) + r * n, * __restrict x =
                                                                    static_cast<const T*>(a.x) + r * n;
    T* __restrict gx = static_cast<T*>(a.gx) + r * n;
    const T s = static_cast<const T*>(a.rstd)[r], m = a.mean ? static_cast<const T*>(a.mean)[r] : 0;
    double sum, dot;
    sums_of<T>(n, sum, dot, [=](int64_t i, T& p, T& q) {
      const T h = g[i] * scale[i];
      p += h, q += h * (x[i] - m);
    });
    const T along = T(dot * double(s) * double(s) * double(s) / double(n)),
            level = a.mean ? T(sum * double(s) / double(n)) : 0;
    if (goffset) {
      GT_VECTOR_LOOP
      for (int64_t i = 0; i < n; ++i) {
        const T away = x[i] - m;
        gscale[i] += g[i] * away * s;
        goffset[i] += g[i];
        gx[i] = g[i] * scale[i] * s - level - away * along;
      }
    } else {
      GT_VECTOR_LOOP
      for (int64_t i = 0; i < n; ++i) {
        const T away = x[i] - m;
        gscale[i] += g[i] * away * s;
        gx[i] = g[i] * scale[i] * s - level - away * along;
      }
    }
  }
}

// Adds f(place, column, a, b) over the rows of each column to first and second.
template <class T, class F>
[[gnu::always_inline]] inline void column_sums(int64_t rows, int64_t columns, double* first, double* second,
                                               F f) {
  for (int64_t j = 0; j < columns; ++j) first[j] = second[j] = 0;
  for (int64_t r0 = 0; r0 < rows; r0 += kRowsOfChunk) {
    const int64_t r1 = rows - r0 < kRowsOfChunk ? rows : r0 + kRowsOfChunk;
    for (int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const int width = int(columns - c0 < kTile ? columns - c0 : kTile);
      alignas(64) T a[kTile], b[kTile];
      for (int j = 0; j < width; ++j) a[j] = b[j] = 0;
      for (int64_t r = r0; r < r1; ++r) {
        GT_VECTOR_LOOP
        for (int j = 0; j < width; ++j) f(r * columns + c0 + j, c0 + j, a[j], b[j]);
      }
      for (int j = 0; j < width; ++j) first[c0 + j] += double(a[j]), second[c0 + j] += double(b[j]);
    }
  }
}
// Around the first row, which is near the mean or at least inside the data.
template <class T>
void column_moments(const void* x_, int64_t rows, int64_t columns, double* mean, double* squares) {
  const T* x = static_cast<const T*>(x_);
  column_sums<T>(rows, columns, mean, squares, [=](int64_t i, int64_t c, T& a, T& b) {
    const T away = x[i] - x[c];
    a += away, b += away * away;
  });
  for (int64_t c = 0; c < columns; ++c) {
    const double off = mean[c] / double(rows);
    mean[c] = double(x[c]) + off;
    squares[c] -= off * off * double(rows);
    if (squares[c] < 0) squares[c] = 0;
  }
}
template <class T> void row_product(const void* x_, const void* y_, int64_t n, double* sum) {
  const T *x = static_cast<const T*>(x_), *y = static_cast<const T*>(y_);
  *sum = sum_of<T>(n, [=](int64_t i) { return x[i] * y[i]; });
}
template <class T>
void row_dots(const void* g_, const void* x_, double mean, int64_t n, double* sum, double* dot) {
  const T *g = static_cast<const T*>(g_), *x = static_cast<const T*>(x_), m = T(mean);
  sums_of<T>(n, *sum, *dot, [=](int64_t i, T& a, T& b) { a += g[i], b += g[i] * (x[i] - m); });
}
template <class T>
void column_dots(const void* g_, const void* x_, const void* mean_, int64_t rows, int64_t columns,
                 double* sum, double* dot) {
  const T *g = static_cast<const T*>(g_), *x = static_cast<const T*>(x_),
          *mean = static_cast<const T*>(mean_);
  column_sums<T>(rows, columns, sum, dot,
                 [=](int64_t i, int64_t c, T& a, T& b) { a += g[i], b += g[i] * (x[i] - mean[c]); });
}

template <class T> void apply(const ColumnNorm& a) {
  const T *p0 = static_cast<const T*>(a.params[0]), *p1 = static_cast<const T*>(a.params[1]),
          *p2 = static_cast<const T*>(a.params[2]);
  for (int64_t r = 0; r < a.rows; ++r) {
    const T* x = static_cast<const T*>(a.x) + r * a.columns;
    T* out = static_cast<T*>(a.out) + r * a.columns;
    if (a.step) {
      GT_VECTOR_LOOP
      for (int64_t i = 0; i < a.columns; ++i) out[i] = (x[i] - p0[i]) * p1[i] + p2[i];
    } else {
      const T q0 = *p0, q1 = *p1, q2 = *p2;
      GT_VECTOR_LOOP
      for (int64_t i = 0; i < a.columns; ++i) out[i] = (x[i] - q0) * q1 + q2;
    }
  }
}
template <class T> void apply_grad(const ColumnNorm& a) {
  const T *p0 = static_cast<const T*>(a.params[0]), *p1 = static_cast<const T*>(a.params[1]);
  const T *p2 = static_cast<const T*>(a.params[2]), *p3 = static_cast<const T*>(a.params[3]);
  for (int64_t r = 0; r < a.rows; ++r) {
    const T *x = static_cast<const T*>(a.x) + r * a.columns, *g = static_cast<const T*>(a.g) + r * a.columns;
    T* out = static_cast<T*>(a.out) + r * a.columns;
    if (a.step) {
      GT_VECTOR_LOOP
      for (int64_t i = 0; i < a.columns; ++i) out[i] = g[i] * p0[i] + (x[i] - p1[i]) * p2[i] + p3[i];
    } else {
      const T q0 = *p0, q1 = *p1, q2 = *p2, q3 = *p3;
      GT_VECTOR_LOOP
      for (int64_t i = 0; i < a.columns; ++i) out[i] = g[i] * q0 + (x[i] - q1) * q2 + q3;
    }
  }
}

template <class T>
constexpr NormLoops loops{rows<T>,     rows_grad<T>,   row_moments<T>, column_moments<T>, row_product<T>,
                          row_dots<T>, column_dots<T>, apply<T>,       apply_grad<T>};
constexpr NormLoops both[] = {loops<float>, loops<double>};

}  // namespace

const NormLoops* norm_loops() { return both; }

}  // namespace gt
