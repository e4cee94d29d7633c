// Attention: softmax(scale q k' + bias) v for many heads, and its gradient, without the matrix of
// scores. Blocks of queries meet blocks of keys; what a block needs stays in the cache.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "../blas.h"
#include "../kernels/loops.h"
#include "../threads.h"
#include "contraction.h"
#include "elementwise.h"
#include "reduction.h"

namespace gt {
namespace {

constexpr int64_t kQueries = 64, kKeys = 256;  // of a block

template <class T> struct Kernels {
  Loop exp_sub = find_elementwise("exp_sub")->loop[int(DtypeOf<T>::value)];
  Loop mul = find_elementwise("mul")->loop[int(DtypeOf<T>::value)];
  Loop add = find_elementwise("add")->loop[int(DtypeOf<T>::value)];
  ReduceLoop max = find_reduction("max")->loop[int(DtypeOf<T>::value)];
  ReduceLoop sum = find_reduction("sum")->loop[int(DtypeOf<T>::value)];
  static const Kernels& get() {
    static const Kernels k;
    return k;
  }
  // x = exp(x - y)
  void exp_minus(T* x, T y, int64_t n) const {
    const void* in[2] = {x, &y};
    const uint8_t step[2] = {1, 0};
    exp_sub(x, in, step, n);
  }
  void scale(T* x, T y, int64_t n) const {
    const void* in[2] = {x, &y};
    const uint8_t step[2] = {1, 0};
    mul(x, in, step, n);
  }
  void add_to(T* x, const T* y, int64_t n) const {
    const void* in[2] = {x, y};
    const uint8_t step[2] = {1, 1};
    add(x, in, step, n);
  }
};

// c = alpha op(a) op(b), added to c if `add`; on this thread.
template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
          int64_t ldb, bool add, T* c, int64_t ldc) {
  if constexpr (std::is_same_v<T, float>)
    if (multiplies_panels<float>())
      return run_panels_here(Product<float>{a, b, c, m, n, k, lda, ldb, ldc, ta, tb}, alpha, add);
  const Blas& f = blas();
  auto call = [&] {
    if constexpr (std::is_same_v<T, float>)
      return f.sgemm;
    else
      return f.dgemm;
  }();
  call(kRowMajor, ta ? kTrans : kNoTrans, tb ? kTrans : kNoTrans, int(m), int(n), int(k), alpha, a, int(lda),
       b, int(ldb), T(add), c, int(ldc));
}

// The shapes of a call: leading axes are heads, the bias may lack any of them.
struct Heads {
  int64_t count = 1, queries, keys, width, value_width;
  const Shape& lead;  // of the queries
  bool causal;
  double scale;
  const Tensor* bias = nullptr;  // nullptr: there is none

