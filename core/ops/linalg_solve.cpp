// Systems of linear equations: triangular and general ones, inverses, determinants.
#include <algorithm>

#include "../lapack.h"

namespace gt {
namespace {

template <class T> using Getrf = void (*)(const int*, const int*, T*, const int*, int*, int*);

// ---- triangular_solve(a, b; lower, adjoint): batches broadcast ----
constexpr int kColMajor = 102, kLeft = 141, kRight = 142, kUpper = 121, kLower = 122, kNonUnit = 131,
              kUnit = 132;
template <class T> using RealTrsm = void (*)(int, int, int, int, int, int, int, T, const T*, int, T*, int);
template <class T>
using ComplexTrsm = void (*)(int, int, int, int, int, int, int, const T*, const T*, int, T*, int);
template <class T> using Trsm = std::conditional_t<is_complex_type<T>, ComplexTrsm<T>, RealTrsm<T>>;
template <class T> Routine<Trsm<T>> trsm_of() {
  const char letter = std::is_same_v<T, float>    ? 's'
                      : std::is_same_v<T, double> ? 'd'
                      : std::is_same_v<T, c64>    ? 'c'
                                                  : 'z';
  blas();
  return blas_function<Trsm<T>>((std::string("cblas_") + letter + "trsm").c_str());
}

void infer_triangular(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  want_dtype(a, kLinear, "triangular_solve");
  want_same_dtype(a, b);
  for (int i = 0; i < 2; ++i)
    if (c[i].shape.rank < 2)
      fail("In[" + std::to_string(i) + "] ndims must be >= 2: " + std::to_string(c[i].shape.rank));
  const int64_t n = rows_of(a);
  if (columns_of(a) != n)
    fail("In[0] matrices in the last dimensions must be square (" + std::to_string(columns_of(a)) +
         " =/= " + std::to_string(n) + ")");
  if (rows_of(b) != n)
    fail("In[0] mismatch In[1] shape: " + std::to_string(n) + " vs. " + std::to_string(rows_of(b)) + ": " +
         a.shape.str() + " " + b.shape.str());
  want_matrix(b);
  Spec s{a.dtype, {}};
  try {
    s.shape = broadcast(batch_of(a.shape), batch_of(b.shape));
  } catch (const Error&) {
    fail("In[0] and In[1] must have compatible batch dimensions: " + a.shape.str() + " vs. " + b.shape.str());
  }
  s.shape.push(n);
  s.shape.push(columns_of(b));
  outs.emplace_back(s);
}

// Where the matrix of one batch index of the result begins in a broadcast operand.
int64_t offset_of(const Shape& x, const Shape& out, int64_t index) {
  int64_t at = 0, step = x[x.rank - 2] * x[x.rank - 1];
  for (int o = out.rank - 3, i = x.rank - 3; i >= 0; --o, --i) {
    if (x[i] != 1) at += index % out[o] * step;
    index /= out[o];
    step *= x[i];
  }
  return at;
}

// Small matrices: a call of BLAS costs more than the work. y is the right side, and becomes the solution.
template <class T> void small_triangular(const T* m, T* y, int64_t n, int64_t k, bool lower, bool adjoint) {
  const bool down = lower != adjoint;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t r = down ? step : n - 1 - step;
    T* row = y + r * k;
    for (int64_t i = down ? 0 : r + 1; i < (down ? r : n); ++i) {
      const T e = adjoint ? conjugate(m[i * n + r]) : m[r * n + i];
      for (int64_t j = 0; j < k; ++j) row[j] -= e * y[i * k + j];
    }
    const T d = adjoint ? conjugate(m[r * n + r]) : m[r * n + r];
    for (int64_t j = 0; j < k; ++j) row[j] /= d;
  }
}

void run_triangular(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  Tensor& out = outs[0];
  if (out.numel == 0) return;
  const int64_t n = rows_of(out), k = columns_of(out), batch = out.numel / (n * k);
  const bool lower = c.integer(0), adjoint = c.integer(1);
  // Columns are independent of each other: a wide right side is cut for the threads.
  const int64_t parts = std::clamp<int64_t>(double(n) * double(n) * double(k) > 1e6 ? k / 64 : 1, 1, 16),
                width = (k + parts - 1) / parts;
  visit_linear(a.dtype, [&](auto t) {
    using T = decltype(t);
    auto trsm = trsm_of<T>();
    const T one = 1;
    each_item(batch * parts, double(n) * double(n) * double(width), 0, [&](int64_t chunk, char*) {
      const int64_t i = chunk / parts, from = chunk % parts * width, to = std::min(from + width, k);
      if (from >= to) return;
      T* y = out.as<T>() + i * n * k + from;
      const T* rhs = b.as<T>() + offset_of(b.shape, out.shape, i) + from;
      for (int64_t r = 0; r < n; ++r) std::copy(rhs + r * k, rhs + r * k + to - from, y + r * k);
      const T* m = a.as<T>() + offset_of(a.shape, out.shape, i);
      if (n <= 8 && k <= 16 && parts == 1) return small_triangular(m, y, n, k, lower, adjoint);
      const int side = lower ? kLower : kUpper, turn = adjoint ? kConjTrans : kNoTrans;
      if constexpr (is_complex_type<T>)
        trsm(kRowMajor, kLeft, side, turn, kNonUnit, int(n), int(to - from), &one, m, int(n), y, int(k));
      else
        trsm(kRowMajor, kLeft, side, turn, kNonUnit, int(n), int(to - from), one, m, int(n), y, int(k));
    });
  });
}

// ---- general matrices: LU of what LAPACK sees, the transpose ----

// As getrf and Factors, for matrices so small that a call of LAPACK costs more than the work.
constexpr int64_t kSmallOrder = 8;

template <class T> void small_factor(T* a, int64_t n, int* pivots) {
  auto size = [](T x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); };
  for (int64_t j = 0; j < n; ++j) {
    T* column = a + j * n;
    int64_t p = j;
    for (int64_t i = j + 1; i < n; ++i)
      if (size(column[i]) > size(column[p])) p = i;
    pivots[j] = int(p + 1);
    if (column[p] == T(0)) continue;
    if (p != j)
      for (int64_t k = 0; k < n; ++k) std::swap(a[k * n + j], a[k * n + p]);
    for (int64_t i = j + 1; i < n; ++i) column[i] /= column[j];  // its reciprocal may not be a number
    for (int64_t k = j + 1; k < n; ++k) {
      T* other = a + k * n;
      for (int64_t i = j + 1; i < n; ++i) other[i] -= column[i] * other[j];
    }
  }
}

