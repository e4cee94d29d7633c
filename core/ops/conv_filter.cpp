// The gradient of a convolution by its filter: for each tap, a product of x and g summed over pixels.
//
// Both are read where they are, in blocks of pixels that stay in the cache while all taps and
// channels meet. Pixels whose tap lies outside x are left out. Where x has few channels, all taps are
// rows of one product; the lines of x that a line of g meets are then copied into a frame of zeros.
#include <algorithm>
#include <cstring>
#include <vector>

#include "conv.h"

namespace gt {

namespace {

constexpr int64_t kBlockPixels = 384;

// The pixels [begin, end) of a line of g.
struct Stretch {
  int64_t line, begin, end;
};

template <class T> struct Product {
  Side side[3];
  int64_t n, groups, c, o;  // rows of a tap, columns of a group
  const T *x, *g;
  int64_t x_step, g_step;  // from pixel to pixel
  int64_t x_group, g_group;
  int64_t channels;       // of x
  int64_t cuts = 1, cut;  // long lines are cut into stretches of `cut` pixels
  int64_t frame = 0;      // pixels of a framed stretch; 0: x is read where it is
  std::vector<int64_t> row_at;

  int64_t stretches() const { return n * side[0].count * side[1].count * cuts; }
  int64_t taps() const { return frame ? 1 : side[0].taps * side[1].taps * side[2].taps; }
  Stretch stretch(int64_t i) const {
    return {i / cuts, i % cuts * cut, std::min(side[2].count, (i % cuts + 1) * cut)};
  }

  void cut_lines() {
    cuts = (side[2].count + 2 * kBlockPixels - 1) / (2 * kBlockPixels);
    cut = (side[2].count + cuts - 1) / cuts;
    cuts = (side[2].count + cut - 1) / cut;
  }
  // Makes all taps the rows of one product over framed stretches.
  void join() {
    const Side& v = side[2];
    frame = (cut - 1) * v.src_step + v.taps;
    c = side[0].taps * side[1].taps * v.taps * channels;
    for (int64_t t = 0; t < side[0].taps * side[1].taps; ++t)
      for (int64_t i = 0; i < v.taps * channels; ++i) row_at.push_back(t * frame * channels + i);
  }

  // Where the line of x begins that taps t0 and t1 of a line of g meet; -1: outside.
  int64_t source(int64_t line, int64_t t0, int64_t t1) const {
    const int64_t i1 = line % side[1].count, i0 = line / side[1].count % side[0].count,
                  image = line / side[1].count / side[0].count;
    const int64_t y0 = i0 * side[0].src_step + side[0].at + t0 * side[0].at_step,
                  y1 = i1 * side[1].src_step + side[1].at + t1 * side[1].at_step;
    if (y1 < 0 || y1 >= side[1].size || y0 < 0 || y0 >= side[0].size) return -1;
    return ((image * side[0].size + y0) * side[1].size + y1) * side[2].size * x_step;
  }

  // The pixels of stretches [begin, end) whose tap is inside x.
  void runs(int64_t tap, int64_t begin, int64_t end, std::vector<FilterRun>& to) const {
    const Side& v = side[2];
    const int64_t t2 = tap % v.taps, t1 = tap / v.taps % side[1].taps, t0 = tap / v.taps / side[1].taps,
                  first = v.at + t2 * v.at_step;
    int64_t low = 0, high = v.count;  // of a line
    while (low < high && first + low * v.src_step < 0) ++low;
    while (low < high && first + (high - 1) * v.src_step >= v.size) --high;
    to.clear();
    for (int64_t i = begin; i < end; ++i) {
      const Stretch s = stretch(i);
      const int64_t from = std::max(low, s.begin), until = std::min(high, s.end),
                    line = from < until ? source(s.line, t0, t1) : -1;
      if (line >= 0)
        to.push_back({x + line + (first + from * v.src_step) * x_step, g + (s.line * v.count + from) * g_step,
                      until - from});
    }
  }
  // The same with all taps of a stretch in a frame; `room` holds the frames.
  void framed_runs(int64_t begin, int64_t end, std::vector<FilterRun>& to, std::vector<T>& room) const {
    const Side& v = side[2];
    const int64_t rows = side[0].taps * side[1].taps, width = frame * channels;
    room.resize(size_t((end - begin) * rows * width));
    to.clear();
    for (int64_t i = begin; i < end; ++i) {
      const Stretch s = stretch(i);
      T* line = room.data() + (i - begin) * rows * width;
      to.push_back({line, g + (s.line * v.count + s.begin) * g_step, s.end - s.begin});
      const int64_t first = v.at + s.begin * v.src_step, low = std::clamp<int64_t>(-first, 0, frame),
                    high = std::clamp(v.size - first, low, frame);
      for (int64_t t = 0; t < rows; ++t, line += width) {
        const int64_t from = source(s.line, t / side[1].taps, t % side[1].taps);
        if (from < 0) {
          std::fill_n(line, width, T(0));
          continue;
        }
        std::fill_n(line, low * channels, T(0));
        std::copy_n(x + from + (first + low) * channels, (high - low) * channels, line + low * channels);
        std::fill_n(line + high * channels, (frame - high) * channels, T(0));
      }
    }
  }
};

// g with the channels of each group filled up to whole vectors.
template <class T> Scratch<T> widen(Product<T>& p, int64_t pixels, int64_t lanes) {
  const int64_t wide = (p.o + lanes - 1) / lanes * lanes;
  Scratch<T> room;
  if (wide == p.o) return room;
  room = Scratch<T>(pixels * p.groups * wide);
  each_chunk(pixels * p.groups, grain_rows(wide), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(room.at + i * wide, p.g + i * p.o, size_t(p.o) * sizeof(T));
      std::fill_n(room.at + i * wide + p.o, wide - p.o, T(0));
    }
  });
  p.g = room.at, p.g_step = p.groups * wide, p.g_group = wide;
  return room;
}

