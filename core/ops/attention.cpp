// Attention: softmax(scale q k' + bias) v for many heads, and its gradient, without storing the matrix of
// scores. Blocks of queries are multiplied with blocks of keys; what a block needs stays in the cache. With
// 16-bit floats the products are in that type, and everything between them is in float.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "../blas.h"
#include "../kernels/loops.h"
#include "../threads.h"
#include "contraction.h"
#include "elementwise.h"
#include "reduction.h"

namespace gt {
namespace {

constexpr int64_t kQueries = 64, kKeys = 256;  // of a block

template <class T> constexpr bool kNarrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat>;
// What is summed and exponentiated.
template <class T> using SumOf = std::conditional_t<kNarrow<T>, float, T>;

template <class T> struct Kernels {
  using S = SumOf<T>;
  Loop exp_sub = find_elementwise("exp_sub")->loop[int(DtypeOf<S>::value)];
  Loop mul = find_elementwise("mul")->loop[int(DtypeOf<S>::value)];
  Loop add = find_elementwise("add")->loop[int(DtypeOf<S>::value)];
  ReduceLoop max = find_reduction("max")->loop[int(DtypeOf<S>::value)];
  ReduceLoop sum = find_reduction("sum")->loop[int(DtypeOf<S>::value)];
  CastLoop widen = kNarrow<T> ? find_cast(DtypeOf<T>::value, Dtype::F32) : nullptr;
  CastLoop round = kNarrow<T> ? find_cast(Dtype::F32, DtypeOf<T>::value) : nullptr;
  static const Kernels& get() {
    static const Kernels k;
    return k;
  }
  // x = exp(x - y)
  void exp_minus(S* x, S y, int64_t n) const {
    const void* in[2] = {x, &y};
    const uint8_t step[2] = {1, 0};
    exp_sub(x, in, step, n);
  }
  void scale(S* x, S y, int64_t n) const {
    const void* in[2] = {x, &y};
    const uint8_t step[2] = {1, 0};
    mul(x, in, step, n);
  }
  void add_to(S* x, const S* y, int64_t n) const {
    const void* in[2] = {x, y};
    const uint8_t step[2] = {1, 1};
    add(x, in, step, n);
  }
};

template <class T> struct Scratch {
  std::unique_ptr<T[]> data;
  int64_t size = 0;
  T* get(int64_t n) {
    if (n > size) data.reset(new T[size_t(n)]), size = n;
    return data.get();
  }
};

// Elements as sums, and sums as elements: themselves, or a copy in `room`.
template <class T> const SumOf<T>* widened(const T* x, int64_t n, SumOf<T>* room) {
  if constexpr (!kNarrow<T>) return x;
  Kernels<T>::get().widen(room, x, n);
  return room;
}
template <class T> const T* rounded(const SumOf<T>* x, int64_t n, T* room) {
  if constexpr (!kNarrow<T>) return x;
  Kernels<T>::get().round(room, x, n);
  return room;
}
// Where the sums of `out` are made, and how they get there.
template <class T> SumOf<T>* sums_of(T* out, SumOf<T>* room) {
  if constexpr (!kNarrow<T>) return out;
  return room;
}
template <class T> void settle(T* out, const SumOf<T>* sums, int64_t n) {
  if constexpr (kNarrow<T>) Kernels<T>::get().round(out, sums, n);
}

// c = alpha op(a) op(b), added to c if `add`; on this thread.
template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, SumOf<T> alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, bool add, SumOf<T>* c, int64_t ldc) {
  if constexpr (has_panels<T>)
    if (multiplies_panels<T>())
      return run_panels_here(Product<T>{a, b, nullptr, m, n, k, lda, ldb, ldc, ta, tb}, c, alpha, add);
  if constexpr (!kNarrow<T>) {
    const Blas& f = blas();
    auto call = [&] {
      if constexpr (std::is_same_v<T, float>)
        return f.sgemm;
      else
        return f.dgemm;
    }();
    call(kRowMajor, ta ? kTrans : kNoTrans, tb ? kTrans : kNoTrans, int(m), int(n), int(k), alpha, a,
         int(lda), b, int(ldb), T(add), c, int(ldc));
  }
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
            int64_t nk, SumOf<T>* s) {
  using S = SumOf<T>;
  const Kernels<T>& f = Kernels<T>::get();
  gemm<T>(false, true, nq, nk, h.width, S(h.scale), q + q0 * h.width, h.width, k + k0 * h.width, h.width,
          false, s, nk);
  S room[kNarrow<T> ? kKeys : 1];
  for (int64_t i = 0; i < nq; ++i) {
    S* row = s + i * nk;
    if (bias) f.add_to(row, widened(bias + (q0 + i) * h.keys + k0, nk, room), nk);
    for (int64_t j = std::max<int64_t>(0, h.seen(q0 + i) - k0); j < nk; ++j)
      row[j] = -std::numeric_limits<S>::infinity();
  }
}

template <class T>
void forward_block(const Heads& h, const T* q, const T* k, const T* v, const T* bias, int64_t q0, int64_t nq,
                   T* out, SumOf<T>* lse) {
  using S = SumOf<T>;
  static thread_local Scratch<S> memory;
  static thread_local Scratch<T> narrow;
  const Kernels<T>& f = Kernels<T>::get();
  const int64_t width = h.value_width;
  S* s = memory.get(kQueries * (kKeys + 2 + (kNarrow<T> ? width : 0)));
  S *high = s + kQueries * kKeys, *total = high + kQueries;
  T* weights = narrow.get(kNarrow<T> ? kQueries * kKeys : 0);
  S* sums = sums_of(out + q0 * width, total + kQueries);
  const S none = -std::numeric_limits<S>::infinity();
  std::fill_n(high, nq, none);
  std::fill_n(total, nq, S(0));
  std::fill_n(sums, nq * width, S(0));
  int64_t end = h.seen(q0 + nq - 1);
  for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
    int64_t nk = std::min(kKeys, h.keys - k0);
    scores(h, q, k, bias, q0, nq, k0, nk, s);
    for (int64_t i = 0; i < nq; ++i) {
      S* row = s + i * nk;
      S m = high[i];
      f.max(&m, row, nk, 1);
      m = std::max(m, high[i]);
      if (m == none) {
        std::fill_n(row, nk, S(0));
        continue;
      }
      S fade = std::exp(high[i] - m), sum = 0;
      f.exp_minus(row, m, nk);
      f.sum(&sum, row, nk, 1);
      total[i] = total[i] * fade + sum;
      if (fade != S(1) && k0) f.scale(sums + i * width, fade, width);
      high[i] = m;
    }
    gemm<T>(false, false, nq, width, nk, S(1), rounded(s, nq * nk, weights), nk, v + k0 * width, width, true,
            sums, width);
  }
  for (int64_t i = 0; i < nq; ++i) {
    // A query with all keys masked gives zeros.
    if (total[i] > S(0)) f.scale(sums + i * width, S(1) / total[i], width);
    lse[q0 + i] = total[i] > S(0) ? high[i] + std::log(total[i]) : none;
  }
  settle(out + q0 * width, sums, nq * width);
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

Dtype sum_type(Dtype t) { return in(t, kHalf) ? Dtype::F32 : t; }

// attention(q, k, v, bias; scale, causal) -> out, the logarithm of the sum of exponentials
void infer_attention(const Call& c, Outs& outs) {
  check(c[0], c[1], c[2], c[3]);
  Shape out = c[0].shape, lse = c[0].shape;
  out[out.rank - 1] = c[2].shape[out.rank - 1];
  Shape rows;
  for (int i = 0; i < lse.rank - 1; ++i) rows.push(lse[i]);
  outs.emplace_back(Spec{c[0].dtype, out});
  outs.emplace_back(Spec{sum_type(c[0].dtype), rows});
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
                       outs[1].as<SumOf<T>>() + head * h.queries);
    }
  });
}

