// The driver of element-wise kernels. Equal shapes and scalars, by far the most frequent, go to
// the inner loop in one call; everything else is cut into runs along the last axes.
#include "elementwise.h"

#include <algorithm>

#include "../repeat.h"
#include "strided.h"

namespace gt {

constexpr int kMaxArity = 4;

Spec infer_elementwise(const Elementwise& k, const Tensor* const* in) {
  Dtype t = in[k.arity - 1]->dtype;
  if (!k.loop[int(t)]) fail(Code::InvalidArgument, std::string("is not defined for ") + dtype_name(t));
  Spec out{k.out[int(t)], in[0]->shape};
  for (int i = 1; i < k.arity; ++i)
    if (!(out.shape == in[i]->shape)) out.shape = broadcast(out.shape, in[i]->shape);
  return out;
}

// About 10 us of work, in whole cache lines, whatever the number of threads. Cheap loops wait for memory
// however little they do with it (0.14 ns an element from the level-3 cache, more beyond): 0.3 makes their
// chunks 32768 elements, so that 100000 are shared by two threads.
static int64_t grain_of(double cost) {
  int64_t n = int64_t(10000 / std::max(cost, 0.3));
  return std::max<int64_t>(n / 1024 * 1024, 1024);
}

// A broadcast view: the axes of the result with the step (in elements) of each operand, with
// neighbouring axes merged where every operand walks them as one.
struct Runs {
  int rank = 0;
  int64_t dims[kMaxRank];
  int64_t steps[kMaxArity][kMaxRank];
};

static Runs merge_axes(const Tensor* const* in, int arity, const Shape& out) {
  Runs r;
  int64_t stride[kMaxArity];
  std::fill(stride, stride + arity, 1);
  int64_t full[kMaxArity][kMaxRank];
  for (int axis = out.rank - 1; axis >= 0; --axis)
    for (int k = 0; k < arity; ++k) {
      int own = axis - (out.rank - in[k]->shape.rank);
      int64_t d = own < 0 ? 1 : in[k]->shape[own];
      full[k][axis] = d == 1 ? 0 : stride[k];
      stride[k] *= d;
    }
  for (int axis = 0; axis < out.rank; ++axis) {
    if (out[axis] == 1) continue;
    bool merge = r.rank > 0;
    for (int k = 0; merge && k < arity; ++k) merge = r.steps[k][r.rank - 1] == full[k][axis] * out[axis];
    if (!merge) r.dims[r.rank++] = 1;
    r.dims[r.rank - 1] *= out[axis];
    for (int k = 0; k < arity; ++k) r.steps[k][r.rank - 1] = full[k][axis];
  }
  return r;
}

// Rows too short for a call of the loop each are taken together, as many as fill a block. Operands that
// repeat are written out for the block: a row once, a column (one element a row) every time. Writing out a
// longer row of a column costs more than a call of the loop.
constexpr int64_t kShortRow = 128, kShortFill = 16, kGroupBytes = 4096;

static bool run_short_rows(const Elementwise& k, Loop loop, const Tensor* const* in, Tensor& out,
                           const Runs& r) {
  enum class Way : uint8_t { Full, Row, Column, Scalar } way[kMaxArity];
  const int last = r.rank - 1, above = last - 1;
  if (above < 0 || r.dims[last] > kShortRow) return false;
  const int64_t inner = r.dims[last], rows = r.dims[above], blocks = out.numel / (rows * inner);
  uint8_t step[kMaxArity];
  int width[kMaxArity], widest = 1;
  for (int i = 0; i < k.arity; ++i) {
    const int64_t down = r.steps[i][above], across = r.steps[i][last];
    if (across == 1 && down == inner)
      way[i] = Way::Full;
    else if (across == 1 && down == 0)
      way[i] = Way::Row;
    else if (across == 0 && down == 1 && inner <= kShortFill)
      way[i] = Way::Column;
    else if (across == 0 && down == 0)
      way[i] = Way::Scalar;
    else
      return false;
    step[i] = way[i] != Way::Scalar;
    width[i] = dtype_size(in[i]->dtype);
    widest = std::max(widest, width[i]);
  }
  const int out_width = dtype_size(out.dtype);
  const int64_t group = std::min(rows, std::max<int64_t>(1, kGroupBytes / widest / inner)),
                groups = (rows + group - 1) / group;
  each_chunk(blocks * groups, std::max<int64_t>(1, grain_of(k.cost) / (group * inner)),
             [&](int64_t begin, int64_t end) {
               alignas(64) char room[kMaxArity][kGroupBytes];
               int64_t held = -1;  // the block whose rows are written out
               for (int64_t g = begin; g < end; ++g) {
                 const int64_t block = g / groups, row = g % groups * group,
                               count = std::min(group, rows - row);
                 const void* p[kMaxArity];
                 for (int i = 0; i < k.arity; ++i) {
                   int64_t at = 0, rest = block;
                   for (int a = above - 1; a >= 0; --a)
                     at += rest % r.dims[a] * r.steps[i][a], rest /= r.dims[a];
                   const char* x = in[i]->data + at * width[i];
                   switch (way[i]) {
                     case Way::Full: p[i] = x + row * inner * width[i]; continue;
                     case Way::Scalar: p[i] = x; continue;
                     case Way::Row:
                       if (block != held) repeat_row(room[i], x, inner * width[i], std::min(group, rows));
                       break;
                     case Way::Column: repeat_column(room[i], x + row * width[i], width[i], count, inner);
                   }
                   p[i] = room[i];
                 }
                 held = block;
                 loop(out.data + (block * rows + row) * inner * out_width, p, step, count * inner);
               }
             });
  return true;
}

static void run_broadcast(const Elementwise& k, Loop loop, const Tensor* const* in, Tensor& out) {
  Runs r = merge_axes(in, k.arity, out.shape);
  if (run_short_rows(k, loop, in, out, r)) return;
  int last = r.rank - 1;
  int64_t inner = r.dims[last], outer = out.numel / inner;
  uint8_t step[kMaxArity];
  int width[kMaxArity];
  for (int i = 0; i < k.arity; ++i) {
    step[i] = r.steps[i][last] != 0;
    width[i] = dtype_size(in[i]->dtype);
  }
  int out_width = dtype_size(out.dtype);
  int64_t grain = grain_of(k.cost);
  auto rows = [&](int64_t begin, int64_t end) {
    int64_t at[kMaxRank] = {}, rest = begin;
    for (int a = last - 1; a >= 0; --a) at[a] = rest % r.dims[a], rest /= r.dims[a];
    for (int64_t row = begin; row < end; ++row) {
      const void* p[kMaxArity];
      for (int i = 0; i < k.arity; ++i) {
        int64_t offset = 0;
        for (int a = 0; a < last; ++a) offset += at[a] * r.steps[i][a];
        p[i] = in[i]->data + offset * width[i];
      }
      loop(out.data + row * inner * out_width, p, step, inner);
      for (int a = last - 1; a >= 0 && ++at[a] == r.dims[a]; --a) at[a] = 0;
    }
  };
  if (outer == 1) {
    each_chunk(inner, grain, [&](int64_t begin, int64_t end) {
      const void* p[kMaxArity];
      for (int i = 0; i < k.arity; ++i) p[i] = in[i]->data + begin * step[i] * width[i];
      loop(out.data + begin * out_width, p, step, end - begin);
    });
  } else {
    each_chunk(outer, std::max<int64_t>(1, grain / inner), rows);
  }
}

void run_elementwise(const Elementwise& k, const Tensor* const* in, Tensor& out) {
  Loop loop = k.loop[int(in[k.arity - 1]->dtype)];
  int64_t n = out.numel;
  if (n == 0) return;
  const void* p[kMaxArity];
  uint8_t step[kMaxArity];
  for (int i = 0; i < k.arity; ++i) {
    if (in[i]->numel != n && in[i]->numel != 1) return run_broadcast(k, loop, in, out);
    p[i] = in[i]->data;
    step[i] = in[i]->numel == n;
  }
  int64_t grain = grain_of(k.cost);
  if (n <= grain) return loop(out.data, p, step, n);
  int out_width = dtype_size(out.dtype);
  each_chunk(n, grain, [&](int64_t begin, int64_t end) {
    const void* q[kMaxArity];
    for (int i = 0; i < k.arity; ++i) q[i] = in[i]->data + begin * step[i] * dtype_size(in[i]->dtype);
    loop(out.data + begin * out_width, q, step, end - begin);
  });
}

void run_cast(const Tensor& x, Tensor& out) {
  CastLoop loop = find_cast(x.dtype, out.dtype);
  constexpr int64_t grain = 65536;
  if (x.numel <= grain) return loop(out.data, x.data, x.numel);
  each_chunk(x.numel, grain, [&](int64_t begin, int64_t end) {
    loop(out.data + begin * dtype_size(out.dtype), x.data + begin * dtype_size(x.dtype), end - begin);
  });
}

// cast(x; dtype)
GT_OP("cast", {[](const Call& c, Outs& out) {
                 out.emplace_back(Spec{Dtype(c.integer(0)), c[0].shape});
               },
               [](const Call& c, Outs& out) {
                 if (c[0].dtype == out[0].dtype) return out[0].share(c[0]);
                 out[0].claim();
                 run_cast(c[0], out[0]);
               },
               /*allocates=*/false});

}  // namespace gt
