// Windows line by line: which taps of a line of results are inside the source. For the ops that treat every
// channel separately: depthwise convolutions, pooling, patches.
#pragma once
#include <algorithm>

#include "conv.h"

namespace gt {

// The pixels [begin, end) of an axis all of whose taps are inside the source; empty: begin == end.
struct Inner {
  int64_t begin, end;
  explicit Inner(const Side& s) : begin(0), end(s.count) {
    while (begin < end && begin * s.src_step + s.at < 0) ++begin;
    while (begin < end && (end - 1) * s.src_step + s.at + (s.taps - 1) * s.at_step >= s.size) --end;
  }
};

// The taps [first, last) inside the source, of a window that begins at x. Windows may be far larger than the
// source.
struct Taps {
  int64_t first, last;
  Taps(const Side& s, int64_t x) {
    first = x < 0 ? std::min(s.taps, (-x + s.at_step - 1) / s.at_step) : 0;
    last = std::max(first, x < s.size ? std::min(s.taps, (s.size - x + s.at_step - 1) / s.at_step) : 0);
  }
};

// Calls f(first pixel, pixels, first tap, taps) for each stretch of a line with the same taps inside.
template <class F> void each_stretch(const Side& s, const Inner& inner, F&& f) {
  auto single = [&](int64_t i) {
    const Taps in(s, i * s.src_step + s.at);
    f(i, int64_t(1), in.first, in.last - in.first);
  };
  for (int64_t i = 0; i < inner.begin; ++i) single(i);
  if (inner.begin < inner.end) f(inner.begin, inner.end - inner.begin, int64_t(0), s.taps);
  for (int64_t i = std::max(inner.begin, inner.end); i < s.count; ++i) single(i);
}

// A line of results: image and places on the first two axes, and the taps that lie inside on these.
struct Line {
  int64_t image, i[2], t[2][2];
  Line(const Side (&side)[3], int64_t line) {
    for (int a = 1; a >= 0; --a) {
      const Side& s = side[a];
      i[a] = line % s.count, line /= s.count;
      const Taps in(s, i[a] * s.src_step + s.at);
      t[a][0] = in.first, t[a][1] = in.last;
    }
    image = line;
  }
  // The pixel of the source that tap (t0, t1, 0) of the first result of the line would have.
  int64_t source(const Side (&side)[3], int64_t t0, int64_t t1) const {
    const int64_t y0 = i[0] * side[0].src_step + side[0].at + t0 * side[0].at_step;
    const int64_t y1 = i[1] * side[1].src_step + side[1].at + t1 * side[1].at_step;
    return ((image * side[0].size + y0) * side[1].size + y1) * side[2].size + side[2].at;
  }
};
inline int64_t lines_of(const Side (&side)[3], int64_t n) { return n * side[0].count * side[1].count; }

}  // namespace gt
