// Products of a sparse matrix, given by the places and values of its elements, with a dense one; and, for
// their gradients, dot products of the rows at these places.
#include <atomic>
#include <climits>
#include <vector>

#include "../kernels/sparse.h"
#include "elementwise.h"
#include "indices.h"

namespace gt {
namespace {

void want_places(const Tensor& places) {
  want_indices(places, "a_indices");
  if (places.shape.rank != 2 || places.shape[1] != 2)
    fail("Tensor 'a_indices' must be a matrix of pairs [n, 2], got shape " + places.shape.str());
}
void want_values(const Tensor& values, const Tensor& places) {
  if (values.shape.rank != 1) fail("Tensor 'a_values' is not a vector, got shape " + values.shape.str());
  if (values.shape[0] != places.shape[0])
    fail("Number of rows of a_indices does not match number of entries in a_values: " + places.shape.str() +
         " vs. " + values.shape.str());
}
void want_matrix(const Tensor& x, const char* what) {
  want_dtype(x, kNumber, "a sparse product");
  if (x.shape.rank != 2)
    fail(std::string("Tensor '") + what + "' is not a matrix, got shape " + x.shape.str());
}
Shape matrix_attr(const Call& c) {
  const Shape a = shape_attr(c, 0);
  if (a.rank != 2) fail("Tensor 'a_shape' must have 2 elements, got " + a.str());
  if (std::max(a[0], a[1]) > INT_MAX)
    fail("a sparse matrix with a dimension above 2147483647 is not supported: " + a.str());
  return a;
}

Tensor cast_to(Dtype t, const Tensor& x) {
  if (x.dtype == t) return x;
  Tensor y = empty(t, x.shape);
  run_cast(x, y);
  return y;
}

// ---- places ----

// Throws on places outside of a matrix; returns whether they are in the order of their rows.
bool check_places(const int64_t* p, int64_t n, const int64_t (&limit)[2]) {
  bool outside = false, back = false;  // no branch: this loop runs over every element
  const uint64_t rows = uint64_t(limit[0]), columns = uint64_t(limit[1]);
  int64_t before = 0;
  for (int64_t e = 0; e < n; ++e) {
    const int64_t row = p[2 * e];
    outside |= (uint64_t(row) >= rows) | (uint64_t(p[2 * e + 1]) >= columns);
    back |= row < before;
    before = row;
  }
  if (!outside) return !back;
  for (int64_t e = 0; e < n; ++e)
    for (int side : {0, 1})
      if (uint64_t(p[2 * e + side]) >= uint64_t(limit[side]))
        fail(std::string(side ? "k" : "m") + " (" + std::to_string(p[2 * e + side]) + ") from index[" +
             std::to_string(e) + "," + std::to_string(side) +
             "] out of bounds (>=" + std::to_string(limit[side]) + "): a_indices[" + std::to_string(e) +
             "] = [" + std::to_string(p[2 * e]) + "," + std::to_string(p[2 * e + 1]) +
             "] does not index into a matrix of shape [" + std::to_string(limit[0]) + "," +
             std::to_string(limit[1]) + "]");
  __builtin_unreachable();
}

// A matrix, or its transpose, row by row (see SparseRows): where rows start, and the column of each element.
// `order` has the element of each place of that list, and is empty if it is the list of elements itself.
void by_rows(const Tensor& places, const int64_t (&limit)[2], bool transpose, int64_t* starts,
             int32_t* columns, std::vector<int64_t>& order) {
  const int64_t *p = places.as<int64_t>(), n = places.shape[0], rows = limit[transpose];
  const bool sorted = check_places(p, n, limit) && !transpose;
  std::fill_n(starts, rows + 1, 0);
  if (sorted) {
    for (int64_t e = 0; e < n; ++e) {
      starts[p[2 * e] + 1] = e + 1;
      columns[e] = int32_t(p[2 * e + 1]);
    }
    for (int64_t r = 0; r < rows; ++r) starts[r + 1] = std::max(starts[r + 1], starts[r]);
    return;
  }
  for (int64_t e = 0; e < n; ++e) ++starts[p[2 * e + transpose] + 1];
  for (int64_t r = 0; r < rows; ++r) starts[r + 1] += starts[r];
  std::vector<int64_t> next(starts, starts + rows);
  order.resize(size_t(n));
  for (int64_t e = 0; e < n; ++e) {
    const int64_t at = next[size_t(p[2 * e + transpose])]++;
    order[size_t(at)] = e;
    columns[at] = int32_t(p[2 * e + 1 - transpose]);
  }
}

// ---- sparse_matmul(a_indices, a_values, b; a_shape, transpose_a) ----
void infer_product(const Call& c, Outs& outs, int values_at, bool transpose) {
  const Tensor &places = c[0], &values = c[values_at], &b = c[values_at + 1];
  want_places(places);
  want_values(values, places);
  want_same_dtype(values, b);
  want_matrix(b, "b");
  const Shape a = matrix_attr(c);
  if (a[transpose ? 0 : 1] != b.shape[0])
    fail("Cannot multiply A and B because inner dimension does not match: " +
         std::to_string(a[transpose ? 0 : 1]) + " vs. " + std::to_string(b.shape[0]) +
         ".  Did you forget a transpose?  Dimensions of A: " + a.str() +
         ". Dimensions of B: " + b.shape.str());
  Spec s{b.dtype, {}};
  s.shape.push(a[transpose ? 1 : 0]);
  s.shape.push(b.shape[1]);
  outs.emplace_back(s);
}
void infer_coo(const Call& c, Outs& outs) { infer_product(c, outs, 1, c.integer(1)); }

void multiply(const int64_t* starts, const int32_t* columns, const Tensor& values, const Tensor& b,
              Tensor& out) {
  if (in(b.dtype, kHalf)) {  // summed in float
    Tensor wide = empty(Dtype::F32, out.shape);
    multiply(starts, columns, cast_to(Dtype::F32, values), cast_to(Dtype::F32, b), wide);
    return run_cast(wide, out);
  }
  const int64_t rows = out.shape[0], width = out.shape[1];
  if (out.numel == 0) return;
  const SparseRows a{starts, columns, values.data, b.data, out.data, width};
  const SparseLoops& loops = kernels().sparse[int(b.dtype)];
  const int64_t each = (values.numel / rows + 1) * (width + 4);
  const int64_t n = values.numel, columns_limit = b.shape[0];
  std::atomic<bool> bad{false};
  each_chunk(rows, grain_rows(each, 1 << 15), [&](int64_t first, int64_t last) {
    // Nothing outside of the operands is read, whatever they hold.
    if (loops.fits(a, first, last, n, columns_limit))
      loops.product(a, first, last);
    else
      bad = true;
  });
  if (bad) fail("a_starts and a_columns are not those of the rows of a matrix");
}

void run_coo(const Call& c, Outs& outs) {
  const bool transpose = c.integer(1);
  const Tensor places = cast_to(Dtype::I64, c[0]);
  const int64_t limit[2] = {c.ints(0)[0], c.ints(0)[1]}, n = places.shape[0], length = limit[transpose] + 1;
  Tensor starts = empty(Dtype::I64, Shape(&length, 1)), columns = empty(Dtype::I32, Shape(&n, 1));
  Tensor values = c[1];
  std::vector<int64_t> order;
  by_rows(places, limit, transpose, starts.as<int64_t>(), columns.as<int32_t>(), order);
  if (!order.empty()) {
    values = empty(values.dtype, values.shape);
    visit_width(dtype_size(values.dtype), [&](auto t) {
      using T = decltype(t);
      for (int64_t at = 0; at < n; ++at)
        reinterpret_cast<T*>(values.data)[at] = reinterpret_cast<const T*>(c[1].data)[order[size_t(at)]];
    });
  }
  multiply(starts.as<int64_t>(), columns.as<int32_t>(), values, c[2], outs[0]);
}

// ---- sparse_rows(a_indices; a_shape): the rows of a matrix, for repeated products ----
void infer_rows(const Call& c, Outs& outs) {
  want_places(c[0]);
  const Shape a = matrix_attr(c);
  const int64_t length = a[0] + 1;
  outs.emplace_back(Spec{Dtype::I64, Shape(&length, 1)});
  outs.emplace_back(Spec{Dtype::I32, Shape(c[0].shape.dims, 1)});
  outs.emplace_back(Spec{Dtype::Bool, {}});
}
void run_rows(const Call& c, Outs& outs) {
  const int64_t limit[2] = {c.ints(0)[0], c.ints(0)[1]};
  std::vector<int64_t> order;
  by_rows(cast_to(Dtype::I64, c[0]), limit, false, outs[0].as<int64_t>(), outs[1].as<int32_t>(), order);
  *outs[2].as<bool>() = order.empty();
}

// ---- sparse_matmul_rows(a_indices, a_starts, a_columns, a_values, b; a_shape): with the results of
// sparse_rows ----
void infer_with_rows(const Call& c, Outs& outs) {
  infer_product(c, outs, 3, false);
  const Tensor &starts = c[1], &columns = c[2];
  want_indices(starts, "a_starts");
  want_indices(columns, "a_columns");
  if (starts.shape.rank != 1 || starts.shape[0] != c.ints(0)[0] + 1 || columns.shape.rank != 1 ||
      columns.shape[0] != c[0].shape[0])
    fail("a_starts and a_columns must be those of sparse_rows, got " + starts.spec().str() + " and " +
         columns.spec().str());
}
void run_with_rows(const Call& c, Outs& outs) {
  const Tensor starts = cast_to(Dtype::I64, c[1]), columns = cast_to(Dtype::I32, c[2]);
  multiply(starts.as<int64_t>(), columns.as<int32_t>(), c[3], c[4], outs[0]);
}

// ---- sparse_dots(a_indices, x, y): the sum of x[i] * y[j] for each pair i, j ----
void infer_dots(const Call& c, Outs& outs) {
  want_places(c[0]);
  want_same_dtype(c[1], c[2]);
  want_matrix(c[1], "x");
  want_matrix(c[2], "y");
  if (c[1].shape[1] != c[2].shape[1])
    fail("rows of x and y must have one length: " + c[1].shape.str() + " vs. " + c[2].shape.str());
  outs.emplace_back(Spec{c[1].dtype, Shape(c[0].shape.dims, 1)});
}
void run_dots(const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  const bool half = in(out.dtype, kHalf);  // summed in float
  const Tensor x = half ? cast_to(Dtype::F32, c[1]) : c[1], y = half ? cast_to(Dtype::F32, c[2]) : c[2];
  Tensor sums = half ? empty(Dtype::F32, out.shape) : out;
  const Tensor places = cast_to(Dtype::I64, c[0]);
  const int64_t* p = places.as<int64_t>();
  const int64_t limit[2] = {x.shape[0], y.shape[0]}, width = x.shape[1];
  check_places(p, out.numel, limit);
  const SparseLoops& loops = kernels().sparse[int(x.dtype)];
  each_chunk(out.numel, grain_rows(width + 8, 1 << 16), [&](int64_t begin, int64_t end) {
    loops.dots(p, x.data, y.data, sums.data, width, begin, end);
  });
  if (half) run_cast(sums, out);
}

GT_OP("sparse_matmul", {infer_coo, run_coo, true, 2.0});
GT_OP("sparse_rows", {infer_rows, run_rows, true, 1.0});
GT_OP("sparse_matmul_rows", {infer_with_rows, run_with_rows, true, 2.0});
GT_OP("sparse_dots", {infer_dots, run_dots, true, 2.0});

}  // namespace
}  // namespace gt
