// Functions of matrices: exponential (scaling, squaring and a Padé approximant), principal square
// root and logarithm (by the Schur form, after Björck and Hammarling, and Kenney and Laub).
#include <algorithm>

#include "../lapack.h"

namespace gt {
namespace {

void infer_same(const Call& c, Outs& outs) {
  want_dtype(c[0], kLinear, "a function of matrices");
  want_square(c[0]);
  outs.emplace_back(c[0].spec());
}

// out = a b, n x n
template <class T> void product_of(const T* a, const T* b, T* out, int64_t n) {
  multiply<T>(a, kNoTrans, b, kNoTrans, out, n, n, n);
}

template <class T> Real<T> norm_inf(const T* a, int64_t n) {  // the largest sum of a row
  Real<T> most = 0;
  for (int64_t i = 0; i < n; ++i) {
    Real<T> sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::abs(a[i * n + j]);
    if (!(sum <= most)) most = sum;  // a NaN stays
  }
  return most;
}

// ---- expm ----

// Higham (2005): up to this norm the approximant of a degree is exact to rounding.
struct Degree {
  int degree;
  double norm_single, norm_double;
};
constexpr Degree kDegrees[] = {{3, 0.4258730016922831, 0.01495585217958292},
                               {5, 1.880152677804762, 0.2539398330063230},
                               {7, 3.925724783138660, 0.9504178996162932},
                               {9, 0, 2.097847961257068},
                               {13, 0, 5.371920351148152}};

// The coefficients of the numerator of the diagonal Padé approximant of exp.
void coefficients(int degree, double* b) {
  b[degree] = 1;
  for (int k = degree; k > 0; --k)
    b[k - 1] = b[k] * double(k) * double(2 * degree - k + 1) / double(degree - k + 1);
}

template <class T> using Gesv = void (*)(const int*, const int*, T*, const int*, int*, T*, const int*, int*);

constexpr int kMatrices = 7;  // that expm works with

template <class T> void expm(Routine<Gesv<T>> gesv, T* x, int64_t n, T* scratch, int* pivots) {
  using R = Real<T>;
  constexpr bool single = std::is_same_v<R, float>;
  const int64_t size = n * n;
  const R norm = norm_inf(x, n);
  if (!std::isfinite(norm)) return std::fill_n(x, size, quiet_nan<T>()), void();
  int degree = 0, squarings = 0;
  double limit = 0;
  for (const Degree& d : kDegrees) {
    limit = single ? d.norm_single : d.norm_double;
    degree = d.degree;
    if (norm <= limit || (single && degree == 7)) break;
  }
  if (norm > limit) squarings = std::max(0, int(std::ceil(std::log2(double(norm) / limit))));
  for (int64_t i = 0; i < size; ++i) x[i] *= std::ldexp(R(1), -squarings);
  // exp(x) = (even + odd) / (even - odd), both sums of powers of x^2. Degree 13 splits off x^6.
  double b[16];
  coefficients(degree, b);
  T *even = scratch, *odd = even + size, *next = odd + size, *power = next + size;
  const int powers = degree == 13 ? 3 : degree / 2;
  product_of(x, x, power, n);
  for (int k = 1; k < powers; ++k) product_of(power, power + (k - 1) * size, power + k * size, n);
  auto add = [&](T* to, const double* c, int from) {  // c[0] + c[2] x^2 + c[4] x^4 + ...
    for (int k = std::max(from, 1); k <= powers; ++k)
      for (int64_t i = 0; i < size; ++i) to[i] += R(c[2 * k]) * power[(k - 1) * size + i];
    for (int64_t i = 0; i < n && from == 0; ++i) to[i * n + i] += R(c[0]);
  };
  auto sum = [&](T* to, int lowest) {
    std::fill_n(to, size, T(0));
    if (degree == 13) {
      std::fill_n(next, size, T(0));
      add(next, b + lowest + 6, 1);
      product_of(next, power + 2 * size, to, n);
    }
    add(to, b + lowest, 0);
  };
  sum(even, 0);
  sum(odd, 1);
  product_of(x, odd, next, n);
  // Powers of x commute: the order of the factors, and with it rows or columns, does not matter.
  for (int64_t i = 0; i < size; ++i) {
    x[i] = even[i] + next[i];
    even[i] -= next[i];
  }
  int order = int(n), info = 0;
  gesv(&order, &order, even, &order, pivots, x, &order, &info);
  for (int i = 0; i < squarings; ++i) {
    product_of(x, x, next, n);
    std::copy(next, next + size, x);
  }
}

void run_expm(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const int64_t n = rows_of(x), size = n * n;
  visit_linear(x.dtype, [&](auto t) {
    using T = decltype(t);
    auto gesv = lapack<T, Gesv<T>>("gesv");
    const int64_t bytes = kMatrices * size * int64_t(sizeof(T)) + n * int64_t(sizeof(int));
    each_item(x.numel / size, 20 * double(size) * double(n), bytes, [&](int64_t b, char* scratch) {
      T* out = outs[0].as<T>() + b * size;
      std::copy(x.as<T>() + b * size, x.as<T>() + (b + 1) * size, out);
      T* own = reinterpret_cast<T*>(scratch);
      expm<T>(gesv, out, n, own, reinterpret_cast<int*>(own + kMatrices * size));
    });
  });
}

// ---- functions of the Schur form: x = q t q^H with t upper triangular, always complex ----

template <class C>
using Gees = void (*)(const char*, const char*, void*, const int*, C*, const int*, int*, C*, C*, const int*,
                      C*, const int*, Real<C>*, int*, int*, size_t, size_t);

// Overwrites an upper triangular t (by columns) with its square root.
template <class C> void root_of_triangle(C* t, int64_t n) {
  auto at = [&](int64_t i, int64_t j) -> C& { return t[j * n + i]; };
  for (int64_t j = 0; j < n; ++j) {
    at(j, j) = std::sqrt(at(j, j));
    for (int64_t i = j - 1; i >= 0; --i) {
      C s = at(i, j);
      for (int64_t k = i + 1; k < j; ++k) s -= at(i, k) * at(k, j);
      const C both = at(i, i) + at(j, j);
      at(i, j) = s == C(0) && both == C(0) ? C(0) : s / both;
    }
  }
}

// Points and weights of the Gauss-Legendre rule of 8 points on [0, 1]. With them the integral
// log(1 + x) = int_0^1 x / (1 + s x) ds is the diagonal Padé approximant of degree 8.
constexpr int kPoints = 8;
constexpr double kPoint[kPoints] = {0.01985507175123188, 0.10166676129318664, 0.2372337950418355,
                                    0.4082826787521751,  0.5917173212478249,  0.7627662049581645,
                                    0.8983332387068134,  0.9801449282487681};
constexpr double kWeight[kPoints] = {0.05061426814518813, 0.11119051722668724, 0.15685332293894363,
                                     0.18134189168918100, 0.18134189168918100, 0.15685332293894363,
                                     0.11119051722668724, 0.05061426814518813};

// Overwrites an upper triangular t (by columns) with its logarithm; `spare` has 2 n^2 elements and
// `w` the diagonal, whose logarithms are taken directly.
template <class C> void log_of_triangle(C* t, int64_t n, const C* w, C* spare) {
  using R = Real<C>;
  auto at = [n](C* m, int64_t i, int64_t j) -> C& { return m[j * n + i]; };
  C *x = spare, *sum = spare + n * n;
  int roots = 0;
  for (;; ++roots) {
    R size = 0;
    for (int64_t i = 0; i < n; ++i) {
      R row = 0;
      for (int64_t j = i; j < n; ++j) row += std::abs(at(t, i, j) - C(i == j));
      size = std::max(size, row);
    }
    if (size < R(0.25) || !std::isfinite(size) || roots == 60) break;
    root_of_triangle(t, n);
  }
  for (int64_t i = 0; i < n; ++i) at(t, i, i) -= C(1);
  std::fill_n(sum, n * n, C(0));
  for (int p = 0; p < kPoints; ++p) {
    const R s = R(kPoint[p]), weight = R(kWeight[p]);
    // x = (1 + s t)^-1 t, each column from below
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j; i >= 0; --i) {
        C v = at(t, i, j);
        for (int64_t k = i + 1; k <= j; ++k) v -= s * at(t, i, k) * at(x, k, j);
        at(x, i, j) = v / (R(1) + s * at(t, i, i));
        at(sum, i, j) += weight * at(x, i, j);
      }
  }
  const R scale = std::ldexp(R(1), roots);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i <= j; ++i) at(t, i, j) = i == j ? std::log(w[i]) : scale * at(sum, i, j);
}

