// Convolutions in which every channel of x has `o` filters of its own, line by line of the result.
//
// With several filters a channel, x is written out with each channel repeated; from there on there
// is one filter a channel, and code runs along the channels. Pixels of a line whose taps all lie
// inside the source are done together, those at its ends one by one with the taps they have.
#include <algorithm>
#include <vector>

#include "conv_lines.h"

namespace gt {
namespace {

constexpr int64_t kFilterBytes = 16 << 10;

// out = sum over taps; `size` is that of the result, `k` that of the filter.
template <class T>
void run_lines(const Side (&side)[3], int64_t n, int64_t channels, const T* src, const T* w, const int64_t* k,
               T* out, const int64_t* size) {
  const ConvLoops& loops = conv_loops_of<T>();
  const Inner inner(side[2]);
  const int64_t taps = side[0].taps * side[1].taps * side[2].taps, work = side[2].count * channels * taps;
  // Blocks of channels whose filters stay in the first-level cache from one stretch of a line to the next.
  const int64_t step = 4 * loops.lanes,
                block = std::max(step, kFilterBytes / (taps * int64_t(sizeof(T))) / step * step);
  each_chunk(lines_of(side, n), grain_rows(work, 1 << 17), [&](int64_t begin, int64_t end) {
    std::vector<DepthwiseRow> rows;
    std::vector<const void*> from, filter;
    from.reserve(size_t(taps * side[2].count)),
        filter.reserve(size_t(taps * side[2].count));  // rows point into them
    for (int64_t r = begin; r < end; ++r) {
      const Line line(side, r);
      const int64_t y0 = side[0].first + line.i[0] * side[0].step,
                    y1 = side[1].first + line.i[1] * side[1].step;
      T* to = out + (((line.image * size[0] + y0) * size[1] + y1) * size[2] + side[2].first) * channels;
      rows.clear(), from.clear(), filter.clear();
      each_stretch(side[2], inner, [&](int64_t pixel, int64_t pixels, int64_t tap, int64_t many) {
        const size_t first = from.size();
        for (int64_t t0 = line.t[0][0]; t0 < line.t[0][1]; ++t0)
          for (int64_t t1 = line.t[1][0]; t1 < line.t[1][1]; ++t1)
            for (int64_t t2 = tap; t2 < tap + many; ++t2) {
              from.push_back(src +
                             (line.source(side, t0, t1) + pixel * side[2].src_step + t2 * side[2].at_step) *
                                 channels);
              const int64_t k0 = side[0].tap + t0 * side[0].tap_step,
                            k1 = side[1].tap + t1 * side[1].tap_step;
              filter.push_back(w +
                               ((k0 * k[1] + k1) * k[2] + side[2].tap + t2 * side[2].tap_step) * channels);
            }
        rows.push_back({from.data() + first, filter.data() + first, int64_t(from.size() - first),
                        side[2].src_step * channels, to + pixel * side[2].step * channels,
                        side[2].step * channels, pixels, 0, 0});
      });
      for (int64_t c = 0; c < channels; c += block)
        for (DepthwiseRow& row : rows) {
          row.first = c, row.channels = std::min(block, channels - c);
          loops.depthwise(row);
        }
    }
  });
}

// x with each channel `times` times.
template <class T> Scratch<T> repeated(const T* x, int64_t n, int64_t times) {
  Scratch<T> room(n * times);
  each_chunk(n, grain_rows(times), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::fill_n(room.at + i * times, times, x[i]);
  });
  return room;
}

int64_t elements_in(const Geometry& f) { return f.n * f.in[0] * f.in[1] * f.in[2] * f.groups; }

}  // namespace

template <class T> void depthwise_forward(const Geometry& f, const T* x, const T* w, T* out) {
  Scratch<T> wide;
  if (f.o > 1) wide = repeated(x, elements_in(f), f.o), x = wide.at;
  const Side side[3] = {forward_side(f, 0), forward_side(f, 1), forward_side(f, 2)};
  run_lines(side, f.n, f.groups * f.o, x, w, f.k, out, f.out);
}

