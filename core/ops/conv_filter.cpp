// The gradient of a convolution with respect to its filter: for each tap, a product of x and g summed over
// pixels.
//
// Both are read in place, in blocks of pixels that stay in the cache while all taps and channels are
// multiplied. Pixels whose tap is outside x are left out. Where x has few channels, all taps are rows of one
// product; the lines of x that a line of g is multiplied with are then copied into a frame of zeros. Those of
// bfloat16 are multiplied in pairs of pixels, which are built first.
#include <algorithm>
#include <cstring>
#include <vector>

#include "conv.h"

namespace gt {

namespace {

constexpr int64_t kBlockPixels = 384;

template <class T> constexpr bool kPairs = std::is_same_v<T, bfloat>;

// What a gradient is summed in.
template <class T> using SumOf = std::conditional_t<kPairs<T>, float, T>;

// A run of pixels; of bfloat16 a whole stretch.
template <class T> struct Run {
  const T* x;
  int64_t g;  // the pixel of g; of bfloat16, the pair
  int64_t count;
  const int* pairs = nullptr;  // of x
};

// The lines of x as pairs of the pixels that adjacent pixels of g are multiplied with, `step` apart, with
// zeros outside. Where the first of them may begin depends on the tap: each start has its own lines.
struct LinePairs {
  int64_t step = 1, first = 0, width = 0, lines = 0,
          row = 0;  // pairs of a line: first, ..., first + width - 1
  std::vector<int64_t> begins;
  Scratch<int32_t> room;

  static int64_t below(int64_t x, int64_t y) { return x / y - (x % y < 0); }
  // The pair that begins with pixel `at` of a line.
  const int* find(int64_t line, int64_t at) const {
    const int64_t q = below(at, 2 * step), begin = at - q * 2 * step;
    const int64_t k = std::find(begins.begin(), begins.end(), begin) - begins.begin();
    return room.at + ((k * lines + line) * width + q - first) * row;
  }
  void make(const bfloat* x, int64_t channels, const Side& v, int64_t count, const ConvLoops& loops) {
    step = v.src_step, lines = count, row = (channels + loops.lanes - 1) / loops.lanes * loops.lanes;
    int64_t last = first = below(v.at, 2 * step);
    for (int64_t t = 0; t < v.taps; ++t) {
      const int64_t at = v.at + t * v.at_step, q = below(at, 2 * step), begin = at - q * 2 * step;
      first = std::min(first, q), last = std::max(last, q);
      if (std::find(begins.begin(), begins.end(), begin) == begins.end()) begins.push_back(begin);
    }
    width = last - first + (v.count + 1) / 2;
    room = Scratch<int32_t>(int64_t(begins.size()) * lines * width * row);
    each_chunk(int64_t(begins.size()) * lines, grain_rows(width * row), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = begins[size_t(i / lines)] + first * 2 * step, many = 2 * width;
        const int64_t low = std::clamp<int64_t>(-below(at, step), 0, many),
                      high = std::clamp<int64_t>(-below(at - v.size, step), low, many);
        loops.pairs({x + (i % lines * v.size + at) * channels, step * channels, channels, many, low, high,
                     room.at + i * width * row, row});
      }
    });
  }
};

// The pixels [begin, end) of a line of g.
struct Stretch {
  int64_t line, begin, end;
};

