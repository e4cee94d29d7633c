// Pooling over windows of 1 to 3 spatial axes, its gradients, and their gradients.
//
// x is [n, in..., c]. The gradient of a maximum goes to the first of equals; max_pool_pick, which
// takes the elements of another tensor at these places, and max_unpool, which puts them there, are
// each other's transposes, and so are avg_pool and avg_unpool.
#include <algorithm>
#include <vector>

#include "conv_lines.h"
#include "elementwise.h"

namespace gt {
namespace {

std::string text(int64_t n) { return std::to_string(n); }

struct Windows {
  int dims;
  int64_t n, channels;
  Side side[3];
  bool apart = true;    // no two windows share an element
  bool covered = true;  // every element of x is in a window

  int64_t pixels_in() const { return n * side[0].size * side[1].size * side[2].size; }
};

// Attributes from `first` on: the size of the window, strides, dilations, paddings.
Windows windows(const Call& c, int first, int64_t n, const int64_t* in, int rank, int64_t channels) {
  const auto &sizes = c.ints(first), &strides = c.ints(first + 1), &dilations = c.ints(first + 2),
             &pads = c.ints(first + 3);
  Windows w;
  w.dims = int(sizes.size()), w.n = n, w.channels = channels;
  if (w.dims < 1 || w.dims > 3 || rank != w.dims + 2)
    fail("pooling over " + text(w.dims) + " dimensions needs an input of rank " + text(w.dims + 2) +
         ", got " + text(rank));
  if (strides.size() != sizes.size() || dilations.size() != sizes.size())
    fail("window, strides and dilations must be of the same number of dimensions");
  want_paddings(pads, sizes.size());
  for (int i = 0, a = 3 - w.dims; i < w.dims; ++i, ++a) {
    const size_t k = size_t(i);
    if (sizes[k] <= 0)
      fail("Sliding window ksize must be positive. The specified or inferred ksize is: " + text(sizes[k]));
    if (strides[k] <= 0) fail("Stride must be > 0, but got " + text(strides[k]));
    if (dilations[k] <= 0) fail("Dilated rates should be larger than 0, got " + text(dilations[k]));
    const int64_t span = checked_add(checked_mul(sizes[k] - 1, dilations[k]), 1);
    const auto [low, high] = padding_of(pads, i, in[i], span, strides[k]);
    const int64_t most = dilations[k] > 1 ? 1 : sizes[k];
    if (std::max(low, high) >= most && in[i] > 0)
      fail("padding " + text(std::max(low, high)) + " needs to be smaller than the window size " +
           text(most));
    const int64_t whole = checked_add(in[i], checked_add(low, high));
    const int64_t out = (whole - span + strides[k]) / strides[k];
    if (out < 0)
      fail("Computed output size would be negative: " + text(out) + " [input_size: " + text(whole) +
           ", effective_filter_size: " + text(span) + ", stride: " + text(strides[k]) + "]");
    w.side[a] = {out, 0, 1, in[i], strides[k], sizes[k], -low, dilations[k], 0, 1};
    w.apart &= strides[k] >= span;
    w.covered &= dilations[k] == 1 && strides[k] <= sizes[k] &&
                 out * strides[k] - low + std::max<int64_t>(0, sizes[k] - strides[k]) >= in[i];
  }
  return w;
}
Windows windows_of(const Call& c) {
  return windows(c, 0, c[0].shape.rank ? c[0].shape[0] : 0, c[0].shape.dims + 1, c[0].shape.rank,
                 c[0].shape.rank ? c[0].shape[c[0].shape.rank - 1] : 0);
}

Spec result(const Windows& w, Dtype t) {
  Spec s{t, {}};
  s.shape.push(w.n);
  for (int a = 3 - w.dims; a < 3; ++a) s.shape.push(w.side[a].count);
  s.shape.push(w.channels);
  return s;
}
void want_shape(const Tensor& x, const Shape& s, const char* what) {
  if (!(x.shape == s)) fail(std::string(what) + " must have the shape " + s.str() + ", got " + x.shape.str());
}

using PoolLoop = void (*)(const PoolRow&);

// Fills in the pointers of a row of windows and runs it.
class Rows {
 public:
  Rows(const Windows& w, int64_t width) : w_(w), width_(width), inner_(w.side[2]) {}
  const char *x = nullptr, *t = nullptr, *g = nullptr;
  char *to = nullptr, *out = nullptr;
  int64_t out_width = 0;  // bytes of an element of out; by default those of the others
  bool batch = true;      // places count from the first image

