// Shared by the linear algebra ops: LAPACK routines by name, products, transposing. LAPACK stores matrices by
// columns, so it sees the transpose of ours; most ops are written so that they need no transposition.
#pragma once
#include <atomic>
#include <cmath>
#include <type_traits>

#include "blas.h"
#include "ops/chunks.h"

namespace gt {

template <class T> struct RealOf { using Type = T; };
template <class T> struct RealOf<std::complex<T>> { using Type = T; };
template <class T> using Real = typename RealOf<T>::Type;
template <class T> constexpr bool is_complex_type = !std::is_same_v<T, Real<T>>;

template <class T> T conjugate(T x) {
  if constexpr (is_complex_type<T>)
    return std::conj(x);
  else
    return x;
}
inline bool is_finite(float x) { return std::isfinite(x); }
inline bool is_finite(double x) { return std::isfinite(x); }
template <class T> bool is_finite(const std::complex<T>& x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}
template <class T> bool all_finite(const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!is_finite(x[i])) return false;
  return true;
}
template <class T> T quiet_nan() { return T(std::numeric_limits<Real<T>>::quiet_NaN()); }

constexpr DtypeSet kLinear = set_of(Dtype::F32) | set_of(Dtype::F64) | kComplex;
constexpr Dtype complex_of(Dtype t) {
  return t == Dtype::F32 ? Dtype::C64 : t == Dtype::F64 ? Dtype::C128 : t;
}

// Calls f with a value of the C++ type; for the types that LAPACK has.
template <class F> void visit_linear(Dtype t, F&& f) {
  switch (t) {
    case Dtype::F32: return f(float{});
    case Dtype::F64: return f(double{});
    case Dtype::C64: return f(c64{});
    default: return f(c128{});
  }
}

// A routine of LAPACK's Fortran interface: lapack<T, F>("potrf") is spotrf_, dpotrf_, cpotrf_ or zpotrf_.
// Look it up before starting parallel work: a missing library is an exception.
template <class T, class F> Routine<F> lapack(const char* name) {
  const char letter = std::is_same_v<T, float>    ? 's'
                      : std::is_same_v<T, double> ? 'd'
                      : std::is_same_v<T, c64>    ? 'c'
                                                  : 'z';
  blas();  // sets the number of threads
  return blas_function<F>((letter + std::string(name) + "_").c_str());
}

inline void want_matrix(const Tensor& x, int position = 0) {
  if (x.shape.rank < 2)
    fail("Input tensor " + std::to_string(position) + " must have rank >= 2, got " +
         std::to_string(x.shape.rank));
  for (int i = x.shape.rank - 2; i < x.shape.rank; ++i)
    if (x.shape[i] > (1 << 30)) fail("a matrix has at most 2^30 rows or columns; got shape " + x.shape.str());
}
inline void want_square(const Tensor& x, const char* text = "Input matrix must be square.") {
  want_matrix(x);
  if (x.shape[x.shape.rank - 1] != x.shape[x.shape.rank - 2]) fail(text);
}
inline int64_t rows_of(const Tensor& x) { return x.shape[x.shape.rank - 2]; }
inline int64_t columns_of(const Tensor& x) { return x.shape[x.shape.rank - 1]; }
inline Shape batch_of(const Shape& s, int inner = 2) { return Shape(s.dims, s.rank - inner); }
inline Shape with_sizes(Shape batch, std::initializer_list<int64_t> sizes) {
  for (int64_t n : sizes) batch.push(n);
  return batch;
}

// out[j][i] = x[i][j] (or its conjugate), in blocks that stay in the cache.
template <class T> void transpose_into(T* out, const T* x, int64_t rows, int64_t columns, bool conj = false) {
  constexpr int64_t kBlock = 16;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock)
    for (int64_t j0 = 0; j0 < columns; j0 += kBlock)
      for (int64_t j = j0; j < std::min(j0 + kBlock, columns); ++j)
        for (int64_t i = i0; i < std::min(i0 + kBlock, rows); ++i)
          out[j * rows + i] = conj ? conjugate(x[i * columns + j]) : x[i * columns + j];
}

// out = op(a) op(b), m x n, by rows and on this thread. `ta`, `tb` as in BLAS: kNoTrans, kTrans, kConjTrans.
template <class T>
void multiply(const T* a, int ta, const T* b, int tb, T* out, int64_t m, int64_t n, int64_t k) {
  const Blas& f = blas();
  const int rows = int(m), columns = int(n), inner = int(k), lda = ta == kNoTrans ? inner : rows,
            ldb = tb == kNoTrans ? columns : inner;
  const T one = 1, zero = 0;
  if constexpr (std::is_same_v<T, float>)
    f.sgemm(kRowMajor, ta, tb, rows, columns, inner, one, a, lda, b, ldb, zero, out, columns);
  else if constexpr (std::is_same_v<T, double>)
    f.dgemm(kRowMajor, ta, tb, rows, columns, inner, one, a, lda, b, ldb, zero, out, columns);
  else if constexpr (std::is_same_v<T, c64>)
    f.cgemm(kRowMajor, ta, tb, rows, columns, inner, &one, a, lda, b, ldb, &zero, out, columns);
  else
    f.zgemm(kRowMajor, ta, tb, rows, columns, inner, &one, a, lda, b, ldb, &zero, out, columns);
}

}  // namespace gt
