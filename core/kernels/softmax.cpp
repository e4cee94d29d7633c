// Softmax and its relatives in as few passes over a row as there can be.
//
// A row is taken in vectors; what is left at its end is the last vector, some elements of which were met
// before. Rows shorter than a vector are looked at one by one, but exp runs over all of them together.
#include "softmax.h"

#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

template <class T> constexpr int kLanes = 128 / sizeof(T);
template <class T> constexpr int64_t kShort = 8 * kLanes<T>;  // rows below this length are short
constexpr int64_t kChunk = 2048;  // elements summed up in T; the sums of chunks are added in double

#define GT_LANES _Pragma("omp simd") for (int j = 0; j < kLanes<T>; ++j)

template <class T> inline T larger(T a, T b) { return b > a || b != b ? b : a; }
template <class T> inline T plus(T a, T b) { return a + b; }

template <class T, T (*combine)(T, T)> [[gnu::always_inline]] inline T folded(T* acc) {
  for (int w = kLanes<T> / 2; w > 1; w /= 2) {
#pragma omp simd
    for (int j = 0; j < w; ++j) acc[j] = combine(acc[j], acc[j + w]);
  }
  return combine(acc[0], acc[1]);
}

template <class T> [[gnu::always_inline]] inline T largest_of(const T* x, int64_t n) {
  if (n < kLanes<T>) {
    T m = x[0];
    for (int64_t i = 1; i < n; ++i) {
      GT_SHORT_LOOP;
      m = larger(m, x[i]);
    }
    return m;
  }
  alignas(64) T acc[kLanes<T>];
  GT_LANES acc[j] = x[n - kLanes<T> + j];
  for (int64_t i = 0; i + kLanes<T> < n; i += kLanes<T>) GT_LANES acc[j] = larger(acc[j], x[i + j]);
  return folded<T, larger<T>>(acc);
}

// The sum of f(i) for i < n. The last vector comes first, by `once`; f may be called again for some of its
// elements.
template <class T, class O, class F> [[gnu::always_inline]] inline T sum_of(int64_t n, O once, F f) {
  if (n < kLanes<T>) {
    T s = 0;
    for (int64_t i = 0; i < n; ++i) {
      GT_SHORT_LOOP;
      s += f(i);
    }
    return s;
  }
  const int64_t last = n - kLanes<T>, whole = (n - 1) / kLanes<T> * kLanes<T>;
  alignas(64) T acc[kLanes<T>];
  GT_LANES {
    const T y = once(last + j);
    acc[j] = last + j < whole ? T(0) : y;
  }
  double total = 0;
  for (int64_t begin = 0; begin < whole; begin += kChunk) {
    const int64_t end = whole - begin < kChunk ? whole : begin + kChunk;
    for (int64_t i = begin; i < end; i += kLanes<T>) GT_LANES acc[j] += f(i + j);
    if (end == whole) break;
    total += double(folded<T, plus<T>>(acc));
    GT_LANES acc[j] = 0;
  }
  return T(total + double(folded<T, plus<T>>(acc)));
}
template <class T, class F> [[gnu::always_inline]] inline T sum_of(int64_t n, F f) {
  return sum_of<T>(n, f, f);
}

// out = exp(x - m), and their sum, of a row of at least one vector. The last one is written last: out may be
// x.
template <class T> [[gnu::always_inline]] inline T exp_sum(T* out, const T* x, T m, int64_t n) {
  alignas(64) T tail[kLanes<T>];
  const int64_t last = n - kLanes<T>;
  auto e = [=](int64_t i) { return math::exp(x[i] - m); };
  const T sum = sum_of<T>(
      n, [&](int64_t i) { return tail[i - last] = e(i); }, [&](int64_t i) { return out[i] = e(i); });
  GT_LANES out[last + j] = tail[j];
  return sum;
}

// Calls f(i) for i < n; a few elements are not worth a vector loop.
template <class F> [[gnu::always_inline]] inline void each(int64_t n, F f) {
  if (n < 8) {
    for (int64_t i = 0; i < n; ++i) {
      GT_SHORT_LOOP;
      f(i);
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) f(i);
}

template <class T> inline void divided(T* out, T sum, int64_t n) {
  if (sizeof(T) == 4 && sum != sum) return;
  const T by = 1 / sum;
  each(n, [=](int64_t i) { out[i] *= by; });
}

template <class T> void exp(T* out, const T* x, int64_t rows, int64_t n, bool divide, T* largest, T* sum) {
  if (n >= kShort<T>) {
    for (int64_t r = 0; r < rows; ++r, out += n, x += n) {
      sum[r] = exp_sum(out, x, largest[r] = largest_of(x, n), n);
      if (divide) divided(out, sum[r], n);
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T m = largest[r] = largest_of(x + r * n, n), *from = x + r * n;
    each(n, [=, to = out + r * n](int64_t i) { to[i] = from[i] - m; });
  }
#pragma omp simd
  for (int64_t i = 0; i < rows * n; ++i) out[i] = math::exp(out[i]);
  for (int64_t r = 0; r < rows; ++r, out += n) {
    sum[r] = sum_of<T>(n, [=](int64_t i) { return out[i]; });
    if (divide) divided(out, sum[r], n);
  }
}

template <class T> void log_softmax(T* out, const T* x, int64_t rows, int64_t n) {
  if (n >= kShort<T>) {
    for (int64_t r = 0; r < rows; ++r, out += n, x += n) {
      const T m = largest_of(x, n);
      const T by = math::log(sum_of<T>(n, [=](int64_t i) { return math::exp(x[i] - m); }));
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = x[i] - m - by;
    }
    return;
  }
  T room[kSoftmaxBlock];
  const int64_t most = kSoftmaxBlock / n;
  for (; rows > 0; rows -= most, out += most * n, x += most * n) {
    const int64_t some = rows < most ? rows : most;
    T largest[kSoftmaxBlock], sum[kSoftmaxBlock];
    exp(room, x, some, n, false, largest, sum);
#pragma omp simd
    for (int64_t r = 0; r < some; ++r) sum[r] = math::log(sum[r]);
    for (int64_t r = 0; r < some; ++r)
      each(n, [=, to = out + r * n, from = x + r * n, m = largest[r], by = sum[r]](int64_t i) {
        to[i] = from[i] - m - by;
      });
  }
}

template <class T> void softmax_grad(T* out, const T* y, const T* g, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, out += n, y += n, g += n) {
    const T dot = sum_of<T>(n, [=](int64_t i) { return g[i] * y[i]; });
    each(n, [=](int64_t i) { out[i] = (g[i] - dot) * y[i]; });
  }
}

template <class T> void log_softmax_grad(T* out, const T* y, const T* g, int64_t rows, int64_t n) {
  if (n >= kShort<T>) {
    for (int64_t r = 0; r < rows; ++r, out += n, y += n, g += n) {
      const T sum = sum_of<T>(n, [=](int64_t i) { return g[i]; });
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = g[i] - math::exp(y[i]) * sum;
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < rows * n; ++i) out[i] = math::exp(y[i]);
  for (int64_t r = 0; r < rows; ++r, out += n, g += n) {
    const T sum = sum_of<T>(n, [=](int64_t i) { return g[i]; });
    each(n, [=](int64_t i) { out[i] = g[i] - out[i] * sum; });
  }
}

template <class T> constexpr SoftmaxLoops<T> of{exp<T>, log_softmax<T>, softmax_grad<T>, log_softmax_grad<T>};
constexpr AllSoftmaxLoops all{of<float>, of<double>};

}  // namespace

const AllSoftmaxLoops* softmax_loops() { return &all; }

}  // namespace gt
