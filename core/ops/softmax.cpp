// Softmax, its relatives and the cross-entropies made of it, over the last axis. Rows are taken
// in blocks: what depends on a row is done row by row, exp runs over the block.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "../kernels/loops.h"
#include "elementwise.h"
#include "indices.h"
#include "reduction.h"
#include "strided.h"

namespace gt {
namespace {

constexpr int64_t kBlock = 4096;  // elements of a block of rows
constexpr int64_t kLong = 256;    // from here on the passes over a row are better done together
constexpr int64_t kShort = 16;    // below this a loop is cheaper than the call of a kernel

template <class T> struct Rows {
  // The vector loops of one type.
  Loop exp = find_elementwise("exp")->loop[int(DtypeOf<T>::value)];
  Loop exp_sub = find_elementwise("exp_sub")->loop[int(DtypeOf<T>::value)];
  Loop add = find_elementwise("add")->loop[int(DtypeOf<T>::value)];
  Loop sub = find_elementwise("sub")->loop[int(DtypeOf<T>::value)];
  Loop mul = find_elementwise("mul")->loop[int(DtypeOf<T>::value)];
  ReduceLoop max_loop = find_reduction("max")->loop[int(DtypeOf<T>::value)];
  ReduceLoop sum_loop = find_reduction("sum")->loop[int(DtypeOf<T>::value)];
  static const Rows& get() {
    static const Rows rows;
    return rows;
  }

  T max(const T* x, int64_t n) const {
    T m = x[0];
    if (n < kShort)
      for (int64_t i = 1; i < n; ++i) m = x[i] > m || x[i] != x[i] ? x[i] : m;
    else
      max_loop(&m, x, n, 1);
    return m;
  }
  T sum(const T* x, int64_t n) const {
    T s = 0;
    if (n < kShort)
      for (int64_t i = 0; i < n; ++i) s += x[i];
    else
      sum_loop(&s, x, n, 1);
    return s;
  }
  // out = x op y, y a single number.
  void scalar(Loop f, T* out, const T* x, T y, int64_t n) const {
    const void* in[2] = {x, &y};
    const uint8_t step[2] = {1, 0};
    f(out, in, step, n);
  }
  void pair(Loop f, T* out, const T* x, const T* y, int64_t n) const {
    const void* in[2] = {x, y};
    const uint8_t step[2] = {1, 1};
    f(out, in, step, n);
  }
  void subtract(T* out, const T* x, T y, int64_t n) const {
    if (n < kShort)
      for (int64_t i = 0; i < n; ++i) out[i] = x[i] - y;
    else
      scalar(sub, out, x, y, n);
  }
  void scale(T* out, const T* x, T y, int64_t n) const {
    if (n < kShort)
      for (int64_t i = 0; i < n; ++i) out[i] = x[i] * y;
    else
      scalar(mul, out, x, y, n);
  }
  void exp_all(T* out, const T* x, int64_t n) const {
    const void* in[1] = {x};
    const uint8_t step[1] = {1};
    exp(out, in, step, n);
  }
  // out = exp(x - the largest of its row).
  void exp_shifted(T* out, const T* x, int64_t rows, int64_t n) const {
    if (n >= kLong) {
      for (int64_t r = 0; r < rows; ++r) scalar(exp_sub, out + r * n, x + r * n, max(x + r * n, n), n);
      return;
    }
    for (int64_t r = 0; r < rows; ++r) subtract(out + r * n, x + r * n, max(x + r * n, n), n);
    exp_all(out, out, rows * n);
  }
};

// Calls f(first row, rows) over blocks of rows, on all threads.
template <class F> void each_block(int64_t rows, int64_t n, F&& f) {
  int64_t block = std::max<int64_t>(1, kBlock / std::max<int64_t>(n, 1));
  each_chunk((rows + block - 1) / block, grain_rows(block * n, 4 * kBlock), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) f(b * block, std::min(block, rows - b * block));
  });
}