template <class T>
void small_solve(bool transposed, const T* lu, int64_t n, const int* pivots, T* b, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c, b += n) {
    if (!transposed) {
      for (int64_t i = 0; i < n; ++i) std::swap(b[i], b[pivots[i] - 1]);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = j + 1; i < n; ++i) b[i] -= lu[j * n + i] * b[j];
      for (int64_t j = n; j-- > 0;) {
        b[j] /= lu[j * n + j];
        for (int64_t i = 0; i < j; ++i) b[i] -= lu[j * n + i] * b[j];
      }
    } else {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < j; ++i) b[j] -= lu[j * n + i] * b[i];
        b[j] /= lu[j * n + j];
      }
      for (int64_t j = n; j-- > 0;)
        for (int64_t i = j + 1; i < n; ++i) b[j] -= lu[j * n + i] * b[i];
      for (int64_t i = n; i-- > 0;) std::swap(b[i], b[pivots[i] - 1]);
    }
  }
}

// The factors of a copy of `a`, in `lu` and `pivots`; false when it has no inverse.
template <class T> bool factor(Routine<Getrf<T>> getrf, const T* a, int64_t n, T* lu, int* pivots) {
  std::copy(a, a + n * n, lu);
  int order = int(n), info = 0;
  if (n <= kSmallOrder)
    small_factor(lu, n, pivots);
  else
    getrf(&order, &order, lu, &order, pivots, &info);
  for (int64_t i = 0; i < n; ++i)
    if (!(std::abs(lu[i * n + i]) > 0)) return false;  // NaN too
  return true;
}

// Solves with the factors of a matrix from the right. x has n columns, `ld` apart, which are our rows:
// nothing is transposed, and trsm is faster from that side.
template <class T> struct Factors {
  Routine<Trsm<T>> trsm = trsm_of<T>();
  const T* lu = nullptr;
  int64_t n = 0;
  const int* pivots = nullptr;

  // Rows [from, to) of x times the inverse of the matrix; before that, or after, columns are swapped.
  void times_inverse(T* x, int64_t from, int64_t to, int64_t ld, int64_t zeros = 0) const {
    // The first `zeros` columns of these rows are 0, and stay 0 in front of an upper triangle.
    const int64_t corner = zeros * n + zeros;
    triangle(kUpper, kNoTrans, kNonUnit, lu + corner, n - zeros, x + from + zeros * ld, to - from, ld);
    triangle(kLower, kNoTrans, kUnit, lu, n, x + from, to - from, ld);
  }
  // The same with the adjoint.
  void times_adjoint_inverse(T* x, int64_t from, int64_t to, int64_t ld) const {
    triangle(kLower, kConjTrans, kUnit, lu, n, x + from, to - from, ld);
    triangle(kUpper, kConjTrans, kNonUnit, lu, n, x + from, to - from, ld);
  }
  void swap_columns(T* x, int64_t rows, bool forward) const {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t j = forward ? step : n - 1 - step, other = pivots[j] - 1;
      if (other != j) std::swap_ranges(x + j * rows, x + (j + 1) * rows, x + other * rows);
    }
  }

 private:
  void triangle(int side, int turn, int unit, const T* a, int64_t order, T* x, int64_t rows,
                int64_t ld) const {
    const T one = 1;
    if constexpr (is_complex_type<T>)
      trsm(kColMajor, kRight, side, turn, unit, int(rows), int(order), &one, a, int(n), x, int(ld));
    else
      trsm(kColMajor, kRight, side, turn, unit, int(rows), int(order), one, a, int(n), x, int(ld));
  }
};

