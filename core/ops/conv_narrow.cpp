// Convolutions whose results have few channels: the gradient with respect to images of 1 or 3 channels,
// layers whose output is an image. A vector of channels would be mostly empty, so vectors run along the
// pixels here.
//
// For each line of the source, its pixels times the filter gives what each of them adds to the result
// at each tap: a matrix [tap and channel, pixel]. Its rows are then added where they belong, in a
// buffer that keeps channels, and places of the same phase of the stride, apart.
#include <algorithm>
#include <vector>

#include "conv.h"

namespace gt {
namespace {

// The chunks of a result: whole images, or blocks of lines [begin, end) of them.
struct Block {
  int64_t image, begin, end;
};

template <class T> class Lines {
 public:
  Lines(const Geometry& f, const T* g, const T* w, T* gx)
      : f_(f), g_(g), w_(w), gx_(gx), loops_(conv_loops_of<T>()) {
    rows_ = f.taps() * f.c, wide_ = (f.out[2] + loops_.lanes - 1) / loops_.lanes * loops_.lanes;
    phase_ = (f.in[2] + f.stride[2] - 1) / f.stride[2], line_ = f.c * f.stride[2] * phase_;
    panels_ = Scratch<T>(wide_ * f.o), parts_ = Scratch<T>(rows_ * wide_);
    for (int64_t i = 0; i < rows_; ++i) from_.push_back(w_ + i * f.o), to_.push_back(parts_.at + i * wide_);
  }

  void run(const Block& b) {
    const int64_t lines = b.end - b.begin;
    if (int64_t(sum_.size()) < f_.in[0] * lines * line_) sum_.resize(size_t(f_.in[0] * lines * line_));
    std::fill(sum_.begin(), sum_.end(), T(0));
    for (int64_t d = 0; d < f_.out[0]; ++d)
      for (int64_t h = 0; h < f_.out[1]; ++h) {
        const int64_t top = h * f_.stride[1] - f_.pad[1];
        if (top >= b.end || top + (f_.k[1] - 1) * f_.dilation[1] < b.begin) continue;
        multiply(((b.image * f_.out[0] + d) * f_.out[1] + h) * f_.out[2]);
        for (int64_t t0 = 0; t0 < f_.k[0]; ++t0)
          for (int64_t t1 = 0; t1 < f_.k[1]; ++t1) {
            const int64_t y0 = d * f_.stride[0] + t0 * f_.dilation[0] - f_.pad[0],
                          y1 = top + t1 * f_.dilation[1];
            if (y0 < 0 || y0 >= f_.in[0] || y1 < b.begin || y1 >= b.end) continue;
            add(&sum_[size_t((y0 * lines + y1 - b.begin) * line_)], (t0 * f_.k[1] + t1) * f_.k[2]);
          }
      }
    for (int64_t d = 0; d < f_.in[0]; ++d) write(b, d, lines);
  }

 private:
  // What the pixels of a line of g, from `pixel` on, add at each tap.
  void multiply(int64_t pixel) {
    const int64_t o = f_.o, width = 2 * loops_.lanes;
    const T* g = g_ + pixel * o;
    ConvTile t;
    t.stride = 0, t.src_at = 0, t.segments = 1, t.length = o, t.add = false;
    for (int64_t p = 0; p < wide_; p += width) {
      const int64_t some = std::min(width, wide_ - p), used = std::min(some, f_.out[2] - p);
      T* panel = panels_.at + p * o;
      Nest n;
      n.push(o, 1, some);
      n.push(used, o, 1);
      strided_copy(reinterpret_cast<char*>(panel), reinterpret_cast<const char*>(g + p * o), sizeof(T), n);
      for (int64_t i = 0; used < some && i < o; ++i)
        std::fill(panel + i * some + used, panel + (i + 1) * some, T(0));
      t.panel = panel, t.vectors = int(some / loops_.lanes), t.channels = int(some), t.out_at = p;
      for (int64_t i = 0; i < rows_; i += loops_.pixels) {
        t.pixels = int(std::min<int64_t>(loops_.pixels, rows_ - i));
        t.src = from_.data() + i, t.out = to_.data() + i;
        loops_.tile(t);
      }
    }
  }
  // Adds the taps of one row of the filter, from `tap` on, to a line.
  void add(T* line, int64_t tap) {
    static const Loop loop = find_elementwise("add")->loop[int(DtypeOf<T>::value)];
    const uint8_t step[2] = {1, 1};
    const int64_t s = f_.stride[2];
    for (int64_t t = 0; t < f_.k[2]; ++t) {
      const int64_t x = t * f_.dilation[2] - f_.pad[2];  // of the first pixel
      const int64_t phase = (x % s + s) % s, at = (x - phase) / s;
      const int64_t size = (f_.in[2] - phase + s - 1) / s;  // places of this phase
      const int64_t low = std::clamp<int64_t>(-at, 0, f_.out[2]),
                    high = std::clamp<int64_t>(size - at, low, f_.out[2]);
      if (low == high) continue;
      for (int64_t c = 0; c < f_.c; ++c) {
        T* to = line + (c * s + phase) * phase_ + at + low;
        const void* in[2] = {to, parts_.at + ((tap + t) * f_.c + c) * wide_ + low};
        loop(to, in, step, high - low);
      }
    }
  }
  void write(const Block& b, int64_t d, int64_t lines) {
    const int64_t s = f_.stride[2], width = f_.in[2] * f_.c;
    T* out = gx_ + ((b.image * f_.in[0] + d) * f_.in[1] + b.begin) * width;
    for (int64_t y = 0; y < lines; ++y)
      for (int64_t c = 0; c < f_.c; ++c)
        for (int64_t r = 0; r < std::min(s, f_.in[2]); ++r) {
          const T* from = &sum_[size_t(((d * lines + y) * f_.c + c) * s * phase_ + r * phase_)];
          T* to = out + y * width + r * f_.c + c;
          for (int64_t j = 0, n = (f_.in[2] - r + s - 1) / s; j < n; ++j) to[j * s * f_.c] = from[j];
        }
  }

  const Geometry& f_;
  const T *g_, *w_;
  T* gx_;
  const ConvLoops& loops_;
  int64_t rows_, wide_, phase_, line_;
  Scratch<T> panels_, parts_;
  std::vector<const void*> from_;
  std::vector<void*> to_;
  std::vector<T> sum_;  // [depth][lines][c][phase][places]
};

}  // namespace

template <class T> bool narrow_is_faster(const Geometry& f, int64_t results, int64_t sources) {
  const int64_t lanes = conv_loops_of<T>().lanes;
  return f.groups == 1 && results * 2 <= lanes && sources >= 8 && f.out[2] * 2 >= lanes &&
         f.in[2] * 2 >= lanes;
}

template <class T> void narrow_by_input(const Geometry& f, const T* g, const T* w, T* gx) {
  const int64_t wanted =
      std::clamp<int64_t>((8 + f.n - 1) / f.n, 1, std::max<int64_t>(1, f.in[1] / (4 * f.k[1])));
  const int64_t block = (f.in[1] + wanted - 1) / wanted, blocks = (f.in[1] + block - 1) / block;
  each_chunk(f.n * blocks, std::max<int64_t>(1, int64_t(kWorthAThread * double(f.n * blocks) / f.work())),
             [&](int64_t begin, int64_t end) {
               Lines<T> lines(f, g, w, gx);
               for (int64_t i = begin; i < end; ++i)
                 lines.run({i / blocks, i % blocks * block, std::min(f.in[1], (i % blocks + 1) * block)});
             });
}

// With stride 1 the convolution itself is a gradient with respect to x, with the filter reversed.
template <class T> bool narrow_forward(const Geometry& f, const T* x, const T* w, T* out) {
  if (!narrow_is_faster<T>(f, f.o, f.c)) return false;
  Geometry back = f;
  back.c = f.o, back.o = f.c;
  for (int a = 0; a < 3; ++a) {
    back.in[a] = f.out[a], back.out[a] = f.in[a], back.pad[a] = (f.k[a] - 1) * f.dilation[a] - f.pad[a];
    if (f.stride[a] != 1 || back.pad[a] < 0) return false;
  }
  const Scratch<T> turned(f.taps() * f.c * f.o);
  Nest t;  // [tap][c][o] to [last tap first][o][c]
  t.push(f.taps(), -f.c * f.o, f.c * f.o);
  t.push(f.o, 1, f.c);
  t.push(f.c, f.o, 1);
  strided_copy(reinterpret_cast<char*>(turned.at),
               reinterpret_cast<const char*>(w + (f.taps() - 1) * f.c * f.o), sizeof(T), t);
  narrow_by_input<T>(back, x, turned.at, out);
  return true;
}

template bool narrow_is_faster<float>(const Geometry&, int64_t, int64_t);
template bool narrow_is_faster<double>(const Geometry&, int64_t, int64_t);
template void narrow_by_input<float>(const Geometry&, const float*, const float*, float*);
template void narrow_by_input<double>(const Geometry&, const double*, const double*, double*);
template bool narrow_forward<float>(const Geometry&, const float*, const float*, float*);
template bool narrow_forward<double>(const Geometry&, const double*, const double*, double*);

}  // namespace gt
