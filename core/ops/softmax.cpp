// Softmax, related functions, and the cross-entropies built on it, over the last axis.
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

// The type that elements of S are computed in.
template <class S> using Computing = std::conditional_t<sizeof(S) == 2, float, S>;

template <class S> const SoftmaxLoops<S, Computing<S>>& loops() {
  if constexpr (std::is_same_v<S, float>)
    return kernels().softmax->f32;
  else if constexpr (std::is_same_v<S, double>)
    return kernels().softmax->f64;
  else if constexpr (std::is_same_v<S, half>)
    return kernels().softmax->f16;
  else
    return kernels().softmax->bf16;
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

// Memory for a block of rows that are converted.
template <class T> class Room {
 public:
  T* take(int64_t n) {
    if (n <= kSoftmaxBlock) return fixed_;
    more_.resize(size_t(n));
    return more_.data();
  }

 private:
  // Half a page more, so that corresponding elements of two rooms differ in the last 12 bits of their
  // addresses: otherwise the processor makes a read from one wait for a write to the other (4K aliasing).
  alignas(64) T fixed_[kSoftmaxBlock + 2048 / sizeof(T)];
  std::vector<T> more_;  // for a row that is longer
};

// Elements of an operand, to compute with in T: those of 16-bit floats are converted block by block, while
// they are in the cache.
template <class T> class Source {
 public:
  explicit Source(const Tensor& x)
      : data_(x.data),
        width_(dtype_size(x.dtype)),
        cast_(x.dtype == DtypeOf<T>::value ? nullptr : find_cast(x.dtype, DtypeOf<T>::value)) {}
  const T* read(int64_t at, int64_t n, Room<T>& room) const {
    const char* from = data_ + at * width_;
    if (!cast_) return reinterpret_cast<const T*>(from);
    T* to = room.take(n);
    cast_(to, from, n);
    return to;
  }

 private:
  const char* data_;
  int64_t width_;
  CastLoop cast_;
};
// The same for a result: it is computed in the memory that `place` returns, and stored by `write`.
template <class T> class Sink {
 public:
  explicit Sink(const Tensor& x)
      : data_(x.data),
        width_(dtype_size(x.dtype)),
        cast_(x.dtype == DtypeOf<T>::value ? nullptr : find_cast(DtypeOf<T>::value, x.dtype)) {}
  T* place(int64_t at, int64_t n, Room<T>& room) const {
    return cast_ ? room.take(n) : reinterpret_cast<T*>(data_) + at;
  }
  void write(int64_t at, int64_t n, const T* from) const {
    if (cast_) cast_(data_ + at * width_, from, n);
  }

 private:
  char* data_;
  int64_t width_;
  CastLoop cast_;
};

template <class S> void softmax(Tensor& out, const Tensor& x, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    using T = Computing<S>;
    Block<T> b;
    Room<T> room;
    loops<S>().softmax(out.as<S>() + at * n, x.as<S>() + at * n, count, n, b.largest, b.sum,
                       std::is_same_v<S, T> ? nullptr : room.take(count * n));
  });
}
template <class S> void log_softmax(Tensor& out, const Tensor& x, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    loops<S>().log_softmax(out.as<S>() + at * n, x.as<S>() + at * n, count, n);
  });
}
template <class S> void softmax_grad(Tensor& out, const Tensor& y, const Tensor& g, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    loops<S>().softmax_grad(out.as<S>() + at * n, y.as<S>() + at * n, g.as<S>() + at * n, count, n);
  });
}
template <class S>
void log_softmax_grad(Tensor& out, const Tensor& y, const Tensor& g, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    loops<S>().log_softmax_grad(out.as<S>() + at * n, y.as<S>() + at * n, g.as<S>() + at * n, count, n);
  });
}
// Calls f(loss, back, x, rows, first row) on blocks of rows.
template <class T, class F> void map_losses(Outs& outs, const Tensor& x, int64_t rows, int64_t n, F&& f) {
  const Source<T> from(x);
  const Sink<T> losses(outs[0]), backs(outs[1]);
  each_block(rows, n, [&](int64_t at, int64_t count) {
    Room<T> room, loss_room, back_room;
    const T* p = from.read(at * n, count * n, room);
    T* loss = losses.place(at, count, loss_room);
    T* back = backs.place(at * n, count * n, back_room);
    f(loss, back, p, count, at);
    losses.write(at, count, loss);
    backs.write(at * n, count * n, back);
  });
}
template <class T> void xent(Outs& outs, const Tensor& x, const Tensor& labels, int64_t rows, int64_t n) {
  const Source<T> wanted(labels);
  map_losses<T>(outs, x, rows, n, [&](T* loss, T* back, const T* p, int64_t count, int64_t at) {
    Block<T> b;
    Room<T> room;
    const T* z = wanted.read(at * n, count * n, room);
    loops<T>().softmax(back, p, count, n, b.largest, b.sum, nullptr);
    for (int64_t r = 0; r < count; ++r) {
      const T m = b.largest[r], log_sum = std::log(b.sum[r]);
      T total = 0;
      for (int64_t i = r * n; i < (r + 1) * n; ++i) {
        // A class of weight 0 costs nothing, even at -inf.
        if (z[i] != 0) total += z[i] * (log_sum - (p[i] - m));
        back[i] -= z[i];
      }
      loss[r] = total;
    }
  });
}
template <class T, class I>
void sparse_xent(Outs& outs, const Tensor& x, const I* labels, int64_t rows, int64_t n) {
  map_losses<T>(outs, x, rows, n, [&](T* loss, T* back, const T* p, int64_t count, int64_t at) {
    Block<T> b;
    loops<T>().softmax(back, p, count, n, b.largest, b.sum, nullptr);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = r * n + labels[at + r];
      loss[r] = std::log(b.sum[r]) - (p[i] - b.largest[r]);
      back[i] -= 1;
    }
  });
}
template <class S> void logsumexp(Tensor& out, const Tensor& x, int64_t rows, int64_t n) {
  each_block(rows, n, [&](int64_t at, int64_t count) {
    using T = Computing<S>;
    Block<T> b;
    loops<S>().exp_sums(x.as<S>() + at * n, count, n, b.largest, b.sum);
    S* o = out.as<S>() + at;
    for (int64_t r = 0; r < count; ++r) {
      const T m = b.largest[r];
      o[r] = S(std::isfinite(m) ? m + std::log(b.sum[r]) : m);
    }
  });
}