template <class T> struct Product {
  Side side[3];
  int64_t n, groups, c, o;  // rows of a tap, columns of a group
  const T *x, *g;
  const int* pairs = nullptr;  // g, of bfloat16
  LinePairs x_pairs;
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
    if (kPairs<T>) cut += cut % 2;
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

  // The pixel of g (or the pair, of bfloat16) with which a stretch begins.
  int64_t place(int64_t line, int64_t pixel) const {
    return kPairs<T> ? line * ((side[2].count + 1) / 2) + pixel / 2 : line * side[2].count + pixel;
  }

  // The pixels of stretches [begin, end) whose tap is inside x.
  void runs(int64_t tap, int64_t begin, int64_t end, std::vector<Run<T>>& to) const {
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
      if (line < 0) continue;
      const int64_t at = kPairs<T> ? s.begin : from, last = kPairs<T> ? s.end : until;
      to.push_back({x + line + (first + at * v.src_step) * x_step, place(s.line, at), last - at});
      if (kPairs<T>) to.back().pairs = x_pairs.find(line / (v.size * x_step), first + at * v.src_step);
    }
  }
  // The same with all taps of a stretch in a frame; `room` holds the frames.
  void framed_runs(int64_t begin, int64_t end, std::vector<Run<T>>& to, std::vector<T>& room,
                   std::vector<int32_t>& paired) const {
    const Side& v = side[2];
    const int64_t rows = side[0].taps * side[1].taps, width = frame * channels;
    room.resize(size_t((end - begin) * rows * width));
    to.clear();
    for (int64_t i = begin; i < end; ++i) {
      const Stretch s = stretch(i);
      T* line = room.data() + (i - begin) * rows * width;
      to.push_back({line, place(s.line, s.begin), s.end - s.begin});
      const int64_t first = v.at + s.begin * v.src_step, low = std::clamp<int64_t>(-first, 0, frame),
                    high = std::clamp(v.size - first, low, frame);
      for (int64_t t = 0; t < rows; ++t, line += width) {
        const int64_t from = source(s.line, t / side[1].taps, t % side[1].taps);
        if (from < 0) {
          std::fill_n(line, width, T(0.0f));
          continue;
        }
        std::fill_n(line, low * channels, T(0.0f));
        std::copy_n(x + from + (first + low) * channels, (high - low) * channels, line + low * channels);
        std::fill_n(line + high * channels, (frame - high) * channels, T(0.0f));
      }
    }
    if constexpr (kPairs<T>) {  // each element beside that of the next pixel, if there is one
      const int64_t next = v.src_step * channels, alone = std::max<int64_t>(0, width - next);
      paired.resize(room.size());
      for (int64_t i = 0; i < (end - begin) * rows; ++i) {
        const T* from = room.data() + i * width;
        int32_t* pair = paired.data() + i * width;
        for (int64_t j = 0; j < alone; ++j)
          pair[j] = int32_t(from[j].bits | uint32_t(from[j + next].bits) << 16);
        for (int64_t j = alone; j < width; ++j) pair[j] = from[j].bits;
      }
      for (size_t i = 0; i < to.size(); ++i) to[i].pairs = paired.data() + int64_t(i) * rows * width;
    }
  }
};

// g in pairs of the pixels of a line, and with the channels of each group filled up to whole vectors.
Scratch<int32_t> pair(Product<bfloat>& p, const ConvLoops& loops) {
  const int64_t wide = (p.o + loops.lanes - 1) / loops.lanes * loops.lanes, row = p.groups * wide,
                line = p.side[2].count, lines = p.n * p.side[0].count * p.side[1].count,
                to_line = (line + 1) / 2 * row;
  Scratch<int32_t> room(lines * to_line);
  each_chunk(lines, grain_rows(to_line), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t group = 0; group < p.groups; ++group)
        loops.pairs({p.g + i * line * p.g_step + group * p.o, p.g_step, p.o, line, 0, line,
                     room.at + i * to_line + group * wide, row});
  });
  p.pairs = room.at, p.g_step = row, p.g_group = wide;
  return room;
}
// The same of other elements, pixel by pixel.
template <class T> Scratch<T> widen(Product<T>& p, int64_t pixels, int64_t lanes) {
  const int64_t wide = (p.o + lanes - 1) / lanes * lanes;
  Scratch<T> room;
  if (wide == p.o) return room;
  room = Scratch<T>(pixels * p.groups * wide);
  each_chunk(pixels * p.groups, grain_rows(wide), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(room.at + i * wide, p.g + i * p.o, size_t(p.o) * sizeof(T));
      std::fill_n(room.at + i * wide + p.o, wide - p.o, T(0.0f));
    }
  });
  p.g = room.at, p.g_step = p.groups * wide, p.g_group = wide;
  return room;
}

