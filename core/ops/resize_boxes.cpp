// sample_grid: values of images at the points of grids, one grid for each box (crop_and_resize), and its
// transpose.
#include <cmath>
#include <vector>

#include "../kernels/resample.h"
#include "indices.h"

namespace gt {
namespace {

// sample_grid(x, at, ys, xs; dy, dx): for box n, row i and column j the pixel of image at[n] at
// (ys[n,i], xs[n,j]), interpolated between its four neighbours; 0 outside the image. With dy (dx)
// set, the difference of the neighbours along y (x) instead: the slope, for gradients.
void check_grid(const Shape& image, const Tensor& at, const Tensor& ys, const Tensor& xs) {
  if (image.rank != 4)
    fail("images must have the shape [batch, height, width, channels], got " + image.str());
  want_indices(at, "at");
  want_same_dtype(ys, xs);
  want_dtype(ys, set_of(Dtype::F32) | set_of(Dtype::F64), "sample_grid");
  if (at.shape.rank != 1 || ys.shape.rank != 2 || xs.shape.rank != 2 || ys.shape[0] != at.shape[0] ||
      xs.shape[0] != at.shape[0])
    fail("at, ys and xs must have the shapes [boxes], [boxes, rows] and [boxes, columns], got " +
         at.shape.str() + ", " + ys.shape.str() + " and " + xs.shape.str());
}
Shape grid_shape(const Tensor& ys, const Tensor& xs, int64_t channels) {
  Shape s;
  for (int64_t d : {ys.shape[0], ys.shape[1], xs.shape[1], channels}) s.push(d);
  return s;
}
void infer_sample(const Call& c, Outs& outs) {
  check_grid(c[0].shape, c[1], c[2], c[3]);
  want_same_dtype(c[0], c[2]);
  outs.emplace_back(Spec{c[0].dtype, grid_shape(c[2], c[3], c[0].shape[3])});
}
// unsample_grid(g, at, ys, xs; shape, dy, dx): images of `shape`.
void infer_unsample(const Call& c, Outs& outs) {
  Shape s = shape_attr(c, 0);
  check_grid(s, c[1], c[2], c[3]);
  want_same_dtype(c[0], c[2]);
  Shape wanted = grid_shape(c[2], c[3], s[3]);
  if (!(c[0].shape == wanted)) fail("g must have the shape " + wanted.str() + ", got " + c[0].shape.str());
  outs.emplace_back(Spec{c[0].dtype, s});
}

// The two neighbours of a place along an axis, and their weights.
template <class T> struct Pair {
  int64_t low, high;
  T at_low, at_high;
  Pair(T place, int64_t size, bool slope) {
    if (!(place >= 0 && place <= T(size - 1))) {
      low = high = 0, at_low = at_high = 0;
      return;
    }
    T left = std::floor(place);
    low = int64_t(left), high = int64_t(std::ceil(place));
    at_high = slope ? T(1) : place - left;
    at_low = slope ? T(-1) : T(1) - at_high;
  }
};

// Calls f(pixel of the grid, four offsets in x, four weights) for the boxes [begin, end).
template <class T, class F>
void each_point(const Shape& image, const Tensor& at, const Tensor& ys, const Tensor& xs, bool dy, bool dx,
                int64_t begin, int64_t end, F&& f) {
  const int64_t height = image[1], width = image[2], channels = image[3], rows = ys.shape[1],
                columns = xs.shape[1];
  visit_indices(at, [&](auto* which) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t first = int64_t(which[n]) * height * width;
      for (int64_t i = 0; i < rows; ++i) {
        const Pair<T> y(ys.as<T>()[n * rows + i], height, dy);
        for (int64_t j = 0; j < columns; ++j) {
          const Pair<T> x(xs.as<T>()[n * columns + j], width, dx);
          const int64_t up = first + y.low * width, down = first + y.high * width;
          const int64_t places[4] = {(up + x.low) * channels, (up + x.high) * channels,
                                     (down + x.low) * channels, (down + x.high) * channels};
          const T weights[4] = {y.at_low * x.at_low, y.at_low * x.at_high, y.at_high * x.at_low,
                                y.at_high * x.at_high};
          f(((n * rows + i) * columns + j) * channels, places, weights);
        }
      }
    }
  });
}

template <class T> void sample(const Call& c, Tensor& out) {
  const Tensor& x = c[0];
  visit_indices(c[1], [&](auto* p) { check_indices(p, c[1], x.shape[0], "box_indices"); });
  const BlendLoop blend = kernels().resample[sizeof(T) == 8].blend;
  const int64_t channels = x.shape[3], grid = out.numel / std::max<int64_t>(out.shape[0], 1);
  each_chunk(
      out.shape[0], grain_rows(4 * grid + 32 * grid / std::max<int64_t>(channels, 1), 1 << 16),
      [&](int64_t begin, int64_t end) {
        each_point<T>(
            x.shape, c[1], c[2], c[3], c.integer(0), c.integer(1), begin, end,
            [&](int64_t to, const int64_t* places, const T* weights) {
              const T* data = x.as<T>();
              const void* lines[4] = {data + places[0], data + places[1], data + places[2], data + places[3]};
              blend(out.as<T>() + to, lines, weights, 4, channels);
            });
      });
}
void run_sample(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  if (c[0].shape[1] == 0 || c[0].shape[2] == 0)
    fail("images must have pixels, got shape " + c[0].shape.str());
  c[0].dtype == Dtype::F32 ? sample<float>(c, outs[0]) : sample<double>(c, outs[0]);
}

template <class T> void unsample(const Call& c, Tensor& out) {
  visit_indices(c[1], [&](auto* p) { check_indices(p, c[1], out.shape[0], "box_indices"); });
  const SpreadLoop spread = kernels().resample[sizeof(T) == 8].spread;
  const int64_t points = c[0].numel / std::max<int64_t>(out.shape[3], 1);
  each_column_block(points, out.shape[3], [&](int64_t column, int64_t n) {
    each_point<T>(out.shape, c[1], c[2], c[3], c.integer(1), c.integer(2), 0, c[1].numel,
                  [&](int64_t from, const int64_t* places, const T* weights) {
                    T* data = out.as<T>() + column;
                    void* lines[4] = {data + places[0], data + places[1], data + places[2], data + places[3]};
                    spread(lines, c[0].as<T>() + from + column, weights, 4, n);
                  });
  });
}
void run_unsample(const Call& c, Outs& outs) {
  zero(outs[0].data, outs[0].nbytes());
  if (c[0].numel == 0 || outs[0].numel == 0) return;
  c[0].dtype == Dtype::F32 ? unsample<float>(c, outs[0]) : unsample<double>(c, outs[0]);
}

GT_OP("sample_grid", {infer_sample, run_sample, true, 2});
GT_OP("unsample_grid", {infer_unsample, run_unsample, true, 2});

}  // namespace
}  // namespace gt
