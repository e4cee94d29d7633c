// Resizing images: what the loops of resample.cpp are told.
#pragma once
#include <cstdint>

namespace gt {

// A band matrix with `size` rows: row i has `taps` weights, for the elements from first[i] on.
struct Band {
  const int32_t* first;
  const void* weights;
  int64_t size;
  int taps;
};

// Rows [begin, end) of the result for one image [height, width, channels].
struct Resample {
  const void* x;
  void* out;
  int64_t width, channels;  // of x
  Band rows, columns;       // columns.first counts elements, not pixels
  int64_t begin, end;
  bool columns_first;  // fewer rows go through the slower loop over columns
  // Room for `rows.taps` rows of the result (columns first), or for one row of x and 4 elements.
  void* room;
  const void** lines;  // room for rows.taps pointers
};
using ResampleLoop = void (*)(const Resample&);

// out[j] = sum of weights[t] * lines[t][j] for j < n.
using BlendLoop = void (*)(void* out, const void* const* lines, const void* weights, int taps, int64_t n);
// lines[t][j] += weights[t] * g[j]: the transpose. Lines may be the same.
using SpreadLoop = void (*)(void* const* lines, const void* g, const void* weights, int taps, int64_t n);

// The loops for one element type.
struct ResampleLoops {
  ResampleLoop resample;
  BlendLoop blend;
  SpreadLoop spread;
};

}  // namespace gt