enum class Function { Root, Log };

template <Function what> void run_schur(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const int64_t n = rows_of(x), size = n * n;
  visit_linear(x.dtype, [&](auto type) {
    using T = decltype(type);
    using C = std::complex<Real<T>>;
    using R = Real<T>;
    auto gees = lapack<C, Gees<C>>("gees");
    const int order = int(n), ask = -1;
    int none = 0, info = 0;
    C best = 0;
    gees("V", "N", nullptr, &order, nullptr, &order, &none, nullptr, nullptr, &order, &best, &ask, nullptr,
         nullptr, &info, 1, 1);
    const int length = std::max(2 * order, int(best.real()));
    struct Memory {
      Carve carve;
      C *t, *q, *w, *work, *spare;
      R* reals;
      Memory(char* at, int64_t n, int64_t length)
          : carve{at},
            t(carve.take<C>(n * n)),
            q(carve.take<C>(n * n)),
            w(carve.take<C>(n)),
            work(carve.take<C>(length)),
            spare(carve.take<C>(2 * n * n)),
            reals(carve.take<R>(n)) {}
    };
    each_item(x.numel / size, 100 * double(size) * double(n), Memory(nullptr, n, length).carve.bytes,
              [&](int64_t b, char* scratch) {
                auto [carve, t, q, w, work, spare, reals] = Memory(scratch, n, length);
                const T* in = x.as<T>() + b * size;
                T* out = outs[0].as<T>() + b * size;
                for (int64_t i = 0; i < n; ++i)
                  for (int64_t j = 0; j < n; ++j) t[j * n + i] = C(in[i * n + j]);
                int found = 0, info = 0;
                if (!all_finite(in, size))
                  info = 1;
                else
                  gees("V", "N", nullptr, &order, t, &order, &found, w, q, &order, work, &length, reals,
                       nullptr, &info, 1, 1);
                bool none = info != 0;
                for (int64_t i = 0; i < n && !none; ++i) {
                  // The root of a negative number is not real; zero has no logarithm.
                  if (what == Function::Root && !is_complex_type<T>)
                    none |= w[i].real() < 0 &&
                            std::abs(w[i].imag()) <= -w[i].real() * std::numeric_limits<R>::epsilon();
                  if (what == Function::Log) none |= w[i] == C(0);
                }
                if (none) return std::fill_n(out, size, quiet_nan<T>()), void();
                if constexpr (what == Function::Root)
                  root_of_triangle(t, n);
                else
                  log_of_triangle(t, n, w, spare);
                for (int64_t j = 0; j < n; ++j) std::fill(t + j * n + j + 1, t + (j + 1) * n, C(0));
                // By rows, q and t are their transposes.
                C *left = spare, *product = spare + size;
                multiply<C>(q, kTrans, t, kTrans, left, n, n, n);
                for (int64_t i = 0; i < size; ++i) q[i] = std::conj(q[i]);
                multiply<C>(left, kNoTrans, q, kNoTrans, product, n, n, n);
                for (int64_t i = 0; i < size; ++i) {
                  if constexpr (is_complex_type<T>)
                    out[i] = product[i];
                  else
                    out[i] = product[i].real();
                }
              });
  });
}

GT_OP("expm", {infer_same, run_expm, true, 100});
GT_OP("sqrtm", {infer_same, run_schur<Function::Root>, true, 200});
GT_OP("logm", {infer_same, run_schur<Function::Log>, true, 200});

}  // namespace
}  // namespace gt
