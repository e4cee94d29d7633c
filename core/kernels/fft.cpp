// The loops of Fourier transforms. Stages follow Stockham: results come out in order, and every inner
// loop runs over neighbouring elements of the lines that are transformed side by side.
#include "fft.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "all.h"

namespace gt {
namespace {

// As many lines side by side as a register has numbers.
constexpr int kRegister = GT_ISA_LEVEL >= 4 ? 64 : GT_ISA_LEVEL == 3 ? 32 : 16;
template <class T> constexpr int kLanes = kRegister / int(sizeof(T));

// The same place of L lines, as one register.
template <class T, int L> struct Vector { typedef T Type __attribute__((vector_size(L * sizeof(T)))); };
template <class T> struct Vector<T, 1> { using Type = T; };

// Complex numbers of a butterfly. T is a number, V a number or a vector of them.
template <class V> struct Pair { V re, im; };
template <class V> GT_INLINE Pair<V> operator+(Pair<V> x, Pair<V> y) { return {x.re + y.re, x.im + y.im}; }
template <class V> GT_INLINE Pair<V> operator-(Pair<V> x, Pair<V> y) { return {x.re - y.re, x.im - y.im}; }
template <class V, class T> GT_INLINE Pair<V> operator*(Pair<V> x, Pair<T> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class V> GT_INLINE Pair<V> times_minus_i(Pair<V> x) { return {x.im, -x.re}; }

// ---- transforms of a few numbers, in place ----
template <class V, class T> GT_INLINE void few(Pair<V> (&x)[2], const T*) {
  const Pair<V> a = x[0], b = x[1];
  x[0] = a + b, x[1] = a - b;
}
template <class V, class T> GT_INLINE void few(Pair<V> (&x)[4], const T*) {
  const Pair<V> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = times_minus_i(x[1] - x[3]);
  x[0] = a + c, x[1] = b + d, x[2] = a - c, x[3] = b - d;
}
template <class V, class T> GT_INLINE void few(Pair<V> (&x)[8], const T* roots) {
  constexpr T r = T(0.70710678118654752440);
  Pair<V> e[4] = {x[0], x[2], x[4], x[6]}, o[4] = {x[1], x[3], x[5], x[7]};
  few(e, roots);
  few(o, roots);
  o[1] = {r * (o[1].re + o[1].im), r * (o[1].im - o[1].re)};
  o[2] = times_minus_i(o[2]);
  o[3] = {r * (o[3].im - o[3].re), -r * (o[3].re + o[3].im)};
  for (int k = 0; k < 4; ++k) x[k] = e[k] + o[k], x[k + 4] = e[k] - o[k];
}
// Odd lengths: numbers as far from the beginning as from the end share their cosines and sines.
template <class V, class T, int P> GT_INLINE void few(Pair<V> (&x)[P], const T* roots) {
  constexpr int H = P / 2;
  const T *cosine = roots, *sine = roots + P;
  Pair<V> sum[H], difference[H], first = x[0];
  for (int q = 0; q < H; ++q) {
    sum[q] = x[q + 1] + x[P - 1 - q], difference[q] = x[q + 1] - x[P - 1 - q];
    first = first + sum[q];
  }
  for (int p = 1; p <= H; ++p) {
    Pair<V> a = x[0], b = {sine[p] * difference[0].re, sine[p] * difference[0].im};
    a.re += cosine[p] * sum[0].re, a.im += cosine[p] * sum[0].im;
    for (int q = 2; q <= H; ++q) {
      const T c = cosine[p * q % P], s = sine[p * q % P];
      a.re += c * sum[q - 1].re, a.im += c * sum[q - 1].im;
      b.re += s * difference[q - 1].re, b.im += s * difference[q - 1].im;
    }
    x[p] = {a.re + b.im, a.im - b.re};
    x[P - p] = {a.re - b.im, a.im + b.re};
  }
  x[0] = first;
}

// ---- stages ----
template <class T, int R> struct Roots {  // cosines, then sines
  T at[2 * R];
  Roots() {
    for (int k = 0; k < R; ++k)
      at[k] = T(std::cos(2 * M_PI * k / R)), at[R + k] = T(std::sin(2 * M_PI * k / R));
  }
};

template <class T, int R, int L>
void run_stage(const FftStage& s, int64_t n, const T* re_, const T* im_, T* out_re_, T* out_im_) {
  using V = typename Vector<T, L>::Type;
  const V* __restrict re = reinterpret_cast<const V*>(re_), * __restrict im = reinterpret_cast<const V*>(im_);
  V* __restrict out_re = reinterpret_cast<V*>(out_re_), * __restrict out_im = reinterpret_cast<V*>(out_im_);
  static const Roots<T, R> roots;
  const int64_t apart = n / R, step = s.length;  // between elements that meet, before and after
  const Pair<T>* twiddles = static_cast<const Pair<T>*>(s.twiddles);
  for (int64_t k = 0; k < s.count; ++k) {
    const V *x = re + k * step, *y = im + k * step;
    V *u = out_re + k * step * R, *v = out_im + k * step * R;
    Pair<V> z[R];
    for (int q = 0; q < R; ++q) z[q] = {x[q * apart], y[q * apart]};
    few(z, roots.at);
    for (int q = 0; q < R; ++q) u[q * step] = z[q].re, v[q * step] = z[q].im;
    for (int64_t j = 1; j < step; ++j) {
      const Pair<T>* w = twiddles + j * (R - 1);
      z[0] = {x[j], y[j]};
      for (int q = 1; q < R; ++q) z[q] = Pair<V>{x[q * apart + j], y[q * apart + j]} * w[q - 1];
      few(z, roots.at);
      for (int q = 0; q < R; ++q) u[q * step + j] = z[q].re, v[q * step + j] = z[q].im;
    }
  }
}

template <class T, int L> bool run(const FftPlan& plan, void* const from[2], void* const to[2]) {
  T *a = static_cast<T*>(from[0]), *b = static_cast<T*>(from[1]), *c = static_cast<T*>(to[0]),
    *d = static_cast<T*>(to[1]);
  for (int i = 0; i < plan.stages; ++i) {
    const FftStage& s = plan.stage[i];
    switch (s.radix) {
      case 2: run_stage<T, 2, L>(s, plan.n, a, b, c, d); break;
      case 3: run_stage<T, 3, L>(s, plan.n, a, b, c, d); break;
      case 4: run_stage<T, 4, L>(s, plan.n, a, b, c, d); break;
      case 5: run_stage<T, 5, L>(s, plan.n, a, b, c, d); break;
      case 7: run_stage<T, 7, L>(s, plan.n, a, b, c, d); break;
      case 8: run_stage<T, 8, L>(s, plan.n, a, b, c, d); break;
      case 11: run_stage<T, 11, L>(s, plan.n, a, b, c, d); break;
      default: run_stage<T, 13, L>(s, plan.n, a, b, c, d);
    }
    std::swap(a, c), std::swap(b, d);
  }
  return plan.stages % 2;
}

// ---- between complex numbers in memory and lines side by side ----

// Some elements of a line at a time, and then of the next: lines a power of two apart would push each
// other out of the cache. Tiles of L elements of L lines are transposed in registers.
template <class T> struct Tiles {
  static constexpr int L = kLanes<T>;
  using V = typename Vector<T, L>::Type;
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using Mask = typename Vector<I, L>::Type;

  struct Masks {
    Mask low, high, even, odd;
    constexpr Masks() : low{}, high{}, even{}, odd{} {
      for (int k = 0; k < L; ++k) {
        low[k] = I(k % 2 * L + k / 2), high[k] = low[k] + I(L / 2);
        even[k] = I(2 * k), odd[k] = I(2 * k + 1);
      }
    }
  };
  static GT_INLINE V shuffle(V a, V b, Mask m) {
#if defined(__clang__)
    V out;
    for (int k = 0; k < L; ++k) out[k] = m[k] < L ? a[m[k]] : b[m[k] - L];
    return out;
#else
    return __builtin_shuffle(a, b, m);
#endif
  }
  static GT_INLINE V read(const T* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static GT_INLINE void write(T* p, V v) { __builtin_memcpy(p, &v, sizeof v); }

  static GT_INLINE void transpose(V (&x)[L]) {
    const Masks m;
    for (int half = 1; half < L; half *= 2) {  // each round a perfect shuffle
      V y[L];
      for (int i = 0; i < L / 2; ++i)
        y[2 * i] = shuffle(x[i], x[i + L / 2], m.low), y[2 * i + 1] = shuffle(x[i], x[i + L / 2], m.high);
      for (int i = 0; i < L; ++i) x[i] = y[i];
    }
  }
};

template <class T> bool adjacent(const FftLines& lines) {
  for (int k = 1; k < lines.count; ++k)
    if (lines.at[k] != lines.at[0] + k) return false;
  return lines.count == kLanes<T>;
}

template <class T> void load(void* const to[2], const void* x_, const FftLines& lines, int lanes) {
  using Tile = Tiles<T>;
  constexpr int L = Tile::L;
  const T* x = static_cast<const T*>(x_);
  T *re = static_cast<T*>(to[0]), *im = static_cast<T*>(to[1]);
  const typename Tile::Masks m;
  if (lanes == 1) {
    for (int64_t i = 0; i < lines.n; ++i)
      re[i] = x[2 * (lines.at[0] + i * lines.step)], im[i] = x[2 * (lines.at[0] + i * lines.step) + 1];
    return;
  }
  if (adjacent<T>(lines)) {
    for (int64_t i = 0; i < lines.n; ++i) {
      const T* row = x + 2 * (lines.at[0] + i * lines.step);
      const auto a = Tile::read(row), b = Tile::read(row + L);
      Tile::write(re + i * L, Tile::shuffle(a, b, m.even));
      Tile::write(im + i * L, Tile::shuffle(a, b, m.odd));
    }
    return;
  }
  auto line = [&](int k) { return x + 2 * lines.at[k < lines.count ? k : 0]; };
  int64_t i = 0;
  for (; lines.step == 1 && i + L <= lines.n; i += L) {
    typename Tile::V u[L], v[L];
    for (int k = 0; k < L; ++k) {
      const auto a = Tile::read(line(k) + 2 * i), b = Tile::read(line(k) + 2 * i + L);
      u[k] = Tile::shuffle(a, b, m.even), v[k] = Tile::shuffle(a, b, m.odd);
    }
    Tile::transpose(u);
    Tile::transpose(v);
    for (int k = 0; k < L; ++k) Tile::write(re + (i + k) * L, u[k]), Tile::write(im + (i + k) * L, v[k]);
  }
  for (; i < lines.n; ++i)
    for (int k = 0; k < L; ++k)
      re[i * L + k] = line(k)[2 * i * lines.step], im[i * L + k] = line(k)[2 * i * lines.step + 1];
}

template <class T>
void store(void* x_, const void* const from[2], const FftLines& lines, int lanes, double scale_) {
  using Tile = Tiles<T>;
  constexpr int L = Tile::L;
  T* x = static_cast<T*>(x_);
  const T *re = static_cast<const T*>(from[0]), *im = static_cast<const T*>(from[1]), scale = T(scale_);
  const typename Tile::Masks m;
  if (lanes == 1) {
    for (int64_t i = 0; i < lines.n; ++i) {
      x[2 * (lines.at[0] + i * lines.step)] = scale * re[i];
      x[2 * (lines.at[0] + i * lines.step) + 1] = scale * im[i];
    }
    return;
  }
  if (adjacent<T>(lines)) {
    for (int64_t i = 0; i < lines.n; ++i) {
      T* row = x + 2 * (lines.at[0] + i * lines.step);
      const auto a = scale * Tile::read(re + i * L), b = scale * Tile::read(im + i * L);
      Tile::write(row, Tile::shuffle(a, b, m.low));
      Tile::write(row + L, Tile::shuffle(a, b, m.high));
    }
    return;
  }
  int64_t i = 0;
  for (; lines.step == 1 && i + L <= lines.n; i += L) {
    typename Tile::V u[L], v[L];
    for (int k = 0; k < L; ++k)
      u[k] = scale * Tile::read(re + (i + k) * L), v[k] = scale * Tile::read(im + (i + k) * L);
    Tile::transpose(u);
    Tile::transpose(v);
    for (int k = 0; k < lines.count; ++k) {
      T* to = x + 2 * (lines.at[k] + i);
      Tile::write(to, Tile::shuffle(u[k], v[k], m.low));
      Tile::write(to + L, Tile::shuffle(u[k], v[k], m.high));
    }
  }
  for (; i < lines.n; ++i)
    for (int k = 0; k < lines.count; ++k) {
      T* to = x + 2 * (lines.at[k] + i * lines.step);
      to[0] = scale * re[i * L + k], to[1] = scale * im[i * L + k];
    }
}

template <class T>
void store_rows(void* const to[2], const void* const from[2], const void* const factors[2], int64_t rows,
                int64_t width, int count) {
  using Tile = Tiles<T>;
  constexpr int L = Tile::L;
  for (int64_t i = 0; i < rows; ++i) {
    const T *re = static_cast<const T*>(from[0]) + i * L, *im = static_cast<const T*>(from[1]) + i * L;
    const T *c = static_cast<const T*>(factors[0]) + i * width,
            *s = static_cast<const T*>(factors[1]) + i * width;
    T *u = static_cast<T*>(to[0]) + i * width, *v = static_cast<T*>(to[1]) + i * width;
    if (count == L) {
      const auto a = Tile::read(re), b = Tile::read(im), p = Tile::read(c), q = Tile::read(s);
      Tile::write(u, a * p - b * q);
      Tile::write(v, a * q + b * p);
    } else {
      for (int k = 0; k < count; ++k) u[k] = re[k] * c[k] - im[k] * s[k], v[k] = re[k] * s[k] + im[k] * c[k];
    }
  }
}

template <class T>
void load_columns(void* const to[2], const void* const from[2], int64_t rows, int64_t width, int count) {
  using Tile = Tiles<T>;
  constexpr int L = Tile::L;
  for (int part = 0; part < 2; ++part) {
    const T* x = static_cast<const T*>(from[part]);
    T* out = static_cast<T*>(to[part]);
    int64_t i = 0;
    for (; i + L <= rows; i += L) {
      typename Tile::V v[L];
      for (int k = 0; k < L; ++k) v[k] = Tile::read(x + (k < count ? k : 0) * width + i);
      Tile::transpose(v);
      for (int k = 0; k < L; ++k) Tile::write(out + (i + k) * L, v[k]);
    }
    for (; i < rows; ++i)
      for (int k = 0; k < L; ++k) out[i * L + k] = x[(k < count ? k : 0) * width + i];
  }
}

// ---- real transforms ----
template <class T> void unpack(void* out_, const void* z_, const void* roots_, int64_t h, double scale_) {
  Pair<T>* out = static_cast<Pair<T>*>(out_);
  const Pair<T>*z = static_cast<const Pair<T>*>(z_), *w = static_cast<const Pair<T>*>(roots_);
  const T scale = T(scale_), half = scale / 2;
  out[0] = {scale * (z[0].re + z[0].im), 0};
  out[h] = {scale * (z[0].re - z[0].im), 0};
  for (int64_t k = 1; k < h; ++k) {
    const Pair<T> a = z[k], b{z[h - k].re, -z[h - k].im}, s = a + b, d = w[k] * (a - b);
    out[k] = {half * (s.re + d.im), half * (s.im - d.re)};
  }
}

template <class T> void pack(void* z_, const void* x_, const void* roots_, int64_t h) {
  Pair<T>* z = static_cast<Pair<T>*>(z_);
  const Pair<T>*x = static_cast<const Pair<T>*>(x_), *w = static_cast<const Pair<T>*>(roots_);
  z[0] = {x[0].re + x[h].re, x[0].re - x[h].re};
  for (int64_t k = 1; k < h; ++k) {
    const Pair<T> a = x[k], b{x[h - k].re, -x[h - k].im}, s = a + b, d = Pair<T>{w[k].re, -w[k].im} * (a - b);
    z[k] = {s.re - d.im, s.im + d.re};
  }
}

template <class T> FftLoops loops_of() {
  return {kLanes<T>,     run<T, kLanes<T>>, run<T, 1>, load<T>, store<T>,
          store_rows<T>, load_columns<T>,   unpack<T>, pack<T>};
}

}  // namespace

const FftLoops* fft_loops() {
  static const FftLoops loops[2] = {loops_of<float>(), loops_of<double>()};
  return loops;
}

}  // namespace gt
