// A product of two matrices, as passed to the engines that compute it.
#pragma once
#include <cstdint>
#include <type_traits>

#include "../dtype.h"

namespace gt {

struct octet {  // int8 in products whose results are int32
  int8_t value;
};
template <class T> struct Result { using type = T; };
template <> struct Result<octet> { using type = int32_t; };

// c = op(a) op(b), row-major; op(a) is m x k, op(b) is k x n.
template <class T> struct Product {
  using C = typename Result<T>::type;
  const T *a, *b;
  C* c;
  int64_t m, n, k, lda, ldb, ldc;
  bool ta, tb;

  Product rows(int64_t at, int64_t count) const {
    Product p = *this;
    p.a += ta ? at : at * lda, p.c += at * ldc, p.m = count;
    return p;
  }
  Product columns(int64_t at, int64_t count) const {
    Product p = *this;
    p.b += tb ? at * ldb : at, p.c += at, p.n = count;
    return p;
  }
  Product depth(int64_t at, int64_t count, C* to) const {  // part of the sum, to a dense matrix
    Product p = *this;
    p.a += ta ? at * lda : at, p.b += tb ? at : at * ldb, p.k = count, p.c = to, p.ldc = n;
    return p;
  }
};

constexpr double kWorthAThread = double(1 << 19);  // floating point operations; some 10 us

// Products by kernels of our own (contraction_panels.cpp): of float and float16 with AVX-512, of bfloat16
// with AVX512_BF16. Sums are in float; their order depends on k only.
template <class T>
constexpr bool has_panels = std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, octet> ||
                            std::is_same_v<T, bfloat>;
template <class T> bool multiplies_panels();
// On all threads.
template <class T> void run_panels(const Product<T>& p);
// On the calling thread.
template <class T> void run_panels_here(const Product<T>& p);
// The same to sums, times `scale`; `add`: added to their values.
template <class T> void run_panels_here(const Product<T>& p, float* sums, float scale, bool add);

}  // namespace gt
