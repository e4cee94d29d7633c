// Singular values of small matrices: rotations of columns until they are orthogonal (Hestenes 1958).
// LAPACK does it for all sizes, but a call costs more than the work: 4 us for a matrix of 3 x 3, this 0.5.
#pragma once
#include <algorithm>

#include "../lapack.h"

namespace gt {

constexpr int64_t kSmall = 6;

// w (n columns of length m >= n) becomes u diag(s) with orthonormal columns in u, and v the rotation of its
// columns; all stored by columns. False when the result is not reliable: no convergence, or a rank below n.
template <class T> bool small_svd(T* w, T* v, Real<T>* s, int64_t m, int64_t n) {
  using R = Real<T>;
  constexpr R eps = std::numeric_limits<R>::epsilon();
  auto inner = [](const T* x, const T* y, int64_t length) {
    T sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += conjugate(x[i]) * y[i];
    return sum;
  };
  std::fill_n(v, n * n, T(0));
  for (int64_t j = 0; j < n; ++j) v[j * n + j] = T(1);
  bool turned = true;
  for (int sweep = 0; turned && sweep < 20; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const R a = std::real(inner(w + p * m, w + p * m, m)), b = std::real(inner(w + q * m, w + q * m, m));
        const T g = inner(w + p * m, w + q * m, m);
        const R size = std::abs(g);
        if (!(size > eps * std::sqrt(a) * std::sqrt(b))) continue;
        turned = true;
        const R zeta = (b - a) / (2 * size),
                t = (zeta < 0 ? R(-1) : R(1)) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const R c = 1 / std::sqrt(1 + t * t);
        const T by = conjugate(g) / size;
        auto rotate = [&](T* x, int64_t length) {
          for (int64_t i = 0; i < length; ++i) {
            const T one = x[p * length + i], two = by * x[q * length + i];
            x[p * length + i] = c * one - (c * t) * two, x[q * length + i] = (c * t) * one + c * two;
          }
        };
        rotate(w, m);
        rotate(v, n);
      }
  }
  for (int64_t j = 0; j < n; ++j) s[j] = std::sqrt(std::real(inner(w + j * m, w + j * m, m)));
  for (int64_t j = 0; j < n; ++j) {  // the largest first
    const int64_t best = std::max_element(s + j, s + n) - s;
    std::swap(s[j], s[best]);
    if (best != j)
      std::swap_ranges(w + j * m, w + (j + 1) * m, w + best * m),
          std::swap_ranges(v + j * n, v + (j + 1) * n, v + best * n);
  }
  if (turned || !(s[n - 1] > 8 * eps * s[0]) || !std::isfinite(s[0])) return false;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) w[j * m + i] /= s[j];
  return true;
}

// The thin decomposition of a matrix by rows, in the form of svd's results; u and v may be null.
template <class T> bool small_svd_of(const T* x, int64_t m, int64_t n, Real<T>* s, T* u, T* v) {
  const bool wide = m < n;  // then of the adjoint
  const int64_t rows = wide ? n : m, columns = wide ? m : n;
  T w[4 * kSmall * kSmall], right[kSmall * kSmall];
  // Scaled, so that no square is too large or too small.
  Real<T> most = 0;
  for (int64_t i = 0; i < m * n; ++i)
    most = std::max({most, std::abs(std::real(x[i])), std::abs(std::imag(x[i]))});
  if (!(most > std::numeric_limits<Real<T>>::min()) || !all_finite(x, m * n)) return false;
  int exponent;
  std::frexp(most, &exponent);
  const Real<T> scale = std::ldexp(Real<T>(1), -exponent);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      w[j * rows + i] = scale * (wide ? conjugate(x[j * n + i]) : x[i * n + j]);
  if (!small_svd(w, right, s, rows, columns)) return false;
  for (int64_t j = 0; j < columns; ++j) s[j] = std::ldexp(s[j], exponent);
  if (!u) return true;
  transpose_into(wide ? v : u, w, columns, rows);
  transpose_into(wide ? u : v, right, columns, columns);
  return true;
}

}  // namespace gt
