// The register tiles of convolutions: sums of products that stay in registers until they are done.
//
// A tile is `kPixels` rows of two vectors, so that each vector of the panel that is loaded meets
// as many elements as there are registers for. Elements are read where they are (a pixel's
// channels are neighbours) and multiply a whole vector, so nothing but the filter is packed.
#include "conv.h"

#include "all.h"
#include "conv_vector.h"

namespace gt {

namespace {

#if GT_ISA_LEVEL == 4
constexpr int kPixels = 14;  // 28 of 32 registers hold sums
#elif GT_ISA_LEVEL == 1
constexpr int kPixels = 12;  // 24 of 32
#else
constexpr int kPixels = 6;  // 12 of 16
#endif

template <class T, int M, int N> struct Sums {
  V<T> at[M][N];

  Sums() { GT_EACH(i, M) GT_EACH(j, N) at[i][j] = V<T>{}; }
  // One element of each row times a row of the panel.
  template <class F> void add(F&& element, const T* panel) {
    V<T> w[N];
    GT_EACH(j, N) w[j] = load(panel + j * kLanes<T>);
    GT_EACH(i, M) {
      const V<T> x = element(i) - V<T>{};  // in every lane
      GT_EACH(j, N) at[i][j] += x * w[j];
    }
  }
  // `to(i)` is where row i goes.
  template <class F> void write(F&& to, int channels, bool more) const {
    if (channels < N * kLanes<T>) return write_some(to, channels, more);
    if (more) {
      GT_EACH(i, M) GT_EACH(j, N) store(to(i) + j * kLanes<T>, load(to(i) + j * kLanes<T>) + at[i][j]);
    } else {
      GT_EACH(i, M) GT_EACH(j, N) store(to(i) + j * kLanes<T>, at[i][j]);
    }
  }
  template <class F> void write_some(F&& to, int channels, bool more) const {
    T room[M][N * kLanes<T>];
    GT_EACH(i, M) GT_EACH(j, N) store(room[i] + j * kLanes<T>, at[i][j]);
    for (int i = 0; i < M; ++i) {
      T* out = to(i);
      for (int j = 0; j < channels; ++j) out[j] = more ? out[j] + room[i][j] : room[i][j];
    }
  }
};

template <class T, int M, int N> void conv_tile(const ConvTile& t) {
  Sums<T, M, N> sums;
  const T* panel = static_cast<const T*>(t.panel);
  const void* const* src = t.src;
  GT_EACH(i, M) GT_EACH(j, N) __builtin_prefetch(static_cast<T*>(t.out[i]) + t.out_at + j * kLanes<T>, 1);
  for (int64_t s = 0; s < t.segments; ++s, src += t.stride) {
    const T* x[M];
    GT_EACH(i, M) x[i] = static_cast<const T*>(src[i]) + t.src_at;
    for (int64_t k = 0; k < t.length; ++k, panel += N * kLanes<T>) {
      GT_EACH(j, N) __builtin_prefetch(panel + (N * 16 + j) * kLanes<T>);
      sums.add([&](int i) { return x[i][k]; }, panel);
    }
  }
  sums.write([&](int i) { return static_cast<T*>(t.out[i]) + t.out_at; }, t.channels, t.add);
}

template <class T, int M, int N> void filter_tile(const FilterTile& t) {
  Sums<T, M, N> sums;
  for (int64_t r = 0; r < t.n; ++r) {
    const T* x = static_cast<const T*>(t.runs[r].x) + t.x_at;
    const T* g = static_cast<const T*>(t.runs[r].g) + t.g_at;
    if (t.row_at) {
      const T* row[M];
      GT_EACH(i, M) row[i] = x + t.row_at[i];
      for (int64_t p = t.runs[r].count, k = 0; p > 0; --p, k += t.x_step, g += t.g_step)
        sums.add([&](int i) { return row[i][k]; }, g);
    } else {
      for (int64_t p = t.runs[r].count; p > 0; --p, x += t.x_step, g += t.g_step)
        sums.add([&](int i) { return x[i]; }, g);
    }
  }
  sums.write([&](int i) { return static_cast<T*>(t.out) + i * t.out_step; }, t.channels, t.add);
}
// The tile of M rows, for an M that is known at run time.
template <class T, int M = kPixels> void run_tile(const ConvTile& t) {
  if constexpr (M > 1)
    if (t.pixels != M) return run_tile<T, M - 1>(t);
  t.vectors == 2 ? conv_tile<T, M, 2>(t) : conv_tile<T, M, 1>(t);
}
template <class T, int M = kPixels> void run_filter(const FilterTile& t) {
  if constexpr (M > 1)
    if (t.rows != M) return run_filter<T, M - 1>(t);
  t.vectors == 2 ? filter_tile<T, M, 2>(t) : filter_tile<T, M, 1>(t);
}

}  // namespace

void add_depthwise_loops(ConvLoops (&table)[3]);  // conv_depthwise.cpp
void add_winograd_loops(ConvLoops (&table)[3]);   // conv_winograd.cpp
void add_bfloat_loops(ConvLoops& loops);          // conv_bfloat.cpp

const ConvLoops* conv_loops() {
  static ConvLoops table[3] = {
      {kPixels, kLanes<float>, run_tile<float>, run_filter<float>, nullptr, nullptr, nullptr, {}},
      {kPixels, kLanes<double>, run_tile<double>, run_filter<double>, nullptr, nullptr, nullptr, {}},
      {}};
  add_depthwise_loops(table);
  add_winograd_loops(table);
  add_bfloat_loops(table[2]);
  return table;
}

}  // namespace gt
