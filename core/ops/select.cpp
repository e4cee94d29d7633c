// Ops that turn indices into masks and masks into indices: one_hot, where_indices,
// boolean_mask and its transpose, unique, invert_permutation. The shape of some results depends on values.
#include <cstring>
#include <unordered_map>
#include <vector>

#include "indices.h"

namespace gt {
namespace {

// ---- one_hot(indices, on, off; depth, axis) ----
void infer_one_hot(const Call& c, Outs& outs) {
  const Shape& x = c[0].shape;
  want_dtype(c[0], kInt, "one_hot: indices");
  want_scalar(c[1], "one_hot: on_value");
  want_scalar(c[2], "one_hot: off_value");
  want_same_dtype(c[1], c[2]);
  if (c.integer(0) < 0) fail("depth must be non-negative, got: " + std::to_string(c.integer(0)));
  int axis = axis_attr(c, 1, x.rank + 1);
  Spec s{c[1].dtype, {}};
  for (int i = 0; i <= x.rank; ++i) {
    if (i == axis) s.shape.push(c.integer(0));
    if (i < x.rank) s.shape.push(x[i]);
  }
  outs.emplace_back(s);
}
void run_one_hot(const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  int width = dtype_size(out.dtype);
  fill(out.data, c[2].data, width, out.numel);
  if (out.numel == 0) return;
  Split v(out.shape, int(c.integer(1)));
  visit(c[0].dtype, [&](auto t) {
    using I = decltype(t);
    if constexpr (std::is_integral_v<I>)
      visit_width(width, [&](auto w) {
        using W = decltype(w);
        W on;
        std::memcpy(&on, c[1].data, sizeof(W));
        const I* index = c[0].as<I>();
        for (int64_t o = 0; o < v.outer; ++o)
          for (int64_t i = 0; i < v.inner; ++i) {
            uint64_t k = uint64_t(int64_t(*index++));  // negative ones become too large
            if (k < uint64_t(v.size)) out.as<W>()[(o * v.size + int64_t(k)) * v.inner + i] = on;
          }
      });
  });
}

// ---- where_indices(cond) ----
// The number of rows is only known in run: infer says 0, run replaces the tensor.
void infer_where(const Call& c, Outs& outs) {
  int64_t dims[2] = {0, c[0].shape.rank};
  outs.emplace_back(Spec{Dtype::I64, Shape(dims, 2)});
}
// The places of the elements that are not zero.
std::vector<int64_t> true_places(const Tensor& x) {
  std::vector<int64_t> at;
  visit(x.dtype, [&](auto t) {
    using T = decltype(t);
    const T* p = x.as<T>();
    int64_t n = 0;
    for (int64_t i = 0; i < x.numel; ++i) n += p[i] != T(0.0f);
    at.reserve(size_t(n));
    for (int64_t i = 0; i < x.numel; ++i)
      if (p[i] != T(0.0f)) at.push_back(i);
  });
  return at;
}
void run_where(const Call& c, Outs& outs) {
  const Shape& s = c[0].shape;
  auto at = true_places(c[0]);
  int64_t dims[2] = {int64_t(at.size()), s.rank};
  outs[0] = empty(Dtype::I64, Shape(dims, 2));
  int64_t* out = outs[0].as<int64_t>();
  for (int64_t place : at) {
    for (int i = s.rank - 1; i >= 0; --i) out[i] = place % s[i], place /= s[i];
    out += s.rank;
  }
}

// ---- boolean_mask(x, mask; axis, count) ----
// `count`: how many places the mask selects, or -1 if that is not known before run; then, as above, the size
// of the masked axis is 0 in infer and right in run.
void infer_mask(const Call& c, Outs& outs) {
  const Shape &x = c[0].shape, &mask = c[1].shape;
  if (c[1].dtype != Dtype::Bool)
    fail(Code::Type, std::string("mask must be bool, got ") + dtype_name(c[1].dtype));
  if (mask.rank == 0) fail(Code::Value, "mask cannot be scalar.");
  int axis = axis_attr(c, 0, x.rank);
  bool good = axis + mask.rank <= x.rank;
  for (int i = 0; good && i < mask.rank; ++i) good = x[axis + i] == mask[i];
  if (!good) fail(Code::Value, "Shapes " + x.str() + " and " + mask.str() + " are incompatible");
  Spec s{c[0].dtype, {}};
  for (int i = 0; i < axis; ++i) s.shape.push(x[i]);
  s.shape.push(std::max<int64_t>(c.integer(1), 0));
  for (int i = axis + mask.rank; i < x.rank; ++i) s.shape.push(x[i]);
  outs.emplace_back(s);
}
void run_mask(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  int axis = int(c.integer(0));
  auto at = true_places(c[1]);
  Shape s = outs[0].shape;
  if (c.integer(1) >= 0 && s[axis] != int64_t(at.size()))
    fail("the mask selects " + std::to_string(at.size()) + " places, not " + std::to_string(s[axis]));
  s[axis] = int64_t(at.size());
  if (!outs[0].data || !(outs[0].shape == s)) outs[0] = empty(x.dtype, s);
  if (outs[0].numel == 0) return;
  Split v(s, axis);
  int64_t bytes = v.inner * dtype_size(x.dtype);
  each_chunk(v.outer, grain_rows(v.size * v.inner), [&](int64_t begin, int64_t end) {
    char* out = outs[0].data + begin * v.size * bytes;
    for (int64_t o = begin; o < end; ++o)
      for (int64_t k : at) {
        std::memcpy(out, x.data + (o * c[1].numel + k) * bytes, size_t(bytes));
        out += bytes;
      }
  });
}

// ---- boolean_unmask(g, mask; axis, shape): the transpose of boolean_mask ----
void infer_unmask(const Call& c, Outs& outs) {
  Spec s{c[0].dtype, shape_attr(c, 1)};
  int axis = axis_attr(c, 0, s.shape.rank);
  const Shape& mask = c[1].shape;
  if (c[1].dtype != Dtype::Bool || c[0].shape.rank != s.shape.rank - mask.rank + 1 ||
      axis + mask.rank > s.shape.rank)
    fail("a mask " + mask.str() + " cannot scatter " + c[0].shape.str() + " into " + s.shape.str());
  outs.emplace_back(s);
}
void run_unmask(const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  zero(out.data, out.nbytes());
  if (c[0].numel == 0) return;
  auto at = true_places(c[1]);
  Split v(c[0].shape, int(c.integer(0)));
  if (v.size != int64_t(at.size()) || v.outer * c[1].numel * v.inner != out.numel)
    fail("the mask selects " + std::to_string(at.size()) + " places, but there are " +
         std::to_string(v.size) + " values");
  int64_t bytes = v.inner * dtype_size(out.dtype);
  each_chunk(v.outer, grain_rows(v.size * v.inner), [&](int64_t begin, int64_t end) {
    const char* from = c[0].data + begin * v.size * bytes;
    for (int64_t o = begin; o < end; ++o)
      for (int64_t k : at) {
        std::memcpy(out.data + (o * c[1].numel + k) * bytes, from, size_t(bytes));
        from += bytes;
      }
  });
}

// ---- unique(x) -> values, idx ----
void infer_unique(const Call& c, Outs& outs) {
  if (c[0].shape.rank != 1) fail("unique expects a 1D vector.");
  int64_t none = 0;
  outs.emplace_back(Spec{c[0].dtype, Shape(&none, 1)});  // replaced in run
  outs.emplace_back(Spec{Dtype::I32, c[0].shape});
}
template <class T> struct Hash {
  size_t operator()(const T& x) const {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat>)
      return std::hash<float>()(x);
    else if constexpr (std::is_same_v<T, c64> || std::is_same_v<T, c128>)
      return std::hash<typename T::value_type>()(x.real()) * 31 +
             std::hash<typename T::value_type>()(x.imag());
    else
      return std::hash<T>()(x);
  }
};
void run_unique(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  outs[1].allocate();
  int32_t* idx = outs[1].as<int32_t>();
  visit(x.dtype, [&](auto t) {
    using T = decltype(t);
    struct Same {
      bool operator()(const T& a, const T& b) const { return a == b; }
    };
    std::unordered_map<T, int32_t, Hash<T>, Same> seen;
    std::vector<int64_t> first;
    for (int64_t i = 0; i < x.numel; ++i) {
      auto [it, fresh] = seen.emplace(x.as<T>()[i], int32_t(first.size()));
      if (fresh) first.push_back(i);
      idx[i] = it->second;
    }
    int64_t n = int64_t(first.size());
    outs[0] = empty(x.dtype, Shape(&n, 1));
    for (int64_t i = 0; i < n; ++i) outs[0].as<T>()[i] = x.as<T>()[first[size_t(i)]];
  });
}

// ---- invert_permutation(x) ----
void infer_invert(const Call& c, Outs& outs) {
  want_indices(c[0], "invert_permutation: x");
  if (c[0].shape.rank != 1) fail("invert_permutation expects a 1D vector.");
  outs.emplace_back(c[0].spec());
}
void run_invert(const Call& c, Outs& outs) {
  visit_indices(c[0], [&](auto* p) {
    using I = std::remove_const_t<std::remove_pointer_t<decltype(p)>>;
    I* out = outs[0].as<I>();
    int64_t n = c[0].numel;
    std::fill_n(out, n, I(-1));
    for (int64_t i = 0; i < n; ++i) {
      if (p[i] < 0 || p[i] >= n) fail(std::to_string(p[i]) + " is not between 0 and " + std::to_string(n));
      if (out[p[i]] != -1) fail(std::to_string(p[i]) + " is duplicated in the input.");
      out[p[i]] = I(i);
    }
  });
}

GT_OP("one_hot", {infer_one_hot, run_one_hot});
GT_OP("where_indices", {infer_where, run_where, false, 2});
GT_OP("boolean_mask", {infer_mask, run_mask, false, 2});
GT_OP("boolean_unmask", {infer_unmask, run_unmask, true, 1});
GT_OP("unique", {infer_unique, run_unique, false, 20});
GT_OP("invert_permutation", {infer_invert, run_invert, true, 2});

}  // namespace
}  // namespace gt
