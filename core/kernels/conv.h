// What the convolutions ask of the kernels: register tiles that sum over runs of elements.
#pragma once
#include <cstdint>

namespace gt {

// A tile of pixels times a panel of filters. A pixel is a sum over `segments` runs of `length`
// neighbouring elements; the runs of all pixels of the tile meet the same rows of the panel. Those of
// bfloat16 are pairs, the last one of a run of odd length with zero.
struct ConvTile {
  const void* const* src;  // [segments][stride] begin of the run, by pixel
  int64_t stride, src_at;  // src_at: added to all of them, in elements
  int64_t segments, length;
  const void* panel;  // [segments * length][vectors * lanes]
  void* const* out;   // by pixel
  int64_t out_at;
  int pixels;    // at most ConvLoops::pixels
  int vectors;   // 1 or 2
  int channels;  // of the panel's, how many are written
  bool add;      // not of bfloat16
};

// Part of the gradient of a filter: rows of elements of x, columns of g, summed over pixels. Those of
// bfloat16 are units, pairs of neighbouring pixels (PixelPairs), summed in float.
struct FilterRun {
  const void *x, *g;  // of the first pixel
  int64_t count;
};
struct FilterTile {
  const FilterRun* runs;
  int64_t n;
  int64_t x_at, g_at;      // added to the places of the runs, in elements
  const int64_t* row_at;   // where the rows of x begin; null: one after the other
  int64_t x_step, g_step;  // from pixel to pixel
  void* out;
  int64_t out_step;  // from row to row
  int rows;          // at most ConvLoops::pixels
  int vectors, channels;
  bool add;
};

// Elements of neighbouring pixels of a run side by side, as units: to[pixel / 2][row] has those of two
// pixels.
struct PixelPairs {
  const void* x;
  int64_t step;  // from pixel to pixel
  int64_t rows;  // whole vectors of `to` are written
  int64_t count;
  int64_t low, high;  // pixels before low and from high on are zero
  void* to;
  int64_t to_step;
};

// One pixel after the other, every channel by itself: out[i][c] = sum over taps of src[t][i][c] * w[t][c].
struct DepthwiseRow {
  const void* const* src;     // by tap: of the first pixel
  const void* const* filter;  // by tap
  int64_t taps, src_step;     // src_step: from pixel to pixel
  void* out;
  int64_t out_step, pixels;
  int64_t first, channels;  // which channels: from `first` on
};
// sum[t][c] += sum over pixels of x[t][i][c] * g[i][c]
struct DepthwiseFilterRow {
  const void* const* x;  // by tap
  int64_t taps, x_step;
  const void* g;
  int64_t g_step, pixels, channels;
  void* const* sum;  // by tap
};

// The transforms of a tile of Winograd's convolution, all channels of it. Sixteen points lie `step`
// elements apart; results, and taps of a filter, by rows and columns.
struct WinogradTile {
  const void* in[16];  // input: 4 x 4 pixels; filter: 3 x 3; cotangent: 2 x 2; else the first point
  void* out;
  int64_t step, channels;
  int64_t row_step, column_step;  // of the results of `output` and `taps`
  int rows, columns;              // of those of `output`, how many there are
};
struct WinogradLoops {
  void (*input)(const WinogradTile&);      // pixels to points
  void (*output)(const WinogradTile&);     // points to results
  void (*filter)(const WinogradTile&);     // taps to points
  void (*cotangent)(const WinogradTile&);  // the transpose of `output`
  void (*taps)(const WinogradTile&);       // the transpose of `filter`
};

struct ConvLoops {
  int pixels, lanes;  // of a register tile; a panel has one or two vectors of `lanes` channels
  void (*tile)(const ConvTile&);
  void (*filter)(const FilterTile&);
  void (*pairs)(const PixelPairs&);  // bfloat16 only
  void (*depthwise)(const DepthwiseRow&);
  void (*depthwise_filter)(const DepthwiseFilterRow&);
  WinogradLoops winograd;
};

// A row of windows, every channel by itself. Taps are the elements of a window, in its order.
struct PoolRow {
  const void* const* x;  // by tap: of the first pixel
  const int64_t* place;  // by tap: its number, for argmax
  int64_t taps, x_step;  // x_step: from pixel to pixel
  int64_t pixels, channels;
  const void* const* t;  // pick: what is taken at the place of the largest x
  const void* g;         // unpool, spread: what goes back to the window
  void* const* to;       //   by tap, laid out as x
  void* out;             // max, average, argmax (int64), pick
  int64_t out_step;      //   (of g, too)
  bool add;              // unpool, spread: windows overlap
};
struct PoolLoops {
  void (*max)(const PoolRow&);     // a NaN beats every number
  void (*argmax)(const PoolRow&);  // the first of equals
  void (*pick)(const PoolRow&);
  void (*unpool)(const PoolRow&);
  void (*average)(const PoolRow&);  // floats only
  void (*spread)(const PoolRow&);   // floats only
};

}  // namespace gt