// Work on a batch of matrices in stages: `first(i, scratch)` says whether to go on, `second(i, from, to,
// scratch)` does some of `rows` rows, and `last(i, scratch)` ends it. The rows of a single large matrix are
// shared between threads, in a way that depends on the sizes only.
template <class First, class Second, class Last>
void each_matrix(int64_t batch, int64_t rows, double work, double work_of_row, int64_t bytes, First&& first,
                 Second&& second, Last&& last) {
  constexpr int64_t kRows = 64;
  if (batch > 1 || rows < 2 * kRows) {
    each_item(batch, work + double(rows) * work_of_row, bytes, [&](int64_t i, char* scratch) {
      if (!first(i, scratch)) return;
      second(i, 0, rows, scratch);
      last(i, scratch);
    });
    return;
  }
  Tensor scratch = empty(Dtype::U8, Shape(&bytes, 1));
  if (!first(0, scratch.data)) return;
  const int64_t parts = rows / kRows;
  each_item(parts, double(kRows) * work_of_row, 0, [&](int64_t part, char*) {
    second(0, part * rows / parts, (part + 1) * rows / parts, scratch.data);
  });
  last(0, scratch.data);
}

// The solutions of a x = b, or of the adjoint of a; without b, the inverses. False if a matrix has none.
template <class T> bool solve_into(const Tensor& a, const T* b, T* out, int64_t n, int64_t k, bool adjoint) {
  const int64_t size = n * n;
  std::atomic<bool> failed = false;
  auto getrf = lapack<T, Getrf<T>>("getrf");
  const Factors<T> by;
  struct Memory {
    Carve carve;
    T *lu, *columns;
    int* pivots;
    Memory(char* at, int64_t n, int64_t k)
        : carve{at},
          lu(carve.take<T>(n * n)),
          columns(carve.take<T>(n <= kSmallOrder ? n * k : 0)),
          pivots(carve.take<int>(n)) {}
  };
  auto factors = [&](char* scratch) {
    Memory m(scratch, n, k);
    return Factors<T>{by.trsm, m.lu, n, m.pivots};
  };
  each_matrix(
      a.numel / size, n <= kSmallOrder ? 1 : k, double(size) * double(n), 2 * double(size),
      Memory(nullptr, n, k).carve.bytes,
      [&](int64_t i, char* scratch) {
        auto [carve, lu, columns, pivots] = Memory(scratch, n, k);
        if (!factor<T>(getrf, a.as<T>() + i * size, n, lu, pivots)) {
          failed = true;
          return false;
        }
        T* x = out + i * n * k;
        if (b) {
          std::copy(b + i * n * k, b + (i + 1) * n * k, x);
        } else {
          std::fill_n(x, size, T(0));
          for (int64_t j = 0; j < n; ++j) x[j * n + j] = T(1);
        }
        if (n <= kSmallOrder) {
          // The factors are those of the transpose; its conjugate is the adjoint.
          transpose_into(columns, x, n, k, adjoint);
          small_solve(!adjoint, lu, n, pivots, columns, k);
          transpose_into(x, columns, k, n, adjoint);
          return false;
        }
        if (adjoint) factors(scratch).swap_columns(x, k, true);
        return true;
      },
      [&](int64_t i, int64_t from, int64_t to, char* scratch) {
        T* x = out + i * n * k;
        if (adjoint)
          factors(scratch).times_adjoint_inverse(x, from, to, k);
        else
          factors(scratch).times_inverse(x, from, to, k, b ? 0 : from);
      },
      [&](int64_t i, char* scratch) {
        if (!adjoint) factors(scratch).swap_columns(out + i * n * k, k, false);
      });
  return !failed;
}

// solve(a, b; adjoint)
void infer_solve(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  want_dtype(a, kLinear, "solve");
  want_same_dtype(a, b);
  want_matrix(a);
  if (a.shape.rank != b.shape.rank) fail("All input tensors must have the same rank.");
  want_square(a, "First input (lhs) must be a square matrix.");
  if (!(batch_of(a.shape) == batch_of(b.shape)))
    fail("All input tensors must have the same outer dimensions.");
  if (rows_of(b) != rows_of(a)) fail("Input matrix and rhs are incompatible.");
  want_matrix(b, 1);
  outs.emplace_back(b.spec());
}

