// BLAS and LAPACK, loaded at first use from the library of the scipy-openblas32 wheel.
#pragma once
#include <cstdint>

#include "dtype.h"

namespace gt {

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112, kConjTrans = 113;

template <class T> using RealGemm = void (*)(int order, int ta, int tb, int m, int n, int k, T alpha, const T* a,
                                             int lda, const T* b, int ldb, T beta, T* c, int ldc);
template <class T> using ComplexGemm = void (*)(int order, int ta, int tb, int m, int n, int k, const T* alpha,
                                             const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc);
template <class T> using RealGemv = void (*)(int order, int trans, int m, int n, T alpha, const T* a, int lda,
                                             const T* x, int incx, T beta, T* y, int incy);
template <class T> using ComplexGemv = void (*)(int order, int trans, int m, int n, const T* alpha, const T* a,
                                             int lda, const T* x, int incx, const T* beta, T* y, int incy);

struct Blas {
  RealGemm<float> sgemm;
  RealGemm<double> dgemm;
  ComplexGemm<c64> cgemm;
  ComplexGemm<c128> zgemm;
  RealGemv<float> sgemv;
  RealGemv<double> dgemv;
  ComplexGemv<c64> cgemv;
  ComplexGemv<c128> zgemv;
};

// Where the library is (the Python layer knows); takes effect before the first use only.
void set_blas_path(const char* path);
const Blas& blas();
const char* blas_config();  // what the library says about itself

// Any other routine by its plain name, e.g. blas_symbol("LAPACKE_sgetrf") or
// blas_symbol("spotrf_"); throws when there is none. Look it up once and keep it.
void* blas_symbol(const char* name);
template <class F> F blas_function(const char* name) { return reinterpret_cast<F>(blas_symbol(name)); }

}  // namespace gt