// A row of float32 with +inf in it is NaN there and 0 elsewhere, as TensorFlow's; its rows of float64 are all
// NaN.
template <class T> void divide_by_sum(const Rows<T>& k, T* o, int64_t n) {
  const T sum = k.sum(o, n);
  if (!std::is_same_v<T, float> || sum == sum) k.scale(o, o, 1 / sum, n);
}
template <class T> void softmax(T* out, const T* x, int64_t rows, int64_t n) {
  const auto& k = Rows<T>::get();
  each_block(rows, n, [&](int64_t at, int64_t count) {
    T* o = out + at * n;
    if (n >= kLong) {  // a row at a time
      const T* v = x + at * n;
      for (int64_t r = at; r < at + count; ++r, o += n, v += n) {
        k.exp_shifted(o, v, 1, n);
        divide_by_sum(k, o, n);
      }
      return;
    }
    k.exp_shifted(o, x + at * n, count, n);
    for (int64_t r = 0; r < count; ++r, o += n) divide_by_sum(k, o, n);
  });
}
template <class T> void log_softmax(T* out, const T* x, int64_t rows, int64_t n) {
  const auto& k = Rows<T>::get();
  each_block(rows, n, [&](int64_t at, int64_t count) {
    T* o = out + at * n;
    const T* v = x + at * n;
    k.exp_shifted(o, v, count, n);
    for (int64_t r = 0; r < count; ++r, o += n, v += n) {
      T log_sum = std::log(k.sum(o, n));
      k.subtract(o, v, k.max(v, n), n);
      k.subtract(o, o, log_sum, n);
    }
  });
}
template <class T> void softmax_grad(T* out, const T* y, const T* g, int64_t rows, int64_t n) {
  const auto& k = Rows<T>::get();
  each_block(rows, n, [&](int64_t at, int64_t count) {
    k.pair(k.mul, out + at * n, g + at * n, y + at * n, count * n);
    for (int64_t r = at; r < at + count; ++r) k.subtract(out + r * n, g + r * n, k.sum(out + r * n, n), n);
    k.pair(k.mul, out + at * n, out + at * n, y + at * n, count * n);
  });
}
template <class T> void log_softmax_grad(T* out, const T* y, const T* g, int64_t rows, int64_t n) {
  const auto& k = Rows<T>::get();
  each_block(rows, n, [&](int64_t at, int64_t count) {
    k.exp_all(out + at * n, y + at * n, count * n);
    for (int64_t r = at; r < at + count; ++r) k.scale(out + r * n, out + r * n, k.sum(g + r * n, n), n);
    k.pair(k.sub, out + at * n, g + at * n, out + at * n, count * n);
  });
}
template <class T> void xent(T* loss, T* back, const T* x, const T* labels, int64_t rows, int64_t n) {
  const auto& k = Rows<T>::get();
  each_block(rows, n, [&](int64_t at, int64_t count) {
    k.exp_shifted(back + at * n, x + at * n, count, n);
    for (int64_t r = at; r < at + count; ++r) {
      T *b = back + r * n, sum = k.sum(b, n), log_sum = std::log(sum), m = k.max(x + r * n, n), total = 0;
      for (int64_t i = 0; i < n; ++i)  // a class of weight 0 costs nothing, even at -inf
        if (labels[r * n + i] != 0) total += labels[r * n + i] * (log_sum - (x[r * n + i] - m));
      loss[r] = total;
      k.scale(b, b, 1 / sum, n);
    }
    k.pair(k.sub, back + at * n, back + at * n, labels + at * n, count * n);
  });
}
template <class T, class I>
void sparse_xent(T* loss, T* back, const T* x, const I* labels, int64_t rows, int64_t n) {
  const auto& k = Rows<T>::get();
  each_block(rows, n, [&](int64_t at, int64_t count) {
    k.exp_shifted(back + at * n, x + at * n, count, n);
    for (int64_t r = at; r < at + count; ++r) {
      T *b = back + r * n, sum = k.sum(b, n);
      loss[r] = std::log(sum) - (x[r * n + labels[r]] - k.max(x + r * n, n));
      k.scale(b, b, 1 / sum, n);
      b[labels[r]] -= 1;
    }
  });
}
template <class T> void logsumexp(T* out, const T* x, int64_t rows, int64_t n) {
  const auto& k = Rows<T>::get();
  each_block(rows, n, [&](int64_t at, int64_t count) {
    T room[kBlock];
    if (n <= kBlock) k.exp_shifted(room, x + at * n, count, n);
    for (int64_t r = 0; r < count; ++r) {
      const T* v = x + (at + r) * n;
      T m = k.max(v, n), sum = 0;
      if (n <= kBlock) {
        sum = k.sum(room + r * n, n);
      } else {
        for (int64_t i = 0; i < n; i += kBlock) {
          int64_t part = std::min(kBlock, n - i);
          k.subtract(room, v + i, m, part);
          k.exp_all(room, room, part);
          sum += k.sum(room, part);
        }
      }
      out[at + r] = std::isfinite(m) ? m + std::log(sum) : m;
    }
  });
}

