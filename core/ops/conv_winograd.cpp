// Convolutions with 3 by 3 taps and stride 1 by Winograd's F(2x2, 3x3) (kernels/conv_winograd.cpp).
//
// The result is cut into tiles of 2 by 2. The 4 by 4 elements that a tile is made of become sixteen
// points; at each point, all tiles of a block times the filter's point is a matrix product, by the
// same register tiles as any convolution. A block of tiles stays in the cache from its transform to
// that of its results.
#include <algorithm>
#include <vector>

#include "conv.h"

namespace gt {
namespace {

constexpr int64_t kPoints = 16;
constexpr int64_t kBlockBytes = 400 << 10;  // of the points of a block of tiles

// Images of `in` pixels, results of `out`; tiles of the results, row by row and image by image.
struct Tiles {
  int64_t n, in[2], out[2], pad[2], c, o;
  int64_t down, across;

  Tiles(const Geometry& f, bool back) : n(f.n), c(back ? f.o : f.c), o(back ? f.c : f.o) {
    for (int i = 0; i < 2; ++i) {
      in[i] = back ? f.out[i + 1] : f.in[i + 1];
      out[i] = back ? f.in[i + 1] : f.out[i + 1];
      pad[i] = back ? 2 - f.pad[i + 1] : f.pad[i + 1];
    }
    down = (out[0] + 1) / 2, across = (out[1] + 1) / 2;
  }
  int64_t count() const { return n * down * across; }

  struct Place {
    int64_t image, row, column;  // of the first result
  };
  Place place(int64_t tile) const {
    return {tile / across / down, tile / across % down * 2, tile % across * 2};
  }
};

// The distance between the points of adjacent buffers: not a multiple of the one at which lines of the
// first-level cache evict each other.
int64_t apart(int64_t elements) {
  return (elements + 15) / 16 * 16 + (elements % 1024 < 16 || elements % 1024 > 1008 ? 16 : 0);
}

// The points of `count` tiles of x, [point][tile][c]; `width` elements from tile to tile.
void transform_input(const Tiles& s, const float* x, int64_t tile, int64_t count, const float* zeros,
                     float* to, int64_t step, int64_t width) {
  const auto transform = conv_loops_of<float>().winograd.input;
  WinogradTile t;
  t.step = step, t.channels = s.c;
  for (int64_t i = 0; i < count; ++i) {
    const auto [image, row, column] = s.place(tile + i);
    const float* from = x + image * s.in[0] * s.in[1] * s.c;
    for (int64_t a = 0; a < 4; ++a)
      for (int64_t b = 0; b < 4; ++b) {
        const int64_t y = row - s.pad[0] + a, v = column - s.pad[1] + b;
        t.in[4 * a + b] =
            y >= 0 && y < s.in[0] && v >= 0 && v < s.in[1] ? from + (y * s.in[1] + v) * s.c : zeros;
      }
    t.out = to + i * width;
    transform(t);
  }
}

// The same of the cotangents of the results, channels [first, first + channels).
void transform_cotangent(const Tiles& s, const float* g, int64_t tile, int64_t count, const float* zeros,
                         int64_t first, int64_t channels, float* to, int64_t step, int64_t width) {
  const auto transform = conv_loops_of<float>().winograd.cotangent;
  WinogradTile t;
  t.step = step, t.channels = channels;
  for (int64_t i = 0; i < count; ++i) {
    const auto [image, row, column] = s.place(tile + i);
    const float* from = g + ((image * s.out[0] + row) * s.out[1] + column) * s.o + first;
    const bool below = row + 1 < s.out[0], right = column + 1 < s.out[1];
    t.in[0] = from, t.in[1] = right ? from + s.o : zeros;
    t.in[2] = below ? from + s.out[1] * s.o : zeros,
    t.in[3] = below && right ? from + (s.out[1] + 1) * s.o : zeros;
    t.out = to + i * width;
    transform(t);
  }
}

// The filter's points as panels, [panel][point][c][lanes of the panel].
struct FilterPoints {
  int64_t lanes, width, full, tail, c;
  Scratch<float> room;

