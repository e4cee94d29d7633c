// Systems with few diagonals: tridiagonal ones, and triangular ones with a band. The time per matrix is
// linear in its rows.
#include <algorithm>

#include "../lapack.h"

namespace gt {
namespace {

// ---- tridiagonal_solve(diagonals, rhs; partial_pivoting, perturb_singular) ----
// diagonals [..., 3, n]: above (its last place unused), main, below (its first place unused).
void infer_tridiagonal(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  want_dtype(a, kLinear, "tridiagonal_solve");
  want_same_dtype(a, b);
  want_matrix(a);
  want_matrix(b, 1);
  if (rows_of(a) != 3) fail("Expected 3 diagonals got " + std::to_string(rows_of(a)));
  if (columns_of(a) != rows_of(b))
    fail("Expected number of left-hand sided and right-hand sides to be equal, got " +
         std::to_string(columns_of(a)) + " and " + std::to_string(rows_of(b)));
  if (!(batch_of(a.shape) == batch_of(b.shape)))
    fail("Batch shapes of diagonals and right-hand sides must be equal.");
  outs.emplace_back(b.spec());
}

// Gaussian elimination on rows of three elements, of which pivoting may make the third non-zero.
template <class T>
void solve_tridiagonal(const T* diagonals, T* x, int64_t n, int64_t k, bool pivoting, bool perturb,
                       T* scratch) {
  T *d0 = scratch, *d1 = d0 + n, *d2 = d1 + n;  // row i of the triangle: columns i, i + 1, i + 2
  const T *above = diagonals, *main = above + n, *below = main + n;
  for (int64_t i = 0; i < n; ++i) d0[i] = main[i], d1[i] = i + 1 < n ? above[i] : T(0), d2[i] = T(0);
  auto fix = [&](T& pivot) {
    // As small as a pivot can be without overflow of its reciprocal.
    if (perturb && std::abs(pivot) < std::numeric_limits<Real<T>>::min())
      pivot = T(std::numeric_limits<Real<T>>::min() * 2);
  };
  for (int64_t i = 0; i + 1 < n; ++i) {
    T low = below[i + 1];
    T *row = x + i * k, *next = row + k;
    if (pivoting && std::abs(low) > std::abs(d0[i])) {
      std::swap(d0[i], low);
      std::swap(d1[i], d0[i + 1]);
      d2[i] = d1[i + 1], d1[i + 1] = T(0);
      std::swap_ranges(row, next, next);
    }
    fix(d0[i]);
    const T factor = low == T(0) && d0[i] != T(0) ? T(0) : low / d0[i];
    d0[i + 1] -= factor * d1[i];
    d1[i + 1] -= factor * d2[i];
    for (int64_t j = 0; j < k; ++j) next[j] -= factor * row[j];
  }
  fix(d0[n - 1]);
  for (int64_t i = n - 1; i >= 0; --i) {
    T* row = x + i * k;
    for (int64_t j = 0; j < k; ++j) {
      T v = row[j];
      if (i + 1 < n) v -= d1[i] * row[k + j];
      if (i + 2 < n) v -= d2[i] * row[2 * k + j];
      row[j] = v / d0[i];
    }
  }
}

void run_tridiagonal(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  if (b.numel == 0) return;
  const int64_t n = rows_of(b), k = columns_of(b);
  visit_linear(b.dtype, [&](auto t) {
    using T = decltype(t);
    each_item(b.numel / (n * k), 10 * double(n) * double(k), 3 * n * int64_t(sizeof(T)),
              [&](int64_t i, char* scratch) {
                T* x = outs[0].as<T>() + i * n * k;
                std::copy(b.as<T>() + i * n * k, b.as<T>() + (i + 1) * n * k, x);
                solve_tridiagonal<T>(a.as<T>() + i * 3 * n, x, n, k, c.integer(0), c.integer(1),
                                     reinterpret_cast<T*>(scratch));
              });
  });
}

// ---- banded_triangular_solve(bands, rhs; lower, adjoint) ----
// Row d of bands [..., count, n] has the diagonal d below the main one (lower), the first d places
// unused; or the diagonal count - 1 - d above it, the last places unused.
void infer_banded(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  want_dtype(a, kLinear, "banded_triangular_solve");
  want_same_dtype(a, b);
  for (int i = 0; i < 2; ++i)
    if (c[i].shape.rank < 2)
      fail("In[" + std::to_string(i) + "] ndims must be >= 2: " + std::to_string(c[i].shape.rank));
  if (rows_of(a) == 0 || rows_of(a) > columns_of(a))
    fail("Number of bands should be positive and at most the size of the matrix: " + a.shape.str());
  if (columns_of(a) != rows_of(b)) fail("In[0] mismatch In[1] shape: " + a.shape.str() + " " + b.shape.str());
  if (!(batch_of(a.shape) == batch_of(b.shape)))
    fail("In[0] and In[1] must have compatible batch dimensions: " + a.shape.str() + " vs. " + b.shape.str());
  outs.emplace_back(b.spec());
}

void run_banded(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  if (b.numel == 0) return;
  const bool lower = c.integer(0), adjoint = c.integer(1), down = lower != adjoint;
  const int64_t n = rows_of(b), k = columns_of(b), count = rows_of(a);
  std::atomic<bool> failed = false;
  visit_linear(b.dtype, [&](auto t) {
    using T = decltype(t);
    each_item(b.numel / (n * k), 2 * double(n) * double(k) * double(count), 0, [&](int64_t i, char*) {
      const T* bands = a.as<T>() + i * count * n;
      // Element (r, c) of the matrix; |r - c| < count, on the side that is stored.
      auto element = [&](int64_t r, int64_t c) {
        if (adjoint) std::swap(r, c);
        const T v = lower ? bands[(r - c) * n + r] : bands[(count - 1 - (c - r)) * n + r];
        return adjoint ? conjugate(v) : v;
      };
      T* x = outs[0].as<T>() + i * n * k;
      std::copy(b.as<T>() + i * n * k, b.as<T>() + (i + 1) * n * k, x);
      for (int64_t step = 0; step < n; ++step) {
        const int64_t r = down ? step : n - 1 - step;
        const int64_t from = down ? std::max<int64_t>(0, r - count + 1) : r + 1,
                      to = down ? r : std::min(n, r + count);
        for (int64_t m = from; m < to; ++m) {
          const T e = element(r, m);
          for (int64_t j = 0; j < k; ++j) x[r * k + j] -= e * x[m * k + j];
        }
        const T d = element(r, r);
        if (d == T(0)) failed = true;
        for (int64_t j = 0; j < k; ++j) x[r * k + j] /= d;
      }
    });
  });
  if (failed) fail("Input matrix is not invertible.");
}

GT_OP("tridiagonal_solve", {infer_tridiagonal, run_tridiagonal, true, 5});
GT_OP("banded_triangular_solve", {infer_banded, run_banded, true, 10});

}  // namespace
}  // namespace gt
