// Matrix products. OpenBLAS computes the tiles; which tiles there are depends on the sizes only, so a result
// does not depend on the number of threads. Where the processor supports it, products of float and of 16-bit
// floats have kernels of our own (contraction_panels.cpp); otherwise products of 16-bit floats are computed
// in float.
#include <algorithm>
#include <climits>
#include <complex>
#include <type_traits>

#include "../blas.h"
#include "../cpu.h"
#include "../kernels/loops.h"
#include "../kernels/products.h"
#include "contraction.h"
#include "elementwise.h"
#include "strided.h"

namespace gt {
namespace {

template <class T> auto gemm_of(const Blas& f) {
  if constexpr (std::is_same_v<T, float>)
    return f.sgemm;
  else if constexpr (std::is_same_v<T, double>)
    return f.dgemm;
  else if constexpr (std::is_same_v<T, c64>)
    return f.cgemm;
  else
    return f.zgemm;
}
template <class T> auto gemv_of(const Blas& f) {
  if constexpr (std::is_same_v<T, float>)
    return f.sgemv;
  else if constexpr (std::is_same_v<T, double>)
    return f.dgemv;
  else if constexpr (std::is_same_v<T, c64>)
    return f.cgemv;
  else
    return f.zgemv;
}
template <class T>
constexpr bool is_blas = std::is_floating_point_v<T> || std::is_same_v<T, c64> || std::is_same_v<T, c128>;

// On the calling thread. Measured: gemm has kernels for small products (17 ns for 2x2) unless b
// is transposed, where gemv wins; from some 8000 elements gemv wins for vectors anyway.
template <class T> void call_blas(const Product<T>& p) {
  const Blas& f = blas();
  auto gemm = gemm_of<T>(f);
  auto gemv = gemv_of<T>(f);
  const T one = 1, zero = 0;
  auto scalar = [](const T& x) -> decltype(auto) {
    if constexpr (std::is_floating_point_v<T>)
      return x;
    else
      return &x;
  };
  int m = int(p.m), n = int(p.n), k = int(p.k), lda = int(p.lda), ldb = int(p.ldb), ldc = int(p.ldc);
  bool large = int64_t(std::max(m, n)) * k > 8192;
  if (m == 1 && (p.tb || large))
    gemv(kRowMajor, p.tb ? kNoTrans : kTrans, p.tb ? n : k, p.tb ? k : n, scalar(one), p.b, ldb, p.a,
         p.ta ? lda : 1, scalar(zero), p.c, 1);
  else if (n == 1 && large)
    gemv(kRowMajor, p.ta ? kTrans : kNoTrans, p.ta ? k : m, p.ta ? m : k, scalar(one), p.a, lda, p.b,
         p.tb ? 1 : ldb, scalar(zero), p.c, ldc);
  else
    gemm(kRowMajor, p.ta ? kTrans : kNoTrans, p.tb ? kTrans : kNoTrans, m, n, k, scalar(one), p.a, lda, p.b,
         ldb, scalar(zero), p.c, ldc);
}

// Integers: no library supports them. Overflow wraps.
template <class T> void call_loop(const Product<T>& p) {
  using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
  int64_t bk = p.tb ? 1 : p.ldb, bj = p.tb ? p.ldb : 1;
  for (int64_t i = 0; i < p.m; ++i) {
    T* c = p.c + i * p.ldc;
    std::fill_n(c, p.n, T(0));
    for (int64_t l = 0; l < p.k; ++l) {
      U x = U(p.ta ? p.a[l * p.lda + i] : p.a[i * p.lda + l]);
      const T* b = p.b + l * bk;
      for (int64_t j = 0; j < p.n; ++j) c[j] = T(U(c[j]) + x * U(b[j * bj]));
    }
  }
}

// Whether our own kernels multiply these. Measured: OpenBLAS is faster where one of the operands is almost a
// vector, where sums have few terms, and where few rows are multiplied with a b that must be transposed.
template <class T> bool by_panels(const Product<T>& p) {
  if constexpr (!has_panels<T>)
    return false;
  else if constexpr (is_blas<T>)
    return multiplies_panels<T>() && p.n >= kPanelVector && p.k >= 8 && p.m >= (p.tb ? 16 : 2);
  else
    return true;
}

template <class T> void call(const Product<T>& p) {
  if constexpr (has_panels<T>)
    if (by_panels(p)) return run_panels_here(p);
  if constexpr (is_blas<T>)
    call_blas(p);
  else if constexpr (!has_panels<T>)
    call_loop(p);
}

// Work in flops, with products that wait for memory or have no library counted higher.
template <class T> double work(const Product<T>& p) {
  double flops = 2.0 * double(p.m) * double(p.n) * double(p.k);
  if (has_panels<T> && by_panels(p))
    return flops / (std::is_same_v<T, bfloat> || std::is_same_v<T, octet> ? 2 : 1);
  if (!is_blas<T>) return flops * 32;
  constexpr bool kComplex = std::is_same_v<T, c64> || std::is_same_v<T, c128>;
  return flops * (p.m == 1 || p.n == 1 ? 8 : 1) * (kComplex ? 4 : 1) * (sizeof(T) / (kComplex ? 8 : 4));
}

// Small result, long sum (the gradient of a weight over a large batch): parts of the sum.
template <class T> bool run_depth_parts(const Product<T>& p, double total) {
  if constexpr (is_blas<T>) {
    int64_t parts = std::min<int64_t>(8, int64_t(total / kWorthAThread));
    if (parts < 2 || p.k < 512 * parts || p.m * p.n > 16384) return false;
    int64_t size = p.m * p.n, step = (p.k + parts - 1) / parts;
    parts = (p.k + step - 1) / step;
    const int64_t length = parts * size;
    Tensor sums = empty(DtypeOf<T>::value, Shape(&length, 1));
    T* part = sums.as<T>();
    each_chunk(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        call(p.depth(i * step, std::min(step, p.k - i * step), part + i * size));
    });
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        T s = part[i * p.n + j];
        for (int64_t q = 1; q < parts; ++q) s += part[q * size + i * p.n + j];
        p.c[i * p.ldc + j] = s;
      }
    return true;
  } else {
    return false;
  }
}