  // taps(i, c): the filters of tap i for channel c, `o` of them next to each other.
  template <class F>
  FilterPoints(int64_t c_, int64_t o, int64_t lanes_, F&& taps)
      : lanes(lanes_), width(2 * lanes_), full(o / width), tail(o % width), c(c_) {
    room = Scratch<float>(kPoints * c * (full * width + last()));
    const auto transform = conv_loops_of<float>().winograd.filter;
    each_chunk(panels() * c, grain_rows(width * kPoints * 4), [&](int64_t begin, int64_t end) {
      std::vector<float> filled(size_t(9 * width), 0.0f);
      WinogradTile t;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t panel = i / c, k = i % c, used = panel < full ? width : tail,
                      wide = panel < full ? width : last();
        for (int64_t j = 0; j < 9; ++j) {
          const float* from = taps(j, k) + panel * width;
          if (used < wide) from = std::copy(from, from + used, filled.data() + j * width) - used;
          t.in[j] = from;
        }
        t.out = room.at + panel * kPoints * c * width + k * wide, t.step = c * wide, t.channels = wide;
        transform(t);
      }
    });
  }
  int64_t panels() const { return full + (tail ? 1 : 0); }
  int64_t last() const { return tail == 0 ? 0 : tail <= lanes ? lanes : width; }
  int64_t channels(int64_t panel) const { return panel < full ? width : tail; }
  int64_t wide(int64_t panel) const { return panel < full ? width : last(); }
  const float* at(int64_t panel, int64_t point) const {
    return room.at + panel * kPoints * c * width + point * c * wide(panel);
  }
};

void run(const Tiles& s, const float* x, const FilterPoints& filter, float* out) {
  const ConvLoops& loops = conv_loops_of<float>();
  const int64_t rows = loops.pixels, total = s.count(), panels = filter.panels();
  const int64_t least = std::max<int64_t>(2, kBlockBytes / (kPoints * 4 * s.c * rows));
  int64_t blocks = std::max<int64_t>(1, (total + least * rows - 1) / (least * rows));
  const int64_t block = ((total + blocks - 1) / blocks + rows - 1) / rows * rows;
  blocks = (total + block - 1) / block;
  // Chunks: blocks of tiles, by all panels, or some when there are few blocks.
  const int64_t parts = std::min(panels, blocks >= 8 ? 1 : (8 + blocks - 1) / blocks),
                share = (panels + parts - 1) / parts;
  const int64_t in_step = apart(block * s.c), out_step = apart(block * filter.width);
  const Scratch<float> zeros(s.c);
  std::fill_n(zeros.at, s.c, 0.0f);

  each_chunk(blocks * parts, 1, [&](int64_t begin, int64_t end) {
    const Scratch<float> points(kPoints * in_step), sums(kPoints * out_step);
    std::vector<const void*> from(static_cast<size_t>(block));
    std::vector<void*> to(static_cast<size_t>(block));
    for (int64_t i = 0; i < block; ++i) from[size_t(i)] = points.at + i * s.c;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t tile = chunk / parts * block, count = std::min(block, total - tile),
                    first = chunk % parts * share;
      transform_input(s, x, tile, count, zeros.at, points.at, in_step, s.c);
      for (int64_t panel = first; panel < std::min(panels, first + share); ++panel) {
        const int64_t wide = filter.wide(panel);
        for (int64_t i = 0; i < block; ++i) to[size_t(i)] = sums.at + i * wide;
        ConvTile t;
        t.stride = 0, t.segments = 1, t.length = s.c, t.vectors = int(wide / filter.lanes),
        t.channels = int(wide), t.add = false;
        for (int64_t p = 0; p < kPoints; ++p) {
          t.panel = filter.at(panel, p), t.src_at = p * in_step, t.out_at = p * out_step;
          for (int64_t i = 0; i < count; i += rows) {
            t.src = from.data() + i, t.out = to.data() + i, t.pixels = int(std::min(rows, count - i));
            loops.tile(t);
          }
        }
        WinogradTile r;
        r.step = out_step, r.channels = filter.channels(panel), r.column_step = s.o,
        r.row_step = s.out[1] * s.o;
        for (int64_t i = 0; i < count; ++i) {
          const auto [image, row, column] = s.place(tile + i);
          r.in[0] = sums.at + i * wide;
          r.out = out + ((image * s.out[0] + row) * s.out[1] + column) * s.o + panel * filter.width;
          r.rows = int(std::min<int64_t>(2, s.out[0] - row)),
          r.columns = int(std::min<int64_t>(2, s.out[1] - column));
          loops.winograd.output(r);
        }
      }
    }
  });
}

// Part of the sums of the filter's points, [point][c][width]: over tiles [begin, end), of the results
// [first, first + channels); width is that filled up to whole vectors.
void sum_tiles(const Tiles& s, const float* x, const float* g, int64_t begin, int64_t end, int64_t first,
               int64_t channels, int64_t width, float* sums) {
  const ConvLoops& loops = conv_loops_of<float>();
  const int64_t lanes = loops.lanes, x_width = s.c + (s.c % 256 == 0 ? 16 : 0);
  const int64_t block = std::clamp<int64_t>(kBlockBytes / (kPoints * 4 * (x_width + width)), 16, 112);
  const int64_t x_step = apart(block * x_width), g_step = apart(block * width);
  const int64_t tiles = (s.c + loops.pixels - 1) / loops.pixels, tall = (s.c + tiles - 1) / tiles;
  const Scratch<float> xs(kPoints * x_step), gs(kPoints * g_step), zeros(std::max(s.c, channels));
  std::fill_n(zeros.at, std::max(s.c, channels), 0.0f);
  if (width != channels) std::fill_n(gs.at, kPoints * g_step, 0.0f);
  FilterTile t;
  t.x_step = x_width, t.g_step = width, t.out_step = width, t.n = 1, t.row_at = nullptr;
  for (int64_t tile = begin; tile < end; tile += block) {
    const int64_t count = std::min(block, end - tile);
    transform_input(s, x, tile, count, zeros.at, xs.at, x_step, x_width);
    transform_cotangent(s, g, tile, count, zeros.at, first, channels, gs.at, g_step, width);
    const FilterRun run{xs.at, gs.at, count};
    t.runs = &run, t.add = tile > begin;
    for (int64_t p = 0; p < kPoints; ++p)
      for (int64_t row = 0; row < s.c; row += tall) {
        t.rows = int(std::min(tall, s.c - row)), t.x_at = p * x_step + row;
        for (int64_t column = 0; column < width; column += 2 * lanes) {
          t.channels = int(std::min(2 * lanes, width - column)), t.vectors = int(t.channels / lanes);
          t.g_at = p * g_step + column, t.out = sums + (p * s.c + row) * width + column;
          loops.filter(t);
        }
      }
  }
}

}  // namespace

