// The geometry of a convolution, and the engines that compute it and its two transposes.
//
// x is [n, in..., groups * c], the filter [k..., c, groups * o], the result [n, out..., groups * o]:
//   result[p, o] = sum over taps t and channels c of x[p * stride + t * dilation - pad, c] * filter[t, c, o]
// There are three spatial axes; those a call does not have are of size 1.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "../kernels/conv.h"
#include "../kernels/loops.h"
#include "strided.h"

namespace gt {

struct Geometry {
  int64_t n = 1, groups = 1, c = 1, o = 1;
  int64_t in[3] = {1, 1, 1}, k[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};

  int64_t taps() const { return k[0] * k[1] * k[2]; }
  int64_t pixels() const { return n * out[0] * out[1] * out[2]; }
  double work() const {
    return double(pixels()) * double(taps()) * double(c) * double(groups * o);
  }  // products
  bool depthwise() const { return c == 1 && groups > 1; }
};

// Results are written, not added to.
template <class T> void conv_forward(const Geometry& f, const T* x, const T* w, T* out);
template <class T> void conv_by_input(const Geometry& f, const T* g, const T* w, T* gx);
template <class T> void conv_by_filter(const Geometry& f, const T* x, const T* g, T* gw);
// The same where every channel has its own filters (c is 1).
template <class T> void depthwise_forward(const Geometry& f, const T* x, const T* w, T* out);
template <class T> void depthwise_by_input(const Geometry& f, const T* g, const T* w, T* gx);
template <class T> void depthwise_by_filter(const Geometry& f, const T* x, const T* g, T* gw);

// The same where the result has few channels. `narrow_forward` says whether it could.
template <class T> bool narrow_is_faster(const Geometry& f, int64_t results, int64_t sources);
template <class T> void narrow_by_input(const Geometry& f, const T* g, const T* w, T* gx);
template <class T> bool narrow_forward(const Geometry& f, const T* x, const T* w, T* out);
// The same for 3 by 3 taps next to each other, with fewer products; where that is faster.
bool winograd_is_faster(const Geometry& f);
void winograd_forward(const Geometry& f, const float* x, const float* w, float* out);
void winograd_by_input(const Geometry& f, const float* g, const float* w, float* gx);
void winograd_by_filter(const Geometry& f, const float* x, const float* g, float* gw);

template <class T> const ConvLoops& conv_loops_of() {
  return kernels().conv[std::is_same_v<T, bfloat> ? 2 : sizeof(T) == 8];
}

// One axis of a sum over taps: result i is at `first + i * step` and is computed from the elements of the
// source at `i * src_step + at + t * at_step`, for the taps `tap + t * tap_step` of the filter.
struct Side {
  int64_t count = 1, first = 0, step = 1;
  int64_t size = 1, src_step = 1;
  int64_t taps = 1, at = 0, at_step = 1, tap = 0, tap_step = 1;
};
// The axis of the result itself, and of the gradient with respect to x at the places `phase`, `phase +
// stride`, ...: together these make the transpose a sum over taps as well. The latter may have no taps.
Side forward_side(const Geometry& f, int axis);
Side input_side(const Geometry& f, int axis, int64_t phase);

// The zeros around axis `i` of a window attribute: none for [], as many as give ceil(in / stride) results
// for [-1] (TensorFlow's SAME; the odd one after), else given as [before, after, before, after, ...].
struct Padding {
  int64_t low, high;
};
inline void want_paddings(const std::vector<int64_t>& p, size_t dims) {
  if (p.size() == 2 * dims || p.empty() || (p.size() == 1 && p[0] == -1)) {
    for (size_t i = 0; i < 2 * dims && p.size() > 1; ++i)
      if (p[i] < 0) fail("Paddings must be non-negative, got " + std::to_string(p[i]));
    return;
  }
  fail("expected " + std::to_string(2 * dims) + " paddings, got " + std::to_string(p.size()));
}
inline Padding padding_of(const std::vector<int64_t>& p, int i, int64_t in, int64_t span, int64_t stride) {
  if (p.empty()) return {0, 0};
  if (p.size() > 1) return {p[size_t(2 * i)], p[size_t(2 * i + 1)]};
  const int64_t total = std::max<int64_t>(0, (in + stride - 1) / stride * stride - stride + span - in);
  return {total / 2, total - total / 2};
}

// Memory for the duration of a call, from the tensors' cache.
template <class T> struct Scratch {
  Tensor room;
  T* at = nullptr;
  Scratch() = default;
  explicit Scratch(int64_t n) : room(empty(DtypeOf<T>::value, Shape(&n, 1))), at(room.as<T>()) {}
};
// The geometry with enough groups joined into one that their `results` channels fill `lanes`; the filter of
// such a convolution, and the part of a gradient with respect to it that belongs to the groups.
Geometry joined_groups(const Geometry& f, int64_t results, int64_t lanes);
template <class T> Scratch<T> join_filter(const Geometry& f, const Geometry& joined, const T* w);
template <class T> void part_filter(const Geometry& f, const Geometry& joined, const T* from, T* w);

// Whether the taps of a row are taken as one run: few channels each, and adjacent in the source.
constexpr int64_t kFewChannels = 16;
inline bool joins_taps(int64_t groups, int64_t channels, const Side& row) {
  return groups == 1 && channels < kFewChannels && row.taps > 1 && row.at_step == 1;
}
constexpr double kWorthAThread = 4e5;  // products; some 10 us

}  // namespace gt