// ---- the ops: 16-bit floats are computed in float ----
Tensor wide(const Tensor& x) {
  if (!in(x.dtype, kHalf)) return x;
  Tensor y = empty(Dtype::F32, x.shape);
  run_cast(x, y);
  return y;
}
// Calls f with a zero of the computing type and results of that type.
template <class F> void in_float_or_double(Outs& outs, F&& f) {
  if (outs[0].numel == 0 && outs.size() == 1) return;
  if (outs[0].dtype == Dtype::F32) return f(0.0f, outs);
  if (outs[0].dtype == Dtype::F64) return f(0.0, outs);
  Outs w;
  for (Tensor& o : outs) w.push_back(empty(Dtype::F32, o.shape));
  f(0.0f, w);
  for (size_t i = 0; i < outs.size(); ++i) run_cast(w[i], outs[i]);
}
int64_t classes(const Tensor& x) { return x.shape[x.shape.rank - 1]; }

void want_rows(const Tensor& x) {
  want_dtype(x, kFloat, "softmax");
  if (x.shape.rank < 1) fail("logits must have >= 1 dimension, got []");
}
void infer_softmax(const Call& c, Outs& outs) {
  want_rows(c[0]);
  outs.emplace_back(c[0].spec());
}
void infer_softmax_grad(const Call& c, Outs& outs) {
  want_rows(c[0]);
  want_same_dtype(c[0], c[1]);
  if (!(c[0].shape == c[1].shape))
    fail("out and g must have the same shape, got " + c[0].shape.str() + " and " + c[1].shape.str());
  outs.emplace_back(c[0].spec());
}
template <bool log> void run_softmax(const Call& c, Outs& outs) {
  in_float_or_double(outs, [&](auto t, Outs& o) {
    using T = decltype(t);
    Tensor x = wide(c[0]);
    int64_t n = classes(x);
    (log ? log_softmax<T> : softmax<T>)(o[0].as<T>(), x.as<T>(), x.numel / n, n);
  });
}
template <bool log> void run_softmax_grad(const Call& c, Outs& outs) {
  in_float_or_double(outs, [&](auto t, Outs& o) {
    using T = decltype(t);
    Tensor y = wide(c[0]), g = wide(c[1]);
    int64_t n = classes(y);
    (log ? log_softmax_grad<T> : softmax_grad<T>)(o[0].as<T>(), y.as<T>(), g.as<T>(), y.numel / n, n);
  });
}
void add_loss_specs(const Tensor& x, Outs& outs) {
  if (classes(x) == 0) fail("Must have at least one class, but got logits shape " + x.shape.str());
  outs.emplace_back(Spec{x.dtype, Shape(x.shape.dims, x.shape.rank - 1)});
  outs.emplace_back(x.spec());
}
void infer_xent(const Call& c, Outs& outs) {
  want_rows(c[0]);
  want_same_dtype(c[0], c[1]);
  if (!(c[0].shape == c[1].shape))
    fail("logits and labels must be same size: logits_size=" + c[0].shape.str() +
         " labels_size=" + c[1].shape.str());
  add_loss_specs(c[0], outs);
}
void run_xent(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  in_float_or_double(outs, [&](auto t, Outs& o) {
    using T = decltype(t);
    Tensor x = wide(c[0]), labels = wide(c[1]);
    xent<T>(o[0].as<T>(), o[1].as<T>(), x.as<T>(), labels.as<T>(), o[0].numel, classes(x));
  });
}
void infer_sparse_xent(const Call& c, Outs& outs) {
  want_rows(c[0]);
  want_indices(c[1], "labels");
  if (!(c[1].shape == Shape(c[0].shape.dims, c[0].shape.rank - 1)))
    fail("logits and labels must have the same first dimension, got logits shape " + c[0].shape.str() +
         " and labels shape " + c[1].shape.str());
  add_loss_specs(c[0], outs);
}
void run_sparse_xent(const Call& c, Outs& outs) {
  int64_t n = classes(c[0]);
  visit_indices(c[1], [&](auto* labels) {
    for (int64_t i = 0; i < c[1].numel; ++i)
      if (labels[i] < 0 || labels[i] >= n)
        fail("Received a label value of " + std::to_string(labels[i]) +
             " which is outside the valid range of [0, " + std::to_string(n) + ").");
    if (outs[0].numel == 0) return;
    in_float_or_double(outs, [&](auto t, Outs& o) {
      using T = decltype(t);
      Tensor x = wide(c[0]);
      sparse_xent<T>(o[0].as<T>(), o[1].as<T>(), x.as<T>(), labels, o[0].numel, n);
    });
  });
}

