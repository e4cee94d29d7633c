// Gathering along an axis: gather, take_along, and their transposes, which add to the places that were read.
#include <cstring>

#include "indices.h"

namespace gt {
namespace {

// ---- gather(x, indices; axis) and gather_batched(x, indices; axis, batch_dims) ----
// x is [batch, outer, size, inner], indices [batch, count], the result [batch, outer, count, inner].
// A negative batch_dims counts from the last axis of the indices.
struct Axes {
  int axis, batch;
  Axes(const Call& c, const Shape& x, const Shape& indices) {
    const int64_t given = c.attrs.size() > 1 ? c.integer(1) : 0, b = given < 0 ? given + indices.rank : given;
    axis = axis_attr(c, 0, x.rank);
    if (b < 0 || b > indices.rank)
      fail("Expected batch_dims in the range [" + std::to_string(-indices.rank) + ", " +
           std::to_string(indices.rank) + "], but got " + std::to_string(given));
    if (b > axis)
      fail("batch_dims (" + std::to_string(b) + ") must be less than or equal to axis (" +
           std::to_string(axis) + ").");
    batch = int(b);
  }
};
struct Gather {
  int64_t batch, outer, size, inner, count;
  Gather(const Shape& x, const Shape& indices, Axes at) : Gather(x, indices, at.axis, at.batch) {}
  Gather(const Shape& x, const Shape& indices, int axis, int batch_dims)
      : batch(product(x, 0, batch_dims)),
        outer(product(x, batch_dims, axis)),
        size(x[axis]),
        inner(product(x, axis + 1, x.rank)),
        count(product(indices, batch_dims, indices.rank)) {}
};
// The shape of the result; checks axis and batch_dims.
Shape gathered(const Call& c, const Shape& x, const Shape& indices) {
  auto [axis, batch] = Axes(c, x, indices);
  for (int i = 0; i < batch; ++i)
    if (x[i] != indices[i])
      fail("params.shape[" + std::to_string(i) + "]: " + std::to_string(x[i]) +
           " should be equal to indices.shape[" + std::to_string(i) + "]: " + std::to_string(indices[i]));
  Shape s;
  for (int i = 0; i < axis; ++i) s.push(x[i]);
  for (int i = batch; i < indices.rank; ++i) s.push(indices[i]);
  for (int i = axis + 1; i < x.rank; ++i) s.push(x[i]);
  return s;
}
void infer_gather(const Call& c, Outs& outs) {
  want_indices(c[1]);
  outs.emplace_back(Spec{c[0].dtype, gathered(c, c[0].shape, c[1].shape)});
}
template <class W, class I> void gather_rows(W* out, const W* x, const I* indices, const Gather& v) {
  int64_t blocks = v.batch * v.outer;
  each_chunk(blocks * v.count, grain_rows(v.inner, 1 << 15), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      int64_t block = at / v.count, k = at % v.count, stop = std::min(v.count, k + end - at);
      const W* from = x + block * v.size * v.inner;
      const I* index = indices + block / v.outer * v.count;
      W* to = out + at * v.inner;
      at += stop - k;
      if (v.inner == 1)
        for (; k < stop; ++k) *to++ = from[index[k]];
      else
        for (; k < stop; ++k, to += v.inner)
          std::memcpy(to, from + index[k] * v.inner, size_t(v.inner) * sizeof(W));
    }
  });
}
void run_gather(const Call& c, Outs& outs) {
  const Tensor &x = c[0], &indices = c[1];
  Tensor& out = outs[0];
  Gather v(x.shape, indices.shape, Axes(c, x.shape, indices.shape));
  visit_indices(indices, [&](auto* p) {
    check_indices(p, indices, v.size);
    if (out.numel == 0) return;
    visit_width(dtype_size(x.dtype), [&](auto w) {
      using W = decltype(w);
      gather_rows(out.as<W>(), x.as<W>(), p, v);
    });
  });
}

// ---- gather_grad(g, indices; axis, batch_dims, shape): zeros(shape) with g added back ----
void infer_gather_grad(const Call& c, Outs& outs) {
  want_indices(c[1]);
  want_dtype(c[0], kNumber, "gather_grad");
  Spec s{c[0].dtype, shape_attr(c, 2)};
  Shape expected = gathered(c, s.shape, c[1].shape);
  if (!(expected == c[0].shape))
    fail("the gradient of a gather of shape " + expected.str() + " has shape " + c[0].shape.str());
  outs.emplace_back(s);
}
void add_back(const Tensor& g, const Tensor& indices, Tensor& out, const Gather& v) {
  zero(out.data, out.nbytes());
  RowLoop add(g.dtype, Combine::Add);
  int64_t w = dtype_size(g.dtype), blocks = v.batch * v.outer;
  visit_indices(indices, [&](auto* p) {
    check_indices(p, indices, v.size);
    if (g.numel == 0) return;
    auto block = [&](int64_t b, int64_t column, int64_t columns) {
      const auto* index = p + b / v.outer * v.count;
      const char* from = g.data + (b * v.count * v.inner + column) * w;
      char* to = out.data + (b * v.size * v.inner + column) * w;
      for (int64_t k = 0; k < v.count; ++k) add(to + index[k] * v.inner * w, from + k * v.inner * w, columns);
    };
    if (blocks == 1)
      return each_column_block(v.count, v.inner, [&](int64_t column, int64_t n) { block(0, column, n); });
    each_chunk(blocks, grain_rows(v.count * v.inner), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) block(b, 0, v.inner);
    });
  });
}
void run_gather_grad(const Call& c, Outs& outs) {
  add_back(c[0], c[1], outs[0], Gather(outs[0].shape, c[1].shape, Axes(c, outs[0].shape, c[1].shape)));
}

