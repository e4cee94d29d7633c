// Gathering and scattering by coordinates (the nd family), and unsorted segments.
#include <cstring>
#include <limits>
#include <vector>

#include "indices.h"

namespace gt {
namespace {

// Coordinates [..., depth] into the leading axes of a shape; each names a slice of `slice`
// elements. With batch axes, row r of a batch looks into its own part of the tensor.
struct Coordinates {
  int depth;
  int64_t rows, slice, batch_rows = 0, batch_size = 0;
  Coordinates(const Shape& target, const Shape& indices, int batch = 0)
      : depth(int(indices[indices.rank - 1])),
        rows(product(indices, 0, indices.rank - 1)),
        slice(product(target, batch + depth, target.rank)) {
    if (batch)
      batch_rows = product(indices, batch, indices.rank - 1),
      batch_size = product(target, batch, target.rank);
  }
  // The number of the first element of each slice; throws on a coordinate out of range.
  std::vector<int64_t> offsets(const Tensor& indices, const Shape& target, int batch,
                               const char* where) const {
    std::vector<int64_t> out(static_cast<size_t>(rows));
    int64_t step[kMaxRank], n = slice;
    for (int i = depth - 1; i >= 0; --i) step[i] = n, n *= target[batch + i];
    visit_indices(indices, [&](auto* p) {
      for (int64_t r = 0; r < rows; ++r, p += depth) {
        int64_t at = batch ? r / batch_rows * batch_size : 0;
        bool bad = false;
        for (int i = 0; i < depth; ++i) {
          bad |= uint64_t(p[i]) >= uint64_t(target[batch + i]);
          at += int64_t(uint64_t(p[i]) * uint64_t(step[i]));
        }
        if (bad) {
          Shape place(indices.shape.dims, indices.shape.rank - 1);
          std::string text = "[";
          for (int i = 0; i < depth; ++i) text += (i ? ", " : "") + std::to_string(p[i]);
          fail("indices" + (place.rank ? coordinates(place, r) : std::string()) + " = " + text +
               "] does not index into " + where + " " + target.str());
        }
        out[size_t(r)] = at;
      }
    });
    return out;
  }
};

void want_coordinates(const Shape& target, const Shape& indices, int batch) {
  if (indices.rank < 1) fail("indices must be at least a vector");
  if (indices[indices.rank - 1] > target.rank - batch)
    fail("index innermost dimension length must be <= params rank; saw: " +
         std::to_string(indices[indices.rank - 1]) + " vs. " + std::to_string(target.rank - batch));
}
// The shape of the slices that `indices` names in `target`.
Shape slices(const Shape& target, const Shape& indices, int batch) {
  Shape s(indices.dims, indices.rank - 1);
  for (int i = batch + int(indices[indices.rank - 1]); i < target.rank; ++i) s.push(target[i]);
  return s;
}

// ---- gather_nd(x, indices; batch_dims) ----
void infer_gather_nd(const Call& c, Outs& outs) {
  const Shape &x = c[0].shape, &indices = c[1].shape;
  want_indices(c[1]);
  int64_t batch = c.integer(0);
  if (batch < 0 || batch > x.rank || batch >= std::max<int>(indices.rank, 1))
    fail("batch_dims = " + std::to_string(batch) + " is out of range");
  want_coordinates(x, indices, int(batch));
  for (int i = 0; i < batch; ++i)
    if (x[i] != indices[i])
      fail("batch dimensions of params and indices must match: " + x.str() + " vs. " + indices.str());
  outs.emplace_back(Spec{c[0].dtype, slices(x, indices, int(batch))});
}
void run_gather_nd(const Call& c, Outs& outs) {
  const Tensor &x = c[0], &indices = c[1];
  Tensor& out = outs[0];
  int batch = int(c.integer(0));
  if (indices.shape[indices.shape.rank - 1] > 0 && x.numel == 0 && out.numel > 0)
    fail("Requested more than 0 entries, but params is empty.");
  if (out.numel == 0 && x.numel == 0) return;
  Coordinates v(x.shape, indices.shape, batch);
  auto at = v.offsets(indices, x.shape, batch, "param shape");
  int64_t bytes = v.slice * dtype_size(x.dtype), w = dtype_size(x.dtype);
  each_chunk(out.numel ? v.rows : 0, grain_rows(v.slice, 1 << 14), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      std::memcpy(out.data + r * bytes, x.data + at[size_t(r)] * w, size_t(bytes));
  });
}

// ---- scatter_nd(indices, updates; shape), tensor_scatter_add(x, indices, updates) and its kin ----
void check_updates(const Tensor& updates, const Shape& target, const Tensor& indices) {
  want_indices(indices);
  want_coordinates(target, indices.shape, 0);
  Shape expected = slices(target, indices.shape, 0);
  if (!(expected == updates.shape))
    fail("Dimensions of updates must be those of indices and of the slices they name: expected " +
         expected.str() + ", got updates.shape=" + updates.shape.str() +
         ", indices.shape=" + indices.shape.str() + ", shape=" + target.str());
}
void apply_updates(Tensor& out, const Tensor& indices, const Tensor& updates, Combine how) {
  if (out.numel == 0 && updates.numel) fail("Indices and updates specified for empty output tensor");
  if (updates.numel == 0) return;
  Coordinates v(out.shape, indices.shape);
  auto at = v.offsets(indices, out.shape, 0, "shape");
  RowLoop apply(out.dtype, how);
  int64_t w = dtype_size(out.dtype);
  each_column_block(v.rows, v.slice, [&](int64_t column, int64_t n) {
    for (int64_t r = 0; r < v.rows; ++r)
      apply(out.data + (at[size_t(r)] + column) * w, updates.data + (r * v.slice + column) * w, n);
  });
}
void infer_scatter_nd(const Call& c, Outs& outs) {
  Spec s{c[1].dtype, shape_attr(c, 0)};
  check_updates(c[1], s.shape, c[0]);
  outs.emplace_back(s);
}
void run_scatter_nd(const Call& c, Outs& outs) {
  zero(outs[0].data, outs[0].nbytes());
  apply_updates(outs[0], c[0], c[1], Combine::Add);
}
void infer_tensor_scatter(const Call& c, Outs& outs, Combine how) {
  want_same_dtype(c[0], c[2]);
  want_dtype(c[0], combine_dtypes(how), "tensor_scatter");
  check_updates(c[2], c[0].shape, c[1]);
  outs.emplace_back(c[0].spec());
}
void run_tensor_scatter(const Call& c, Outs& outs, Combine how) {
  if (how == Combine::Div && is_int(c[0].dtype))
    visit(c[2].dtype, [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_integral_v<T>)
        for (int64_t i = 0; i < c[2].numel; ++i)
          if (!c[2].as<T>()[i]) fail("Integer division by zero");
    });
  if (outs[0].data != c[0].data)
    copy_bytes(outs[0].data, c[0].data, c[0].nbytes());  // the same: a variable, in place
  apply_updates(outs[0], c[1], c[2], how);
}