// Whether to cut a product into tiles so small (100^3) that OpenBLAS reads the operands where they
// are instead of packing them first, as it can with AVX-512. Measured: 10 to 40 % faster than one
// call, as long as the operands stay in the cache; 10 % slower with b transposed and short sums.
template <class T> bool reads_in_place(const Product<T>& p, double total) {
  static const bool can = isa_level() == 4 && std::is_floating_point_v<T>;
  return can && total < 1.4e8 && !(p.tb && p.k < 128);
}

// The sides of the tiles of a product.
struct Tile {
  int64_t m, n;
};
template <class T> Tile tile_of(const Product<T>& p, double total) {
  Tile t{p.m, p.n};
  const bool small = reads_in_place(p, total);
  auto half = [](int64_t n) { return (n / 2 + 15) / 16 * 16; };
  for (double tile = total;;) {
    int64_t count = ((p.m + t.m - 1) / t.m) * ((p.n + t.n - 1) / t.n);
    // More tiles for larger products. Measured: a tile of 256 x 256 costs 4 % more than an uncut
    // product, one of 128 x 128 costs 10 %, because its operands are packed once a tile.
    if (tile < 2 * kWorthAThread || (!small && count >= 4 && tile <= double(count << 25))) break;
    bool wide = t.n > t.m;
    int64_t &side = wide ? t.n : t.m, least = (wide ? p.m : p.n) == 1 ? 512 : 32;
    if (half(side) < least) break;
    tile = tile * double(half(side)) / double(side);
    side = half(side);
  }
  return t;
}

template <class T> void run_product(const Product<T>& p) {
  if constexpr (has_panels<T>)
    if (by_panels(p)) return run_panels(p);
  double total = work(p);
  if (total < 2 * kWorthAThread) return call(p);
  const auto [tm, tn] = tile_of(p, total);
  int64_t down = (p.m + tm - 1) / tm, across = (p.n + tn - 1) / tn;
  if (down * across < 4 && run_depth_parts(p, total)) return;
  each_chunk(down * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t i = t / across * tm, j = t % across * tn;
      call(p.rows(i, std::min(tm, p.m - i)).columns(j, std::min(tn, p.n - j)));
    }
  });
}

// ---- matmul(a, b; transpose_a, transpose_b) ----
void infer_matmul(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  want_dtype(a, kNumber, "matmul");
  want_same_dtype(a, b);
  int ra = a.shape.rank, rb = b.shape.rank;
  if (ra < 2 || rb < 2)
    fail("In[" + std::to_string(ra < 2 ? 0 : 1) + "] ndims must be >= 2: In[0]: " + a.shape.str() +
         ", In[1]: " + b.shape.str() +
         ". Hint: tf.linalg.matvec multiplies a matrix with a vector, tf.tensordot(a, b, 1) two vectors");
  bool ta = c.integer(0), tb = c.integer(1);
  int64_t m = a.shape[ra - (ta ? 1 : 2)], k = a.shape[ra - (ta ? 2 : 1)], kb = b.shape[rb - (tb ? 1 : 2)],
          n = b.shape[rb - (tb ? 2 : 1)];
  if (k != kb) fail("Matrix size-incompatible: In[0]: " + a.shape.str() + ", In[1]: " + b.shape.str());
  if (std::max({n, k, ta ? m : 0}) > INT_MAX)
    fail("matmul: a dimension above 2147483647 is not supported: In[0]: " + a.shape.str() +
         ", In[1]: " + b.shape.str());
  Spec s{a.dtype, {}};
  if (ra > 2 || rb > 2) {
    try {
      s.shape = broadcast(Shape(a.shape.dims, ra - 2), Shape(b.shape.dims, rb - 2));
    } catch (const Error&) {
      fail("In[0] and In[1] must have compatible batch dimensions: " + a.shape.str() + " vs. " +
           b.shape.str());
    }
  }
  s.shape.push(m);
  s.shape.push(n);
  outs.emplace_back(s);
}