// A share of the panels (of all groups), over stretches [begin, end), to `out`.
template <class T>
void run_part(const Product<T>& p, const ConvLoops& loops, int64_t begin, int64_t end, int64_t first,
              int64_t last, SumOf<T>* out) {
  const int64_t width = 2 * loops.lanes, panels = (p.o + width - 1) / width, columns = p.groups * p.o;
  const int64_t block = std::max<int64_t>(1, kBlockPixels / p.cut);
  const int64_t tiles = (p.c + loops.pixels - 1) / loops.pixels, tall = (p.c + tiles - 1) / tiles;
  std::vector<Run<T>> runs;
  std::vector<FilterRun> meet;
  std::vector<T> room;
  std::vector<int32_t> paired;
  FilterTile t;
  t.x_step = p.x_step * p.side[2].src_step, t.g_step = p.g_step, t.out_step = columns, t.row_at = nullptr;
  if (kPairs<T>) t.x_step = p.frame ? 2 * t.x_step : p.x_pairs.row;
  t.x_at = 0;
  // Where the rows of x from `row` of a group on are, and those of g with them.
  auto find = [&](int64_t row, int64_t group) {
    const int64_t at = p.frame ? 0 : group * p.x_group + row;
    t.row_at = p.frame ? p.row_at.data() + row : nullptr;
    meet.clear();
    for (const Run<T>& r : runs)
      if constexpr (kPairs<T>)
        meet.push_back({r.pairs + at, p.pairs + r.g * p.g_step, (r.count + 1) / 2});
      else
        meet.push_back({r.x + at, p.g + r.g * p.g_step, r.count});
    t.runs = meet.data(), t.n = int64_t(meet.size());
  };
  for (int64_t at = begin; at < end; at += block) {
    t.add = at > begin;
    for (int64_t tap = 0; tap < p.taps(); ++tap) {
      if (p.frame)
        p.framed_runs(at, std::min(end, at + block), runs, room, paired);
      else
        p.runs(tap, at, std::min(end, at + block), runs);
      if (t.add && runs.empty()) continue;
      for (int64_t row = 0; row < p.c; row += tall) {
        t.rows = int(std::min(tall, p.c - row));
        for (int64_t u = first; u < last; ++u) {
          const int64_t group = u / panels, column = u % panels * width;
          t.channels = int(std::min(width, p.o - column)), t.vectors = t.channels > loops.lanes ? 2 : 1;
          if (u == first || column == 0) find(row, group);
          t.g_at = group * p.g_group + column;
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
  const auto widened = [&] {
    if constexpr (kPairs<T>)
      return pair(p, loops);
    else
      return widen(p, f.pixels(), loops.lanes);
  }();
  p.channels = f.c;
  p.cut_lines();
  if (joins_taps(p.groups, p.c, p.side[2]))
    p.join();
  else if constexpr (kPairs<T>)
    p.x_pairs.make(x, p.x_step, p.side[2], f.n * f.in[0] * f.in[1], loops);
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
  Scratch<SumOf<T>> sums;
  if (parts > 1 || kPairs<T>) sums = Scratch<SumOf<T>>(parts * size);
  each_chunk(parts * shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t q = i / shares, first = i % shares * share;
      run_part(p, loops, q * part, std::min(lines, (q + 1) * part), first, std::min(panels, first + share),
               sums.at ? sums.at + q * size : reinterpret_cast<SumOf<T>*>(gw));
    }
  });
  if (!sums.at) return;
  each_chunk(size, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      SumOf<T> s = sums.at[i];
      for (int64_t q = 1; q < parts; ++q) s += sums.at[q * size + i];
      gw[i] = T(s);
    }
  });
}

template void conv_by_filter<float>(const Geometry&, const float*, const float*, float*);
template void conv_by_filter<double>(const Geometry&, const double*, const double*, double*);
template void conv_by_filter<bfloat>(const Geometry&, const bfloat*, const bfloat*, bfloat*);

}  // namespace gt
