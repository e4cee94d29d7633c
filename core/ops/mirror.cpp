// mirror_pad and its transpose: padding with the elements next to the edge, reversed.
#include <algorithm>
#include <vector>

#include "strided.h"

namespace gt {
namespace {

// mirror_pad(x; paddings, mode) with mode 0 = REFLECT (the edge is not repeated), 1 = SYMMETRIC.
void check_paddings(const Shape& x, const std::vector<int64_t>& p, bool symmetric) {
  for (int i = 0; i < x.rank; ++i)
    for (int side = 0; side < 2; ++side) {
      int64_t n = p[size_t(2 * i + side)];
      if (n < 0) fail("paddings must be non-negative: " + std::to_string(n));
      if (symmetric ? n > x[i] : n != 0 && n >= x[i])
        fail(std::string(symmetric ? "paddings must be no greater than the dimension size: "
                                   : "paddings must be less than the dimension size: ") +
             std::to_string(n) + (symmetric ? " is greater than " : " is not less than ") +
             std::to_string(x[i]));
    }
}
void want_pairs(const Call& c) {
  if (int64_t(c.ints(0).size()) != 2 * c[0].shape.rank)
    fail("The first dimension of paddings must be the rank of inputs: " + std::to_string(c[0].shape.rank) +
         ", got " + std::to_string(c.ints(0).size() / 2));
}
void infer_mirror_pad(const Call& c, Outs& outs) {
  want_pairs(c);
  const auto& p = c.ints(0);
  check_paddings(c[0].shape, p, c.integer(1));
  Spec s = c[0].spec();
  for (int i = 0; i < s.shape.rank; ++i)
    s.shape[i] = checked_add(s.shape[i], checked_add(p[size_t(2 * i)], p[size_t(2 * i + 1)]));
  outs.emplace_back(s);
}
void infer_mirror_pad_grad(const Call& c, Outs& outs) {
  want_pairs(c);
  want_dtype(c[0], kNumber, "mirror_pad_grad");
  const auto& p = c.ints(0);
  Spec s = c[0].spec();
  for (int i = 0; i < s.shape.rank; ++i) {
    int64_t before = p[size_t(2 * i)], after = p[size_t(2 * i + 1)];
    if (before < 0 || after < 0 || before > s.shape[i] || after > s.shape[i] - before)
      fail("paddings " + std::to_string(before) + " " + std::to_string(after) + " do not fit dimension " +
           std::to_string(s.shape[i]));
    s.shape[i] -= before + after;
  }
  check_paddings(s.shape, p, c.integer(1));
  outs.emplace_back(s);
}

// For every place along an axis of the padded array, the place its element comes from.
std::vector<int64_t> sources(int64_t n, int64_t before, int64_t after, bool symmetric) {
  std::vector<int64_t> at(size_t(n + before + after));
  for (int64_t i = 0; i < int64_t(at.size()); ++i) {
    int64_t k = i - before;
    if (k < 0) k = symmetric ? -k - 1 : -k;
    if (k >= n) k = symmetric ? 2 * n - 1 - k : 2 * n - 2 - k;
    at[size_t(i)] = k;
  }
  return at;
}

// Calls f(padded row, source row) with the numbers of rows along the last axis; returns the
// map of the last axis.
template <class F>
void each_row(const Shape& padded, const Shape& plain, const std::vector<int64_t>& p, bool symmetric, F&& f) {
  int last = padded.rank - 1;
  Strides at(plain);
  std::vector<std::vector<int64_t>> maps;
  for (int i = 0; i <= last; ++i)
    maps.push_back(sources(plain[i], p[size_t(2 * i)], p[size_t(2 * i + 1)], symmetric));
  int64_t rows = product(padded, 0, last);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t left = r, from = 0;
    for (int i = last - 1; i >= 0; --i)
      from += maps[size_t(i)][size_t(left % padded[i])] * at[i], left /= padded[i];
    f(r * padded[last], from, maps[size_t(last)]);
  }
}

void run_mirror_pad(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  if (out.numel == 0) return;
  if (x.shape.rank == 0) return copy_bytes(out.data, x.data, x.nbytes());
  visit_width(dtype_size(x.dtype), [&](auto w) {
    using W = decltype(w);
    each_row(out.shape, x.shape, c.ints(0), c.integer(1),
             [&](int64_t to, int64_t from, const std::vector<int64_t>& map) {
               W* d = out.as<W>() + to;
               const W* s = x.as<W>() + from;
               for (size_t i = 0; i < map.size(); ++i) d[i] = s[map[i]];
             });
  });
}

void run_mirror_pad_grad(const Call& c, Outs& outs) {
  const Tensor& g = c[0];
  Tensor& out = outs[0];
  zero(out.data, out.nbytes());
  if (out.numel == 0) return;
  if (g.shape.rank == 0) return copy_bytes(out.data, g.data, g.nbytes());
  visit(g.dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (!std::is_same_v<T, bool>)
      each_row(g.shape, out.shape, c.ints(0), c.integer(1),
               [&](int64_t from, int64_t to, const std::vector<int64_t>& map) {
                 T* d = out.as<T>() + to;
                 const T* s = g.as<T>() + from;
                 for (size_t i = 0; i < map.size(); ++i) d[map[i]] = T(d[map[i]] + s[i]);
               });
  });
}

GT_OP("mirror_pad", {infer_mirror_pad, run_mirror_pad});
GT_OP("mirror_pad_grad", {infer_mirror_pad_grad, run_mirror_pad_grad, true, 2});

}  // namespace
}  // namespace gt
