// Convolutions as sums over taps, pixel by pixel: the result itself, and the gradient with respect to x.
//
// A tile of pixels is multiplied with a panel of filters (kernels/conv.cpp). The elements of the source are
// read in place, through a table that says, for each tap and pixel, where its channels begin; taps outside
// the source point to a run of zeros. Where there are few channels, the taps of a row are one longer run;
// pixels at the ends of a line, which lack some of them, are copied with zeros filled in.
#include <algorithm>
#include <memory>
#include <vector>

#include "conv.h"

namespace gt {
namespace {

constexpr int64_t kPanelBytes =
    160 << 10;  // of a panel, to stay in the second-level cache with the tiles it is multiplied with
constexpr int64_t kTableBytes = 64 << 10;

template <class T> struct Sum {
  Side side[3];
  int64_t n, groups, c, o;  // channels of a group: of the source, of the result
  const T* src;
  T* out;
  int64_t out_size[3];
  const T* w;
  int64_t w_tap[3], w_c, w_o, w_group;  // steps in the filter

  int64_t taps() const { return side[0].taps * side[1].taps * side[2].taps; }
  int64_t pixels() const { return n * side[0].count * side[1].count * side[2].count; }
};

// Rows of panels, [group][panel][tap][c][lanes of the panel]; the last panel of a group may be narrow. Those
// of bfloat16 are pairs of rows of a run, in turn.
template <class T> struct Panels {
  int64_t lanes, width, full, tail, depth, group;  // depth: rows; group: elements
  Scratch<T> room;

  Panels(const Sum<T>& s, int64_t lanes_, int64_t run)  // run: rows
      : lanes(lanes_), width(2 * lanes_), full(s.o / width), tail(s.o % width), depth(s.taps() * s.c) {
    const int64_t last = tail == 0 ? 0 : tail <= lanes ? lanes : width;
    group = depth * (full * width + last);
    room = Scratch<T>(group * s.groups);
    for (int64_t g = 0; g < s.groups; ++g) {
      if (tail % lanes)
        zero(reinterpret_cast<char*>(room.at + g * group + full * depth * width),
             depth * last * int64_t(sizeof(T)));
      copy(s, g, 0, full, width, width);
      if (tail) copy(s, g, full, 1, tail, last);
    }
    if constexpr (std::is_same_v<T, bfloat>) pair(s.groups, run, last);
  }
  int64_t count() const { return full + (tail ? 1 : 0); }
  const T* at(int64_t g, int64_t panel) const { return room.at + g * group + panel * depth * width; }
  int vectors(int64_t panel) const { return panel < full || tail > lanes ? 2 : 1; }
  int channels(int64_t panel) const { return int(panel < full ? width : tail); }

 private:
  // Puts the rows of a run side by side, two by two; where their number is odd, the last beside zeros.
  void pair(int64_t groups, int64_t run, int64_t last) {
    const int64_t runs = depth / run, paired = run + run % 2, to_group = group / depth * runs * paired;
    const Scratch<T> to(groups * to_group), none(width);
    std::fill_n(none.at, width, T(0.0f));
    each_chunk(groups * count() * runs, grain_rows(run * width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t r = i % runs, panel = i / runs % count(), g = i / runs / count();
        const int64_t wide = panel < full ? width : last;
        const T* row = at(g, panel) + r * run * wide;
        T* out = to.at + g * to_group + panel * runs * paired * width + r * paired * wide;
        for (int64_t l = 0; l < run; l += 2, row += 2 * wide, out += 2 * wide) {
          const T* next = l + 1 < run ? row + wide : none.at;
          for (int64_t j = 0; j < wide; ++j) out[2 * j] = row[j], out[2 * j + 1] = next[j];
        }
      }
    });
    room = to, depth = runs * paired, group = to_group;
  }
  void copy(const Sum<T>& s, int64_t g, int64_t first, int64_t many, int64_t used, int64_t wide) {
    Nest t;
    int64_t at = g * s.w_group + first * width * s.w_o, row = depth;
    t.push(many, width * s.w_o, depth * width);
    for (int a = 0; a < 3; ++a) {
      const Side& d = s.side[a];
      row /= d.taps;
      at += d.tap * s.w_tap[a];
      t.push(d.taps, d.tap_step * s.w_tap[a], row * wide);
    }
    t.push(s.c, s.w_c, wide);
    t.push(used, s.w_o, 1);
    strided_copy(reinterpret_cast<char*>(room.at + g * group + first * depth * width),
                 reinterpret_cast<const char*>(s.w + at), sizeof(T), t);
  }
};

// Which taps of which places of an axis are inside the source: all bits or none, [tap][place].
struct Inside {
  std::vector<int64_t> mask;
  int64_t count;
  explicit Inside(const Side& s) : mask(size_t(s.taps * s.count)), count(s.count) {
    for (int64_t t = 0; t < s.taps; ++t)
      for (int64_t i = 0; i < s.count; ++i) {
        const int64_t x = i * s.src_step + s.at + t * s.at_step;
        mask[size_t(t * s.count + i)] = -int64_t(x >= 0 && x < s.size);
      }
  }
  const int64_t* at(int64_t tap, int64_t place) const { return &mask[size_t(tap * count + place)]; }
};

// What the chunks of a sum share.
template <class T> struct Frame {
  const Sum<T>& s;
  bool joined;               // the taps of a row are one run
  int64_t segments, length;  // runs of a pixel, and the elements of one
  Inside inside[3];
  int64_t low = 0, high;  // places of a line with all their taps inside it
  Scratch<T> zeros;

  explicit Frame(const Sum<T>& s_)
      : s(s_),
        joined(joins_taps(s.groups, s.c, s.side[2])),
        inside{Inside(s.side[0]), Inside(s.side[1]), Inside(s.side[2])} {
    length = s.c * (joined ? s.side[2].taps : 1);
    segments = s.taps() * s.c / length;
    const Side& v = s.side[2];
    high = v.count;
    while (low < high && low * v.src_step + v.at < 0) ++low;
    while (low < high && (high - 1) * v.src_step + v.at + v.taps > v.size) --high;
    zeros = Scratch<T>(length * s.groups);
    std::fill_n(zeros.at, length * s.groups, T(0.0f));
  }
};

// The places of some tiles: where their pixels go, and where each run of a pixel begins.
template <class T> class Places {
 public:
  std::vector<T*> out;        // [tiles][rows]
  std::vector<const T*> src;  // [tiles][segments of the block][rows]

  Places(const Frame<T>& frame, int64_t rows) : f_(frame), s_(frame.s), rows_(rows), end_(frame.s.pixels()) {}

  void find(int64_t tile, int64_t tiles, int64_t first, int64_t segments) {
    out.resize(size_t(tiles * rows_)), src.resize(size_t(tiles * segments * rows_));
    edges_ = 0;
    go_to(tile * rows_);
    for (int64_t t = 0; t < tiles; ++t) {
      stretches(std::min(rows_, end_ - (tile + t) * rows_), &out[size_t(t * rows_)]);
      const T** from = &src[size_t(t * segments * rows_)];
      for (int64_t k = first; k < first + segments; ++k, from += rows_)
        f_.joined ? joined_runs(k, from) : runs(k, from);
    }
  }

 private:
  struct Stretch {
    int64_t first, count, at[3], source;  // pixels of a line; `source`: the element of their first tap
    int64_t low, high;                    // of these, those with all taps inside the line
  };

  void go_to(int64_t pixel) {
    for (int a = 2; a >= 0; --a) at_[a] = pixel % s_.side[a].count, pixel /= s_.side[a].count;
    image_ = pixel;
    start_line();
  }
  // The first result and the first tap of the line at_[0], at_[1] of an image.
  void start_line() {
    const Side* d = s_.side;
    line_out_ = line_src_ = image_;
    for (int a = 0; a < 3; ++a) {
      line_out_ = line_out_ * s_.out_size[a] + d[a].first + (a < 2 ? at_[a] * d[a].step : 0);
      line_src_ = line_src_ * d[a].size + d[a].at + (a < 2 ? at_[a] * d[a].src_step : 0);
    }
  }
  // Cuts the next `pixels` pixels into stretches of lines, and says where their results go.
  void stretches(int64_t pixels, T** to) {
    const Side& v = s_.side[2];
    const int64_t out_step = v.step * s_.groups * s_.o;
    stretches_.clear();
    for (int64_t i = 0; i < pixels;) {
      Stretch r{i, std::min(pixels - i, v.count - at_[2]), {at_[0], at_[1], at_[2]}, 0, 0, 0};
      r.source = (line_src_ + at_[2] * v.src_step) * s_.groups * s_.c;
      r.low = std::clamp<int64_t>(f_.low - at_[2], 0, r.count),
      r.high = std::clamp(f_.high - at_[2], r.low, r.count);
      T* first = s_.out + line_out_ * s_.groups * s_.o + at_[2] * out_step;
      for (int64_t j = 0; j < r.count; ++j) to[i + j] = first + j * out_step;
      stretches_.push_back(r);
      i += r.count, at_[2] += r.count;
      if (at_[2] < v.count) continue;
      at_[2] = 0;
      if (++at_[1] == s_.side[1].count) at_[1] = 0, ++at_[0];
      if (at_[0] == s_.side[0].count) at_[0] = 0, ++image_;
      start_line();
    }
  }

  // A pointer to the tap, or to the zeros: without a branch, as this runs for every tap of every pixel.
  void runs(int64_t k, const T** from) {
    const Side* d = s_.side;
    const int64_t t2 = k % d[2].taps, t1 = k / d[2].taps % d[1].taps, t0 = k / d[2].taps / d[1].taps,
                  channels = s_.groups * s_.c;
    const int64_t tap =
        ((t0 * d[0].at_step * d[1].size + t1 * d[1].at_step) * d[2].size + t2 * d[2].at_step) * channels;
    const int64_t none = reinterpret_cast<int64_t>(f_.zeros.at),
                  step = d[2].src_step * channels * int64_t(sizeof(T));
    for (const Stretch& r : stretches_) {
      const int64_t line = *f_.inside[0].at(t0, r.at[0]) & *f_.inside[1].at(t1, r.at[1]);
      const int64_t there = reinterpret_cast<int64_t>(s_.src) + (r.source + tap) * int64_t(sizeof(T)) - none;
      const int64_t* inside = f_.inside[2].at(t2, r.at[2]);
      for (int64_t j = 0; j < r.count; ++j)
        from[r.first + j] = reinterpret_cast<const T*>(none + ((there + j * step) & line & inside[j]));
    }
  }

  void joined_runs(int64_t k, const T** from) {
    const Side* d = s_.side;
    const int64_t t1 = k % d[1].taps, t0 = k / d[1].taps, taps = d[2].taps;
    const int64_t tap = (t0 * d[0].at_step * d[1].size + t1 * d[1].at_step) * d[2].size * s_.c;
    for (const Stretch& r : stretches_) {
      const bool line = *f_.inside[0].at(t0, r.at[0]) && *f_.inside[1].at(t1, r.at[1]);
      const T** to = from + r.first;
      if (!line) {
        std::fill_n(to, r.count, f_.zeros.at);
        continue;
      }
      const T* there = s_.src + r.source + tap;
      const int64_t step = d[2].src_step * s_.c, x = r.at[2] * d[2].src_step + d[2].at;
      for (int64_t j = 0; j < r.low; ++j) to[j] = edge(there + j * step, x + j * d[2].src_step, taps);
      for (int64_t j = r.low; j < r.high; ++j) to[j] = there + j * step;
      for (int64_t j = r.high; j < r.count; ++j) to[j] = edge(there + j * step, x + j * d[2].src_step, taps);
    }
  }
  // A copy of a run that begins before or ends after its line, with zeros there.
  const T* edge(const T* there, int64_t x, int64_t taps) {
    const int64_t size = s_.side[2].size, low = std::clamp<int64_t>(-x, 0, taps),
                  high = std::clamp<int64_t>(size - x, low, taps);
    if (edges_ == int64_t(edge_.size())) edge_.emplace_back(new T[size_t(f_.length)]);
    T* to = edge_[size_t(edges_++)].get();
    std::fill_n(to, low * s_.c, T(0.0f));
    std::copy(there + low * s_.c, there + high * s_.c, to + low * s_.c);
    std::fill_n(to + high * s_.c, (taps - high) * s_.c, T(0.0f));
    return to;
  }

  const Frame<T>& f_;
  const Sum<T>& s_;
  int64_t rows_, end_;
  int64_t at_[3], image_, line_out_, line_src_;  // of the next pixel
  std::vector<Stretch> stretches_;
  std::vector<std::unique_ptr<T[]>> edge_;
  int64_t edges_ = 0;  // of the copies, how many are in use
};

template <class T> void run_sum(const Sum<T>& s) {
  const ConvLoops& loops = conv_loops_of<T>();
  const Frame<T> frame(s);
  const Panels<T> panels(s, loops.lanes, frame.length);
  const int64_t rows = loops.pixels, pixels = s.pixels(), tiles = (pixels + rows - 1) / rows,
                segments = frame.segments, length = frame.length;
  const int64_t run = panels.depth / segments;  // rows of a panel
  const int64_t block =
      std::is_same_v<T, bfloat>  // sums are rounded once, so they are never put aside
          ? segments
          : std::clamp<int64_t>(kPanelBytes / (length * panels.width * int64_t(sizeof(T))), 1, segments);
  // Chunks: some tiles, by all panels or some of them when there are few tiles.
  int64_t chunk = std::clamp<int64_t>(kTableBytes / (block * rows * 8), 1, 16);
  chunk = (tiles + (tiles + chunk - 1) / chunk - 1) / ((tiles + chunk - 1) / chunk);
  const int64_t chunks = (tiles + chunk - 1) / chunk, all = panels.count() * s.groups;
  const int64_t parts = std::min(all, chunks >= 8 ? 1 : (8 + chunks - 1) / chunks),
                share = (all + parts - 1) / parts;
  const double work = double(chunk * rows) * double(segments * length) * double(share * panels.width);
  const int64_t grain = std::max<int64_t>(1, int64_t(kWorthAThread / work));

  each_chunk(chunks * parts, grain, [&](int64_t begin, int64_t end) {
    Places<T> places(frame, rows);
    ConvTile t;
    t.stride = rows, t.length = length;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t tile = item / parts * chunk, many = std::min(chunk, tiles - tile);
      const int64_t first = item % parts * share, last = std::min(all, first + share);
      for (int64_t seg = 0; seg < segments; seg += block) {
        t.segments = std::min(block, segments - seg), t.add = seg > 0;
        places.find(tile, many, seg, t.segments);
        for (int64_t p = first; p < last; ++p) {
          const int64_t g = p / panels.count(), panel = p % panels.count();
          t.vectors = panels.vectors(panel), t.channels = panels.channels(panel);
          t.panel = panels.at(g, panel) + seg * run * (t.vectors * panels.lanes);
          t.src_at = g * s.c, t.out_at = g * s.o + panel * panels.width;
          for (int64_t k = 0; k < many; ++k) {
            t.src = reinterpret_cast<const void* const*>(places.src.data() + k * t.segments * rows);
            t.out = reinterpret_cast<void* const*>(places.out.data() + k * rows);
            t.pixels = int(std::min(rows, pixels - (tile + k) * rows));
            loops.tile(t);
          }
        }
      }
    }
  });
}

}  // namespace