// Calls `run` with an element of the type; 16-bit floats that the processor does not multiply become float.
template <class F> void run_any(const Call& c, Outs& outs, Dtype type, F&& run) {
  if (type == Dtype::F32) return run(float(), c, outs);
  if (type == Dtype::F64) return run(double(), c, outs);
  if (type == Dtype::BF16 && multiplies_panels<bfloat>()) return run(bfloat(), c, outs);
  if (type == Dtype::F16 && multiplies_panels<half>()) return run(half(), c, outs);
  std::vector<Tensor> wide, results;
  std::vector<const Tensor*> in;
  for (int i = 0; i < c.n; ++i) {
    wide.push_back(c[i].dtype == type ? empty(Dtype::F32, c[i].shape) : c[i]);
    if (c[i].dtype == type) run_cast(c[i], wide.back());
  }
  for (const Tensor& x : wide) in.push_back(&x);
  for (const Tensor& out : outs) results.push_back(out.dtype == type ? empty(Dtype::F32, out.shape) : out);
  run(float(), Call{in.data(), c.n, c.attrs}, results);
  for (size_t i = 0; i < outs.size(); ++i)
    if (outs[i].dtype == type) run_cast(results[i], outs[i]);
}
void run_attention(const Call& c, Outs& outs) {
  run_any(c, outs, c[0].dtype, [](auto t, const Call& c, Outs& outs) { run_typed<decltype(t)>(c, outs); });
}

// attention_grad(g, q, k, v, bias, out, lse; scale, causal) -> gradients of q, k, v
void infer_attention_grad(const Call& c, Outs& outs) {
  check(c[1], c[2], c[3], c[4]);
  if (c[6].dtype != c[1].dtype && c[6].dtype != sum_type(c[1].dtype))
    fail("attention_grad: the sums for queries of " + std::string(dtype_name(c[1].dtype)) + " must be of " +
         dtype_name(sum_type(c[1].dtype)));
  for (int i = 1; i < 4; ++i) outs.emplace_back(Spec{c[i].dtype, c[i].shape});
}

