// Means and variances, layer, root-mean-square and batch normalisation with their gradients: each one or two
// passes over memory. Work is cut by sizes only and partial sums are added up in order, in double.
#include "../kernels/norms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reduction.h"
#include "strided.h"

namespace gt {
namespace {

const NormLoops& loops(Dtype t) { return kernels().norms[t == Dtype::F64]; }
constexpr DtypeSet kPlain = set_of(Dtype::F32) | set_of(Dtype::F64);
constexpr int64_t kChunk = 1 << 15;  // elements of a chunk of work
constexpr int64_t kNarrow = 64;      // fewer columns are taken several rows at a time

void want_float(const Call& c, const char* what) {
  want_dtype(c[0], kPlain, what);
  for (int k = 1; k < c.n; ++k) want_same_dtype(c[0], c[k]);
}

// ---- sums over rows or columns ------------------------------------------------------------------

// Count, mean and sum of squared distances; two sets are merged exactly (Chan et al. 1979).
struct Moments {
  double n = 0, mean = 0, squares = 0;
  void add(double m, double other_mean, double other_squares) {
    if (m == 0) return;
    const double total = n + m, away = other_mean - mean;
    squares += other_squares + away * away * n * m / total;
    mean += away * m / total;
    n = total;
  }
};

// A matrix of few columns as one of more columns and fewer rows, and the remaining rows.
struct Fold {
  int64_t rows, columns, rest;
  int64_t times;
  Fold(int64_t r, int64_t c) : times(c < kNarrow ? 256 / std::max<int64_t>(c, 1) : 1) {
    if (r < 2 * times) times = 1;
    rows = r / times, columns = c * times, rest = r % times;
  }
};

// Calls f(first row, rows, sums, dots) over blocks of rows of a matrix: f fills two numbers a column.
// join(column, rows, sum, dot) then gets the results of each block (or fold of it), in order.
template <class F, class J> void each_block(int64_t rows, int64_t columns, F&& f, J&& join) {
  const int64_t block = std::max<int64_t>(kNarrow, kChunk / std::max<int64_t>(columns, 1)),
                blocks = (rows + block - 1) / block;
  const int64_t width = std::max<int64_t>(columns, 256 + columns);
  std::vector<double> found(size_t(blocks * 4 * width));
  each_chunk(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double* to = found.data() + b * 4 * width;
      const int64_t first = b * block, count = std::min(block, rows - first);
      const Fold fold(count, columns);
      f(first, fold.rows, fold.columns, to, to + width);
      if (fold.rest) f(first + fold.rows * fold.times, fold.rest, columns, to + 2 * width, to + 3 * width);
    }
  });
  for (int64_t b = 0; b < blocks; ++b) {
    const double* from = found.data() + b * 4 * width;
    const Fold fold(std::min(block, rows - b * block), columns);
    for (int64_t k = 0; k < fold.times; ++k)
      for (int64_t c = 0; c < columns; ++c)
        join(c, fold.rows, from[k * columns + c], from[width + k * columns + c]);
    if (fold.rest)
      for (int64_t c = 0; c < columns; ++c) join(c, fold.rest, from[2 * width + c], from[3 * width + c]);
  }
}

// The moments of the columns of `rows` rows, added to `to`.
void add_columns(const NormLoops& k, const char* x, int64_t rows, int64_t columns, int width, Moments* to) {
  each_block(
      rows, columns,
      [&](int64_t first, int64_t count, int64_t wide, double* mean, double* squares) {
        k.column_moments(x + first * columns * width, count, wide, mean, squares);
      },
      [&](int64_t c, int64_t count, double mean, double squares) {
        to[c].add(double(count), mean, squares);
      });
}
// The moments of each of `lines` lines of n elements: found[line].
void line_moments(const NormLoops& k, const char* x, int64_t lines, int64_t n, int width, Moments* found) {
  // A long line is cut, so that several threads have something to do.
  const int64_t part = std::min<int64_t>(n, 4 * kChunk), parts = n ? (n + part - 1) / part : 0;
  std::vector<double> partial(size_t(lines * parts * 2));
  each_chunk(lines * parts, grain_rows(part, kChunk), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t line = i / parts, at = i % parts * part;
      k.row_moments(x + (line * n + at) * width, std::min(part, n - at), &partial[2 * i],
                    &partial[2 * i + 1]);
    }
  });
  for (int64_t i = 0; i < lines * parts; ++i)
    found[i / parts].add(double(std::min(part, n - i % parts * part)), partial[2 * i], partial[2 * i + 1]);
}

