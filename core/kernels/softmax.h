// Softmax of rows and its relatives: what the loops of softmax.cpp are told.
#pragma once
#include <cstdint>

namespace gt {

// All take `rows` rows of n >= 1 elements. Results may be written over the first operand.
template <class T> struct SoftmaxLoops {
  // The largest element of each row, NaN if there is one; the sum of e = exp(x - largest); and e in `out`, or
  // e / sum. Where the sum is NaN, float is not divided: a row with +inf in it is NaN there and 0 elsewhere,
  // as TensorFlow's (whose rows of double are all NaN).
  void (*exp)(T* out, const T* x, int64_t rows, int64_t n, bool divide, T* largest, T* sum);
  // out = x - largest - log(sum)
  void (*log_softmax)(T* out, const T* x, int64_t rows, int64_t n);
  // out = (g - sum(g y)) y for the softmax y
  void (*softmax_grad)(T* out, const T* y, const T* g, int64_t rows, int64_t n);
  // out = g - exp(y) sum(g) for the logarithm y of the softmax
  void (*log_softmax_grad)(T* out, const T* y, const T* g, int64_t rows, int64_t n);
};

struct AllSoftmaxLoops {
  SoftmaxLoops<float> f32;
  SoftmaxLoops<double> f64;
};

// Rows are best given in blocks of about this many elements.
constexpr int64_t kSoftmaxBlock = 4096;

}  // namespace gt
