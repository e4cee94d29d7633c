// Sorting along an axis, the k largest, and binary search. NaN sorts last, as in NumPy; equal
// elements keep their order.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <type_traits>

#include "indices.h"

namespace gt {
namespace {

template <class T>
using Key = std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat>, float, T>;

// The order of a sort: NaN is larger than every number when ascending, and last as well when
// descending.
template <class K> bool before(K x, K y, bool descending) {
  if constexpr (std::is_floating_point_v<K>) {
    if (x != x) return false;
    if (y != y) return true;
  }
  return descending ? y < x : x < y;
}

void want_sortable(const Tensor& x) { want_dtype(x, kReal | kBool, "sort"); }
void want_int32(int64_t n) {
  if (n > INT32_MAX) fail("the axis is too long for int32 indices: " + std::to_string(n));
}

// Calls f(lane in, first element of the lane in the tensor) for every line along an axis, with
// the line copied to consecutive memory.
template <class T, class F> void each_lane(const Tensor& x, int axis, F&& f) {
  Split v(x.shape, axis);
  if (x.numel == 0) return;
  each_chunk(v.outer * v.inner, grain_rows(v.size, 1 << 12), [&](int64_t begin, int64_t end) {
    std::unique_ptr<Key<T>[]> lane(new Key<T>[size_t(v.size)]);
    std::unique_ptr<int32_t[]> order(new int32_t[size_t(v.size)]);
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = i / v.inner * v.size * v.inner + i % v.inner;
      const T* from = x.as<T>() + at;
      for (int64_t k = 0; k < v.size; ++k) lane[size_t(k)] = from[k * v.inner];
      f(lane.get(), order.get(), v.size, at, v.inner);
    }
  });
}
template <class F> void visit_sortable(Dtype t, F&& f) {
  visit(t, [&](auto x) {
    if constexpr (is_real<decltype(x)>) f(x);
  });
}

// ---- sort(x; axis, descending), argsort ----
void infer_sort(const Call& c, Outs& outs) {
  want_sortable(c[0]);
  axis_attr(c, 0, c[0].shape.rank);
  outs.emplace_back(c[0].spec());
}
void run_sort(const Call& c, Outs& outs) {
  bool descending = c.integer(1);
  visit_sortable(c[0].dtype, [&](auto t) {
    using T = decltype(t);
    each_lane<T>(c[0], int(c.integer(0)), [&](Key<T>* lane, int32_t*, int64_t n, int64_t at, int64_t step) {
      Key<T>* end = lane + n;  // NaN goes last; the rest is sorted without checking for it
      if constexpr (std::is_floating_point_v<Key<T>>)
        end = std::partition(lane, end, [](Key<T> x) { return x == x; });
      if (descending)
        std::sort(lane, end, std::greater<Key<T>>());
      else
        std::sort(lane, end);
      T* out = outs[0].as<T>() + at;
      for (int64_t k = 0; k < n; ++k) out[k * step] = T(lane[k]);
    });
  });
}
void infer_argsort(const Call& c, Outs& outs) {
  want_sortable(c[0]);
  want_int32(c[0].shape[axis_attr(c, 0, c[0].shape.rank)]);
  outs.emplace_back(Spec{Dtype::I32, c[0].shape});
}
void run_argsort(const Call& c, Outs& outs) {
  bool descending = c.integer(1);
  visit_sortable(c[0].dtype, [&](auto t) {
    using T = decltype(t);
    each_lane<T>(
        c[0], int(c.integer(0)), [&](Key<T>* lane, int32_t* order, int64_t n, int64_t at, int64_t step) {
          std::iota(order, order + n, 0);
          // Equal elements in the order of their positions: with that, a plain sort is stable.
          std::sort(order, order + n, [=](int32_t i, int32_t j) {
            return before(lane[i], lane[j], descending) || (!before(lane[j], lane[i], descending) && i < j);
          });
          int32_t* out = outs[0].as<int32_t>() + at;
          for (int64_t k = 0; k < n; ++k) out[k * step] = order[k];
        });
  });
}

// ---- top_k(x; k, sorted) -> values, indices ----
void infer_top_k(const Call& c, Outs& outs) {
  want_sortable(c[0]);
  Shape s = c[0].shape;
  if (s.rank < 1) fail("input must be >= 1-D, got shape []");
  int64_t k = c.integer(0), n = s[s.rank - 1];
  if (k < 0) fail("Need k >= 0, got " + std::to_string(k));
  if (k > n)
    fail("input must have at least k columns. Had " + std::to_string(n) + ", needed " + std::to_string(k));
  want_int32(n);
  s[s.rank - 1] = k;
  outs.emplace_back(Spec{c[0].dtype, s});
  outs.emplace_back(Spec{Dtype::I32, s});
}
void run_top_k(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  int64_t k = c.integer(0), width = x.shape[x.shape.rank - 1];
  if (outs[0].numel == 0) return;
  visit_sortable(x.dtype, [&](auto t) {
    using T = decltype(t);
    each_lane<T>(x, x.shape.rank - 1, [&](Key<T>* lane, int32_t* order, int64_t n, int64_t at, int64_t) {
      std::iota(order, order + n, 0);
      auto larger = [=](int32_t i, int32_t j) {
        return before(lane[i], lane[j], true) || (!before(lane[j], lane[i], true) && i < j);
      };
      if (k * 8 < n) {
        std::partial_sort(order, order + k, order + n, larger);
      } else {
        if (k < n) std::nth_element(order, order + k, order + n, larger);
        std::sort(order, order + k, larger);
      }
      int64_t row = at / width * k;
      for (int64_t i = 0; i < k; ++i)
        outs[0].as<T>()[row + i] = T(lane[order[i]]), outs[1].as<int32_t>()[row + i] = order[i];
    });
  });
}

// ---- searchsorted(sorted, values; right) ----
void infer_searchsorted(const Call& c, Outs& outs) {
  const Shape &a = c[0].shape, &v = c[1].shape;
  want_sortable(c[0]);
  want_same_dtype(c[0], c[1]);
  bool good = a.rank >= 1 && a.rank == v.rank;
  for (int i = 0; good && i < a.rank - 1; ++i) good = a[i] == v[i];
  if (!good) fail("Leading dim_size of both tensors must match: " + a.str() + " vs. " + v.str());
  want_int32(a[a.rank - 1]);
  outs.emplace_back(Spec{Dtype::I32, v});
}
void run_searchsorted(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &v = c[1];
  if (v.numel == 0) return;
  int64_t n = a.shape[a.shape.rank - 1], m = v.shape[v.shape.rank - 1];
  bool right = c.integer(0);
  visit_sortable(a.dtype, [&](auto t) {
    using T = decltype(t);
    auto less = [](T x, T y) { return before<Key<T>>(x, y, false); };
    each_chunk(v.numel, 1 << 12, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *first = a.as<T>() + i / m * n, *last = first + n;
        T x = v.as<T>()[i];
        outs[0].as<int32_t>()[i] = int32_t(
            (right ? std::upper_bound(first, last, x, less) : std::lower_bound(first, last, x, less)) -
            first);
      }
    });
  });
}

GT_OP("sort", {infer_sort, run_sort, true, 20});
GT_OP("argsort", {infer_argsort, run_argsort, true, 40});
GT_OP("top_k", {infer_top_k, run_top_k, true, 10});
GT_OP("searchsorted", {infer_searchsorted, run_searchsorted, true, 10});

}  // namespace
}  // namespace gt