// ---- moments(x; axes, keepdims) -> mean, variance ----
void infer_moments(const Call& c, Outs& outs) {
  want_dtype(c[0], kPlain, "moments");
  const Shape s = reduced_shape(c[0].shape, axes_mask(c, 0, c[0].shape), c.integer(1));
  outs.emplace_back(Spec{c[0].dtype, s});
  outs.emplace_back(Spec{c[0].dtype, s});
}
void run_moments(const Call& c, Outs& outs) {
  Tensor x = c[0];
  const uint32_t mask = axes_mask(c, 0, x.shape);
  const int64_t kept = outs[0].numel;
  if (kept == 0) return;
  const int width = dtype_size(x.dtype);
  const NormLoops& k = loops(x.dtype);
  // Neighbouring axes of one kind as one: kept, reduced, kept, ...
  int64_t size[kMaxRank];
  bool reduced[kMaxRank];
  int groups = 0;
  for (int i = 0; i < x.shape.rank; ++i) {
    if (x.shape[i] == 1) continue;
    const bool r = mask >> i & 1;
    if (!groups || reduced[groups - 1] != r) size[groups] = 1, reduced[groups++] = r;
    size[groups - 1] *= x.shape[i];
  }
  std::vector<Moments> found(static_cast<size_t>(kept));
  const int64_t n = x.numel / kept;
  if (n == 0) {
  } else if (groups == 0 || (groups == 1 && !reduced[0])) {
    line_moments(k, x.data, kept, 1, width, found.data());
  } else if (groups <= 2 && reduced[groups - 1]) {
    line_moments(k, x.data, kept, n, width, found.data());
  } else if (groups == 2) {
    add_columns(k, x.data, n, kept, width, found.data());
  } else if (groups == 3 && !reduced[0]) {
    for (int64_t o = 0; o < size[0]; ++o)
      add_columns(k, x.data + o * size[1] * size[2] * width, size[1], size[2], width,
                  found.data() + o * size[2]);
  } else if (groups == 3) {
    std::vector<Moments> lines(size_t(size[0] * kept));
    line_moments(k, x.data, size[0] * kept, size[2], width, lines.data());
    for (int64_t i = 0; i < size[0] * kept; ++i)
      found[size_t(i % kept)].add(lines[size_t(i)].n, lines[size_t(i)].mean, lines[size_t(i)].squares);
  } else {
    Strides at(x.shape);
    Nest nest;
    int64_t to = x.numel;
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i < x.shape.rank; ++i)
        if ((mask >> i & 1) == uint32_t(pass)) to /= x.shape[i], nest.push(x.shape[i], at[i], to);
    Tensor y = empty(x.dtype, x.shape);
    strided_copy(y.data, x.data, width, nest);
    line_moments(k, y.data, kept, n, width, found.data());
  }
  auto write = [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < kept; ++i) {
      const Moments& m = found[size_t(i)];
      outs[0].as<T>()[i] = n ? T(m.mean) : std::numeric_limits<T>::quiet_NaN();
      outs[1].as<T>()[i] = n ? T(m.squares / m.n) : std::numeric_limits<T>::quiet_NaN();
    }
  };
  x.dtype == Dtype::F32 ? write(0.0f) : write(0.0);
}