void run_solve(const Call& c, Outs& outs) {
  if (outs[0].numel == 0) return;
  visit_linear(c[0].dtype, [&](auto t) {
    using T = decltype(t);
    const Tensor& b = c[1];
    if (!solve_into<T>(c[0], b.as<T>(), outs[0].as<T>(), rows_of(b), columns_of(b), c.integer(0)))
      fail("Input matrix is not invertible.");
  });
}

// inv(a; adjoint)
void infer_inv(const Call& c, Outs& outs) {
  want_dtype(c[0], kLinear, "inv");
  want_square(c[0]);
  outs.emplace_back(c[0].spec());
}

void run_inv(const Call& c, Outs& outs) {
  if (c[0].numel == 0) return;
  const int64_t n = rows_of(c[0]);
  visit_linear(c[0].dtype, [&](auto t) {
    using T = decltype(t);
    if (!solve_into<T>(c[0], nullptr, outs[0].as<T>(), n, n, c.integer(0))) fail("Input is not invertible.");
  });
}

// ---- det(a); slogdet(a): sign and logarithm of the absolute value, both of the type of `a` ----
void infer_det(const Call& c, Outs& outs) {
  want_dtype(c[0], kLinear, "det");
  want_square(c[0]);
  outs.emplace_back(Spec{c[0].dtype, batch_of(c[0].shape)});
}
void infer_slogdet(const Call& c, Outs& outs) {
  infer_det(c, outs);
  outs.emplace_back(outs[0].spec());
}

// A product without overflow on the way: value * 2^exponent.
template <class T> struct Scaled {
  T value = 1;
  int64_t exponent = 0;
  void times(T x) {
    value *= x;
    const Real<T> size = std::max(std::abs(std::real(value)), std::abs(std::imag(value)));
    if (size == 0 || !std::isfinite(size)) return;
    int e;
    std::frexp(size, &e);
    value = shifted(value, -e);  // not times 2^-e, which may be too large for its type
    exponent += e;
  }
  T product() const { return shifted(value, int(std::clamp<int64_t>(exponent, -5000, 5000))); }
  static T shifted(T x, int e) {
    if constexpr (is_complex_type<T>)
      return {std::ldexp(x.real(), e), std::ldexp(x.imag(), e)};
    else
      return std::ldexp(x, e);
  }
};

template <class T, class F> void each_determinant(const Tensor& a, F&& f) {
  const int64_t n = rows_of(a), size = n * n, batch = product(a.shape, 0, a.shape.rank - 2);
  auto getrf = lapack<T, Getrf<T>>("getrf");
  struct Memory {
    Carve carve;
    T* lu;
    int* pivots;
    Memory(char* at, int64_t n) : carve{at}, lu(carve.take<T>(n * n)), pivots(carve.take<int>(n)) {}
  };
  each_item(batch, double(size) * double(n), Memory(nullptr, n).carve.bytes, [&](int64_t i, char* scratch) {
    auto [carve, lu, pivots] = Memory(scratch, n);
    if (n) factor<T>(getrf, a.as<T>() + i * size, n, lu, pivots);
    bool odd = false;
    for (int64_t j = 0; j < n; ++j) odd ^= pivots[j] != int(j + 1);
    f(i, lu, n, odd);
  });
}

void run_det(const Call& c, Outs& outs) {
  visit_linear(c[0].dtype, [&](auto t) {
    using T = decltype(t);
    each_determinant<T>(c[0], [&](int64_t i, const T* lu, int64_t n, bool odd) {
      Scaled<T> all;
      for (int64_t j = 0; j < n; ++j) all.times(lu[j * n + j]);
      outs[0].as<T>()[i] = odd ? -all.product() : all.product();
    });
  });
}

void run_slogdet(const Call& c, Outs& outs) {
  visit_linear(c[0].dtype, [&](auto t) {
    using T = decltype(t);
    each_determinant<T>(c[0], [&](int64_t i, const T* lu, int64_t n, bool odd) {
      T sign = odd ? T(-1) : T(1);
      Real<T> sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const Real<T> size = std::abs(lu[j * n + j]);
        sign *= size == 0 ? T(0) : lu[j * n + j] / size;
        sum += std::log(size);
      }
      outs[0].as<T>()[i] = sign;
      outs[1].as<T>()[i] = T(sum);
    });
  });
}

GT_OP("triangular_solve", {infer_triangular, run_triangular, true, 10});
GT_OP("solve", {infer_solve, run_solve, true, 20});
GT_OP("inv", {infer_inv, run_inv, true, 20});
GT_OP("det", {infer_det, run_det, true, 10});
GT_OP("slogdet", {infer_slogdet, run_slogdet, true, 10});

}  // namespace
}  // namespace gt
