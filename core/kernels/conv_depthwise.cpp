// Convolutions in which each channel meets a filter of its own: vector code along the channels.
#include "conv.h"
#include "conv_vector.h"

namespace gt {

namespace {

// Registers for sums: kPixelsAtOnce pixels by one block of channels. The block is a constant, so
// that the compiler keeps the sums in vector registers.
constexpr int kPixelsAtOnce = 4;

template <class T> const T* at(const void* p, int64_t i) { return static_cast<const T*>(p) + i; }

// P pixels from `first` on, one vector of channels from `c` on.
template <class T, int P> inline void pixels_of(const DepthwiseRow& r, int64_t first, int64_t c) {
  V<T> sum[P] = {};
  for (int64_t t = 0; t < r.taps; ++t) {
    const V<T> w = load(at<T>(r.filter[t], c));
    const T* x = at<T>(r.src[t], first * r.src_step + c);
    for (int i = 0; i < P; ++i) sum[i] += w * load(x + i * r.src_step);
  }
  T* out = static_cast<T*>(r.out) + first * r.out_step + c;
  for (int i = 0; i < P; ++i) store(out + i * r.out_step, sum[i]);
}

template <class T> void depthwise(const DepthwiseRow& r) {
  int64_t i = 0;
  const int64_t whole = r.channels / kLanes<T> * kLanes<T>;
  for (; i + kPixelsAtOnce <= r.pixels; i += kPixelsAtOnce)
    for (int64_t c = 0; c < whole; c += kLanes<T>) pixels_of<T, kPixelsAtOnce>(r, i, c);
  for (; i < r.pixels; ++i)
    for (int64_t c = 0; c < whole; c += kLanes<T>) pixels_of<T, 1>(r, i, c);
  if (whole == r.channels) return;
  for (i = 0; i < r.pixels; ++i)
    for (int64_t c = whole; c < r.channels; ++c) {
      T sum = 0;
      for (int64_t t = 0; t < r.taps; ++t) sum += *at<T>(r.src[t], i * r.src_step + c) * *at<T>(r.filter[t], c);
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
      for (int64_t i = 0; i < r.pixels; ++i) sum += *at<T>(r.x[t], i * r.x_step + c) * *at<T>(r.g, i * r.g_step + c);
      static_cast<T*>(r.sum[t])[c] += sum;
    }
}

}  // namespace

void add_depthwise_loops(ConvLoops (&table)[2]) {
  table[0].depthwise = depthwise<float>, table[0].depthwise_filter = depthwise_filter<float>;
  table[1].depthwise = depthwise<double>, table[1].depthwise_filter = depthwise_filter<double>;
}

}  // namespace gt