template <class T>
void backward_head(const Heads& h, const T* g, const T* q, const T* k, const T* v, const T* bias,
                   const T* out, const SumOf<T>* lse, T* gq, T* gk, T* gv) {
  using S = SumOf<T>;
  static thread_local Scratch<S> memory;
  static thread_local Scratch<T> narrow;
  const Kernels<T>& f = Kernels<T>::get();
  const int64_t width = h.width, wide = h.value_width, block = kQueries * kKeys;
  S* p = memory.get(2 * block + (kNarrow<T> ? kQueries * width + h.keys * (width + wide) + 2 * wide : 0));
  S *ds = p + block, *more = ds + block;
  S *k_sums = sums_of(gk, more + kQueries * width), *v_sums = sums_of(gv, k_sums + h.keys * width),
    *rows = v_sums + h.keys * wide;
  T* weights = narrow.get(kNarrow<T> ? block : 0);
  std::fill_n(k_sums, h.keys * width, S(0));
  std::fill_n(v_sums, h.keys * wide, S(0));
  S inner[kQueries];
  for (int64_t q0 = 0; q0 < h.queries; q0 += kQueries) {
    int64_t nq = std::min(kQueries, h.queries - q0), end = h.seen(q0 + nq - 1);
    S* q_sums = sums_of(gq + q0 * width, more);
    std::fill_n(q_sums, nq * width, S(0));
    for (int64_t i = 0; i < nq; ++i) {
      const S *a = widened(g + (q0 + i) * wide, wide, rows),
              *b = widened(out + (q0 + i) * wide, wide, rows + wide);
      S sum = 0;
      for (int64_t j = 0; j < wide; ++j) sum += a[j] * b[j];
      inner[i] = sum;
    }
    for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
      int64_t nk = std::min(kKeys, h.keys - k0);
      scores(h, q, k, bias, q0, nq, k0, nk, p);
      for (int64_t i = 0; i < nq; ++i) {
        if (std::isinf(lse[q0 + i]))
          std::fill_n(p + i * nk, nk, S(0));
        else
          f.exp_minus(p + i * nk, lse[q0 + i], nk);
      }
      gemm<T>(true, false, nk, wide, nq, S(1), rounded(p, nq * nk, weights), nk, g + q0 * wide, wide, true,
              v_sums + k0 * wide, wide);
      gemm<T>(false, true, nq, nk, wide, S(1), g + q0 * wide, wide, v + k0 * wide, wide, false, ds, nk);
      for (int64_t i = 0; i < nq; ++i) {
        S *d = ds + i * nk, *row = p + i * nk;
        const S minus = inner[i];
        for (int64_t j = 0; j < nk; ++j) d[j] = row[j] * (d[j] - minus);
      }
      const T* d = rounded(ds, nq * nk, weights);
      gemm<T>(false, false, nq, width, nk, S(h.scale), d, nk, k + k0 * width, width, true, q_sums, width);
      gemm<T>(true, false, nk, width, nq, S(h.scale), d, nk, q + q0 * width, width, true, k_sums + k0 * width,
              width);
    }
    settle(gq + q0 * width, q_sums, nq * width);
  }
  settle(gk, k_sums, h.keys * width);
  settle(gv, v_sums, h.keys * wide);
}

template <class T> void run_grad_typed(const Call& c, Outs& outs) {
  Heads h(c[1], c[2], c[3], c[4], c.number(0), c.integer(1));
  Kernels<T>::get();
  Tensor lse = c[6];
  if (lse.dtype != DtypeOf<SumOf<T>>::value) {
    lse = empty(Dtype::F32, lse.shape);
    run_cast(c[6], lse);
  }
  parallel_for(h.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      int64_t nq = head * h.queries, nk = head * h.keys;
      backward_head<T>(h, c[0].as<T>() + nq * h.value_width, c[1].as<T>() + nq * h.width,
                       c[2].as<T>() + nk * h.width, c[3].as<T>() + nk * h.value_width,
                       h.bias ? h.bias_of<T>(head) : nullptr, c[5].as<T>() + nq * h.value_width,
                       lse.as<SumOf<T>>() + nq, outs[0].as<T>() + nq * h.width,
                       outs[1].as<T>() + nk * h.width, outs[2].as<T>() + nk * h.value_width);
    }
  });
}
void run_attention_grad(const Call& c, Outs& outs) {
  run_any(c, outs, c[1].dtype,
          [](auto t, const Call& c, Outs& outs) { run_grad_typed<decltype(t)>(c, outs); });
}

GT_OP("attention", {infer_attention, run_attention, true, 20});
GT_OP("attention_grad", {infer_attention_grad, run_attention_grad, true, 20});

}  // namespace
}  // namespace gt
