// Ops that only move elements: reshape, transpose, broadcast, tile, pad, diagonals and friends.
#include <algorithm>
#include <cstring>
#include <vector>

#include "strided.h"

namespace gt {
namespace {

int width(const Tensor& x) { return dtype_size(x.dtype); }

void same_spec(const Call& c, Outs& outs) { outs.emplace_back(c[0].spec()); }

// ---- reshape(x; shape) ----
void infer_reshape(const Call& c, Outs& outs) {
  Spec s{c[0].dtype, shape_attr(c, 0)};
  if (s.shape.numel() != c[0].numel)
    fail("Input to reshape is a tensor with " + std::to_string(c[0].numel) +
         " values, but the requested shape has " + std::to_string(s.shape.numel()));
  outs.emplace_back(s);
}
void run_share(const Call& c, Outs& outs) { outs[0].share(c[0]); }

// ---- expand_dims(x; axis), squeeze(x), squeeze_axes(x; axes), identity(x) ----
void infer_expand_dims(const Call& c, Outs& outs) {
  const Shape& x = c[0].shape;
  int axis = axis_attr(c, 0, x.rank + 1);
  Spec s{c[0].dtype, {}};
  for (int i = 0; i <= x.rank; ++i) {
    if (i == axis) s.shape.push(1);
    if (i < x.rank) s.shape.push(x[i]);
  }
  outs.emplace_back(s);
}
void infer_squeeze(const Call& c, Outs& outs) {
  Spec s{c[0].dtype, {}};
  for (int i = 0; i < c[0].shape.rank; ++i)
    if (c[0].shape[i] != 1) s.shape.push(c[0].shape[i]);
  outs.emplace_back(s);
}
void infer_squeeze_axes(const Call& c, Outs& outs) {
  const Shape& x = c[0].shape;
  if (c.ints(0).empty()) return infer_squeeze(c, outs);
  uint32_t gone = 0;
  for (int64_t a : c.ints(0)) {
    if (a < 0 || a >= x.rank)
      fail("axis " + std::to_string(a) + " is out of range for a tensor of rank " + std::to_string(x.rank));
    if (x[int(a)] != 1)
      fail("Can not squeeze dim[" + std::to_string(a) + "], expected a dimension of 1, got " +
           std::to_string(x[int(a)]));
    gone |= 1u << a;
  }
  Spec s{c[0].dtype, {}};
  for (int i = 0; i < x.rank; ++i)
    if (!(gone >> i & 1)) s.shape.push(x[i]);
  outs.emplace_back(s);
}

// ---- transpose(x; perm) ----
void infer_transpose(const Call& c, Outs& outs) {
  const Shape& x = c[0].shape;
  const auto& perm = c.ints(0);
  if (int64_t(perm.size()) != x.rank)
    fail("transpose expects a vector of size " + std::to_string(x.rank) +
         ". But input(1) is a vector of size " + std::to_string(perm.size()));
  Spec s{c[0].dtype, {}};
  uint32_t seen = 0;
  for (int64_t p : perm) {
    if (p < 0 || p >= x.rank)
      fail(std::to_string(p) + " is out of range [0 .. " + std::to_string(x.rank) + ")");
    if (seen >> p & 1) fail(std::to_string(p) + " is duplicated in perm");
    seen |= 1u << p;
    s.shape.push(x[int(p)]);
  }
  outs.emplace_back(s);
}
void run_transpose(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  const auto& perm = c.ints(0);
  // Axes of size 1 may move anywhere without moving an element.
  bool in_order = true;
  for (int64_t i = 0, before = -1; i < int64_t(perm.size()); ++i) {
    if (out.shape[int(i)] == 1) continue;
    in_order &= perm[size_t(i)] > before;
    before = perm[size_t(i)];
  }
  if (in_order || x.numel == 0) return out.share(x);
  out.claim();
  Strides src(x.shape), dst(out.shape);
  Nest t;
  for (int i = 0; i < out.shape.rank; ++i) t.push(out.shape[i], src[int(perm[size_t(i)])], dst[i]);
  strided_copy(out.data, x.data, width(x), t);
}

// ---- broadcast_to(x; shape) ----
void infer_broadcast_to(const Call& c, Outs& outs) {
  Spec s{c[0].dtype, shape_attr(c, 0)};
  const Shape& x = c[0].shape;
  bool good = x.rank <= s.shape.rank;
  for (int i = 1; good && i <= x.rank; ++i) {
    int64_t d = x[x.rank - i];
    good = d == 1 || d == s.shape[s.shape.rank - i];
  }
  if (!good) fail("Incompatible shapes: " + x.str() + " vs. " + s.shape.str());
  outs.emplace_back(s);
}
void run_broadcast_to(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  if (x.numel == out.numel) return out.share(x);
  out.claim();
  Strides src(x.shape), dst(out.shape);
  Nest t;
  for (int i = 0, skip = out.shape.rank - x.shape.rank; i < out.shape.rank; ++i) {
    bool repeated = i < skip || x.shape[i - skip] == 1;
    t.push(out.shape[i], repeated ? 0 : src[i - skip], dst[i]);
  }
  strided_copy(out.data, x.data, width(x), t);
}

// ---- reverse(x; axes) ----
void infer_reverse(const Call& c, Outs& outs) {
  uint32_t seen = 0;
  for (int64_t a : c.ints(0)) {
    if (a < 0 || a >= c[0].shape.rank)
      fail("'axis'[0] = " + std::to_string(a) + " is out of valid range [0, " +
           std::to_string(c[0].shape.rank - 1) + "]");
    if (seen >> a & 1) fail("axis " + std::to_string(a) + " specified more than once.");
    seen |= 1u << a;
  }
  same_spec(c, outs);
}
void run_reverse(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  Strides at(x.shape);
  Nest t;
  for (int i = 0; i < x.shape.rank; ++i) t.push(x.shape[i], at[i], at[i]);
  int64_t offset = 0;
  for (int64_t a : c.ints(0)) t.src[a] = -at[int(a)], offset += (x.shape[int(a)] - 1) * at[int(a)];
  strided_copy(outs[0].data, x.data + offset * width(x), width(x), t);
}

// ---- tile(x; multiples) ----
void infer_tile(const Call& c, Outs& outs) {
  const Shape& x = c[0].shape;
  const auto& m = c.ints(0);
  if (int64_t(m.size()) != x.rank)
    fail("Expected multiples argument to be a vector of length " + std::to_string(x.rank) +
         " but got length " + std::to_string(m.size()));
  Spec s{c[0].dtype, {}};
  for (int i = 0; i < x.rank; ++i) {
    if (m[size_t(i)] < 0)
      fail("Expected multiples[" + std::to_string(i) + "] >= 0, but got " + std::to_string(m[size_t(i)]));
    s.shape.push(checked_mul(x[i], m[size_t(i)]));
  }
  outs.emplace_back(s);
}
void run_tile(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  if (x.numel == out.numel) return out.share(x);
  out.claim();
  Strides src(x.shape), dst(out.shape);
  Nest t;
  for (int i = 0; i < x.shape.rank; ++i) {
    t.push(c.ints(0)[size_t(i)], 0, dst[i] * x.shape[i]);
    t.push(x.shape[i], src[i], dst[i]);
  }
  strided_copy(out.data, x.data, width(x), t);
}

// ---- pad(x, value; paddings) ----
void infer_pad(const Call& c, Outs& outs) {
  const Shape& x = c[0].shape;
  const auto& p = c.ints(0);
  want_scalar(c[1], "pad: constant_values");
  want_same_dtype(c[0], c[1]);
  if (int64_t(p.size()) != 2 * x.rank)
    fail("The first dimension of paddings must be the rank of inputs[" + std::to_string(p.size() / 2) +
         ",2] " + x.str());
  Spec s{c[0].dtype, {}};
  for (int i = 0; i < x.rank; ++i) {
    int64_t before = p[size_t(2 * i)], after = p[size_t(2 * i + 1)];
    if (before < 0 || after < 0)
      fail("Paddings must be non-negative: " + std::to_string(before) + " " + std::to_string(after));
    s.shape.push(checked_add(x[i], checked_add(before, after)));
  }
  outs.emplace_back(s);
}
void run_pad(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  fill(out.data, c[1].data, width(x), out.numel);
  if (x.numel == 0) return;
  Strides src(x.shape), dst(out.shape);
  Nest t;
  int64_t offset = 0;
  for (int i = 0; i < x.shape.rank; ++i) {
    t.push(x.shape[i], src[i], dst[i]);
    offset += c.ints(0)[size_t(2 * i)] * dst[i];
  }
  strided_copy(out.data + offset * width(x), x.data, width(x), t);
}

// ---- roll(x; shifts, axes) ----
void infer_roll(const Call& c, Outs& outs) {
  if (c.ints(0).size() != c.ints(1).size()) fail("shift and axis must have the same size");
  for (int64_t a : c.ints(1))
    if (a < 0 || a >= c[0].shape.rank) fail("axis " + std::to_string(a) + " is out of range");
  same_spec(c, outs);
}
void run_roll(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  int64_t shift[kMaxRank] = {};
  for (size_t i = 0; i < c.ints(0).size(); ++i) {
    int a = int(c.ints(1)[i]);
    int64_t d = x.shape[a];
    shift[a] = ((shift[a] + c.ints(0)[i] % d) % d + d) % d;
  }
  // Each rolled axis is two runs: enumerate the corners of the cut.
  Strides at(x.shape);
  int rank = x.shape.rank;
  for (uint32_t corner = 0; corner < 1u << rank; ++corner) {
    Nest t;
    int64_t from = 0, to = 0;
    bool empty = false;
    for (int i = 0; i < rank; ++i) {
      bool wrapped = corner >> i & 1;
      int64_t n = wrapped ? shift[i] : x.shape[i] - shift[i];
      empty |= n == 0;
      from += wrapped ? (x.shape[i] - shift[i]) * at[i] : 0;
      to += wrapped ? 0 : shift[i] * at[i];
      t.push(n, at[i], at[i]);
    }
    if (!empty) strided_copy(outs[0].data + to * width(x), x.data + from * width(x), width(x), t);
  }
}

// ---- repeat(x; repeats, axis) ----
void infer_repeat(const Call& c, Outs& outs) {
  int axis = axis_attr(c, 1, c[0].shape.rank);
  if (c.integer(0) < 0) fail("repeats must be non-negative, got " + std::to_string(c.integer(0)));
  Spec s = c[0].spec();
  s.shape[axis] = checked_mul(s.shape[axis], c.integer(0));
  outs.emplace_back(s);
}
void run_repeat(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (outs[0].numel == 0) return;
  Split v(x.shape, int(c.integer(1)));
  int64_t n = c.integer(0);
  Nest t;
  t.push(v.outer * v.size, v.inner, n * v.inner);
  t.push(n, 0, v.inner);
  t.push(v.inner, 1, 1);
  strided_copy(outs[0].data, x.data, width(x), t);
}

// ---- matrix_diag_part(x; k), matrix_diag(x; k), band_part(x; lower, upper) ----
void want_matrix(const Tensor& x) {
  if (x.shape.rank < 2) fail("input must be at least 2-dim, received shape: " + x.shape.str());
}
void infer_diag_part(const Call& c, Outs& outs) {
  want_matrix(c[0]);
  Spec s = c[0].spec();
  int64_t k = c.integer(0), rows = s.shape[s.shape.rank - 2], cols = s.shape[s.shape.rank - 1];
  if ((k < 0 && k <= -rows) || (k > 0 && k >= cols))
    fail("diag index is out of bound: " + std::to_string(k) + ". It must be between " +
         std::to_string(1 - rows) + " and " + std::to_string(cols - 1));
  s.shape.rank -= 1;
  s.shape[s.shape.rank - 1] = std::min(rows + std::min<int64_t>(k, 0), cols - std::max<int64_t>(k, 0));
  outs.emplace_back(s);
}
void run_diag_part(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  if (out.numel == 0) return;
  int64_t k = c.integer(0), rows = x.shape[x.shape.rank - 2], cols = x.shape[x.shape.rank - 1],
          n = out.shape[out.shape.rank - 1];
  Nest t;
  t.push(out.numel / n, rows * cols, n);
  t.push(n, cols + 1, 1);
  strided_copy(out.data, x.data + (k < 0 ? -k * cols : k) * width(x), width(x), t);
}
void infer_diag(const Call& c, Outs& outs) {
  if (c[0].shape.rank < 1) fail("diagonal must be at least 1-dim, received shape: []");
  Spec s = c[0].spec();
  int64_t k = c.integer(0);
  int64_t n = checked_add(s.shape[s.shape.rank - 1], k < 0 ? -std::max(k, -INT64_MAX) : k);
  s.shape[s.shape.rank - 1] = n;
  s.shape.push(n);
  outs.emplace_back(s);
}
void run_diag(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  zero(out.data, out.nbytes());
  if (x.numel == 0) return;
  int64_t k = c.integer(0), n = out.shape[out.shape.rank - 1], m = x.shape[x.shape.rank - 1];
  Nest t;
  t.push(x.numel / m, m, n * n);
  t.push(m, 1, n + 1);
  strided_copy(out.data + (k < 0 ? -k * n : k) * width(x), x.data, width(x), t);
}
void infer_band_part(const Call& c, Outs& outs) {
  want_matrix(c[0]);
  same_spec(c, outs);
}
void run_band_part(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  int64_t lower = c.integer(0), upper = c.integer(1), rows = x.shape[x.shape.rank - 2],
          cols = x.shape[x.shape.rank - 1], w = width(x);
  if (lower < 0 || lower > rows) lower = rows;
  if (upper < 0 || upper > cols) upper = cols;
  each_chunk(x.numel / cols, grain_rows(cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t i = r % rows, from = std::clamp<int64_t>(i - lower, 0, cols),
              to = std::clamp<int64_t>(i + upper + 1, from, cols);
      char* out = outs[0].data + r * cols * w;
      std::memset(out, 0, size_t(from * w));
      std::memcpy(out + from * w, x.data + (r * cols + from) * w, size_t((to - from) * w));
      std::memset(out + to * w, 0, size_t((cols - to) * w));
    }
  });
}

GT_OP("reshape", {infer_reshape, run_share, false, 0});
GT_OP("expand_dims", {infer_expand_dims, run_share, false, 0});
GT_OP("squeeze", {infer_squeeze, run_share, false, 0});
GT_OP("squeeze_axes", {infer_squeeze_axes, run_share, false, 0});
GT_OP("identity", {same_spec, run_share, false, 0});
GT_OP("transpose", {infer_transpose, run_transpose, false});
GT_OP("broadcast_to", {infer_broadcast_to, run_broadcast_to, false});
GT_OP("reverse", {infer_reverse, run_reverse});
GT_OP("tile", {infer_tile, run_tile, false});
GT_OP("pad", {infer_pad, run_pad});
GT_OP("roll", {infer_roll, run_roll});
GT_OP("repeat", {infer_repeat, run_repeat});
GT_OP("matrix_diag_part", {infer_diag_part, run_diag_part});
GT_OP("matrix_diag", {infer_diag, run_diag});
GT_OP("band_part", {infer_band_part, run_band_part});

}  // namespace
}  // namespace gt