// ---- layer_norm(x, scale, offset; epsilon) -> out, mean, rstd; rms_norm(x, scale; epsilon) -> out, rstd
// ----
Shape with_one(const Shape& x) {
  Shape s = x;
  s[s.rank - 1] = 1;
  return s;
}
void want_row_params(const Call& c, int first, int end) {
  if (c[0].shape.rank < 1) fail("x must have at least one axis, got " + c[0].shape.str());
  for (int k = first; k < end; ++k)
    if (c[k].shape.rank != 1 || c[k].numel != c[0].shape[c[0].shape.rank - 1])
      fail("scale and offset must be vectors as long as the last axis of x, got " + c[k].shape.str() +
           " for x of shape " + c[0].shape.str());
}
template <bool centered> void infer_rows(const Call& c, Outs& outs) {
  want_float(c, centered ? "layer_norm" : "rms_norm");
  want_row_params(c, 1, centered ? 3 : 2);
  outs.emplace_back(c[0].spec());
  for (int k = 0; k < (centered ? 2 : 1); ++k) outs.emplace_back(Spec{c[0].dtype, with_one(c[0].shape)});
}
template <bool centered> void run_rows(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) {
    for (size_t k = 1; k < outs.size(); ++k) std::fill_n(outs[k].data, outs[k].nbytes(), char(0));
    return;
  }
  const int64_t n = x.shape[x.shape.rank - 1];
  RowNorm job{x.data,
              c[1].data,
              centered ? c[2].data : nullptr,
              outs[0].data,
              centered ? outs[1].data : nullptr,
              outs[centered ? 2 : 1].data,
              0,
              0,
              n,
              c.number(0)};
  const NormLoops& k = loops(x.dtype);
  each_chunk(x.numel / n, grain_rows(n, kChunk), [&](int64_t begin, int64_t end) {
    RowNorm part = job;
    part.begin = begin, part.end = end;
    k.rows(part);
  });
}

// layer_norm_grad(g, x, scale, mean, rstd) -> gx, gscale, goffset; rms_norm_grad(g, x, scale, rstd) -> gx,
// gscale
template <bool centered> void infer_rows_grad(const Call& c, Outs& outs) {
  want_float(c, centered ? "layer_norm_grad" : "rms_norm_grad");
  want_row_params(c, 2, 3);
  if (!(c[0].shape == c[1].shape))
    fail("g and x must have the same shape, got " + c[0].shape.str() + " and " + c[1].shape.str());
  for (int k = 3; k < c.n; ++k)
    if (!(c[k].shape == with_one(c[0].shape)))
      fail("mean and rstd must have the shape " + with_one(c[0].shape).str() + ", got " + c[k].shape.str());
  outs.emplace_back(c[0].spec());
  for (int k = 0; k < (centered ? 2 : 1); ++k) outs.emplace_back(c[2].spec());
}
template <bool centered> void run_rows_grad(const Call& c, Outs& outs) {
  const Tensor& x = c[1];
  const int64_t n = x.shape[x.shape.rank - 1], rows = n ? x.numel / n : 0;
  const int sums = centered ? 2 : 1, width = dtype_size(x.dtype);
  for (int k = 1; k <= sums; ++k) std::fill_n(outs[size_t(k)].data, outs[size_t(k)].nbytes(), char(0));
  if (x.numel == 0) return;
  const NormLoops& k = loops(x.dtype);
  // Each chunk has its own sums; the first one's are the results. With more chunks, adding them up would
  // dominate.
  const int64_t grain = std::max(grain_rows(n, kChunk), (rows + 15) / 16),
                chunks = (rows + grain - 1) / grain;
  std::vector<char> room(chunks > 1 ? size_t((chunks - 1) * sums * n * width) : 0);
  auto sum_of = [&](int64_t chunk, int which) {
    return chunk ? room.data() + ((chunk - 1) * sums + which) * n * width : outs[size_t(which + 1)].data;
  };
  each_chunk(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      k.rows_grad({c[0].data, x.data, c[2].data, centered ? c[3].data : nullptr, c[centered ? 4 : 3].data,
                   outs[0].data, sum_of(p, 0), centered ? sum_of(p, 1) : nullptr, p * grain,
                   std::min(rows, (p + 1) * grain), n});
  });
  if (chunks == 1) return;
  const Loop add = find_elementwise("add")->loop[int(x.dtype)];
  each_chunk(sums * n, kChunk / chunks, [&](int64_t begin, int64_t end) {
    constexpr uint8_t step[2] = {1, 1};
    for (int64_t p = 1; p < chunks; ++p)
      for (int64_t i = begin; i < end;) {
        const int64_t which = i / n, count = std::min(end - i, n - i % n);
        char* to = sum_of(0, int(which)) + i % n * width;
        const void* in[2] = {to, sum_of(p, int(which)) + i % n * width};
        add(to, in, step, count);
        i += count;
      }
  });
}

