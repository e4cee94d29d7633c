// Products of a sparse matrix and a dense one, and dot products of the rows that its elements name. A row of
// the result is summed up in registers, a few vectors of columns at a time.
#include "sparse.h"

#include "all.h"
#include "arith.h"
#include "conv_vector.h"
#include "map.h"

namespace gt {

namespace {

// W elements as one value, of the compiler's own vectors where there are some.
template <class T, int W> struct Lanes {
  typedef T Type __attribute__((vector_size(W * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T> struct Lanes<T, 1> { using Type = T; };

template <class T, class V> [[gnu::always_inline]] inline V more(V sum, T x, V y) {
  if constexpr (kIsReal<T>)
    return sum + x * y;
  else
    return add(sum, mul(x, y));
}

// `count` vectors of W columns, from j on, of a row of the result whose elements are [begin, end). Two sums
// run side by side where one alone would have to wait for itself.
template <class T, int W, int count>
[[gnu::always_inline]] inline void block(const SparseRows& a, int64_t begin, int64_t end, T* out, int64_t j) {
  using V = typename Lanes<T, W>::Type;
  constexpr int sums = count < 4 ? 2 : 1;
  const T *values = static_cast<const T*>(a.values), *dense = static_cast<const T*>(a.dense) + j;
  V sum[sums][count] = {};
  int64_t e = begin;
  for (; end - e >= sums; e += sums) GT_EACH(s, sums) {
      const T* row = dense + a.columns[e + s] * a.width;
      const T x = values[e + s];
      GT_EACH(i, count) sum[s][i] = more<T>(sum[s][i], x, *reinterpret_cast<const V*>(row + i * W));
    }
  if (sums > 1 && e < end) {
    const T* row = dense + a.columns[e] * a.width;
    GT_EACH(i, count) sum[0][i] = more<T>(sum[0][i], values[e], *reinterpret_cast<const V*>(row + i * W));
  }
  GT_EACH(i, count) {
    V total = sum[0][i];
    if constexpr (sums > 1) {
      if constexpr (kIsReal<T>)
        total += sum[1][i];
      else
        total = add(total, sum[1][i]);
    }
    *reinterpret_cast<V*>(out + j + i * W) = total;
  }
}

// A matrix times a vector.
template <class T> void times_vector(const SparseRows& a, int64_t first, int64_t last) {
  const T *values = static_cast<const T*>(a.values), *x = static_cast<const T*>(a.dense);
  const int32_t* columns = a.columns;
  T* out = static_cast<T*>(a.out);
  int64_t e = a.starts[first];
  for (int64_t r = first; r < last; ++r) {
    const int64_t end = a.starts[r + 1];
    T sum = T(0), other = T(0);
    for (; end - e >= 2; e += 2) {
      sum = more<T>(sum, values[e], x[columns[e]]);
      other = more<T>(other, values[e + 1], x[columns[e + 1]]);
    }
    if (e < end) sum = more<T>(sum, values[e], x[columns[e]]), ++e;
    out[r] = add(sum, other);
  }
}

template <class T> void product(const SparseRows& a, int64_t first, int64_t last) {
  const int64_t n = a.width;
  if (n == 1) return times_vector<T>(a, first, last);
  for (int64_t r = first; r < last; ++r) {
    const int64_t begin = a.starts[r], end = a.starts[r + 1];
    T* out = static_cast<T*>(a.out) + r * n;
    int64_t j = 0;
    if constexpr (kIsReal<T>) {
      constexpr int W = kVectorBytes / int(sizeof(T));
      for (; n - j >= 8 * W; j += 8 * W) block<T, W, 8>(a, begin, end, out, j);
      if (n - j >= 4 * W) block<T, W, 4>(a, begin, end, out, j), j += 4 * W;
      if (n - j >= 2 * W) block<T, W, 2>(a, begin, end, out, j), j += 2 * W;
      if (n - j >= W) block<T, W, 1>(a, begin, end, out, j), j += W;
      if constexpr (W > 8)
        if (n - j >= 8) block<T, 8, 1>(a, begin, end, out, j), j += 8;
      if constexpr (W > 4)
        if (n - j >= 4) block<T, 4, 1>(a, begin, end, out, j), j += 4;
      if constexpr (W > 2)
        if (n - j >= 2) block<T, 2, 1>(a, begin, end, out, j), j += 2;
    } else {
      for (; n - j >= 4; j += 4) block<T, 1, 4>(a, begin, end, out, j);
    }
    for (; j < n; ++j) block<T, 1, 1>(a, begin, end, out, j);
  }
}

bool fits(const SparseRows& a, int64_t first, int64_t last, int64_t n, int64_t columns) {
  const int64_t* starts = a.starts;
  bool bad = starts[first] < 0 || starts[last] > n;
  for (int64_t r = first; r < last; ++r) bad |= starts[r + 1] < starts[r];
  if (bad) return false;
  uint32_t largest = 0;
  for (int64_t e = starts[first]; e < starts[last]; ++e) {
    const uint32_t column = uint32_t(a.columns[e]);
    largest = column > largest ? column : largest;
  }
  return starts[first] == starts[last] || largest < uint32_t(columns);
}

template <class T> T dot(const T* x, const T* y, int64_t n) {
  T total = T(0);
  int64_t j = 0;
  if constexpr (kIsReal<T>) {
    constexpr int W = kVectorBytes / int(sizeof(T));
    V<T> sum[2] = {};
    for (; n - j >= 2 * W; j += 2 * W) GT_EACH(i, 2) sum[i] += load(x + j + i * W) * load(y + j + i * W);
    if (n - j >= W) sum[0] += load(x + j) * load(y + j), j += W;
    sum[0] += sum[1];
    GT_EACH(i, W) total += sum[0][i];
  }
  for (; j < n; ++j) total = add(total, mul(x[j], y[j]));
  return total;
}

template <class T>
void dots(const int64_t* places, const void* x, const void* y, void* out, int64_t width, int64_t begin,
          int64_t end) {
  for (int64_t e = begin; e < end; ++e)
    static_cast<T*>(out)[e] = dot(static_cast<const T*>(x) + places[2 * e] * width,
                                  static_cast<const T*>(y) + places[2 * e + 1] * width, width);
}

}  // namespace

const SparseLoops* sparse_loops() {
  static SparseLoops table[kDtypes];
  each_type<kNumber & ~kHalf>([&]<class T>() {
    table[int(DtypeOf<T>::value)] = {fits, product<T>, dots<T>};
  });
  return table;
}

}  // namespace gt