  Heads(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& b, double scale, bool causal)
      : lead(q.shape), causal(causal), scale(scale) {
    int r = q.shape.rank;
    for (int i = 0; i < r - 2; ++i) count *= q.shape[i];
    queries = q.shape[r - 2], width = q.shape[r - 1], keys = k.shape[r - 2], value_width = v.shape[r - 1];
    if (b.shape.rank) bias = &b;
  }
  // Where the bias of a head begins.
  template <class T> const T* bias_of(int64_t head) const {
    int64_t at = 0, stride = queries * keys;
    for (int i = lead.rank - 3; i >= 0; --i) {
      int64_t place = head % lead[i];
      head /= lead[i];
      if (bias->shape[i] != 1) at += place * stride, stride *= bias->shape[i];
    }
    return bias->as<T>() + at;
  }
  // With fewer queries than keys the last query sees the last key.
  int64_t seen(int64_t query) const { return causal ? std::clamp<int64_t>(query + 1, 0, keys) : keys; }
};

// Scores of a block of queries and keys, masked; ld is the length of a row.
template <class T>
void scores(const Heads& h, const T* q, const T* k, const T* bias, int64_t q0, int64_t nq, int64_t k0,
            int64_t nk, T* s) {
  const Kernels<T>& f = Kernels<T>::get();
  gemm<T>(false, true, nq, nk, h.width, T(h.scale), q + q0 * h.width, h.width, k + k0 * h.width, h.width,
          false, s, nk);
  for (int64_t i = 0; i < nq; ++i) {
    T* row = s + i * nk;
    if (bias) f.add_to(row, bias + (q0 + i) * h.keys + k0, nk);
    for (int64_t j = std::max<int64_t>(0, h.seen(q0 + i) - k0); j < nk; ++j)
      row[j] = -std::numeric_limits<T>::infinity();
  }
}

template <class T> struct Scratch {
  std::unique_ptr<T[]> data;
  int64_t size = 0;
  T* get(int64_t n) {
    if (n > size) data.reset(new T[size_t(n)]), size = n;
    return data.get();
  }
};

template <class T>
void forward_block(const Heads& h, const T* q, const T* k, const T* v, const T* bias, int64_t q0, int64_t nq,
                   T* out, T* lse) {
  static thread_local Scratch<T> memory;
  const Kernels<T>& f = Kernels<T>::get();
  T* s = memory.get(kQueries * (kKeys + 2));
  T *high = s + kQueries * kKeys, *total = high + kQueries;
  const T none = -std::numeric_limits<T>::infinity();
  std::fill_n(high, nq, none);
  std::fill_n(total, nq, T(0));
  std::fill_n(out + q0 * h.value_width, nq * h.value_width, T(0));
  int64_t end = h.seen(q0 + nq - 1);
  for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
    int64_t nk = std::min(kKeys, h.keys - k0);
    scores(h, q, k, bias, q0, nq, k0, nk, s);
    for (int64_t i = 0; i < nq; ++i) {
      T* row = s + i * nk;
      T m = high[i];
      f.max(&m, row, nk, 1);
      m = std::max(m, high[i]);
      if (m == none) {
        std::fill_n(row, nk, T(0));
        continue;
      }
      T fade = std::exp(high[i] - m), sum = 0;
      f.exp_minus(row, m, nk);
      f.sum(&sum, row, nk, 1);
      total[i] = total[i] * fade + sum;
      if (fade != T(1) && k0) f.scale(out + (q0 + i) * h.value_width, fade, h.value_width);
      high[i] = m;
    }
    gemm<T>(false, false, nq, h.value_width, nk, T(1), s, nk, v + k0 * h.value_width, h.value_width, true,
            out + q0 * h.value_width, h.value_width);
  }
  for (int64_t i = 0; i < nq; ++i) {
    // A query that may look at nothing gives zeros.
    if (total[i] > T(0)) f.scale(out + (q0 + i) * h.value_width, T(1) / total[i], h.value_width);
    lse[q0 + i] = total[i] > T(0) ? high[i] + std::log(total[i]) : none;
  }
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& b) {
  const Shape &x = q.shape, &y = k.shape, &z = v.shape;
  bool good = x.rank >= 2 && y.rank == x.rank && z.rank == x.rank && x[x.rank - 1] == y[x.rank - 1] &&
              y[x.rank - 2] == z[x.rank - 2];
  for (int i = 0; good && i < x.rank - 2; ++i) good = x[i] == y[i] && x[i] == z[i];
  if (!good)
    fail(
        "attention: queries, keys and values must have shapes [..., queries, width], [..., keys, width] and "
        "[..., keys, value width]: " +
        x.str() + ", " + y.str() + ", " + z.str());
  if (!b.shape.rank) return;
  bool fits =
      b.shape.rank == x.rank && b.shape[x.rank - 2] == x[x.rank - 2] && b.shape[x.rank - 1] == y[x.rank - 2];
  for (int i = 0; fits && i < x.rank - 2; ++i) fits = b.shape[i] == x[i] || b.shape[i] == 1;
  if (!fits)
    fail(
        "attention: the bias must have the shape of the scores, [..., queries, keys], where leading axes may "
        "be 1: " +
        b.shape.str());
}

// attention(q, k, v, bias; scale, causal) -> out, the logarithm of the sum of exponentials
void infer_attention(const Call& c, Outs& outs) {
  check(c[0], c[1], c[2], c[3]);
  Shape out = c[0].shape, lse = c[0].shape;
  out[out.rank - 1] = c[2].shape[out.rank - 1];
  Shape rows;
  for (int i = 0; i < lse.rank - 1; ++i) rows.push(lse[i]);
  outs.emplace_back(Spec{c[0].dtype, out});
  outs.emplace_back(Spec{c[0].dtype, rows});
}

template <class T> void run_typed(const Call& c, Outs& outs) {
  Heads h(c[0], c[1], c[2], c[3], c.number(0), c.integer(1));
  if (!h.count || !h.queries) return;
  Kernels<T>::get();
  int64_t blocks = (h.queries + kQueries - 1) / kQueries;
  double work =
      double(kQueries) * double(h.keys) * double(h.width + h.value_width) / 20;  // nanoseconds, about
  int64_t grain = std::max<int64_t>(1, int64_t(20000 / std::max(work, 1.0)));
  parallel_for(h.count * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t head = p / blocks, q0 = p % blocks * kQueries, nq = std::min(kQueries, h.queries - q0);
      forward_block<T>(h, c[0].as<T>() + head * h.queries * h.width, c[1].as<T>() + head * h.keys * h.width,
                       c[2].as<T>() + head * h.keys * h.value_width, h.bias ? h.bias_of<T>(head) : nullptr,
                       q0, nq, outs[0].as<T>() + head * h.queries * h.value_width,
                       outs[1].as<T>() + head * h.queries);
    }
  });
}
void run_attention(const Call& c, Outs& outs) {
  c[0].dtype == Dtype::F32 ? run_typed<float>(c, outs) : run_typed<double>(c, outs);
}