// ---- batch_norm(x, scale, offset; epsilon, axis) -> out, mean, variance ----
void want_channels(const Call& c, const Tensor& x, int axis, int first) {
  for (int k = first; k < c.n; ++k)
    if (c[k].shape.rank != 1 || c[k].numel != x.shape[axis])
      fail("there must be one number for each of the " + std::to_string(x.shape[axis]) + " channels, got " +
           c[k].shape.str() + " for x of shape " + x.shape.str());
}
void infer_batch(const Call& c, Outs& outs) {
  want_float(c, "batch_norm");
  want_channels(c, c[0], axis_attr(c, 1, c[0].shape.rank), 1);
  outs.emplace_back(c[0].spec());
  outs.emplace_back(c[1].spec());
  outs.emplace_back(c[1].spec());
}

// Runs apply or apply_grad over [outer, channels, inner] with `count` parameters a channel.
template <class T>
void apply_channels(void (*loop)(const ColumnNorm&), const Split& v, const T* x, const T* g, T* out,
                    int count, const std::vector<T>* params) {
  if (v.inner > 1) {
    each_chunk(v.outer * v.size, grain_rows(v.inner, kChunk), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ColumnNorm job{x + i * v.inner, g ? g + i * v.inner : nullptr, out + i * v.inner, 1, v.inner, 0, {}};
        for (int p = 0; p < count; ++p) job.params[p] = params[p].data() + i % v.size;
        loop(job);
      }
    });
    return;
  }
  const int64_t times = v.size < kNarrow ? 256 / v.size : 1, wide = v.size * times;
  std::vector<T> repeated[4];
  for (int p = 0; p < count; ++p)
    for (int64_t k = 0; k < times; ++k)
      repeated[p].insert(repeated[p].end(), params[p].begin(), params[p].end());
  auto job = [&](int64_t row, int64_t rows, int64_t columns) {
    ColumnNorm j{x + row * v.size, g ? g + row * v.size : nullptr, out + row * v.size, rows, columns, 1, {}};
    for (int p = 0; p < count; ++p) j.params[p] = repeated[p].data();
    loop(j);
  };
  each_chunk(v.outer / times, grain_rows(wide, kChunk),
             [&](int64_t begin, int64_t end) { job(begin * times, end - begin, wide); });
  if (v.outer % times) job(v.outer / times * times, v.outer % times, v.size);
}

void run_batch(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  const Split v(x.shape, int(c.integer(1)));
  const int width = dtype_size(x.dtype);
  std::vector<Moments> found(static_cast<size_t>(v.size));
  if (x.numel == 0) {
  } else if (v.inner == 1) {
    add_columns(loops(x.dtype), x.data, v.outer, v.size, width, found.data());
  } else {
    std::vector<Moments> lines(size_t(v.outer * v.size));
    line_moments(loops(x.dtype), x.data, v.outer * v.size, v.inner, width, lines.data());
    for (int64_t i = 0; i < v.outer * v.size; ++i)
      found[size_t(i % v.size)].add(lines[size_t(i)].n, lines[size_t(i)].mean, lines[size_t(i)].squares);
  }
  auto finish = [&](auto t) {
    using T = decltype(t);
    std::vector<T> params[3];
    for (auto& p : params) p.resize(size_t(v.size));
    for (int64_t i = 0; i < v.size; ++i) {
      const Moments& m = found[size_t(i)];
      const double variance = m.n > 0 ? m.squares / m.n : std::nan(""),
                   mean = m.n > 0 ? m.mean : std::nan("");
      outs[1].as<T>()[i] = params[0][size_t(i)] = T(mean);
      outs[2].as<T>()[i] = T(variance);
      params[1][size_t(i)] = T(double(c[1].as<T>()[i]) / std::sqrt(variance + c.number(0)));
      params[2][size_t(i)] = c[2].as<T>()[i];
    }
    if (x.numel) apply_channels<T>(loops(x.dtype).apply, v, x.as<T>(), nullptr, outs[0].as<T>(), 3, params);
  };
  x.dtype == Dtype::F32 ? finish(0.0f) : finish(0.0);
}

