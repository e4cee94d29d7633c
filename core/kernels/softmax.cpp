// Softmax and its relatives in as few passes over a row as there can be.
//
// A row is taken in vectors, the last of which may be a part. What is computed once for each row is a number
// in an array, so that the logarithms of short rows are taken together.
#include "softmax.h"

#include "all.h"
#include "math.h"
#include "vector_rows.h"

namespace gt {

namespace {

constexpr int kUnroll = 4;
// Vectors summed up in T, one after the other; sums of chunks are added in double.
constexpr int64_t kChain = 64;

// Rows shorter than this, half a vector and less, are taken element by element, but exp runs over all of them
// together.
template <class T> constexpr int64_t kFew = kLanes<T> / 2 + 1;

template <class T> [[gnu::always_inline]] inline V<T> same_in_all(T x) { return V<T>{} + x; }

template <class T> [[gnu::always_inline]] inline T exp_of(T x) { return math::exp(x); }
template <class T> [[gnu::always_inline]] inline V<T> exp_of(V<T> x) {
  if constexpr (std::is_same_v<T, float>) return math::exp(math::Floats(x)).at[0];
  if constexpr (std::is_same_v<T, double>) return math::exp(math::Doubles<1>(x)).at[0];
  alignas(64) T y[kLanes<T>];
  store(y, x);
  GT_VECTOR_LOOP
  for (int j = 0; j < kLanes<T>; ++j) y[j] = math::exp(y[j]);
  return load(y);
}

// The largest of n elements, if none is NaN.
template <class S> [[gnu::always_inline]] inline Wider<S> largest_of(const S* x, int64_t n) {
  using T = Wider<S>;
  constexpr int L = kLanes<T>;
  auto larger = [](auto a, auto b) { return b > a ? b : a; };
  const T least = -__builtin_inf();
  V<T> m = same_in_all(least);
  int64_t i = 0;
  if (n >= kUnroll * L) {
    V<T> more[kUnroll];
    GT_EACH(k, kUnroll) more[k] = Whole{}.load(x + k * L, T(0));
    for (i = kUnroll * L; i + kUnroll * L <= n; i += kUnroll * L)
      GT_EACH(k, kUnroll) more[k] = larger(more[k], Whole{}.load(x + i + k * L, T(0)));
    m = larger(larger(more[0], more[1]), larger(more[2], more[3]));
  }
  for (; i + L <= n; i += L) m = larger(m, Whole{}.load(x + i, T(0)));
  if (i < n) m = larger(m, Part{int(n - i)}.load(x + i, least));
  return folded<T>(m, larger);
}

// The sum of f(i, span) over the vectors of a row of n elements.
template <class T, class F> [[gnu::always_inline]] inline T sum_of(int64_t n, F f) {
  constexpr int L = kLanes<T>;
  auto plus = [](auto a, auto b) { return a + b; };
  if (n < kFew<T>) {
    T s = 0;
    for (int64_t i = 0; i < n; ++i) {
      GT_SHORT_LOOP;
      s += f(i, One{});
    }
    return s;
  }
  V<T> acc = {};
  double total = 0;
  int64_t i = 0;
  if (n >= kUnroll * L) {
    for (const int64_t whole = n / (kUnroll * L) * (kUnroll * L);;) {
      const int64_t end = whole - i < kChain * kUnroll * L ? whole : i + kChain * kUnroll * L;
      V<T> more[kUnroll] = {};
      for (; i < end; i += kUnroll * L) GT_EACH(k, kUnroll) more[k] += f(i + k * L, Whole{});
      acc = (more[0] + more[1]) + (more[2] + more[3]);
      if (i == whole) break;
      total += double(folded<T>(acc, plus));
    }
  }
  for (; i + L <= n; i += L) acc += f(i, Whole{});
  if (i < n) acc += f(i, Part{int(n - i)});
  return T(total + double(folded<T>(acc, plus)));
}
// Calls f(i, span) for the vectors of a row.
template <class T, class F> [[gnu::always_inline]] inline void each_vector(int64_t n, F f) {
  constexpr int L = kLanes<T>;
  int64_t i = 0;
  if (n < kFew<T>) {
    for (; i < n; ++i) {
      GT_SHORT_LOOP;
      f(i, One{});
    }
    return;
  }
  for (; i + L <= n; i += L) f(i, Whole{});
  if (i < n) f(i, Part{int(n - i)});
}

// The same where it is infinite, or NaN if there is one. Where it is finite the sum of exponentials is NaN
// then.
template <class S> [[gnu::always_inline]] inline Wider<S> largest_or_nan(const S* x, int64_t n) {
  using T = Wider<S>;
  const T m = largest_of(x, n);
  if (m < T(__builtin_inf())) return m;
  for (int64_t i = 0; i < n; ++i)
    if (number(x[i]) != number(x[i])) return number(x[i]);
  return m;
}
// The sum of exp(x - m); `each` is called with the vectors.
template <class S, class F>
[[gnu::always_inline]] inline Wider<S> exp_sum(const S* x, Wider<S> m, int64_t n, F each) {
  return sum_of<Wider<S>>(n, [=](int64_t i, auto span) {
    const auto y = exp_of<Wider<S>>(span.load(x + i, -Wider<S>(__builtin_inf())) - m);
    each(i, y, span);
    return y;
  });
}

// Short rows of 16-bit floats, which are at most a block, in float.
template <class S, class F> void in_float(S* out, const S* x, int64_t n, F f) {
  alignas(64) float room[kSoftmaxBlock];
  widen(room, x, n);
  f(room);
  narrow(out, room, n);
}
template <class S, class F> void in_float(S* out, const S* x, const S* y, int64_t n, F f) {
  alignas(64) float other[kSoftmaxBlock + 512];  // half a page more: see Room in ops/softmax.cpp
  widen(other, y, n);
  in_float(out, x, n, [&](float* room) { f(room, other); });
}

// e = exp(e) for n elements, of many rows.
template <class T> void exp_all(T* e, int64_t n) {
  constexpr int L = kLanes<T>;
  int64_t i = 0;
  for (; i + L <= n; i += L) store(e + i, exp_of<T>(load(e + i)));
  if (const Part rest{int(n - i)}; rest.n) rest.store(e + i, exp_of<T>(rest.load(e + i, T(0))));
}
template <class S>
void few_exp_sums(const S* x, int64_t rows, int64_t n, Wider<S>* largest, Wider<S>* sum, Wider<S>* e) {
  using T = Wider<S>;
  for (int64_t r = 0; r < rows; ++r) {
    T m = number(x[r * n]);
    each_vector<T>(n, [&](int64_t i, auto) {
      const T y = number(x[r * n + i]);
      m = y > m || y != y ? y : m;
    });
    largest[r] = m;
    each_vector<T>(n, [=](int64_t i, auto) { e[r * n + i] = number(x[r * n + i]) - m; });
  }
  exp_all(e, rows * n);
  for (int64_t r = 0; r < rows; ++r)
    sum[r] = sum_of<T>(n, [=](int64_t i, auto span) { return span.load(e + r * n + i, T(0)); });
}
// The largest elements, the exponentials and their sums; one step for all rows before the next, because in a
// short row each waits for the one before. Exponentials that are not to be kept may be written to `e` all the
// same.
template <bool kept, class S>
[[gnu::always_inline]] inline void exp_sums(const S* x, int64_t rows, int64_t n, Wider<S>* largest,
                                            Wider<S>* sum, Wider<S>* e) {
  if (n < kFew<Wider<S>>) return few_exp_sums(x, rows, n, largest, sum, e);
  for (int64_t r = 0; r < rows; ++r) largest[r] = largest_or_nan(x + r * n, n);
  for (int64_t r = 0; r < rows; ++r)
    sum[r] = exp_sum(x + r * n, largest[r], n, [=](int64_t i, auto y, auto span) {
      if constexpr (kept) span.store(e + r * n + i, y);
    });
}
template <class S> void exp_sums(const S* x, int64_t rows, int64_t n, Wider<S>* largest, Wider<S>* sum) {
  Wider<S> room[kSoftmaxBlock];
  exp_sums<false>(x, rows, n, largest, sum, room);
}

template <class S>
void softmax(S* out, const S* x, int64_t rows, int64_t n, Wider<S>* largest, Wider<S>* sum, Wider<S>* room) {
  using T = Wider<S>;
  if constexpr (kIsHalf<S>)
    if (n < kFew<T>)

      return in_float(out, x, rows * n, [=](float* o) { softmax(o, o, rows, n, largest, sum, o); });
  T* e;
  if constexpr (kIsHalf<S>)
    e = room;
  else
    e = out;
  exp_sums<true>(x, rows, n, largest, sum, e);
  for (int64_t r = 0; r < rows; ++r, out += n, e += n) {
    const T by = sizeof(T) == 4 && largest[r] == T(__builtin_inf()) ? T(1) : 1 / sum[r];
    each_vector<T>(n, [=](int64_t i, auto span) { span.store(out + i, span.load(e + i, T(0)) * by); });
  }
}

template <class S> void log_softmax(S* out, const S* x, int64_t rows, int64_t n) {
  using T = Wider<S>;
  if constexpr (kIsHalf<S>)
    if (n < kFew<T>) return in_float(out, x, rows * n, [=](float* o) { log_softmax(o, o, rows, n); });
  T largest[kSoftmaxBlock], sum[kSoftmaxBlock];
  exp_sums(x, rows, n, largest, sum);
  if constexpr (std::is_same_v<T, double>) {
    constexpr int L = kLanes<double>;
    for (int64_t r = rows; r % L; ++r) sum[r] = 1;
    for (int64_t r = 0; r < rows; r += L) math::log(math::Doubles<1>::load(sum + r)).store(sum + r);
  } else {
    GT_VECTOR_LOOP
    for (int64_t r = 0; r < rows; ++r) sum[r] = math::log(sum[r]);
  }
  for (int64_t r = 0; r < rows; ++r, out += n, x += n)
    each_vector<T>(n, [=, m = largest[r], by = sum[r]](int64_t i, auto span) {
      span.store(out + i, span.load(x + i, T(0)) - m - by);
    });
}

template <class S> void softmax_grad(S* out, const S* y, const S* g, int64_t rows, int64_t n) {
  using T = Wider<S>;
  if constexpr (kIsHalf<S>)
    if (n < kFew<T>)

      return in_float(out, y, g, rows * n, [=](float* o, const float* p) { softmax_grad(o, o, p, rows, n); });
  for (int64_t r = 0; r < rows; ++r, out += n, y += n, g += n) {
    const T dot =
        sum_of<T>(n, [=](int64_t i, auto span) { return span.load(g + i, T(0)) * span.load(y + i, T(0)); });
    each_vector<T>(n, [=](int64_t i, auto span) {
      span.store(out + i, (span.load(g + i, T(0)) - dot) * span.load(y + i, T(0)));
    });
  }
}

template <class S> void log_softmax_grad(S* out, const S* y, const S* g, int64_t rows, int64_t n) {
  using T = Wider<S>;
  if constexpr (kIsHalf<S>)
    if (n < kFew<T>)

      return in_float(out, y, g, rows * n,
                      [=](float* o, const float* p) { log_softmax_grad(o, o, p, rows, n); });
  T room[kSoftmaxBlock];
  const T* e = nullptr;  // exp(y) of short rows
  if (n < kFew<T>) {
    for (int64_t i = 0; i < rows * n; ++i) room[i] = number(y[i]);
    exp_all(room, rows * n);
    e = room;
  }
  for (int64_t r = 0; r < rows; ++r, out += n, y += n, g += n) {
    const T sum = sum_of<T>(n, [=](int64_t i, auto span) { return span.load(g + i, T(0)); });
    each_vector<T>(n, [=](int64_t i, auto span) {
      const auto power = [&] {
        if constexpr (std::is_same_v<decltype(span), One>)
          return e[r * n + i];
        else
          return exp_of<T>(span.load(y + i, T(0)));
      }();
      span.store(out + i, span.load(g + i, T(0)) - power * sum);
    });
  }
}

template <class S>
constexpr SoftmaxLoops<S, Wider<S>> of{softmax<S>, exp_sums<S>, log_softmax<S>, softmax_grad<S>,
                                       log_softmax_grad<S>};
constexpr AllSoftmaxLoops all{of<float>, of<double>, of<half>, of<bfloat>};

}  // namespace

const AllSoftmaxLoops* softmax_loops() { return &all; }

}  // namespace gt