template <class T> void depthwise_by_input(const Geometry& f, const T* g, const T* w, T* gx) {
  const int64_t channels = f.groups * f.o, count = elements_in(f);
  Scratch<T> wide;
  if (f.o > 1) wide = Scratch<T>(count * f.o);
  T* to = f.o > 1 ? wide.at : gx;
  bool gaps = false;
  for (int a = 0; a < 3; ++a)
    for (int64_t r = 0; r < std::min(f.stride[a], f.in[a]); ++r) gaps |= input_side(f, a, r).taps == 0;
  if (gaps) zero(reinterpret_cast<char*>(to), count * f.o * int64_t(sizeof(T)));
  for (int64_t r0 = 0; r0 < std::min(f.stride[0], f.in[0]); ++r0)
    for (int64_t r1 = 0; r1 < std::min(f.stride[1], f.in[1]); ++r1)
      for (int64_t r2 = 0; r2 < std::min(f.stride[2], f.in[2]); ++r2) {
        const Side side[3] = {input_side(f, 0, r0), input_side(f, 1, r1), input_side(f, 2, r2)};
        if (side[0].taps && side[1].taps && side[2].taps) run_lines(side, f.n, channels, g, w, f.k, to, f.in);
      }
  if (f.o == 1) return;
  each_chunk(count, grain_rows(f.o), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T s = 0;
      for (int64_t m = 0; m < f.o; ++m) s += to[i * f.o + m];
      gx[i] = s;
    }
  });
}

template <class T> void depthwise_by_filter(const Geometry& f, const T* x, const T* g, T* gw) {
  const ConvLoops& loops = conv_loops_of<T>();
  Scratch<T> wide;
  if (f.o > 1) wide = repeated(x, elements_in(f), f.o), x = wide.at;
  const Side side[3] = {forward_side(f, 0), forward_side(f, 1), forward_side(f, 2)};
  const Inner inner(side[2]);
  const int64_t channels = f.groups * f.o, size = f.taps() * channels, lines = lines_of(side, f.n);
  // Parts of the sum, added up afterwards.
  const int64_t parts_wanted =
      std::clamp<int64_t>(int64_t(f.work() / (1 << 17)), 1, std::min<int64_t>(lines, 16));
  const int64_t part = (lines + parts_wanted - 1) / parts_wanted, parts = (lines + part - 1) / part;
  Scratch<T> sums(parts * size);
  each_chunk(parts, 1, [&](int64_t begin, int64_t end) {
    std::vector<const void*> from;
    std::vector<void*> to;
    for (int64_t q = begin; q < end; ++q) {
      std::fill_n(sums.at + q * size, size, T(0));
      for (int64_t r = q * part; r < std::min(lines, (q + 1) * part); ++r) {
        const Line line(side, r);
        each_stretch(side[2], inner, [&](int64_t pixel, int64_t pixels, int64_t tap, int64_t taps) {
          from.clear(), to.clear();
          for (int64_t t0 = line.t[0][0]; t0 < line.t[0][1]; ++t0)
            for (int64_t t1 = line.t[1][0]; t1 < line.t[1][1]; ++t1)
              for (int64_t t2 = tap; t2 < tap + taps; ++t2) {
                from.push_back(x +
                               (line.source(side, t0, t1) + pixel * side[2].src_step + t2 * side[2].at_step) *
                                   channels);
                to.push_back(sums.at + q * size + ((t0 * f.k[1] + t1) * f.k[2] + t2) * channels);
              }
          loops.depthwise_filter({from.data(), int64_t(from.size()), side[2].src_step * channels,
                                  g + (r * side[2].count + pixel) * channels, channels, pixels, channels,
                                  to.data()});
        });
      }
    }
  });
  for (int64_t i = 0; i < size; ++i) {
    T s = sums.at[i];
    for (int64_t q = 1; q < parts; ++q) s += sums.at[q * size + i];
    gw[i] = s;
  }
}

template void depthwise_forward<float>(const Geometry&, const float*, const float*, float*);
template void depthwise_forward<double>(const Geometry&, const double*, const double*, double*);
template void depthwise_by_input<float>(const Geometry&, const float*, const float*, float*);
template void depthwise_by_input<double>(const Geometry&, const double*, const double*, double*);
template void depthwise_by_filter<float>(const Geometry&, const float*, const float*, float*);
template void depthwise_by_filter<double>(const Geometry&, const double*, const double*, double*);

}  // namespace gt