// batch_norm_grad(g, x, scale, mean, variance; epsilon, axis) -> gx, gscale, goffset
void infer_batch_grad(const Call& c, Outs& outs) {
  want_float(c, "batch_norm_grad");
  if (!(c[0].shape == c[1].shape))
    fail("g and x must have the same shape, got " + c[0].shape.str() + " and " + c[1].shape.str());
  want_channels(c, c[1], axis_attr(c, 1, c[1].shape.rank), 2);
  outs.emplace_back(c[0].spec());
  outs.emplace_back(c[2].spec());
  outs.emplace_back(c[2].spec());
}
void run_batch_grad(const Call& c, Outs& outs) {
  const Tensor &g = c[0], &x = c[1];
  const Split v(x.shape, int(c.integer(1)));
  const NormLoops& k = loops(x.dtype);
  auto run = [&](auto t) {
    using T = decltype(t);
    std::vector<double> sum(size_t(v.size), 0.0), dot(size_t(v.size), 0.0);
    const T* mean = c[3].as<T>();
    if (x.numel == 0) {
    } else if (v.inner == 1) {
      std::vector<T> means;
      for (int64_t n = 0; n < 256 + v.size; n += v.size) means.insert(means.end(), mean, mean + v.size);
      each_block(
          v.outer, v.size,
          [&](int64_t first, int64_t rows, int64_t columns, double* s, double* d) {
            k.column_dots(g.as<T>() + first * v.size, x.as<T>() + first * v.size, means.data(), rows, columns,
                          s, d);
          },
          [&](int64_t i, int64_t, double s, double d) { sum[size_t(i)] += s, dot[size_t(i)] += d; });
    } else {
      std::vector<double> lines(size_t(v.outer * v.size * 2));
      each_chunk(v.outer * v.size, grain_rows(v.inner, kChunk), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          k.row_dots(g.as<T>() + i * v.inner, x.as<T>() + i * v.inner, double(mean[i % v.size]), v.inner,
                     &lines[size_t(2 * i)], &lines[size_t(2 * i + 1)]);
      });
      for (int64_t i = 0; i < v.outer * v.size; ++i)
        sum[size_t(i % v.size)] += lines[size_t(2 * i)], dot[size_t(i % v.size)] += lines[size_t(2 * i + 1)];
    }
    std::vector<T> params[4];
    for (auto& p : params) p.resize(size_t(v.size));
    const double n = double(v.outer * v.inner);
    for (int64_t i = 0; i < v.size; ++i) {
      const double scale = double(c[2].as<T>()[i]),
                   rstd = 1 / std::sqrt(double(c[4].as<T>()[i]) + c.number(0));
      outs[1].as<T>()[i] = T(dot[size_t(i)] * rstd);
      outs[2].as<T>()[i] = T(sum[size_t(i)]);
      params[0][size_t(i)] = T(scale * rstd);
      params[1][size_t(i)] = mean[i];
      params[2][size_t(i)] = T(-scale * rstd * rstd * rstd * dot[size_t(i)] / n);
      params[3][size_t(i)] = T(-scale * rstd * sum[size_t(i)] / n);
    }
    if (x.numel) apply_channels<T>(k.apply_grad, v, x.as<T>(), g.as<T>(), outs[0].as<T>(), 4, params);
  };
  x.dtype == Dtype::F32 ? run(0.0f) : run(0.0);
}

GT_OP("moments", {infer_moments, run_moments, true, 0.3});
GT_OP("layer_norm", {infer_rows<true>, run_rows<true>, true, 0.3});
GT_OP("rms_norm", {infer_rows<false>, run_rows<false>, true, 0.3});
GT_OP("layer_norm_grad", {infer_rows_grad<true>, run_rows_grad<true>, true, 0.3});
GT_OP("rms_norm_grad", {infer_rows_grad<false>, run_rows_grad<false>, true, 0.3});
GT_OP("batch_norm", {infer_batch, run_batch, true, 0.3});
GT_OP("batch_norm_grad", {infer_batch_grad, run_batch_grad, true, 0.3});

}  // namespace
}  // namespace gt
