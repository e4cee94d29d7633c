// Strided slices, their transpose, and the update of a slice.
#include <cstring>

#include "strided.h"

namespace gt {
namespace {

// The region of a call: element [begin + i * step] for i < size along every axis of `x`.
struct Region {
  Shape size;
  int64_t offset = 0;  // of the first element
  int64_t stride[kMaxRank];
  bool contiguous = true;

  Region(const Call& c, const Shape& x) {
    const auto &begin = c.ints(0), &step = c.ints(1), &n = c.ints(2);
    size_t rank = size_t(x.rank);
    if (begin.size() != rank || step.size() != rank || n.size() != rank)
      fail("slice needs begin, step and size for each of the " + std::to_string(rank) + " axes");
    size = shape_attr(c, 2);
    Strides at(x);
    bool whole = true;  // all later axes are taken completely
    for (int i = x.rank - 1; i >= 0; --i) {
      int64_t b = begin[size_t(i)], s = step[size_t(i)], k = size[i], last;
      if (k == 0) continue;
      if (b < 0 || b >= x[i] || __builtin_mul_overflow(k - 1, s, &last) ||
          __builtin_add_overflow(last, b, &last) || last < 0 || last >= x[i])
        fail("slice index " + std::to_string(b) + " of dimension " + std::to_string(i) + " out of bounds.");
      offset += b * at[i];
      stride[i] = (k == 1 ? 1 : s) * at[i];  // the step of one element may be anything
      // One run of memory: single elements, then a range, then whole axes.
      contiguous &= k == 1 || (whole && s == 1);
      whole &= k == x[i];
    }
  }
  // The loops of a copy between the region and a dense array of the same size.
  Nest nest(bool region_is_source) const {
    Strides dense(size);
    Nest t;
    for (int i = 0; i < size.rank; ++i) {
      if (size[i] == 1) continue;
      t.push(size[i], region_is_source ? stride[i] : dense[i], region_is_source ? dense[i] : stride[i]);
    }
    return t;
  }
};

// ---- index(x; begin, step, size, shape) ----
void infer_index(const Call& c, Outs& outs) {
  Region region(c, c[0].shape);
  Spec s{c[0].dtype, shape_attr(c, 3)};
  if (s.shape.numel() != region.size.numel())
    fail("a slice of shape " + region.size.str() + " cannot have the shape " + s.shape.str());
  outs.emplace_back(s);
}
void run_index(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  if (out.numel == 0) return out.claim();
  Region region(c, x.shape);
  if (region.contiguous) return out.share(x, region.offset);
  out.claim();
  int w = dtype_size(x.dtype);
  strided_copy(out.data, x.data + region.offset * w, w, region.nest(true));
}

// ---- unindex(g; begin, step, size, shape): the transpose of index ----
void infer_unindex(const Call& c, Outs& outs) {
  Spec s{c[0].dtype, shape_attr(c, 3)};
  Region region(c, s.shape);
  if (c[0].numel != region.size.numel())
    fail("a slice of shape " + region.size.str() + " cannot be filled with a tensor of shape " +
         c[0].shape.str());
  for (int i = 0; i < s.shape.rank; ++i)
    if (c.ints(1)[size_t(i)] == 0 && region.size[i] > 1) fail("slice step must not be zero");
  outs.emplace_back(s);
}
void run_unindex(const Call& c, Outs& outs) {
  const Tensor& g = c[0];
  Tensor& out = outs[0];
  Region region(c, out.shape);
  if (region.contiguous && g.numel == out.numel) return out.share(g);
  out.claim();
  int64_t w = dtype_size(g.dtype), at = region.offset * w;
  if (g.numel == 0) return zero(out.data, out.nbytes());
  if (region.contiguous) {
    zero(out.data, at);
    copy_bytes(out.data + at, g.data, g.nbytes());
    return zero(out.data + at + g.nbytes(), out.nbytes() - at - g.nbytes());
  }
  zero(out.data, out.nbytes());
  strided_copy(out.data + at, g.data, int(w), region.nest(false));
}

// ---- index_update(x, v; begin, step, size) ----
void infer_index_update(const Call& c, Outs& outs) {
  want_same_dtype(c[0], c[1]);
  Region region(c, c[0].shape);
  if (c[1].numel != region.size.numel())
    fail("a slice of shape " + region.size.str() + " cannot be assigned a tensor of shape " +
         c[1].shape.str());
  for (int i = 0; i < c[0].shape.rank; ++i)
    if (c.ints(1)[size_t(i)] == 0 && region.size[i] > 1) fail("slice step must not be zero");
  outs.emplace_back(c[0].spec());
}
void run_index_update(const Call& c, Outs& outs) {
  const Tensor &x = c[0], &v = c[1];
  Tensor& out = outs[0];
  if (v.numel == 0) return out.share(x);
  Region region(c, x.shape);
  if (region.contiguous && v.numel == x.numel) return out.share(v);
  if (out.data != x.data) {  // they are the same when a variable is changed in place
    if (!out.has_value()) out.allocate();
    copy_bytes(out.data, x.data, x.nbytes());
  }
  int w = dtype_size(x.dtype);
  strided_copy(out.data + region.offset * w, v.data, w, region.nest(false));
}

GT_OP("index", {infer_index, run_index, false});
GT_OP("unindex", {infer_unindex, run_unindex, false});
GT_OP("index_update", {infer_index_update, run_index_update, false});

}  // namespace
}  // namespace gt