// A share of the panels (of all groups), over stretches [begin, end), to `out`.
template <class T>
void run_part(const Product<T>& p, const ConvLoops& loops, int64_t begin, int64_t end, int64_t first,
              int64_t last, T* out) {
  const int64_t width = 2 * loops.lanes, panels = (p.o + width - 1) / width, columns = p.groups * p.o;
  const int64_t block = std::max<int64_t>(1, kBlockPixels / p.cut);
  const int64_t tiles = (p.c + loops.pixels - 1) / loops.pixels, tall = (p.c + tiles - 1) / tiles;
  std::vector<FilterRun> runs;
  std::vector<T> room;
  FilterTile t;
  t.x_step = p.x_step * p.side[2].src_step, t.g_step = p.g_step, t.out_step = columns, t.row_at = nullptr;
  for (int64_t at = begin; at < end; at += block) {
    t.add = at > begin;
    for (int64_t tap = 0; tap < p.taps(); ++tap) {
      if (p.frame)
        p.framed_runs(at, std::min(end, at + block), runs, room);
      else
        p.runs(tap, at, std::min(end, at + block), runs);
      t.runs = runs.data(), t.n = int64_t(runs.size());
      if (t.add && runs.empty()) continue;
      for (int64_t row = 0; row < p.c; row += tall) {
        t.rows = int(std::min(tall, p.c - row));
        for (int64_t u = first; u < last; ++u) {
          const int64_t group = u / panels, column = u % panels * width;
          t.channels = int(std::min(width, p.o - column)), t.vectors = t.channels > loops.lanes ? 2 : 1;
          if (p.frame) t.row_at = p.row_at.data() + row;
          t.x_at = p.frame ? 0 : group * p.x_group + row, t.g_at = group * p.g_group + column;
          t.out = out + (tap * p.c + row) * columns + group * p.o + column;
          loops.filter(t);
        }
      }
    }
  }
}

}  // namespace

template <class T> void conv_by_filter(const Geometry& f, const T* x, const T* g, T* gw) {
  const ConvLoops& loops = conv_loops_of<T>();
  Product<T> p{};
  p.n = f.n, p.groups = f.groups, p.c = f.c, p.o = f.o, p.x = x, p.g = g;
  p.x_step = f.groups * f.c, p.g_step = f.groups * f.o, p.x_group = f.c, p.g_group = f.o;
  for (int a = 0; a < 3; ++a) p.side[a] = forward_side(f, a);
  const Scratch<T> widened = widen(p, f.pixels(), loops.lanes);
  p.channels = f.c;
  p.cut_lines();
  if (joins_taps(p.groups, p.c, p.side[2])) p.join();
  // Chunks: shares of the panels, and parts of the sum, which are added up afterwards.
  const int64_t width = 2 * loops.lanes, panels = (p.o + width - 1) / width * p.groups, lines = p.stretches();
  const int64_t size = f.taps() * f.c * f.groups * f.o;
  const int64_t wanted = std::clamp<int64_t>(int64_t(f.work() / (4 * kWorthAThread)), 1, 16);
  const int64_t shares = std::min(panels, wanted), share = (panels + shares - 1) / shares;
  int64_t parts =
      std::clamp<int64_t>((wanted + shares - 1) / shares, 1, std::max<int64_t>(1, f.pixels() / kBlockPixels));
  parts = std::min(parts, lines);
  const int64_t part = (lines + parts - 1) / parts;
  parts = (lines + part - 1) / part;
  Scratch<T> sums;
  if (parts > 1) sums = Scratch<T>(parts * size);
  each_chunk(parts * shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t q = i / shares, first = i % shares * share;
      run_part(p, loops, q * part, std::min(lines, (q + 1) * part), first, std::min(panels, first + share),
               parts > 1 ? sums.at + q * size : gw);
    }
  });
  if (parts == 1) return;
  each_chunk(size, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T s = sums.at[i];
      for (int64_t q = 1; q < parts; ++q) s += sums.at[q * size + i];
      gw[i] = s;
    }
  });
}

template void conv_by_filter<float>(const Geometry&, const float*, const float*, float*);
template void conv_by_filter<double>(const Geometry&, const double*, const double*, double*);

}  // namespace gt
