// Factorisations: Cholesky, LU with partial pivoting, QR.
#include <algorithm>

#include "../lapack.h"

namespace gt {
namespace {

// ---- cholesky(x): the lower factor; reads the lower triangle only ----
void infer_cholesky(const Call& c, Outs& outs) {
  want_dtype(c[0], kLinear, "cholesky");
  want_square(c[0]);
  outs.emplace_back(c[0].spec());
}

template <class T> using Potrf = void (*)(const char*, const int*, T*, const int*, int*, size_t);

// Small matrices: a call of LAPACK costs more than the work. Row by row; false if not definite.
template <class T> bool small_cholesky(T* l, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T* row = l + i * n;
    for (int64_t j = 0; j < i; ++j) {
      const T* other = l + j * n;
      T s = row[j];
      for (int64_t k = 0; k < j; ++k) s -= row[k] * conjugate(other[k]);
      row[j] = s / other[j];
    }
    Real<T> d = std::real(row[i]);
    for (int64_t k = 0; k < i; ++k) d -= std::norm(row[k]);
    if (d <= 0) return false;
    row[i] = T(std::sqrt(d));
  }
  return true;
}

void run_cholesky(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const int64_t n = rows_of(x), size = n * n;
  std::atomic<bool> failed = false;
  visit_linear(x.dtype, [&](auto t) {
    using T = decltype(t);
    auto potrf = lapack<T, Potrf<T>>("potrf");
    each_item(x.numel / size, double(n) * double(size) / 3, 0, [&](int64_t b, char*) {
      const T* in = x.as<T>() + b * size;
      T* out = outs[0].as<T>() + b * size;
      for (int64_t i = 0; i < n; ++i) {
        std::copy(in + i * n, in + i * n + i + 1, out + i * n);
        std::fill(out + i * n + i + 1, out + (i + 1) * n, T(0));
      }
      if (n <= 12) {
        if (!small_cholesky(out, n)) failed = true;
        return;
      }
      int order = int(n), info = 0;
      potrf("U", &order, out, &order, &info, 1);  // by columns, our lower triangle is the upper one
      if (info) failed = true;
    });
  });
  if (failed) fail("Cholesky decomposition was not successful. The input might not be valid.");
}

// ---- lu(x; output_idx_type): both factors in one matrix, and the permutation ----
template <class T> using Getrf = void (*)(const int*, const int*, T*, const int*, int*, int*);

void infer_lu(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  want_dtype(x, kLinear, "lu");
  want_square(x);
  const Dtype index = dtype_attr(c, 0);
  if (index != Dtype::I32 && index != Dtype::I64)
    fail("output_idx_type must be int32 or int64, got " + std::string(dtype_name(index)));
  outs.emplace_back(x.spec());
  outs.emplace_back(Spec{index, with_sizes(batch_of(x.shape), {rows_of(x)})});
}

void run_lu(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const int64_t n = rows_of(x), size = n * n;
  std::atomic<bool> failed = false;
  visit_linear(x.dtype, [&](auto t) {
    using T = decltype(t);
    auto getrf = lapack<T, Getrf<T>>("getrf");
    struct Memory {
      Carve carve;
      T* columns;
      int* pivots;
      int64_t* perm;
      Memory(char* at, int64_t n)
          : carve{at},
            columns(carve.take<T>(n * n)),
            pivots(carve.take<int>(n)),
            perm(carve.take<int64_t>(n)) {}
    };
    each_item(x.numel / size, double(n) * double(size), Memory(nullptr, n).carve.bytes,
              [&](int64_t b, char* scratch) {
                auto [carve, columns, pivots, perm] = Memory(scratch, n);
                transpose_into(columns, x.as<T>() + b * size, n, n);
                int order = int(n), info = 0;
                getrf(&order, &order, columns, &order, pivots, &info);
                transpose_into(outs[0].as<T>() + b * size, columns, n, n);
                for (int64_t i = 0; i < n; ++i) {
                  perm[i] = i;
                  if (!(std::abs(columns[i * n + i]) > 0)) failed = true;  // NaN too
                }
                for (int64_t i = 0; i < n; ++i) std::swap(perm[i], perm[pivots[i] - 1]);
                for (int64_t i = 0; i < n; ++i) {
                  if (outs[1].dtype == Dtype::I32)
                    outs[1].as<int32_t>()[b * n + i] = int32_t(perm[i]);
                  else
                    outs[1].as<int64_t>()[b * n + i] = perm[i];
                }
              });
  });
  if (failed) fail("Input is not invertible.");
}

// ---- qr(x; full_matrices) ----
template <class T> using Geqrf = void (*)(const int*, const int*, T*, const int*, T*, T*, const int*, int*);
template <class T>
using Orgqr = void (*)(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);

void infer_qr(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  want_dtype(x, kLinear, "qr");
  want_matrix(x);
  const int64_t m = rows_of(x), n = columns_of(x), k = c.integer(0) ? m : std::min(m, n);
  const Shape batch = batch_of(x.shape);
  outs.emplace_back(Spec{x.dtype, with_sizes(batch, {m, k})});
  outs.emplace_back(Spec{x.dtype, with_sizes(batch, {k, n})});
}

void run_qr(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor &q = outs[0], &r = outs[1];
  const int64_t m = rows_of(x), n = columns_of(x), k = columns_of(q), least = std::min(m, n), size = m * n;
  const int64_t batch = product(x.shape, 0, x.shape.rank - 2);
  visit_linear(x.dtype, [&](auto t) {
    using T = decltype(t);
    if (size == 0) {  // nothing to factor: q is the identity
      std::fill_n(q.as<T>(), q.numel, T(0));
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t i = 0; i < std::min(m, k); ++i) q.as<T>()[b * m * k + i * k + i] = T(1);
      return;
    }
    if (batch == 0) return;
    auto geqrf = lapack<T, Geqrf<T>>("geqrf");
    auto orgqr = lapack<T, Orgqr<T>>(is_complex_type<T> ? "ungqr" : "orgqr");
    const int rows = int(m), columns = int(n), inner = int(k), reflectors = int(least), ask = -1;
    int info;
    T best[2];
    geqrf(&rows, &columns, nullptr, &rows, nullptr, &best[0], &ask, &info);
    orgqr(&rows, &inner, &reflectors, nullptr, &rows, nullptr, &best[1], &ask, &info);
    const int length = int(std::max({Real<T>(1), std::real(best[0]), std::real(best[1])}));
    struct Memory {
      Carve carve;
      T *a, *tau, *work;
      Memory(char* at, int64_t size, int64_t least, int64_t length)
          : carve{at}, a(carve.take<T>(size)), tau(carve.take<T>(least)), work(carve.take<T>(length)) {}
    };
    const int64_t most = m * std::max(n, k), bytes = Memory(nullptr, most, least, length).carve.bytes;
    each_item(batch, 4.0 * double(size) * double(least), bytes, [&](int64_t b, char* scratch) {
      auto [carve, a, tau, work] = Memory(scratch, most, least, length);
      int info = 0;
      transpose_into(a, x.as<T>() + b * size, m, n);
      geqrf(&rows, &columns, a, &rows, tau, work, &length, &info);
      T* out = r.as<T>() + b * k * n;
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) out[i * n + j] = j < i ? T(0) : a[j * m + i];
      orgqr(&rows, &inner, &reflectors, a, &rows, tau, work, &length, &info);
      transpose_into(q.as<T>() + b * m * k, a, k, m);
    });
  });
}

GT_OP("cholesky", {infer_cholesky, run_cholesky, true, 10});
GT_OP("lu", {infer_lu, run_lu, true, 10});
GT_OP("qr", {infer_qr, run_qr, true, 20});

}  // namespace
}  // namespace gt
