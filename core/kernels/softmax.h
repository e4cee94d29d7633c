// Softmax of rows and its relatives: what the loops of softmax.cpp are told.
#pragma once
#include <cstdint>

#include "../dtype.h"

namespace gt {

constexpr int64_t kSoftmaxBlock = 4096;

// All take `rows` rows of n >= 1 elements of S, one row or at most kSoftmaxBlock elements, which are computed
// in T. Results may be written over the first operand.
template <class S, class T = S> struct SoftmaxLoops {
  // out = e / sum for the largest element of each row, NaN if there is one, and the sum of e = exp(x -
  // largest). Where +inf is the largest, float is not divided: it is NaN there and 0 elsewhere, as
  // TensorFlow's (whose rows of double are all NaN). `room` is for all elements, and used where S is not T.
  void (*softmax)(S* out, const S* x, int64_t rows, int64_t n, T* largest, T* sum, T* room);
  // The same without `out`.
  void (*exp_sums)(const S* x, int64_t rows, int64_t n, T* largest, T* sum);
  // out = x - largest - log(sum)
  void (*log_softmax)(S* out, const S* x, int64_t rows, int64_t n);
  // out = (g - sum(g y)) y for the softmax y
  void (*softmax_grad)(S* out, const S* y, const S* g, int64_t rows, int64_t n);
  // out = g - exp(y) sum(g) for the logarithm y of the softmax
  void (*log_softmax_grad)(S* out, const S* y, const S* g, int64_t rows, int64_t n);
};

struct AllSoftmaxLoops {
  SoftmaxLoops<float> f32;
  SoftmaxLoops<double> f64;
  SoftmaxLoops<half, float> f16;
  SoftmaxLoops<bfloat, float> bf16;
};

}  // namespace gt
