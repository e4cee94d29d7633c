// Joining tensors, splitting them along an axis, and the sum of many tensors.
#include <algorithm>

#include "../kernels/loops.h"
#include "strided.h"

namespace gt {
namespace {

// Copies a [rows, n] array between places whose rows are `from` and `to` elements apart.
void copy_columns(char* dst, int64_t to, const char* src, int64_t from, int64_t rows, int64_t n, int width) {
  Nest t;
  t.push(rows, from, to);
  t.push(n, 1, 1);
  strided_copy(dst, src, width, t);
}

void want_operands(const Call& c) {
  if (c.n < 1) fail("needs at least one tensor");
  for (int i = 1; i < c.n; ++i) want_same_dtype(c[0], c[i]);
}

// ---- concat(xs...; axis) ----
void infer_concat(const Call& c, Outs& outs) {
  want_operands(c);
  Spec s = c[0].spec();
  int axis = axis_attr(c, 0, s.shape.rank);
  for (int i = 1; i < c.n; ++i) {
    const Shape& x = c[i].shape;
    if (x.rank != s.shape.rank)
      fail("Ranks of all input tensors should match: shape[0] = " + c[0].shape.str() + " vs. shape[" +
           std::to_string(i) + "] = " + x.str());
    for (int k = 0; k < x.rank; ++k)
      if (k != axis && x[k] != s.shape[k])
        fail("Dimension " + std::to_string(k) + " in both shapes must be equal: shape[0] = " +
             c[0].shape.str() + " vs. shape[" + std::to_string(i) + "] = " + x.str());
    s.shape[axis] = checked_add(s.shape[axis], x[axis]);
  }
  outs.emplace_back(s);
}
void run_concat(const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  for (int i = 0; i < c.n; ++i)
    if (c[i].numel == out.numel) return out.share(c[i]);
  out.claim();
  if (out.numel == 0) return;
  Split v(out.shape, int(c.integer(0)));
  int w = dtype_size(out.dtype);
  char* dst = out.data;
  for (int i = 0; i < c.n; ++i) {
    int64_t n = c[i].numel / v.outer;
    copy_columns(dst, v.size * v.inner, c[i].data, n, v.outer, n, w);
    dst += n * w;
  }
}

// ---- stack(xs...; axis) ----
void infer_stack(const Call& c, Outs& outs) {
  want_operands(c);
  const Shape& x = c[0].shape;
  int axis = axis_attr(c, 0, x.rank + 1);
  for (int i = 1; i < c.n; ++i)
    if (!(c[i].shape == x))
      fail("Shapes of all inputs must match: values[0].shape = " + x.str() + " != values[" +
           std::to_string(i) + "].shape = " + c[i].shape.str());
  Spec s{c[0].dtype, {}};
  for (int i = 0; i <= x.rank; ++i) {
    if (i == axis) s.shape.push(c.n);
    if (i < x.rank) s.shape.push(x[i]);
  }
  outs.emplace_back(s);
}
void run_stack(const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  if (out.numel == 0) return;
  Split v(out.shape, int(c.integer(0)));
  int w = dtype_size(out.dtype);
  for (int i = 0; i < c.n; ++i)
    copy_columns(out.data + i * v.inner * w, v.size * v.inner, c[i].data, v.inner, v.outer, v.inner, w);
}

// ---- split(x; axis, sizes) ----
void infer_split(const Call& c, Outs& outs) {
  Spec s = c[0].spec();
  int axis = axis_attr(c, 0, s.shape.rank);
  int64_t total = 0, size = s.shape[axis];
  for (int64_t n : c.ints(1)) {
    if (n < 0) fail("Split size must be non-negative, got " + std::to_string(n));
    total = checked_add(total, n);
  }
  if (total != size)
    fail("Determined shape must match the sum of the sizes: dimension " + std::to_string(axis) + " is " +
         std::to_string(size) + ", the sizes sum to " + std::to_string(total));
  for (int64_t n : c.ints(1)) {
    s.shape[axis] = n;
    outs.emplace_back(s);
  }
}
void run_split(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  int w = dtype_size(x.dtype);
  int64_t at = 0;
  if (x.numel == 0) {
    for (Tensor& out : outs) out.claim();
    return;
  }
  Split v(x.shape, int(c.integer(0)));
  for (Tensor& out : outs) {
    int64_t n = out.numel / v.outer;
    if (v.outer == 1) {
      out.share(x, at);
    } else {
      out.claim();
      copy_columns(out.data, n, x.data + at * w, v.size * v.inner, v.outer, n, w);
    }
    at += n;
  }
}

// ---- unstack(x; axis) ----
void infer_unstack(const Call& c, Outs& outs) {
  const Shape& x = c[0].shape;
  int axis = axis_attr(c, 0, x.rank);
  Spec s{c[0].dtype, {}};
  for (int i = 0; i < x.rank; ++i)
    if (i != axis) s.shape.push(x[i]);
  for (int64_t i = 0; i < x[axis]; ++i) outs.emplace_back(s);
}

// ---- add_n(xs...) ----
void infer_add_n(const Call& c, Outs& outs) {
  if (c.n < 1)
    fail(Code::Value,
         "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape.");
  want_operands(c);
  want_dtype(c[0], kNumber, "add_n");
  for (int i = 1; i < c.n; ++i)
    if (!(c[i].shape == c[0].shape))
      fail("Inputs to operation must have the same shape. Input 0: " + c[0].shape.str() + " != input " +
           std::to_string(i) + ": " + c[i].shape.str());
  outs.emplace_back(c[0].spec());
}
void run_add_n(const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  if (c.n == 1) return out.share(c[0]);
  out.claim();
  static const Elementwise* add = find_elementwise("add");
  Loop loop = add->loop[int(out.dtype)];
  int64_t w = dtype_size(out.dtype);
  constexpr int64_t block = 4096;  // stays in the first-level cache while all operands pass over it
  each_chunk((out.numel + block - 1) / block, 8, [&](int64_t begin, int64_t end) {
    uint8_t step[2] = {1, 1};
    for (int64_t b = begin; b < end; ++b) {
      int64_t at = b * block, n = std::min(block, out.numel - at);
      const void* in[2] = {c[0].data + at * w, c[1].data + at * w};
      loop(out.data + at * w, in, step, n);
      in[0] = out.data + at * w;
      for (int i = 2; i < c.n; ++i) {
        in[1] = c[i].data + at * w;
        loop(out.data + at * w, in, step, n);
      }
    }
  });
}

GT_OP("concat", {infer_concat, run_concat, false});
GT_OP("stack", {infer_stack, run_stack});
GT_OP("split", {infer_split, run_split, false});
GT_OP("unstack", {infer_unstack, run_split, false});
GT_OP("add_n", {infer_add_n, run_add_n, false});

}  // namespace
}  // namespace gt