// attention_grad(g, q, k, v, bias, out, lse; scale, causal) -> gradients of q, k, v
void infer_attention_grad(const Call& c, Outs& outs) {
  check(c[1], c[2], c[3], c[4]);
  for (int i = 1; i < 4; ++i) outs.emplace_back(Spec{c[i].dtype, c[i].shape});
}

template <class T>
void backward_head(const Heads& h, const T* g, const T* q, const T* k, const T* v, const T* bias,
                   const T* out, const T* lse, T* gq, T* gk, T* gv) {
  static thread_local Scratch<T> memory;
  const Kernels<T>& f = Kernels<T>::get();
  T* p = memory.get(2 * kQueries * kKeys);
  T* ds = p + kQueries * kKeys;
  std::fill_n(gq, h.queries * h.width, T(0));
  std::fill_n(gk, h.keys * h.width, T(0));
  std::fill_n(gv, h.keys * h.value_width, T(0));
  T inner[kQueries];
  for (int64_t q0 = 0; q0 < h.queries; q0 += kQueries) {
    int64_t nq = std::min(kQueries, h.queries - q0), end = h.seen(q0 + nq - 1);
    for (int64_t i = 0; i < nq; ++i) {
      const T *a = g + (q0 + i) * h.value_width, *b = out + (q0 + i) * h.value_width;
      T sum = 0;
      for (int64_t j = 0; j < h.value_width; ++j) sum += a[j] * b[j];
      inner[i] = sum;
    }
    for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
      int64_t nk = std::min(kKeys, h.keys - k0);
      scores(h, q, k, bias, q0, nq, k0, nk, p);
      for (int64_t i = 0; i < nq; ++i) {
        if (std::isinf(lse[q0 + i]))
          std::fill_n(p + i * nk, nk, T(0));
        else
          f.exp_minus(p + i * nk, lse[q0 + i], nk);
      }
      gemm<T>(true, false, nk, h.value_width, nq, T(1), p, nk, g + q0 * h.value_width, h.value_width, true,
              gv + k0 * h.value_width, h.value_width);
      gemm<T>(false, true, nq, nk, h.value_width, T(1), g + q0 * h.value_width, h.value_width,
              v + k0 * h.value_width, h.value_width, false, ds, nk);
      for (int64_t i = 0; i < nq; ++i) {
        T *d = ds + i * nk, *row = p + i * nk;
        const T minus = inner[i];
        for (int64_t j = 0; j < nk; ++j) d[j] = row[j] * (d[j] - minus);
      }
      gemm<T>(false, false, nq, h.width, nk, T(h.scale), ds, nk, k + k0 * h.width, h.width, true,
              gq + q0 * h.width, h.width);
      gemm<T>(true, false, nk, h.width, nq, T(h.scale), ds, nk, q + q0 * h.width, h.width, true,
              gk + k0 * h.width, h.width);
    }
  }
}

template <class T> void run_grad_typed(const Call& c, Outs& outs) {
  Heads h(c[1], c[2], c[3], c[4], c.number(0), c.integer(1));
  Kernels<T>::get();
  parallel_for(h.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      int64_t nq = head * h.queries, nk = head * h.keys;
      backward_head<T>(h, c[0].as<T>() + nq * h.value_width, c[1].as<T>() + nq * h.width,
                       c[2].as<T>() + nk * h.width, c[3].as<T>() + nk * h.value_width,
                       h.bias ? h.bias_of<T>(head) : nullptr, c[5].as<T>() + nq * h.value_width,
                       c[6].as<T>() + nq, outs[0].as<T>() + nq * h.width, outs[1].as<T>() + nk * h.width,
                       outs[2].as<T>() + nk * h.value_width);
    }
  });
}
void run_attention_grad(const Call& c, Outs& outs) {
  c[1].dtype == Dtype::F32 ? run_grad_typed<float>(c, outs) : run_grad_typed<double>(c, outs);
}

GT_OP("attention", {infer_attention, run_attention, true, 20});
GT_OP("attention_grad", {infer_attention_grad, run_attention_grad, true, 20});

}  // namespace
}  // namespace gt
