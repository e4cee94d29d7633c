// Products of a sparse matrix and a dense one: what the loops of sparse.cpp are told.
#pragma once
#include <cstdint>

namespace gt {

// A sparse matrix row by row: the elements of row r are [starts[r], starts[r + 1]), each in the column
// columns[e]. `dense` and `out` have rows of `width` elements.
struct SparseRows {
  const int64_t* starts;
  const int32_t* columns;
  const void *values, *dense;
  void* out;
  int64_t width;
};

struct SparseLoops {
  // Whether rows [first, last) are made of some of n elements, and their columns are below `columns`.
  bool (*fits)(const SparseRows&, int64_t first, int64_t last, int64_t n, int64_t columns);
  // Rows [first, last) of `out`: the sums of the elements of each, times the rows of `dense` that their
  // columns name.
  void (*product)(const SparseRows&, int64_t first, int64_t last);
  // out[e] = the sum of x[places[2 e]] * y[places[2 e + 1]], rows of `width` elements, for e in [begin, end).
  void (*dots)(const int64_t* places, const void* x, const void* y, void* out, int64_t width, int64_t begin,
               int64_t end);
};

}  // namespace gt
