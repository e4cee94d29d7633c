// Products of bfloat16 matrices, for processors that multiply pairs of them: what core/ops asks of the
// kernels.
#pragma once
#include <cstdint>

namespace gt {

// A panel holds up to kPanel columns of b, rounded up to whole vectors, as the instruction wants them:
// [pairs of rows][columns][2]. What b does not have is zero.
constexpr int64_t kPanel = 64, kPanelVector = 16, kPanelRows = 6;

struct PanelSource {
  const void* b;
  int64_t ld;       // from row to row of b as it lies in memory
  bool transposed;  // b lies [columns][rows]
  int64_t k;        // rows
  int64_t columns;  // of a panel
};

// Rows of c: c[i][j] = sum of a[i][l] * b[l][j] over k, in the order of l, in float.
struct ProductRows {
  const void* a;  // of the first row
  int64_t lda;
  bool transposed;  // a lies [k][rows]
  int64_t rows;
  PanelSource b;              // all its columns
  const void* const* panels;  // of b, one for every kPanel columns; nullptr: they are packed on the way
  void* c;                    // of the first row
  int64_t ldc;
  bool wide;   // c is float, else bfloat16
  void* room;  // of as many bytes as `room` says
};

struct ProductLoops {
  void (*pack)(void* panel, const PanelSource& b);
  void (*rows)(const ProductRows& p);
  int64_t (*room)(const ProductRows& p);
};

}  // namespace gt
