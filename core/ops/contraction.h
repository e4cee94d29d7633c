// A product of two matrices, as the engines that compute it see it.
#pragma once
#include <cstdint>

#include "../dtype.h"

namespace gt {

// c = op(a) op(b), row-major; op(a) is m x k, op(b) is k x n.
template <class T> struct Product {
  const T *a, *b;
  T* c;
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
  Product depth(int64_t at, int64_t count, T* to) const {  // part of the sum, to a dense matrix
    Product p = *this;
    p.a += ta ? at * lda : at, p.b += tb ? at : at * ldb, p.k = count, p.c = to, p.ldc = n;
    return p;
  }
};

constexpr double kWorthAThread = double(1 << 19);  // floating point operations; some 10 us

// Products of bfloat16 where the processor has instructions for them (contraction_bfloat.cpp), on all
// threads. Sums are in float, in the order of k.
bool multiplies_bfloat();
void run_product(const Product<bfloat>& p);

}  // namespace gt
