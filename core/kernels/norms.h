// Means, variances and normalisation of rows and columns: what the loops of norms.cpp are told.
#pragma once
#include <cstdint>

namespace gt {

// Rows [begin, end) of n elements each, every row normalised by itself.
struct RowNorm {
  const void *x, *scale, *offset;  // offset: nullptr without centering
  void *out, *mean, *rstd;         // a mean and a 1 / sqrt(variance + epsilon) a row
  int64_t begin, end, n;
  double epsilon;
};
struct RowNormGrad {
  const void *g, *x, *scale, *mean, *rstd;  // mean: nullptr without centering
  void *gx, *gscale, *goffset;              // the last two: sums over these rows; goffset may be nullptr
  int64_t begin, end, n;
};

// `rows` rows of `columns` elements, every column normalised by itself. `params` are one number a column,
// or (step 0) one for all.
struct ColumnNorm {
  const void *x, *g;
  void* out;
  int64_t rows, columns;
  int step;
  const void* params[4];
};

struct NormLoops {
  void (*rows)(const RowNorm&);
  void (*rows_grad)(const RowNormGrad&);
  // Mean and sum of squared distances from it, of one row or of each column.
  void (*row_moments)(const void* x, int64_t n, double* mean, double* squares);
  void (*column_moments)(const void* x, int64_t rows, int64_t columns, double* mean, double* squares);
  // The sum of x * y.
  void (*row_product)(const void* x, const void* y, int64_t n, double* sum);
  // The sums of g and of g * (x - mean), of one row or of each column.
  void (*row_dots)(const void* g, const void* x, double mean, int64_t n, double* sum, double* dot);
  void (*column_dots)(const void* g, const void* x, const void* mean, int64_t rows, int64_t columns,
                      double* sum, double* dot);
  // out = (x - p0) * p1 + p2, and out = g * p0 + (x - p1) * p2 + p3.
  void (*apply)(const ColumnNorm&);
  void (*apply_grad)(const ColumnNorm&);
};

}  // namespace gt
