// Spectral decompositions: singular values, eigenvalues of self-adjoint and of general matrices, and the
// pseudo-inverse, which is computed from singular values. Vectors are determined up to a sign or phase: ours
// is the one for which the largest component is positive, whatever LAPACK returns.
#include <algorithm>

#include "../lapack.h"
#include "linalg_jacobi.h"

namespace gt {
namespace {

// The number of modulus 1 that makes the largest component of column j positive; the first of nearly equal
// ones.
template <class T> T turn_of(const T* x, int64_t rows, int64_t columns, int64_t j) {
  Real<T> most = 0;
  for (int64_t i = 0; i < rows; ++i) most = std::max(most, std::abs(x[i * columns + j]));
  for (int64_t i = 0; i < rows; ++i) {
    const T v = x[i * columns + j];
    if (std::abs(v) >= Real<T>(0.99) * most && most > 0) return conjugate(v) / std::abs(v);
  }
  return T(1);
}
template <class T> void turn(T* x, int64_t rows, int64_t columns, int64_t j, T by) {
  for (int64_t i = 0; i < rows && by != T(1); ++i) x[i * columns + j] *= by;
}

// ---- singular values ----

template <class T> struct Gesdd {
  using R = Real<T>;
  using OfReal = void (*)(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                          const int*, T*, const int*, int*, int*, size_t);
  using OfComplex = void (*)(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                             const int*, T*, const int*, R*, int*, int*, size_t);
  using Pointer = std::conditional_t<is_complex_type<T>, OfComplex, OfReal>;
  Routine<Pointer> routine;
  char job;  // N: values only, S: thin factors, A: square factors
  // LAPACK sees the transpose: its rows are our columns.
  int rows, columns, least, ldv;
  int64_t n_work, n_real;

  Gesdd(char job_, int64_t m, int64_t n)
      : routine(lapack<T, Pointer>("gesdd")),
        job(job_),
        rows(int(n)),
        columns(int(m)),
        least(int(std::min(m, n))) {
    ldv = job == 'A' ? columns : least;
    const int64_t most = std::max(m, n), k = least;
    n_real = job == 'N' ? 7 * k : k * std::max(5 * k + 7, 2 * most + 2 * k + 1);
    T best = 0;
    call(nullptr, nullptr, nullptr, nullptr, &best, -1, nullptr, nullptr);
    n_work = std::max<int64_t>(1, int64_t(std::real(best)));
  }

  int call(T* a, R* s, T* u, T* v, T* work, int length, R* real_work, int* integers) const {
    int info = 0;
    if constexpr (is_complex_type<T>)
      routine(&job, &rows, &columns, a, &rows, s, u, &rows, v, &ldv, work, &length, real_work, integers,
              &info, 1);
    else
      routine(&job, &rows, &columns, a, &rows, s, u, &rows, v, &ldv, work, &length, integers, &info, 1);
    return info;
  }

  // The memory of one decomposition; `right` is the transpose of our V, conjugated.
  struct Memory {
    Carve carve;
    T *a, *right, *work;
    R* real_work;
    int* integers;
    Memory(char* at, const Gesdd& g)
        : carve{at},
          a(carve.take<T>(int64_t(g.rows) * g.columns)),
          right(carve.take<T>(g.job == 'N' ? 0 : int64_t(g.rows) * (g.job == 'A' ? g.rows : g.least))),
          work(carve.take<T>(g.n_work)),
          real_work(carve.take<R>(is_complex_type<T> ? g.n_real : 0)),
          integers(carve.take<int>(8 * g.least)) {}
  };
  int64_t bytes() const { return Memory(nullptr, *this).carve.bytes; }
  double cost() const { return (job == 'N' ? 8.0 : 25.0) * double(rows) * double(columns) * double(least); }

  // x = u diag(s) v^H; false when there is none (a NaN or an infinity in x, or no convergence).
  bool run(const T* x, Memory& m, R* s, T* u) const {
    const int64_t size = int64_t(rows) * columns;
    if (!all_finite(x, size)) return false;
    std::copy(x, x + size, m.a);
    return call(m.a, s, m.right, u, m.work, int(n_work), m.real_work, m.integers) == 0;
  }
};

// svd(x; full_matrices) -> s, u, v; svdvals(x) -> s
void infer_svdvals(const Call& c, Outs& outs) {
  want_dtype(c[0], kLinear, "svd");
  want_matrix(c[0]);
  outs.emplace_back(Spec{real_of(c[0].dtype),
                         with_sizes(batch_of(c[0].shape), {std::min(rows_of(c[0]), columns_of(c[0]))})});
}
void infer_svd(const Call& c, Outs& outs) {
  infer_svdvals(c, outs);
  const int64_t m = rows_of(c[0]), n = columns_of(c[0]), k = std::min(m, n);
  const bool full = c.integer(0);
  const Shape batch = batch_of(c[0].shape);
  outs.emplace_back(Spec{c[0].dtype, with_sizes(batch, {m, full ? m : k})});
  outs.emplace_back(Spec{c[0].dtype, with_sizes(batch, {n, full ? n : k})});
}

template <class T> void fill_identity(Tensor& x) {
  std::fill_n(x.as<T>(), x.numel, T(0));
  const int64_t m = rows_of(x), n = columns_of(x);
  for (int64_t at = 0; at < x.numel; at += m * n)
    for (int64_t i = 0; i < std::min(m, n); ++i) x.as<T>()[at + i * n + i] = T(1);
}

void run_svd(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  const bool factors = outs.size() > 1;
  const int64_t m = rows_of(x), n = columns_of(x), k = std::min(m, n),
                batch = product(x.shape, 0, x.shape.rank - 2);
  visit_linear(x.dtype, [&](auto t) {
    using T = decltype(t);
    using R = Real<T>;
    if (m * n == 0) {
      for (size_t i = 1; i < outs.size(); ++i) fill_identity<T>(outs[i]);
      return;
    }
    if (batch == 0) return;
    const Gesdd<T> gesdd(factors ? (c.integer(0) ? 'A' : 'S') : 'N', m, n);
    const int64_t p = factors ? columns_of(outs[1]) : 0, q = factors ? columns_of(outs[2]) : 0;
    const bool small = k <= kSmall && std::max(m, n) <= 4 * kSmall && (!factors || p == q || !c.integer(0));
    each_item(batch, gesdd.cost(), gesdd.bytes(), [&](int64_t b, char* scratch) {
      typename Gesdd<T>::Memory memory(scratch, gesdd);
      R* s = outs[0].as<R>() + b * k;
      T* u = factors ? outs[1].as<T>() + b * m * p : nullptr;
      T* v = factors ? outs[2].as<T>() + b * n * q : nullptr;
      const T* in = x.as<T>() + b * m * n;
      const bool done = small && small_svd_of(in, m, n, s, u, v);
      if (!done && !gesdd.run(in, memory, s, u)) {
        std::fill_n(s, k, quiet_nan<R>());
        std::fill_n(u, m * p, quiet_nan<T>());
        std::fill_n(v, n * q, quiet_nan<T>());
      } else if (factors) {
        if (!done) transpose_into(v, memory.right, q, n, true);
        for (int64_t j = 0; j < std::max(p, q); ++j) {
          const T by = j < p ? turn_of(u, m, p, j) : turn_of(v, n, q, j);
          if (j < p) turn(u, m, p, j, by);
          if (j < q) turn(v, n, q, j, j < k || j >= p ? by : turn_of(v, n, q, j));
        }
      }
    });
  });
}

// ---- pinv(x, rcond): singular values up to rcond times the largest count as zero ----
void infer_pinv(const Call& c, Outs& outs) {
  const Tensor &x = c[0], &rcond = c[1];
  want_dtype(x, kLinear, "pinv");
  want_matrix(x);
  if (rcond.dtype != Dtype::F64 || !(rcond.shape == batch_of(x.shape)))
    fail("rcond must be " + Spec{Dtype::F64, batch_of(x.shape)}.str() + ", got " + rcond.spec().str());
  outs.emplace_back(Spec{x.dtype, with_sizes(batch_of(x.shape), {columns_of(x), rows_of(x)})});
}

void run_pinv(const Call& c, Outs& outs) {
  const Tensor &x = c[0], &rcond = c[1];
  if (x.numel == 0) return;
  const int64_t m = rows_of(x), n = columns_of(x), k = std::min(m, n), size = m * n;
  visit_linear(x.dtype, [&](auto t) {
    using T = decltype(t);
    using R = Real<T>;
    const Gesdd<T> gesdd('S', m, n);
    struct Memory {
      Carve carve;
      R* s;
      T* u;
      char* rest;
      Memory(char* at, int64_t m, int64_t k, int64_t more)
          : carve{at}, s(carve.take<R>(k)), u(carve.take<T>(m * k)), rest(carve.take<char>(more)) {}
    };
    each_item(x.numel / size, gesdd.cost(), Memory(nullptr, m, k, gesdd.bytes()).carve.bytes,
              [&](int64_t b, char* scratch) {
                auto [carve, s, u, rest] = Memory(scratch, m, k, gesdd.bytes());
                typename Gesdd<T>::Memory memory(rest, gesdd);
                T* out = outs[0].as<T>() + b * size;
                if (!gesdd.run(x.as<T>() + b * size, memory, s, u))
                  return std::fill_n(out, size, quiet_nan<T>()), void();
                const R least = R(rcond.as<double>()[b]) * s[0];
                for (int64_t i = 0; i < k; ++i) {
                  const R factor = s[i] > least ? 1 / s[i] : R(0);
                  for (int64_t j = 0; j < n; ++j) memory.right[i * n + j] *= factor;
                }
                multiply<T>(memory.right, kConjTrans, u, kConjTrans, out, n, m, k);
              });
  });
}

// ---- eigenvalues of self-adjoint matrices: eigh(x) -> values, vectors; eigvalsh(x) -> values ----
void infer_eigvalsh(const Call& c, Outs& outs) {
  want_dtype(c[0], kLinear, "eigh");
  want_square(c[0]);
  outs.emplace_back(Spec{real_of(c[0].dtype), with_sizes(batch_of(c[0].shape), {rows_of(c[0])})});
}
void infer_eigh(const Call& c, Outs& outs) {
  infer_eigvalsh(c, outs);
  outs.emplace_back(c[0].spec());
}

template <class T>
using RealEvd = void (*)(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,
                         const int*, int*, size_t, size_t);
template <class T>
using ComplexEvd = void (*)(const char*, const char*, const int*, T*, const int*, Real<T>*, T*, const int*,
                            Real<T>*, const int*, int*, const int*, int*, size_t, size_t);

void run_eigh(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const bool vectors = outs.size() > 1;
  const int64_t n = rows_of(x), size = n * n;
  std::atomic<bool> failed = false;
  visit_linear(x.dtype, [&](auto t) {
    using T = decltype(t);
    using R = Real<T>;
    const char* job = vectors ? "V" : "N";
    const int order = int(n);
    auto routine = [&] {
      if constexpr (is_complex_type<T>)
        return lapack<T, ComplexEvd<T>>("heevd");
      else
        return lapack<T, RealEvd<T>>("syevd");
    }();
    auto call = [=](T* a, R* w, T* work, int n_work, R* reals, int n_reals, int* integers, int n_integers) {
      int info = 0;
      // Our lower triangle is the upper one of what LAPACK sees.
      if constexpr (is_complex_type<T>)
        routine(job, "U", &order, a, &order, w, work, &n_work, reals, &n_reals, integers, &n_integers, &info,
                1, 1);
      else
        routine(job, "U", &order, a, &order, w, work, &n_work, integers, &n_integers, &info, 1, 1);
      return info;
    };
    T best = 0;
    R best_reals = 0;
    int n_integers = 0;
    call(nullptr, nullptr, &best, -1, &best_reals, -1, &n_integers, -1);
    const int n_work = std::max(1, int(std::real(best))), n_reals = std::max(1, int(best_reals));
    struct Memory {
      Carve carve;
      T *a, *work;
      R* reals;
      int* integers;
      Memory(char* at, int64_t size, int64_t n_work, int64_t n_reals, int64_t n_integers)
          : carve{at},
            a(carve.take<T>(size)),
            work(carve.take<T>(n_work)),
            reals(carve.take<R>(n_reals)),
            integers(carve.take<int>(n_integers)) {}
    };
    const int64_t bytes = Memory(nullptr, size, n_work, n_reals, n_integers).carve.bytes;
    each_item(x.numel / size, (vectors ? 10.0 : 3.0) * double(size) * double(n), bytes,
              [&](int64_t b, char* scratch) {
                auto [carve, a, work, reals, integers] = Memory(scratch, size, n_work, n_reals, n_integers);
                const T* in = x.as<T>() + b * size;
                for (int64_t i = 0; i < n; ++i)
                  if (!all_finite(in + i * n, i + 1)) {
                    failed = true;
                    return;
                  }
                std::copy(in, in + size, a);
                if (call(a, outs[0].as<R>() + b * n, work, n_work, reals, n_reals, integers, n_integers)) {
                  failed = true;
                } else if (vectors) {
                  T* v = outs[1].as<T>() + b * size;
                  transpose_into(v, a, n, n, true);
                  for (int64_t j = 0; j < n; ++j) turn(v, n, n, j, turn_of(v, n, n, j));
                }
              });
  });
  if (failed) fail("Self-adjoint eigen decomposition was not successful. The input might not be valid.");
}

// ---- eigenvalues of general matrices, always complex: eig(x) -> values, vectors; eigvals(x) ----
// In the order of their real parts, then of falling imaginary parts: LAPACK's order depends on its kernels.
void infer_eigvals(const Call& c, Outs& outs) {
  want_dtype(c[0], kLinear, "eig");
  want_square(c[0]);
  outs.emplace_back(Spec{complex_of(c[0].dtype), with_sizes(batch_of(c[0].shape), {rows_of(c[0])})});
}
void infer_eig(const Call& c, Outs& outs) {
  infer_eigvals(c, outs);
  outs.emplace_back(Spec{complex_of(c[0].dtype), c[0].shape});
}

template <class T>
using RealGeev = void (*)(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*,
                          const int*, T*, const int*, int*, size_t, size_t);
template <class T>
using ComplexGeev = void (*)(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*,
                             const int*, T*, const int*, Real<T>*, int*, size_t, size_t);

// `row` has n places, and so has `order`.
template <class C> void sort_values(C* values, C* vectors, int64_t n, C* row, int* order) {
  for (int64_t j = 0; j < n; ++j) order[j] = int(j);
  std::sort(order, order + n, [&](int i, int j) {
    const C x = values[i], y = values[j];
    return x.real() != y.real() ? x.real() < y.real() : x.imag() != y.imag() ? x.imag() > y.imag() : i < j;
  });
  auto permute = [&](C* x) {
    for (int64_t j = 0; j < n; ++j) row[j] = x[order[j]];
    std::copy(row, row + n, x);
  };
  permute(values);
  for (int64_t i = 0; vectors && i < n; ++i) permute(vectors + i * n);
}

void run_eig(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const bool vectors = outs.size() > 1;
  const int64_t n = rows_of(x), size = n * n;
  std::atomic<bool> failed = false;
  visit_linear(x.dtype, [&](auto t) {
    using T = decltype(t);
    using R = Real<T>;
    using C = std::complex<R>;
    const char* job = vectors ? "V" : "N";
    const int order = int(n);
    auto routine = [&] {
      if constexpr (is_complex_type<T>)
        return lapack<T, ComplexGeev<T>>("geev");
      else
        return lapack<T, RealGeev<T>>("geev");
    }();
    // `w` has 2 n reals: real and imaginary parts in turn, or (of a real matrix) all of each.
    auto call = [=](T* a, R* w, T* v, T* work, int n_work, R* reals) {
      int info = 0;
      if constexpr (is_complex_type<T>)
        routine("N", job, &order, a, &order, reinterpret_cast<T*>(w), nullptr, &order, v, &order, work,
                &n_work, reals, &info, 1, 1);
      else
        routine("N", job, &order, a, &order, w, w + order, nullptr, &order, v, &order, work, &n_work, &info,
                1, 1);
      return info;
    };
    T best = 0;
    R also = 0;  // written to when asked for the optimal length
    call(nullptr, nullptr, nullptr, &best, -1, &also);
    const int n_work = std::max(int(std::real(best)), 4 * order);
    struct Memory {
      Carve carve;
      T *a, *v, *work;
      R *w, *reals;
      int* integers;
      Memory(char* at, int64_t n, int64_t n_work)
          : carve{at},
            a(carve.take<T>(n * n)),
            v(carve.take<T>(n * n)),
            work(carve.take<T>(n_work)),
            w(carve.take<R>(2 * n)),
            reals(carve.take<R>(2 * n)),
            integers(carve.take<int>(n)) {}
    };
    each_item(x.numel / size, 25 * double(size) * double(n), Memory(nullptr, n, n_work).carve.bytes,
              [&](int64_t b, char* scratch) {
                auto [carve, a, v, work, w, reals, integers] = Memory(scratch, n, n_work);
                transpose_into(a, x.as<T>() + b * size, n, n);
                if (!all_finite(a, size) || call(a, w, v, work, n_work, reals)) {
                  failed = true;
                  return;
                }
                C* values = outs[0].as<C>() + b * n;
                C* out = vectors ? outs[1].as<C>() + b * size : nullptr;
                if constexpr (is_complex_type<T>) {
                  std::copy(reinterpret_cast<C*>(w), reinterpret_cast<C*>(w) + n, values);
                  if (vectors) transpose_into(out, v, n, n);
                } else {
                  for (int64_t i = 0; i < n; ++i) values[i] = C(w[i], w[n + i]);
                  for (int64_t j = 0; vectors && j < n; ++j) {
                    if (w[n + j] == 0) {
                      for (int64_t i = 0; i < n; ++i) out[i * n + j] = C(v[j * n + i]);
                      continue;
                    }
                    // A pair of conjugate vectors: real and imaginary part are two columns.
                    for (int64_t i = 0; i < n; ++i) {
                      out[i * n + j] = C(v[j * n + i], v[(j + 1) * n + i]);
                      out[i * n + j + 1] = std::conj(out[i * n + j]);
                    }
                    ++j;
                  }
                }
                sort_values(values, out, n, reinterpret_cast<C*>(work), integers);
                for (int64_t j = 0; vectors && j < n; ++j) turn(out, n, n, j, turn_of(out, n, n, j));
              });
  });
  if (failed) fail("Eigen decomposition was not successful. The input might not be valid.");
}

GT_OP("svd", {infer_svd, run_svd, true, 100});
GT_OP("svdvals", {infer_svdvals, run_svd, true, 50});
GT_OP("pinv", {infer_pinv, run_pinv, true, 100});
GT_OP("eigh", {infer_eigh, run_eigh, true, 50});
GT_OP("eigvalsh", {infer_eigvalsh, run_eigh, true, 50});
GT_OP("eig", {infer_eig, run_eig, true, 100});
GT_OP("eigvals", {infer_eigvals, run_eig, true, 100});

}  // namespace
}  // namespace gt