// ---- logsumexp(x; axes, keepdims) ----
void infer_logsumexp(const Call& c, Outs& outs) {
  want_dtype(c[0], kFloat, "logsumexp");
  outs.emplace_back(Spec{c[0].dtype, reduced_shape(c[0].shape, axes_mask(c, 0, c[0].shape), c.integer(1))});
}
void run_logsumexp(const Call& c, Outs& outs) {
  in_float_or_double(outs, [&](auto t, Outs& o) {
    using T = decltype(t);
    Tensor x = wide(c[0]);
    int64_t rows = o[0].numel, n = x.numel / rows;
    if (n == 0) {
      std::fill_n(o[0].as<T>(), rows, -std::numeric_limits<T>::infinity());
      return;
    }
    uint32_t mask = axes_mask(c, 0, x.shape);
    // The reduced axes go last.
    Strides at(x.shape);
    Nest nest;
    int64_t to = x.numel;
    bool moved = false, seen = false;
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i < x.shape.rank; ++i)
        if ((mask >> i & 1) == uint32_t(pass)) to /= x.shape[i], nest.push(x.shape[i], at[i], to);
    for (int i = 0; i < x.shape.rank; ++i) {
      if (x.shape[i] == 1) continue;
      if (mask >> i & 1)
        seen = true;
      else
        moved |= seen;
    }
    if (moved) {
      Tensor y = empty(x.dtype, x.shape);
      strided_copy(y.data, x.data, sizeof(T), nest);
      x = y;
    }
    logsumexp<T>(o[0].as<T>(), x.as<T>(), rows, n);
  });
}

GT_OP("softmax", {infer_softmax, run_softmax<false>, true, 1});
GT_OP("log_softmax", {infer_softmax, run_softmax<true>, true, 1});
GT_OP("softmax_grad", {infer_softmax_grad, run_softmax_grad<false>});
GT_OP("log_softmax_grad", {infer_softmax_grad, run_softmax_grad<true>, true, 1});
GT_OP("softmax_xent", {infer_xent, run_xent, true, 1});
GT_OP("sparse_softmax_xent", {infer_sparse_xent, run_sparse_xent, true, 1});
GT_OP("logsumexp", {infer_logsumexp, run_logsumexp, true, 1});

}  // namespace
}  // namespace gt