bool winograd_is_faster(const Geometry& f) {
  for (int a = 0; a < 3; ++a)
    if (f.stride[a] != 1 || f.dilation[a] != 1 || f.k[a] != (a ? 3 : 1) || f.pad[a] > 2) return false;
  if (f.groups != 1 || f.in[0] != 1 || f.out[0] != 1 || f.c < 16 || f.o < 16) return false;
  // In products of vectors: those of the sums, and what the transforms cost beside them.
  const double tiles = double(f.n) * double((f.out[1] + 1) / 2) * double((f.out[2] + 1) / 2), c = double(f.c),
               o = double(f.o);
  const double direct = f.work() / 16, points = tiles * (c * o + 8 * c + 8 * o) + 4 * c * o;
  return points < 0.8 * direct;
}

void winograd_forward(const Geometry& f, const float* x, const float* w, float* out) {
  const FilterPoints filter(f.c, f.o, conv_loops_of<float>().lanes,
                            [&](int64_t tap, int64_t c) { return w + (tap * f.c + c) * f.o; });
  run(Tiles(f, false), x, filter, out);
}

void winograd_by_input(const Geometry& f, const float* g, const float* w, float* gx) {
  // The filter reversed, with its channels exchanged.
  const Scratch<float> turned(9 * f.c * f.o);
  Nest t;
  t.push(9, f.c * f.o, f.c * f.o);
  t.push(f.o, 1, f.c);
  t.push(f.c, f.o, 1);
  strided_copy(reinterpret_cast<char*>(turned.at), reinterpret_cast<const char*>(w), sizeof(float), t);
  const FilterPoints filter(f.o, f.c, conv_loops_of<float>().lanes,
                            [&](int64_t tap, int64_t o) { return turned.at + ((8 - tap) * f.o + o) * f.c; });
  run(Tiles(f, true), g, filter, gx);
}

void winograd_by_filter(const Geometry& f, const float* x, const float* g, float* gw) {
  const Tiles s(f, false);
  const ConvLoops& loops = conv_loops_of<float>();
  // Chunks: shares of the results, of at least two panels, and parts of the sum.
  const int64_t panel = 2 * loops.lanes, panels = (f.o + panel - 1) / panel,
                shares = std::max<int64_t>(1, panels / 2);
  const int64_t share = (panels + shares - 1) / shares * panel, total = s.count();
  const int64_t parts_wanted =
      std::clamp<int64_t>((8 + shares - 1) / shares, 1, std::max<int64_t>(1, total / 64));
  const int64_t part = (total + parts_wanted - 1) / parts_wanted, parts = (total + part - 1) / part;
  auto channels = [&](int64_t k) { return std::min(share, f.o - k * share); };
  auto width = [&](int64_t k) { return (channels(k) + loops.lanes - 1) / loops.lanes * loops.lanes; };
  const int64_t size = kPoints * f.c * share;  // of the sums of a chunk, at most
  const Scratch<float> sums(shares * parts * size);
  each_chunk(shares * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i / parts, q = i % parts;
      if (channels(k) > 0)
        sum_tiles(s, x, g, q * part, std::min(total, (q + 1) * part), k * share, channels(k), width(k),
                  sums.at + i * size);
    }
  });
  each_chunk(shares * f.c, grain_rows(kPoints * share * parts), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i / f.c, c = i % f.c, wide = width(k);
      if (channels(k) <= 0) continue;
      float* first = sums.at + k * parts * size + c * wide;
      for (int64_t p = 0; p < kPoints; ++p)
        for (int64_t q = 1; q < parts; ++q) {
          float* to = first + p * f.c * wide;
          for (int64_t j = 0; j < wide; ++j) to[j] += to[q * size + j];
        }
      WinogradTile t;
      t.in[0] = first, t.out = gw + c * f.o + k * share, t.step = f.c * wide, t.channels = channels(k);
      t.row_step = 3 * f.c * f.o, t.column_step = f.c * f.o;
      loops.winograd.taps(t);
    }
  });
}

}  // namespace gt