  // Line `r` of the results, channels [c, c + count).
  void line(int64_t r, int64_t c, int64_t count, PoolLoop loop, bool add) {
    const Line line(w_.side, r);
    const Side& v = w_.side[2];
    each_stretch(v, inner_, [&](int64_t pixel, int64_t pixels, int64_t tap, int64_t taps) {
      x_.clear(), t_.clear(), to_.clear(), place_.clear();
      for (int64_t t0 = line.t[0][0]; t0 < line.t[0][1]; ++t0)
        for (int64_t t1 = line.t[1][0]; t1 < line.t[1][1]; ++t1)
          for (int64_t t2 = tap; t2 < tap + taps; ++t2) {
            const int64_t at =
                (line.source(w_.side, t0, t1) + pixel * v.src_step + t2 * v.at_step) * w_.channels + c;
            if (x) x_.push_back(x + at * width_);
            if (t) t_.push_back(t + at * width_);
            if (to) to_.push_back(to + at * width_);
            place_.push_back(batch ? at : at - line.image * (w_.pixels_in() / w_.n) * w_.channels);
          }
      const int64_t o = (r * v.count + pixel) * w_.channels + c;
      PoolRow row{x_.data(),
                  place_.data(),
                  int64_t(place_.size()),
                  v.src_step * w_.channels,
                  pixels,
                  count,
                  t_.data(),
                  g ? g + o * width_ : nullptr,
                  to_.data(),
                  out ? out + o * (out_width ? out_width : width_) : nullptr,
                  w_.channels,
                  add};
      loop(row);
    });
  }

