// Resizing images: sums of a few neighbouring rows, and of a few neighbouring pixels of a row,
// with weights from two band matrices.
#include "all.h"
#include "conv_vector.h"
#include "resample.h"

namespace gt {

namespace {

template <class T> struct Resampler {
  static constexpr int kWide = 256 / sizeof(T);  // elements done in registers at a time
  // Four channels at once, also of three: the fourth is overwritten by the next pixel.
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));

  // s += w * p[0..3], or s = w * p[0..3].
  template <bool first> [[gnu::always_inline]] static inline void take(Four& s, T w, const T* p) {
    Four v;
    __builtin_memcpy(&v, p, sizeof v);
    s = first ? w * v : s + w * v;
  }

  // out[j] = sum of weights[t] * line(t)[j] for W values of j. Taps: their number, if not 0.
  template <int W, int Taps, class Line>
  [[gnu::always_inline]] static inline void sum(T* out, const T* weights, int taps, const Line& line) {
    T s[W];
    const T* p = line(0);
    GT_VECTOR_LOOP
    for (int i = 0; i < W; ++i) s[i] = weights[0] * p[i];
    auto add = [&](int t) {
      const T* q = line(t);
      GT_VECTOR_LOOP
      for (int i = 0; i < W; ++i) s[i] += weights[t] * q[i];
    };
    if constexpr (Taps == 0)
      for (int t = 1; t < taps; ++t) add(t);
    else
      GT_EACH(t, Taps - 1) add(t + 1);
    GT_VECTOR_LOOP
    for (int i = 0; i < W; ++i) out[i] = s[i];
  }
  // The same for n values.
  template <int Taps, class Line>
  static void sums(T* out, const T* weights, int taps, int64_t n, const Line& line) {
    int64_t j = 0;
    for (; j + kWide <= n; j += kWide)
      sum<kWide, Taps>(out + j, weights, taps, [&](int t) { return line(t) + j; });
    for (; j + 8 <= n; j += 8) sum<8, Taps>(out + j, weights, taps, [&](int t) { return line(t) + j; });
    for (; j < n; ++j) sum<1, Taps>(out + j, weights, taps, [&](int t) { return line(t) + j; });
  }

  // A row of the result from rows.
  template <int Taps>
  static void blend(T* out, const void* const* lines, const T* weights, int taps, int64_t n) {
    sums<Taps>(out, weights, taps, n, [=](int t) { return static_cast<const T*>(lines[t]); });
  }
  // Pixels [begin, end) of a row of the result from pixels, for any number of channels.
  template <int Taps>
  static void pixels(T* out, const T* x, const Band& band, int64_t channels, int64_t begin, int64_t end) {
    const int taps = Taps ? Taps : band.taps;
    for (int64_t o = begin; o < end; ++o) {
      const T* p = x + band.first[o];
      sums<Taps>(out + o * channels, static_cast<const T*>(band.weights) + o * taps, taps, channels,
                 [=](int t) { return p + t * channels; });
    }
  }
  // All pixels (of three channels: without the last few, see `safe`) for up to 4 channels.
  template <int C, int Taps> static void narrow(T* out, const T* x, const Band& band, int64_t end) {
    const T* w = static_cast<const T*>(band.weights);
    const int taps = Taps ? Taps : band.taps;
    for (int64_t o = 0; o < end; ++o, w += taps, out += C) {
      const T* p = x + band.first[o];
      if constexpr (C >= 3) {
        Four s;
        take<true>(s, w[0], p);
        for (int t = 1; t < taps; ++t) take<false>(s, w[t], p + t * C);
        __builtin_memcpy(out, &s, sizeof s);
      } else {
        for (int c = 0; c < C; ++c) {
          T s = w[0] * p[c];
          for (int t = 1; t < taps; ++t) s += w[t] * p[t * C + c];
          out[c] = s;
        }
      }
    }
  }

  // One row of pixels. `safe` of them may be read and written four elements at a time.
  template <int Taps> static void line(T* out, const T* x, const Resample& r, int64_t safe) {
    const Band& band = r.columns;
    switch (r.channels) {
      case 1: return narrow<1, Taps>(out, x, band, band.size);
      case 2: return narrow<2, Taps>(out, x, band, band.size);
      case 3: narrow<3, Taps>(out, x, band, safe); return pixels<Taps>(out, x, band, 3, safe, band.size);
      case 4: return narrow<4, Taps>(out, x, band, band.size);
      default: return pixels<Taps>(out, x, band, r.channels, 0, band.size);
    }
  }

  using Blend = void (*)(T*, const void* const*, const T*, int, int64_t);
  using Line = void (*)(T*, const T*, const Resample&, int64_t);
  static Blend blend_of(int taps) {
    constexpr Blend some[] = {blend<0>, blend<1>, blend<2>, blend<3>, blend<4>};
    return some[taps <= 4 ? taps : 0];
  }
  static Line line_of(int taps) {
    constexpr Line some[] = {line<0>, line<1>, line<2>, line<3>, line<4>};
    return some[taps <= 4 ? taps : 0];
  }

  static void any_blend(void* out, const void* const* lines, const void* weights, int taps, int64_t n) {
    blend_of(taps)(static_cast<T*>(out), lines, static_cast<const T*>(weights), taps, n);
  }
  static void spread(void* const* lines, const void* g_, const void* weights, int taps, int64_t n) {
    const T* g = static_cast<const T*>(g_);
    for (int t = 0; t < taps; ++t) {
      T* out = static_cast<T*>(lines[t]);
      const T w = static_cast<const T*>(weights)[t];
      GT_VECTOR_LOOP
      for (int64_t j = 0; j < n; ++j) out[j] += w * g[j];
    }
  }
  static void run(const Resample& r) {
    const T* x = static_cast<const T*>(r.x);
    T* out = static_cast<T*>(r.out);
    T* room = static_cast<T*>(r.room);
    const T* w = static_cast<const T*>(r.rows.weights);
    const int taps = r.rows.taps;
    const Blend blend = blend_of(taps);
    const Line line = line_of(r.columns.taps);
    const int64_t in_row = r.width * r.channels, out_row = r.columns.size * r.channels;

    if (!r.columns_first) {
      for (int64_t o = r.begin; o < r.end; ++o) {
        for (int t = 0; t < taps; ++t) r.lines[t] = x + (r.rows.first[o] + t) * in_row;
        blend(room, r.lines, w + o * taps, taps, in_row);
        line(out + o * out_row, room, r, r.columns.size - 1);
      }
      return;
    }
    int64_t safe = r.columns.size - 1;  // here the row after the last is not ours
    while (safe > 0 && r.columns.first[safe - 1] + r.columns.taps * r.channels + 1 > in_row) --safe;
    // Row i of x, once its columns are done, waits in slot i % taps for the results that need it.
    int64_t ready = -1;
    for (int64_t o = r.begin; o < r.end; ++o) {
      const int64_t first = r.rows.first[o];
      if (ready < first) ready = first;
      for (; ready < first + taps; ++ready) line(room + ready % taps * out_row, x + ready * in_row, r, safe);
      for (int t = 0; t < taps; ++t) r.lines[t] = room + (first + t) % taps * out_row;
      blend(out + o * out_row, r.lines, w + o * taps, taps, out_row);
    }
  }
};

}  // namespace

const ResampleLoops* resample_loops() {
  static constexpr ResampleLoops table[] = {
      {Resampler<float>::run, Resampler<float>::any_blend, Resampler<float>::spread},
      {Resampler<double>::run, Resampler<double>::any_blend, Resampler<double>::spread},
  };
  return table;
}

}  // namespace gt
