// Convolutions in which each channel meets a filter of its own: vector code along the channels.
#include "conv.h"
#include "conv_vector.h"

namespace gt {

namespace {

template <class T> const T* at(const void* p, int64_t i) { return static_cast<const T*>(p) + i; }

// P pixels from `first` on, N vectors of channels from `c` on: enough sums to hide how long each takes.
template <class T, int P, int N> inline void pixels_of(const DepthwiseRow& r, int64_t first, int64_t c) {
  V<T> sum[P][N];
  GT_EACH(i, P) GT_EACH(j, N) sum[i][j] = V<T>{};
  for (int64_t t = 0; t < r.taps; ++t) {
    V<T> w[N];
    GT_EACH(j, N) w[j] = load(at<T>(r.filter[t], c + j * kLanes<T>));
    const T* x = at<T>(r.src[t], first * r.src_step + c);
    GT_EACH(i, P) GT_EACH(j, N) sum[i][j] += w[j] * load(x + i * r.src_step + j * kLanes<T>);
  }
  T* out = static_cast<T*>(r.out) + first * r.out_step + c;
  GT_EACH(i, P) GT_EACH(j, N) store(out + i * r.out_step + j * kLanes<T>, sum[i][j]);
}
// All whole vectors of P pixels, N of them at a time.
template <class T, int P, int N>
inline void channels_of(const DepthwiseRow& r, int64_t first, int64_t whole) {
  int64_t c = r.first;
  for (; c + N * kLanes<T> <= whole; c += N * kLanes<T>) pixels_of<T, P, N>(r, first, c);
  for (; c < whole; c += kLanes<T>) pixels_of<T, P, 1>(r, first, c);
}

template <class T> void depthwise(const DepthwiseRow& r) {
  int64_t i = 0;
  const int64_t whole = r.first + r.channels / kLanes<T> * kLanes<T>, end = r.first + r.channels;
  for (; i + 4 <= r.pixels; i += 4) channels_of<T, 4, 2>(r, i, whole);
  for (; i + 2 <= r.pixels; i += 2) channels_of<T, 2, 4>(r, i, whole);
  for (; i < r.pixels; ++i) channels_of<T, 1, 4>(r, i, whole);
  if (whole == end) return;
  for (i = 0; i < r.pixels; ++i)
    for (int64_t c = whole; c < end; ++c) {
      T sum = 0;
      for (int64_t t = 0; t < r.taps; ++t)
        sum += *at<T>(r.src[t], i * r.src_step + c) * *at<T>(r.filter[t], c);
      static_cast<T*>(r.out)[i * r.out_step + c] = sum;
    }
}

// K taps from `first` on: one read of g serves them all.
template <class T, int K> inline void taps_of(const DepthwiseFilterRow& r, int64_t first, int64_t c) {
  V<T> sum[K];
  const T* x[K];
  for (int t = 0; t < K; ++t) {
    sum[t] = load(at<T>(r.sum[first + t], c));
    x[t] = at<T>(r.x[first + t], c);
  }
  const T* g = at<T>(r.g, c);
  for (int64_t i = 0; i < r.pixels; ++i) {
    const V<T> v = load(g + i * r.g_step);
    for (int t = 0; t < K; ++t) sum[t] += v * load(x[t] + i * r.x_step);
  }
  for (int t = 0; t < K; ++t) store(static_cast<T*>(r.sum[first + t]) + c, sum[t]);
}

template <class T> void depthwise_filter(const DepthwiseFilterRow& r) {
  const int64_t whole = r.channels / kLanes<T> * kLanes<T>;
  for (int64_t c = 0; c < whole; c += kLanes<T>) {
    int64_t t = 0;
    for (; t + 3 <= r.taps; t += 3) taps_of<T, 3>(r, t, c);
    for (; t < r.taps; ++t) taps_of<T, 1>(r, t, c);
  }
  for (int64_t t = 0; t < r.taps; ++t)
    for (int64_t c = whole; c < r.channels; ++c) {
      T sum = 0;
      for (int64_t i = 0; i < r.pixels; ++i)
        sum += *at<T>(r.x[t], i * r.x_step + c) * *at<T>(r.g, i * r.g_step + c);
      static_cast<T*>(r.sum[t])[c] += sum;
    }
}

}  // namespace

void add_depthwise_loops(ConvLoops (&table)[3]) {
  table[0].depthwise = depthwise<float>, table[0].depthwise_filter = depthwise_filter<float>;
  table[1].depthwise = depthwise<double>, table[1].depthwise_filter = depthwise_filter<double>;
}

}  // namespace gt