// ---- scatter_rows_add(values, indices; shape) ----
void infer_scatter_rows_add(const Call& c, Outs& outs) {
  want_indices(c[1]);
  want_dtype(c[0], kNumber, "scatter_rows_add");
  Spec s{c[0].dtype, shape_attr(c, 0)};
  if (s.shape.rank < 1) fail("scatter_rows_add: shape must have at least one dimension");
  Shape expected = c[1].shape;
  for (int i = 1; i < s.shape.rank; ++i) expected.push(s.shape[i]);
  if (!(expected == c[0].shape))
    fail("values must have shape " + expected.str() + ", got " + c[0].shape.str());
  outs.emplace_back(s);
}
void run_scatter_rows_add(const Call& c, Outs& outs) {
  add_back(c[0], c[1], outs[0], Gather(outs[0].shape, c[1].shape, 0, 0));
}

// ---- take_along(x, indices; axis) and put_along_add(g, indices; axis, shape) ----
void want_along(const Shape& x, const Shape& indices, int axis) {
  bool good = x.rank == indices.rank;
  for (int i = 0; good && i < x.rank; ++i) good = i == axis || x[i] == indices[i];
  if (!good)
    fail("indices must have the shape of the operand except along axis " + std::to_string(axis) + ": " +
         x.str() + " vs. " + indices.str());
}
void infer_take_along(const Call& c, Outs& outs) {
  want_indices(c[1]);
  want_along(c[0].shape, c[1].shape, axis_attr(c, 0, c[0].shape.rank));
  outs.emplace_back(Spec{c[0].dtype, c[1].shape});
}
void run_take_along(const Call& c, Outs& outs) {
  const Tensor &x = c[0], &indices = c[1];
  Tensor& out = outs[0];
  Split from(x.shape, int(c.integer(0))), to(out.shape, int(c.integer(0)));
  visit_indices(indices, [&](auto* p) {
    check_indices(p, indices, from.size);
    visit_width(dtype_size(x.dtype), [&](auto w) {
      using W = decltype(w);
      each_chunk(out.numel ? to.outer : 0, grain_rows(to.size * to.inner, 1 << 14),
                 [&](int64_t begin, int64_t end) {
                   const auto* index = p + begin * to.size * to.inner;
                   W* o = out.as<W>() + begin * to.size * to.inner;
                   for (int64_t b = begin; b < end; ++b) {
                     const W* v = x.as<W>() + b * from.size * from.inner;
                     for (int64_t k = 0; k < to.size; ++k)
                       for (int64_t i = 0; i < to.inner; ++i) *o++ = v[*index++ * from.inner + i];
                   }
                 });
    });
  });
}
void infer_put_along_add(const Call& c, Outs& outs) {
  want_indices(c[1]);
  want_dtype(c[0], kNumber, "put_along_add");
  Spec s{c[0].dtype, shape_attr(c, 1)};
  want_along(s.shape, c[1].shape, axis_attr(c, 0, s.shape.rank));
  if (!(c[0].shape == c[1].shape))
    fail("values and indices must have the same shape, got " + c[0].shape.str() + " and " + c[1].shape.str());
  outs.emplace_back(s);
}
void run_put_along_add(const Call& c, Outs& outs) {
  const Tensor &g = c[0], &indices = c[1];
  Tensor& out = outs[0];
  zero(out.data, out.nbytes());
  Split to(out.shape, int(c.integer(0))), from(g.shape, int(c.integer(0)));
  visit_indices(indices, [&](auto* p) {
    check_indices(p, indices, to.size);
    visit(g.dtype, [&](auto t) {
      using T = decltype(t);
      each_chunk(g.numel ? from.outer : 0, grain_rows(from.size * from.inner, 1 << 14),
                 [&](int64_t begin, int64_t end) {
                   const auto* index = p + begin * from.size * from.inner;
                   const T* v = g.as<T>() + begin * from.size * from.inner;
                   for (int64_t b = begin; b < end; ++b) {
                     T* o = out.as<T>() + b * to.size * to.inner;
                     for (int64_t k = 0; k < from.size; ++k)
                       for (int64_t i = 0; i < from.inner; ++i) {
                         T& at = o[*index++ * to.inner + i];
                         at = combine<Combine::Add>(at, *v++);
                       }
                   }
                 });
    });
  });
}

GT_OP("gather", {infer_gather, run_gather});
GT_OP("gather_batched", {infer_gather, run_gather});
GT_OP("gather_grad", {infer_gather_grad, run_gather_grad, true, 1});
GT_OP("scatter_rows_add", {infer_scatter_rows_add, run_scatter_rows_add, true, 1});
GT_OP("take_along", {infer_take_along, run_take_along, true, 1});
GT_OP("put_along_add", {infer_put_along_add, run_put_along_add, true, 1});

}  // namespace
}  // namespace gt