// ---- the ops: 16-bit floats are computed in float ----
// Calls f with a zero of the computing type.
template <class F> void in_float_or_double(Outs& outs, F&& f) {
  if (outs[0].numel == 0) return;
  if (outs[0].dtype == Dtype::F64) return f(0.0);
  f(0.0f);
}
// Calls f with an element, whose type is that of the result.
template <class F> void with_element(Outs& outs, F&& f) {
  if (outs[0].numel == 0) return;
  switch (outs[0].dtype) {
    case Dtype::F64: return f(0.0);
    case Dtype::F16: return f(half(0.0f));
    case Dtype::BF16: return f(bfloat(0.0f));
    default: return f(0.0f);
  }
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
  with_element(outs, [&](auto t) {
    using S = decltype(t);
    int64_t n = classes(c[0]);
    (log ? log_softmax<S> : softmax<S>)(outs[0], c[0], c[0].numel / n, n);
  });
}
template <bool log> void run_softmax_grad(const Call& c, Outs& outs) {
  with_element(outs, [&](auto t) {
    using S = decltype(t);
    int64_t n = classes(c[0]);
    (log ? log_softmax_grad<S> : softmax_grad<S>)(outs[0], c[0], c[1], c[0].numel / n, n);
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
  in_float_or_double(outs,
                     [&](auto t) { xent<decltype(t)>(outs, c[0], c[1], outs[0].numel, classes(c[0])); });
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
             " which is outside the valid range of [0, " + std::to_string(n) + ")");
    in_float_or_double(outs, [&](auto t) { sparse_xent<decltype(t)>(outs, c[0], labels, outs[0].numel, n); });
  });
}

// ---- logsumexp(x; axes, keepdims) ----
void infer_logsumexp(const Call& c, Outs& outs) {
  want_dtype(c[0], kFloat, "logsumexp");
  outs.emplace_back(Spec{c[0].dtype, reduced_shape(c[0].shape, axes_mask(c, 0, c[0].shape), c.integer(1))});
}
void run_logsumexp(const Call& c, Outs& outs) {
  with_element(outs, [&](auto t) {
    using S = decltype(t);
    Tensor x = c[0];
    int64_t rows = outs[0].numel, n = x.numel / rows;
    if (n == 0) {
      std::fill_n(outs[0].as<S>(), rows, S(-std::numeric_limits<Computing<S>>::infinity()));
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
      strided_copy(y.data, x.data, dtype_size(x.dtype), nest);
      x = y;
    }
    logsumexp<S>(outs[0], x, rows, n);
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
