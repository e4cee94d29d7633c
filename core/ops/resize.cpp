// resample: images times two band matrices, one along the height and one along the width. Every resize method
// is such a product (gradtape/image/filters.py builds the matrices), and so is its gradient.
#include <algorithm>
#include <vector>

#include "../kernels/resample.h"
#include "indices.h"

namespace gt {
namespace {

// resample(x, places, rows, columns, ...). A band matrix has its weights, `taps` in a row, as one
// tensor; `places` holds the first element of each row of both, those of `rows` before.
void infer_resample(const Call& c, Outs& outs) {
  want_dtype(c[0], set_of(Dtype::F32) | set_of(Dtype::F64), "resample");
  if (c[0].shape.rank != 4)
    fail("x must be images [batch, height, width, channels], got shape " + c[0].shape.str());
  Spec s = c[0].spec();
  int64_t lines = 0;
  for (int k = 0; k < 2; ++k) {
    const Tensor& band = c[2 + k];
    want_same_dtype(c[0], band);
    if (band.shape.rank != 2 || band.shape[1] < 1 || band.shape[1] > c[0].shape[1 + k])
      fail("the weights of a band matrix must have the shape [size, taps] with 1 to " +
           std::to_string(c[0].shape[1 + k]) + " taps, got " + band.shape.str());
    lines += s.shape[1 + k] = band.shape[0];
  }
  want_indices(c[1], "places");
  if (c[1].shape.rank != 1 || c[1].numel != lines)
    fail("places must have the shape [" + std::to_string(lines) +
         "], one for each row of the result and one for each column, got " + c[1].shape.str());
  outs.emplace_back(s);
}

// `size` places, checked and multiplied by `step`.
std::vector<int32_t> places(const Tensor& from, int64_t begin, int64_t size, int64_t most, int64_t step) {
  std::vector<int32_t> first(static_cast<size_t>(size));
  visit_indices(from, [&](auto* p) {
    p += begin;
    for (int64_t i = 0; i < size; ++i) {
      if (p[i] < 0 || p[i] > most)
        fail("places" + coordinates(from.shape, begin + i) + " = " + std::to_string(p[i]) +
             " is not in [0, " + std::to_string(most) + "]");
      if (i && p[i] < p[i - 1])
        fail("the places of a band matrix must not go back, got " + std::to_string(p[i]) + " after " +
             std::to_string(p[i - 1]));
      first[size_t(i)] = int32_t(p[i] * step);
    }
  });
  return first;
}

template <class T> void resample(const Call& c, Tensor& out) {
  const Tensor &x = c[0], &rows = c[2], &columns = c[3];
  const int64_t height = x.shape[1], width = x.shape[2], channels = x.shape[3];
  const int64_t out_height = out.shape[1], out_width = out.shape[2], out_row = out_width * channels,
                in_row = width * channels;
  if (std::max({height, in_row, out_row}) >= int64_t(1) << 31)
    fail("a row of an image has more than 2^31 elements");
  const int row_taps = int(rows.shape[1]), column_taps = int(columns.shape[1]);
  const auto row_places = places(c[1], 0, out_height, height - row_taps, 1);
  const auto column_places = places(c[1], out_height, out_width, width - column_taps, channels);
  Resample task{};
  task.width = width, task.channels = channels;
  task.rows = {row_places.data(), rows.data, out_height, row_taps};
  task.columns = {column_places.data(), columns.data, out_width, column_taps};
  task.columns_first = out_height > height;
  // At least as many rows as taps, so that few columns are computed twice.
  const int64_t work = out_row * column_taps + std::max(in_row, out_row) * row_taps / 4;
  const int64_t block = std::min(out_height, std::max<int64_t>(2 * row_taps, grain_rows(work, 1 << 15)));
  const int64_t blocks = (out_height + block - 1) / block;
  const int64_t room = task.columns_first ? out_row * row_taps : in_row + 4;
  const ResampleLoop loop = kernels().resample[sizeof(T) == 8].resample;
  each_chunk(x.shape[0] * blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(static_cast<size_t>(room));
    std::vector<const void*> lines(static_cast<size_t>(row_taps));
    Resample r = task;
    r.room = scratch.data(), r.lines = lines.data();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / blocks, b = i % blocks;
      r.x = x.as<T>() + image * height * in_row;
      r.out = out.as<T>() + image * out_height * out_row;
      r.begin = b * block, r.end = std::min(out_height, (b + 1) * block);
      loop(r);
    }
  });
}

void run_resample(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  if (c[0].dtype == Dtype::F32)
    resample<float>(c, outs[0]);
  else
    resample<double>(c, outs[0]);
}

GT_OP("resample", {infer_resample, run_resample, true, 1});

}  // namespace
}  // namespace gt
