// Softmax, its relatives and the cross-entropies made of it, over the last axis.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "../kernels/softmax.h"
#include "elementwise.h"
#include "indices.h"
#include "reduction.h"
#include "strided.h"

namespace gt {
namespace {

template <class T> const SoftmaxLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>)
    return kernels().softmax->f32;
  else
    return kernels().softmax->f64;
}

// Calls f(first row, rows) over blocks of rows, on all threads.
template <class F> void each_block(int64_t rows, int64_t n, F&& f) {
  const int64_t block = std::max<int64_t>(1, kSoftmaxBlock / n);
  each_chunk((rows + block - 1) / block, grain_rows(block * n, 4 * kSoftmaxBlock),
             [&](int64_t begin, int64_t end) {
               for (int64_t b = begin; b < end; ++b) f(b * block, std::min(block, rows - b * block));
             });
}

// What the exponentials of a block of rows were shifted by, and their sums.
template <class T> struct Block { T largest[kSoftmaxBlock], sum[kSoftmaxBlock]; };

template <class T> void softmax(T* out, const T* x, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    Block<T> b;
    loops<T>().exp(out + at * n, x + at * n, count, n, true, b.largest, b.sum);
  });
}
template <class T> void log_softmax(T* out, const T* x, int64_t rows, int64_t n) {
  each_block(rows, n,
             [&](int64_t at, int64_t count) { loops<T>().log_softmax(out + at * n, x + at * n, count, n); });
}
template <class T> void softmax_grad(T* out, const T* y, const T* g, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    loops<T>().softmax_grad(out + at * n, y + at * n, g + at * n, count, n);
  });
}
template <class T> void log_softmax_grad(T* out, const T* y, const T* g, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    loops<T>().log_softmax_grad(out + at * n, y + at * n, g + at * n, count, n);
  });
}
template <class T> void xent(T* loss, T* back, const T* x, const T* labels, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    Block<T> b;
    loops<T>().exp(back + at * n, x + at * n, count, n, true, b.largest, b.sum);
    for (int64_t r = 0; r < count; ++r) {
      const T m = b.largest[r], log_sum = std::log(b.sum[r]);
      T total = 0;
      for (int64_t i = (at + r) * n; i < (at + r + 1) * n; ++i) {
        // A class of weight 0 costs nothing, even at -inf.
        if (labels[i] != 0) total += labels[i] * (log_sum - (x[i] - m));
        back[i] -= labels[i];
      }
      loss[at + r] = total;
    }
  });
}
template <class T, class I>
void sparse_xent(T* loss, T* back, const T* x, const I* labels, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    Block<T> b;
    loops<T>().exp(back + at * n, x + at * n, count, n, true, b.largest, b.sum);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = (at + r) * n + labels[at + r];
      loss[at + r] = std::log(b.sum[r]) - (x[i] - b.largest[r]);
      back[i] -= 1;
    }
  });
}
template <class T> void logsumexp(T* out, const T* x, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    Block<T> b;
    std::vector<T> room(size_t(count * n));
    loops<T>().exp(room.data(), x + at * n, count, n, false, b.largest, b.sum);
    for (int64_t r = 0; r < count; ++r) {
      const T m = b.largest[r];
      out[at + r] = std::isfinite(m) ? m + std::log(b.sum[r]) : m;
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