 private:
  const Windows& w_;
  int64_t width_;
  Inner inner_;
  std::vector<const void*> x_, t_;
  std::vector<void*> to_;
  std::vector<int64_t> place_;
};

int64_t line_work(const Windows& w) {
  return w.side[2].count * w.channels * w.side[0].taps * w.side[1].taps * w.side[2].taps;
}

void each_line(const Windows& w, const Rows& rows, PoolLoop loop) {
  each_chunk(lines_of(w.side, w.n), grain_rows(line_work(w), 1 << 17), [&](int64_t begin, int64_t end) {
    Rows mine = rows;
    for (int64_t r = begin; r < end; ++r) mine.line(r, 0, w.channels, loop, false);
  });
}

// Writes to x's places. Windows that share elements add to them, image by image and in blocks of
// channels, so that each element is written by one thread.
void each_line_back(const Windows& w, const Rows& rows, PoolLoop loop, Tensor& out) {
  if (!(w.apart && w.covered)) zero(out.data, out.nbytes());
  const int64_t lines = lines_of(w.side, w.n), image = lines / w.n;
  if (w.apart) {
    each_chunk(lines, grain_rows(line_work(w), 1 << 17), [&](int64_t begin, int64_t end) {
      Rows mine = rows;
      for (int64_t r = begin; r < end; ++r) mine.line(r, 0, w.channels, loop, false);
    });
    return;
  }
  const int64_t blocks = w.n >= 8 ? 1 : std::max<int64_t>(1, std::min<int64_t>(8, w.channels / 64)),
                block = ((w.channels + blocks - 1) / blocks + 15) / 16 * 16;
  each_chunk(w.n * blocks, grain_rows(line_work(w) * image / blocks, 1 << 17),
             [&](int64_t begin, int64_t end) {
               Rows mine = rows;
               for (int64_t p = begin; p < end; ++p) {
                 const int64_t c = p % blocks * block, count = std::min(block, w.channels - c);
                 if (count <= 0) continue;
                 for (int64_t r = p / blocks * image; r < (p / blocks + 1) * image; ++r)
                   mine.line(r, c, count, loop, true);
               }
             });
}

Tensor as_float(const Tensor& x) {
  Tensor y = empty(Dtype::F32, x.shape);
  run_cast(x, y);
  return y;
}
// Runs f on operands of a type with its own loops: 16-bit floats are widened.
template <class F> void in_own_type(const Call& c, Tensor& out, F&& f) {
  const Tensor* in[2] = {c.in[0], c.n > 1 ? c.in[1] : nullptr};
  if (!gt::in(c[0].dtype, kHalf)) return f(in, out);
  Tensor wide[2];
  for (int k = 0; k < c.n; ++k) wide[k] = as_float(*in[k]), in[k] = &wide[k];
  if (!gt::in(out.dtype, kHalf)) return f(in, out);
  Tensor sum = empty(Dtype::F32, out.shape);
  f(in, sum);
  run_cast(sum, out);
}
const PoolLoops& loops_of(const Tensor& x) { return kernels().pool[int(x.dtype)]; }

// ---- max_pool, avg_pool(x; sizes, strides, dilations, paddings) ----
template <DtypeSet types> void infer_pool(const Call& c, Outs& outs) {
  want_dtype(c[0], types, "pooling");
  outs.emplace_back(result(windows_of(c), c[0].dtype));
}
template <PoolLoop PoolLoops::*loop> void run_pool(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  const Windows w = windows_of(c);
  in_own_type(c, outs[0], [&](const Tensor* const* in, Tensor& out) {
    Rows rows(w, dtype_size(in[0]->dtype));
    rows.x = in[0]->data, rows.out = out.data;
    each_line(w, rows, loops_of(*in[0]).*loop);
  });
}
GT_OP("max_pool", {infer_pool<kReal>, run_pool<&PoolLoops::max>, true, 0.6});
GT_OP("avg_pool", {infer_pool<kFloat>, run_pool<&PoolLoops::average>, true, 0.6});

// ---- max_pool_argmax(x; sizes, strides, dilations, paddings, batch) ----
void infer_argmax(const Call& c, Outs& outs) {
  want_dtype(c[0], kReal, "pooling");
  outs.emplace_back(result(windows_of(c), Dtype::I64));
}
void run_argmax(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  const Windows w = windows_of(c);
  in_own_type(c, outs[0], [&](const Tensor* const* in, Tensor& out) {
    Rows rows(w, dtype_size(in[0]->dtype));
    rows.x = in[0]->data, rows.out = out.data, rows.out_width = 8, rows.batch = c.integer(4);
    each_line(w, rows, loops_of(*in[0]).argmax);
  });
}
GT_OP("max_pool_argmax", {infer_argmax, run_argmax, true, 0.6});

// ---- max_pool_pick(x, t; sizes, strides, dilations, paddings) ----
void infer_pick(const Call& c, Outs& outs) {
  want_dtype(c[0], kFloat, "max_pool_pick");
  want_same_dtype(c[0], c[1]);
  want_shape(c[1], c[0].shape, "t");
  outs.emplace_back(result(windows_of(c), c[0].dtype));
}
void run_pick(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  const Windows w = windows_of(c);
  in_own_type(c, outs[0], [&](const Tensor* const* in, Tensor& out) {
    Rows rows(w, dtype_size(in[0]->dtype));
    rows.x = in[0]->data, rows.t = in[1]->data, rows.out = out.data;
    each_line(w, rows, loops_of(*in[0]).pick);
  });
}
GT_OP("max_pool_pick", {infer_pick, run_pick, true, 0.6});

// ---- max_unpool(x, g; sizes, strides, dilations, paddings) ----
void infer_unpool(const Call& c, Outs& outs) {
  want_dtype(c[0], kFloat, "max_unpool");
  want_same_dtype(c[0], c[1]);
  want_shape(c[1], result(windows_of(c), c[0].dtype).shape, "g");
  outs.emplace_back(c[0].spec());
}
void run_unpool(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  if (c[1].numel == 0) return zero(outs[0].data, outs[0].nbytes());
  const Windows w = windows_of(c);
  in_own_type(c, outs[0], [&](const Tensor* const* in, Tensor& out) {
    Rows rows(w, dtype_size(in[0]->dtype));
    rows.x = in[0]->data, rows.g = in[1]->data, rows.to = out.data;
    each_line_back(w, rows, loops_of(*in[0]).unpool, out);
  });
}
GT_OP("max_unpool", {infer_unpool, run_unpool, true, 0.6});

// ---- avg_unpool(g; shape of x, sizes, strides, dilations, paddings) ----
Windows windows_back(const Call& c) {
  const Shape x = shape_attr(c, 0);
  if (x.rank < 3) fail("pooling needs an input of rank 3 to 5, got " + text(x.rank));
  return windows(c, 1, x[0], x.dims + 1, x.rank, x[x.rank - 1]);
}
void infer_avg_unpool(const Call& c, Outs& outs) {
  want_dtype(c[0], kFloat, "avg_unpool");
  want_shape(c[0], result(windows_back(c), c[0].dtype).shape, "g");
  outs.emplace_back(Spec{c[0].dtype, shape_attr(c, 0)});
}
void run_avg_unpool(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  if (c[0].numel == 0) return zero(outs[0].data, outs[0].nbytes());
  const Windows w = windows_back(c);
  in_own_type(c, outs[0], [&](const Tensor* const* in, Tensor& out) {
    Rows rows(w, dtype_size(in[0]->dtype));
    rows.g = in[0]->data, rows.to = out.data;
    each_line_back(w, rows, loops_of(*in[0]).spread, out);
  });
}
GT_OP("avg_unpool", {infer_avg_unpool, run_avg_unpool, true, 0.6});

}  // namespace
}  // namespace gt
