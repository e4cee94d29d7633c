// Running sums, products and log-sum-exps along an axis, and linear recurrences, which are
// their gradients.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "indices.h"

namespace gt {
namespace {

// name(x; axis, exclusive, reverse). F offers: start<A>() and next(a, x).
struct Sum {
  template <class A> static A start() { return A(0); }
  template <class A> static A next(A a, A x) { return wrap(a, x, Combine::Add); }
};
struct Product {
  template <class A> static A start() { return A(1); }
  template <class A> static A next(A a, A x) { return wrap(a, x, Combine::Mul); }
};
struct LogSumExp {
  template <class A> static A start() { return -std::numeric_limits<A>::infinity(); }
  template <class A> static A next(A a, A x) {
    if (a != a || x != x) return a + x;
    A m = a > x ? a : x;
    if (!std::isfinite(m)) return m;
    return m + std::log1p(std::exp((a > x ? x : a) - m));
  }
};

void infer_scan(const Call& c, Outs& outs) {
  want_dtype(c[0], kNumber, "cumsum and cumprod");
  axis_attr(c, 0, c[0].shape.rank);
  outs.emplace_back(c[0].spec());
}
void infer_float_scan(const Call& c, Outs& outs) {
  want_dtype(c[0], kFloat, "cumulative_logsumexp");
  infer_scan(c, outs);
}

constexpr int64_t kColumns = 64;  // lines processed side by side, so that memory is read in order

// `columns` lines of `n` elements, `step` apart; 16-bit floats are summed in float.
template <class F, class T>
void scan_lines(T* out, const T* x, int64_t n, int64_t step, int64_t columns, bool exclusive) {
  using A = std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat>, float, T>;
  if (columns == 1) {  // the running value in a register
    A a = F::template start<A>();
    for (int64_t i = 0; i < n; ++i, x += step, out += step) {
      A before = a;
      a = F::next(before, A(*x));
      *out = T(exclusive ? before : a);
    }
    return;
  }
  A a[kColumns];
  std::fill_n(a, columns, F::template start<A>());
  for (int64_t i = 0; i < n; ++i, x += step, out += step)
    for (int64_t j = 0; j < columns; ++j) {
      A before = a[j];
      a[j] = F::next(before, A(x[j]));
      out[j] = T(exclusive ? before : a[j]);
    }
}

template <class F> void run_scan(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  if (x.numel == 0) return;
  Split v(x.shape, int(c.integer(0)));
  bool exclusive = c.integer(1), reverse = c.integer(2);
  int64_t step = reverse ? -v.inner : v.inner, start = reverse ? (v.size - 1) * v.inner : 0;
  int64_t columns = std::min(kColumns, v.inner), across = (v.inner + columns - 1) / columns;
  visit(x.dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (!std::is_same_v<T, bool> && (is_real<T> || !std::is_same_v<F, LogSumExp>))
      each_chunk(v.outer * across, grain_rows(v.size * columns, 1 << 14), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t column = i % across * columns, at = i / across * v.size * v.inner + column + start;
          scan_lines<F>(out.as<T>() + at, x.as<T>() + at, v.size, step, std::min(columns, v.inner - column),
                        exclusive);
        }
      });
  });
}

// ---- linear_recurrence(a, b; axis, reverse): out_i = a_i out_(i-1) + b_i, beginning with 0 ----
void infer_recurrence(const Call& c, Outs& outs) {
  want_dtype(c[0], kNumber, "linear_recurrence");
  want_same_dtype(c[0], c[1]);
  if (!(c[0].shape == c[1].shape))
    fail("a and b must have the same shape: " + c[0].shape.str() + " vs. " + c[1].shape.str());
  axis_attr(c, 0, c[0].shape.rank);
  outs.emplace_back(c[0].spec());
}
void run_recurrence(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  Tensor& out = outs[0];
  if (a.numel == 0) return;
  Split v(a.shape, int(c.integer(0)));
  bool reverse = c.integer(1);
  int64_t step = reverse ? -v.inner : v.inner, start = reverse ? (v.size - 1) * v.inner : 0;
  int64_t columns = std::min(kColumns, v.inner), across = (v.inner + columns - 1) / columns;
  visit(a.dtype, [&](auto t) {
    using T = decltype(t);
    using A = std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat>, float, T>;
    if constexpr (!std::is_same_v<T, bool>)
      each_chunk(v.outer * across, grain_rows(v.size * columns, 1 << 14), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t column = i % across * columns, at = i / across * v.size * v.inner + column + start;
          int64_t n = std::min(columns, v.inner - column);
          A state[kColumns];
          for (int64_t k = 0; k < v.size; ++k, at += step)
            for (int64_t j = 0; j < n; ++j) {
              // The first coefficient multiplies nothing: it may be infinite.
              A next = A(b.as<T>()[at + j]);
              state[j] =
                  k ? wrap(wrap(A(a.as<T>()[at + j]), state[j], Combine::Mul), next, Combine::Add) : next;
              out.as<T>()[at + j] = T(state[j]);
            }
        }
      });
  });
}

GT_OP("cumsum", {infer_scan, run_scan<Sum>, true, 1});
GT_OP("cumprod", {infer_scan, run_scan<Product>, true, 1});
GT_OP("cumlogsumexp", {infer_float_scan, run_scan<LogSumExp>, true, 10});
GT_OP("linear_recurrence", {infer_recurrence, run_recurrence, true, 1});

}  // namespace
}  // namespace gt
