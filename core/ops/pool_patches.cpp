// The windows of x as patches next to each other, and the transpose, which adds them up.
#include <algorithm>
#include <cstring>

#include "conv_lines.h"
#include "indices.h"

namespace gt {
namespace {

std::string text(int64_t n) { return std::to_string(n); }

struct Patches {
  int dims;
  int64_t n, channels, taps = 1;
  Side side[3];
};

// Attributes from `first` on: the size of a patch, strides, rates, paddings.
Patches patches_of(const Call& c, int first, const Shape& x) {
  const auto &sizes = c.ints(first), &strides = c.ints(first + 1), &rates = c.ints(first + 2),
             &pads = c.ints(first + 3);
  Patches p;
  p.dims = int(sizes.size());
  if (p.dims < 1 || p.dims > 3 || x.rank != p.dims + 2)
    fail("input must be " + text(p.dims + 2) + "-dimensional: " + x.str());
  if (strides.size() != sizes.size() || rates.size() != sizes.size())
    fail("sizes, strides and rates must be of the same number of dimensions");
  want_paddings(pads, sizes.size());
  p.n = x[0], p.channels = x[x.rank - 1];
  for (int i = 0, a = 3 - p.dims; i < p.dims; ++i, ++a) {
    const size_t k = size_t(i);
    if (sizes[k] <= 0 || strides[k] <= 0 || rates[k] <= 0) fail("sizes, strides and rates must be positive");
    const int64_t span = checked_add(checked_mul(sizes[k] - 1, rates[k]), 1);
    const auto [low, high] = padding_of(pads, i, x[i + 1], span, strides[k]);
    const int64_t whole = checked_add(x[i + 1], checked_add(low, high));
    p.side[a] = {std::max<int64_t>(0, (whole - span + strides[k]) / strides[k]),
                 0,
                 1,
                 x[i + 1],
                 strides[k],
                 sizes[k],
                 -low,
                 rates[k],
                 0,
                 1};
    p.taps = checked_mul(p.taps, sizes[k]);
  }
  return p;
}
Shape result(const Patches& p) {
  Shape s;
  s.push(p.n);
  for (int a = 3 - p.dims; a < 3; ++a) s.push(p.side[a].count);
  s.push(checked_mul(p.taps, p.channels));
  return s;
}

// Calls f(element of the patches, element of x, length) for each run of elements inside x that are adjacent
// in both: all taps of a row where the rate is 1, else the channels of one.
template <class F> void each_run(const Patches& p, int64_t line, F&& f) {
  const Line l(p.side, line);
  const Side& v = p.side[2];
  const int64_t rate = v.at_step;
  for (int64_t i = 0; i < v.count; ++i) {
    const int64_t first = i * v.src_step + v.at;  // where the first tap is, perhaps outside
    const Taps in(v, first);
    if (in.first >= in.last) continue;
    const int64_t taps = rate == 1 ? in.last - in.first : 1, place = (line * v.count + i) * p.taps;
    for (int64_t t0 = l.t[0][0]; t0 < l.t[0][1]; ++t0)
      for (int64_t t1 = l.t[1][0]; t1 < l.t[1][1]; ++t1) {
        const int64_t tap = (t0 * p.side[1].taps + t1) * v.taps,
                      source = l.source(p.side, t0, t1) - v.at + first;
        for (int64_t t2 = in.first; t2 < in.last; t2 += taps)
          f((place + tap + t2) * p.channels, (source + t2 * rate) * p.channels, taps * p.channels);
      }
  }
}

// Whether no patch reaches beyond x.
bool all_inside(const Patches& p) {
  return std::all_of(p.side + 3 - p.dims, p.side + 3, [](const Side& s) {
    return s.at >= 0 && (s.count - 1) * s.src_step + s.at + (s.taps - 1) * s.at_step < s.size;
  });
}

// ---- patches(x; sizes, strides, rates, paddings) ----
void infer_patches(const Call& c, Outs& outs) {
  outs.emplace_back(Spec{c[0].dtype, result(patches_of(c, 0, c[0].shape))});
}
void run_patches(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  const Patches p = patches_of(c, 0, c[0].shape);
  const int64_t w = dtype_size(c[0].dtype), line = p.side[2].count * p.taps * p.channels;
  const char* x = c[0].data;
  char* out = outs[0].data;
  const bool whole = all_inside(p);
  each_chunk(lines_of(p.side, p.n), grain_rows(line), [&](int64_t begin, int64_t end) {
    if (!whole) std::memset(out + begin * line * w, 0, size_t((end - begin) * line * w));
    for (int64_t r = begin; r < end; ++r)
      each_run(p, r, [&](int64_t to, int64_t from, int64_t length) {
        std::memcpy(out + to * w, x + from * w, size_t(length * w));
      });
  });
}
GT_OP("patches", {infer_patches, run_patches, true, 0.5});

// ---- unpatches(g; shape of x, sizes, strides, rates, paddings) ----
void infer_unpatches(const Call& c, Outs& outs) {
  want_dtype(c[0], kNumber, "unpatches");
  const Shape x = shape_attr(c, 0), g = result(patches_of(c, 1, x));
  if (!(c[0].shape == g)) fail("g must have the shape " + g.str() + ", got " + c[0].shape.str());
  outs.emplace_back(Spec{c[0].dtype, x});
}
void run_unpatches(const Call& c, Outs& outs) {
  Tensor& out = outs[0];
  zero(out.data, out.nbytes());
  if (out.numel == 0 || c[0].numel == 0) return;
  const Patches p = patches_of(c, 1, out.shape);
  const int64_t w = dtype_size(out.dtype), image = lines_of(p.side, 1);
  const RowLoop add(out.dtype, Combine::Add);
  each_chunk(p.n, grain_rows(c[0].numel / p.n),
             [&](int64_t begin, int64_t end) {  // patches of an image overlap
               for (int64_t r = begin * image; r < end * image; ++r)
                 each_run(p, r, [&](int64_t from, int64_t to, int64_t length) {
                   add(out.data + to * w, c[0].data + from * w, length);
                 });
             });
}
GT_OP("unpatches", {infer_unpatches, run_unpatches, true, 1.0});

}  // namespace
}  // namespace gt
