// Products of matrices of float, 16-bit floats and int8, for processors with AVX-512: what core/ops asks of
// the kernels.
#pragma once
#include <cstdint>

namespace gt {

// A panel holds up to kPanel columns of b, rounded up to whole vectors, as the instructions want them:
// [groups of rows][columns][group], where a group is one float, or a pair of bfloat16
// or of int16. What b does not have is
// zero.
constexpr int64_t kPanel = 64, kPanelVector = 16, kPanelRows = 6;
constexpr int64_t panel_width(int64_t columns) {
  return (columns + kPanelVector - 1) / kPanelVector * kPanelVector;
}

struct PanelSource {
  const void* b;
  int64_t ld;       // from row to row of b as it lies in memory
  bool transposed;  // b lies [columns][rows]
  int64_t k;        // rows
  int64_t columns;  // of a panel
};

// Rows of c: c[i][j] = scale * sum of a[i][l] * b[l][j] over l, in float (of int8: in
// int32, without a scale): the terms of a block of depth in
// their order, then the sums of the blocks in theirs. Which blocks there are depends on k only.
struct ProductRows {
  const void* a;  // of the first row
  int64_t lda;
  bool transposed;  // a lies [k][rows]
  int64_t rows;
  PanelSource b;              // all its columns
  const void* const* panels;  // of b, one for every kPanel columns; nullptr: packed on the way, where needed
  void* c;                    // of the first row
  int64_t ldc;
  bool wide;             // c has sums, else elements as a and b
  float scale = 1;       // of the sums
  bool add = false;      // to what c has; it is float then
  void* room = nullptr;  // of as many bytes as `room` says
};

// Of one format; all nullptr where the processor does not multiply it.
struct ProductLoops {
  int64_t group;  // rows of b that lie side by side in a panel; a unit of it, of any format, has four bytes
  void (*pack)(void* panel, const PanelSource& b);
  void (*rows)(const ProductRows& p);
  int64_t (*room)(const ProductRows& p);
};

}  // namespace gt