template <class T> void conv_forward(const Geometry& f, const T* x, const T* w, T* out) {
  if constexpr (!std::is_same_v<T, bfloat>)
    if (narrow_forward(f, x, w, out)) return;
  Sum<T> s{};
  const int64_t channels = f.groups * f.o;
  s.n = f.n, s.groups = f.groups, s.c = f.c, s.o = f.o, s.src = x, s.out = out, s.w = w;
  for (int a = 0; a < 3; ++a) s.side[a] = forward_side(f, a), s.out_size[a] = f.out[a];
  s.w_c = channels, s.w_o = 1, s.w_group = f.o;
  s.w_tap[2] = f.c * channels, s.w_tap[1] = f.k[2] * s.w_tap[2], s.w_tap[0] = f.k[1] * s.w_tap[1];
  run_sum(s);
}

template <class T> void conv_by_input(const Geometry& f, const T* g, const T* w, T* gx) {
  if constexpr (!std::is_same_v<T, bfloat>)
    if (narrow_is_faster<T>(f, f.c, f.o)) return narrow_by_input(f, g, w, gx);
  Sum<T> s{};
  const int64_t channels = f.groups * f.o;
  s.n = f.n, s.groups = f.groups, s.c = f.o, s.o = f.c, s.src = g, s.out = gx, s.w = w;
  s.w_c = 1, s.w_o = channels, s.w_group = f.o;
  s.w_tap[2] = f.c * channels, s.w_tap[1] = f.k[2] * s.w_tap[2], s.w_tap[0] = f.k[1] * s.w_tap[1];
  for (int a = 0; a < 3; ++a) s.out_size[a] = f.in[a];
  std::vector<Side> phases[3];
  bool gaps = false;
  for (int a = 0; a < 3; ++a)
    for (int64_t r = 0; r < std::min(f.stride[a], f.in[a]); ++r) {
      Side side = input_side(f, a, r);
      if (side.taps)
        phases[a].push_back(side);
      else
        gaps = true;
    }
  if (gaps)
    zero(reinterpret_cast<char*>(gx),
         f.n * f.in[0] * f.in[1] * f.in[2] * f.groups * f.c * int64_t(sizeof(T)));
  for (const Side& d : phases[0])
    for (const Side& h : phases[1])
      for (const Side& v : phases[2]) {
        s.side[0] = d, s.side[1] = h, s.side[2] = v;
        run_sum(s);
      }
}

template void conv_forward<float>(const Geometry&, const float*, const float*, float*);
template void conv_forward<double>(const Geometry&, const double*, const double*, double*);
template void conv_forward<bfloat>(const Geometry&, const bfloat*, const bfloat*, bfloat*);
template void conv_by_input<float>(const Geometry&, const float*, const float*, float*);
template void conv_by_input<double>(const Geometry&, const double*, const double*, double*);
template void conv_by_input<bfloat>(const Geometry&, const bfloat*, const bfloat*, bfloat*);

}  // namespace gt