template <Combine how> void infer_scatter(const Call& c, Outs& outs) { infer_tensor_scatter(c, outs, how); }
template <Combine how> void run_scatter(const Call& c, Outs& outs) { run_tensor_scatter(c, outs, how); }

// tensor_scatter(x, indices, updates; mode): the same, the way to combine given by number.
void infer_scatter_mode(const Call& c, Outs& outs) {
  int64_t mode = c.integer(0);
  if (mode < 0 || mode > int64_t(Combine::Div)) fail("unknown mode " + std::to_string(mode));
  infer_tensor_scatter(c, outs, Combine(mode));
}
void run_scatter_mode(const Call& c, Outs& outs) { run_tensor_scatter(c, outs, Combine(c.integer(0))); }

// ---- unsorted_segment_sum(x, ids; num_segments), and _max, _min, _prod; negative ids are left out ----
template <Combine how> void infer_segment(const Call& c, Outs& outs) {
  const Shape &x = c[0].shape, &ids = c[1].shape;
  int64_t n = c.integer(0);
  want_indices(c[1], "segment_ids");
  want_dtype(c[0], combine_dtypes(how), "unsorted_segment");
  if (n < 0) fail("num_segments must be non-negative, got " + std::to_string(n));
  bool prefix = ids.rank <= x.rank;
  for (int i = 0; prefix && i < ids.rank; ++i) prefix = x[i] == ids[i];
  if (!prefix) fail("data.shape = " + x.str() + " does not start with segment_ids.shape = " + ids.str());
  Spec s{c[0].dtype, {}};
  s.shape.push(n);
  for (int i = ids.rank; i < x.rank; ++i) s.shape.push(x[i]);
  outs.emplace_back(s);
}
// What an empty segment holds.
template <class T, Combine how> T nothing() {
  if constexpr (how == Combine::Add)
    return T(0.0f);
  else if constexpr (how == Combine::Mul)
    return T(1.0f);
  else if constexpr (std::is_arithmetic_v<T>)
    return how == Combine::Max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  else if constexpr (std::is_same_v<T, half>)
    return how == Combine::Max ? T(-65504.0f) : T(65504.0f);
  else if constexpr (std::is_same_v<T, bfloat>)
    return how == Combine::Max ? T(-3.3895314e38f) : T(3.3895314e38f);
  else
    return T(0.0f);
}
template <Combine how> void run_segment(const Call& c, Outs& outs) {
  const Tensor &x = c[0], &ids = c[1];
  Tensor& out = outs[0];
  int64_t segments = c.integer(0);
  visit(x.dtype, [&](auto t) {
    auto v = nothing<decltype(t), how>();
    fill(out.data, reinterpret_cast<const char*>(&v), sizeof(v), out.numel);
  });
  visit_indices(ids, [&](auto* p) {
    for (int64_t i = 0; i < ids.numel; ++i)
      if (p[i] >= segments)
        fail("segment_ids" + coordinates(ids.shape, i) + " = " + std::to_string(p[i]) +
             " is out of range [0, " + std::to_string(segments) + ")");
    if (x.numel == 0) return;
    RowLoop apply(x.dtype, how);
    int64_t slice = x.numel / ids.numel, w = dtype_size(x.dtype);
    each_column_block(ids.numel, slice, [&](int64_t column, int64_t n) {
      for (int64_t r = 0; r < ids.numel; ++r)
        if (p[r] >= 0) apply(out.data + (p[r] * slice + column) * w, x.data + (r * slice + column) * w, n);
    });
  });
}

GT_OP("gather_nd", {infer_gather_nd, run_gather_nd, true, 1});
GT_OP("scatter_nd", {infer_scatter_nd, run_scatter_nd, true, 1});
GT_OP("tensor_scatter", {infer_scatter_mode, run_scatter_mode, true, 1});
#define GT_TENSOR_SCATTER(name, how) \
  GT_OP(name, {infer_scatter<Combine::how>, run_scatter<Combine::how>, true, 1})
GT_TENSOR_SCATTER("tensor_scatter_update", Update);
GT_TENSOR_SCATTER("tensor_scatter_add", Add);
GT_TENSOR_SCATTER("tensor_scatter_sub", Sub);
GT_TENSOR_SCATTER("tensor_scatter_max", Max);
GT_TENSOR_SCATTER("tensor_scatter_min", Min);
#define GT_SEGMENT(name, how) GT_OP(name, {infer_segment<Combine::how>, run_segment<Combine::how>, true, 1})
GT_SEGMENT("unsorted_segment_sum", Add);
GT_SEGMENT("unsorted_segment_max", Max);
GT_SEGMENT("unsorted_segment_min", Min);
GT_SEGMENT("unsorted_segment_prod", Mul);

}  // namespace
}  // namespace gt