// Where the matrix of one batch index begins: steps of an operand along the batch axes.
struct Batch {
  int rank;
  const int64_t* dims;
  int64_t step[kMaxRank];
  Batch(const Shape& x, const Shape& out) : rank(out.rank - 2), dims(out.dims) {
    int64_t at = x[x.rank - 2] * x[x.rank - 1];
    for (int i = 0; i < rank; ++i) step[i] = 0;
    for (int i = x.rank - 3, o = rank - 1; i >= 0; --i, --o) {
      step[o] = x[i] == 1 ? 0 : at;
      at *= x[i];
    }
  }
  int64_t offset(int64_t index) const {
    int64_t sum = 0;
    for (int i = rank - 1; i >= 0; --i) sum += index % dims[i] * step[i], index /= dims[i];
    return sum;
  }
};

template <class T> void run_typed(const Tensor& a, const Tensor& b, Tensor& out, bool ta, bool tb) {
  int64_t m = out.shape[out.shape.rank - 2], n = out.shape[out.shape.rank - 1],
          k = a.shape[a.shape.rank - (ta ? 2 : 1)];
  Product<T> p{a.as<T>(), b.as<T>(), out.as<typename Product<T>::C>(), m, n, k, ta ? m : k, tb ? k : n, n,
               ta,        tb};
  int64_t batch = out.numel / (m * n);
  if (batch == 1) return run_product(p);
  if (b.numel == n * k && !ta) {  // one matrix on the right: the batch is more rows
    p.m *= batch;
    return run_product(p);
  }
  Batch at_a(a.shape, out.shape), at_b(b.shape, out.shape);
  auto matrix = [&](int64_t i) {
    Product<T> q = p;
    q.a += at_a.offset(i), q.b += at_b.offset(i), q.c += i * m * n;
    return q;
  };
  double each = work(p);
  const bool small = !by_panels(p) && reads_in_place(p, each);
  if (each >= 32 * kWorthAThread) {  // large matrices: threads inside each
    for (int64_t i = 0; i < batch; ++i) run_product(matrix(i));
    return;
  }
  each_chunk(batch, std::max<int64_t>(1, int64_t(kWorthAThread / each)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) small ? run_product(matrix(i)) : call(matrix(i));
  });
}

Tensor as_float(const Tensor& x) {
  Tensor y = empty(Dtype::F32, x.shape);
  run_cast(x, y);
  return y;
}

void run_matmul(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  Tensor& out = outs[0];
  bool ta = c.integer(0), tb = c.integer(1);
  if (out.numel == 0) return;
  if (a.numel == 0) return zero(out.data, out.nbytes());
  if (a.dtype == Dtype::BF16 && multiplies_panels<bfloat>()) return run_typed<bfloat>(a, b, out, ta, tb);
  if (a.dtype == Dtype::F16 && multiplies_panels<half>() && out.shape[out.shape.rank - 1] >= kPanelVector)
    return run_typed<half>(a, b, out, ta, tb);
  if (!is_int(a.dtype)) blas();  // a library that cannot be loaded is found out here, not on a worker thread
  if (in(a.dtype, kHalf)) {      // summed in float
    Tensor wide = empty(Dtype::F32, out.shape);
    run_typed<float>(as_float(a), as_float(b), wide, ta, tb);
    return run_cast(wide, out);
  }
  visit(a.dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (is_blas<T> || (std::is_integral_v<T> && !std::is_same_v<T, bool>))
      run_typed<T>(a, b, out, ta, tb);
  });
}

// ---- matmul_int8(a, b; transpose_a, transpose_b): the same of int8, to int32 ----
void infer_matmul_int8(const Call& c, Outs& outs) {
  want_dtype(c[0], set_of(Dtype::I8), "matmul_int8");
  infer_matmul(c, outs);
  outs[0].dtype = Dtype::I32;
}

void run_matmul_int8(const Call& c, Outs& outs) {
  const Tensor &a = c[0], &b = c[1];
  Tensor& out = outs[0];
  bool ta = c.integer(0), tb = c.integer(1);
  if (out.numel == 0) return;
  if (a.numel == 0) return zero(out.data, out.nbytes());
  if (multiplies_panels<octet>()) return run_typed<octet>(a, b, out, ta, tb);
  Tensor x = empty(Dtype::I32, a.shape), y = empty(Dtype::I32, b.shape);
  run_cast(a, x), run_cast(b, y);
  run_typed<int32_t>(x, y, out, ta, tb);
}

GT_OP("matmul", {infer_matmul, run_matmul, true, 2.0});
GT_OP("matmul_int8", {infer_matmul_int8, run_matmul_int8, true, 1.0});

}  // namespace
}  // namespace gt
