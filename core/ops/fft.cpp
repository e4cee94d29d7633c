// Fourier transforms of complex and of real numbers, along any axis.
#include "fft_plan.h"

#include <cmath>

#include "../kernels/loops.h"
#include "chunks.h"

namespace gt {
namespace {

template <class T> const FftLoops& loops() { return kernels().fft[sizeof(T) == 8]; }
constexpr int kMostLanes = 16, kApart = 5 * 64;

// From kLong on, lines side by side do not fit into the cache; below kShort a line is not worth cutting.
constexpr int64_t kLong = 4096, kShort = 64;

// Some lines of an array, at most as many as there are lanes, that are transformed to lines of another or the
// same.
struct Block {
  int64_t from[kMostLanes], to[kMostLanes];
  int64_t from_step, to_step;
  int count;
};

// Transforms of many lines of one length; the method is chosen once.
template <class T> class Transform {
 public:
  using C = std::complex<T>;

  Transform(int64_t n, int64_t lines, bool inverse, double scale)
      : plan_(plan_of<T>(n)), n_(n), inverse_(inverse), scale_(scale) {
    if (!plan_->smooth())
      way_ = Way::Convolution;
    else if (n >= kLong && plan_->splits())
      way_ = Way::Split;
    else if (2 * lines >= loops<T>().lanes)
      way_ = Way::Together;
    else if (n >= kShort && plan_->splits())
      way_ = Way::Split;
    else
      way_ = Way::Alone;
    // Must not be computed on a thread of the pool.
    if (way_ == Way::Split) plan_->split();
    if (way_ == Way::Convolution)
      rest_ = std::make_unique<Transform>(plan_->convolution().plan->n, 1, false, 1.0);
  }

  int lanes() const { return way_ == Way::Together ? loops<T>().lanes : 1; }  // lines of a block

  // The memory that `run` works in.
  int64_t bytes() const {
    constexpr int64_t size = sizeof(T), slack = 4 * (kApart + 64);
    switch (way_) {
      case Way::Alone: return 4 * n_ * size + slack;
      case Way::Together: return 4 * n_ * loops<T>().lanes * size + slack;
      case Way::Split: return 2 * n_ * size + slack + block_bytes();
      default: return rest_->n_ * 2 * size + slack + rest_->bytes();
    }
  }
  double cost() const {
    return 2.5 * double(n_) * std::log2(double(n_) + 1) * (way_ == Way::Convolution ? 6 : 1);
  }

  // `threads`: no other block runs at the same time, so that a single line may use all of them.
  void run(const C* x, C* out, const Block& b, char* scratch, bool threads = false) const {
    switch (way_) {
      case Way::Split:
        return run_split(x + b.from[0], b.from_step, out + b.to[0], b.to_step, scratch, threads);
      case Way::Convolution:
        return run_convolution(x + b.from[0], b.from_step, out + b.to[0], b.to_step, scratch);
      default: return run_stages(x, out, b, scratch);
    }
  }

 private:
  enum class Way { Alone, Together, Split, Convolution };

  // Real and imaginary parts before and after a stage.
  struct Parts {
    void *from[2], *to[2];
    Parts(Carve& carve, int64_t n) {
      // A little apart, or all of them would compete for the same cache lines.
      for (auto* p : {&from[0], &from[1], &to[0], &to[1]}) *p = carve.take<T>(n), carve.take<char>(kApart);
    }
  };
  // The inverse transform is the forward one with real and imaginary parts swapped.
  struct Turned {
    void* p[2];
    Turned(void* const parts[2], bool turn) : p{parts[turn], parts[!turn]} {}
  };

  void run_stages(const C* x, C* out, const Block& b, char* scratch) const {
    const FftLoops& f = loops<T>();
    const bool one = way_ == Way::Alone;
    const int width = one ? 1 : f.lanes;
    Carve carve{scratch};
    const Parts p(carve, n_ * width);
    f.load(Turned(p.from, inverse_).p, x, {b.from, b.from_step, n_, b.count}, width);
    const bool moved = (one ? f.run_one : f.run)(plan_->stages(), p.from, p.to);
    f.store(out, Turned(moved ? p.to : p.from, inverse_).p, {b.to, b.to_step, n_, b.count}, width, scale_);
  }

  int64_t block_bytes() const {
    return 4 * std::max(plan_->split().rows, plan_->split().columns) * loops<T>().lanes * int64_t(sizeof(T)) +
           4 * (kApart + 64);
  }

  // A line as a matrix: transforms of its columns, factors, transforms of its rows. The result is the
  // matrix by columns.
  void run_split(const C* x, int64_t x_step, C* out, int64_t out_step, char* scratch, bool threads) const {
    const FftLoops& f = loops<T>();
    const auto& s = plan_->split();
    Carve carve{scratch};
    void* matrix[2] = {carve.take<T>(n_), carve.take<T>(n_)};
    auto each_block = [&](int64_t lines, auto&& g) {
      const int64_t blocks = (lines + f.lanes - 1) / f.lanes;
      auto block = [&](int64_t i, char* own) {
        g(i * f.lanes, int(std::min<int64_t>(f.lanes, lines - i * f.lanes)), own);
      };
      if (threads) return each_item(blocks, cost() / double(blocks), block_bytes(), block);
      for (int64_t i = 0; i < blocks; ++i) block(i, scratch + carve.bytes);
    };
    auto offset = [](void* const p[2], int64_t by, void*(&q)[2]) {
      q[0] = static_cast<T*>(p[0]) + by, q[1] = static_cast<T*>(p[1]) + by;
    };
    each_block(s.columns, [&](int64_t first, int count, char* own) {
      Carve carve{own};
      const Parts p(carve, s.rows * f.lanes);
      int64_t at[kMostLanes];
      for (int k = 0; k < count; ++k) at[k] = (first + k) * x_step;
      f.load(Turned(p.from, inverse_).p, x, {at, s.columns * x_step, s.rows, count}, f.lanes);
      const bool moved = f.run(s.of_columns->stages(), p.from, p.to);
      void* to[2];
      offset(matrix, first, to);
      const void* factors[2] = {s.re.data() + first, s.im.data() + first};
      f.store_rows(to, moved ? p.to : p.from, factors, s.rows, s.columns, count);
    });
    each_block(s.rows, [&](int64_t first, int count, char* own) {
      Carve carve{own};
      const Parts p(carve, s.columns * f.lanes);
      void* from[2];
      offset(matrix, first * s.columns, from);
      f.load_columns(p.from, from, s.columns, s.columns, count);
      const bool moved = f.run(s.of_rows->stages(), p.from, p.to);
      int64_t at[kMostLanes];
      for (int k = 0; k < count; ++k) at[k] = (first + k) * out_step;
      f.store(out, Turned(moved ? p.to : p.from, inverse_).p, {at, s.rows * out_step, s.columns, count},
              f.lanes, scale_);
    });
  }

  void run_convolution(const C* x, int64_t x_step, C* out, int64_t out_step, char* scratch) const {
    const auto& c = plan_->convolution();
    const int64_t m = rest_->n_;
    auto times = [](C a, C b) {
      return C(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    };
    Carve carve{scratch};
    C* y = carve.take<C>(m);
    char* more = scratch + carve.bytes;
    const Block all{{0}, {0}, 1, 1, 1};
    for (int64_t k = 0; k < n_; ++k)
      y[k] = times(inverse_ ? std::conj(x[k * x_step]) : x[k * x_step], c.chirp[size_t(k)]);
    std::fill(y + n_, y + m, C(0));
    rest_->run(y, y, all, more);
    for (int64_t k = 0; k < m; ++k) y[k] = std::conj(times(y[k], c.kernel[size_t(k)]));
    rest_->run(y, y, all, more);  // of conjugates: the inverse
    for (int64_t k = 0; k < n_; ++k) {
      const C v = times(std::conj(y[k]), c.chirp[size_t(k)]) * T(scale_);
      out[k * out_step] = inverse_ ? std::conj(v) : v;
    }
  }

  PlanRef<T> plan_;
  int64_t n_;
  bool inverse_;
  double scale_;
  Way way_;
  std::unique_ptr<Transform> rest_;  // of a convolution
};

// Calls f(first, count, scratch) for all lines, in blocks of lines that are transformed together.
template <class T, class F> void each_block(const Transform<T>& t, int64_t lines, int64_t more_bytes, F&& f) {
  const int64_t lanes = t.lanes(), blocks = (lines + lanes - 1) / lanes;
  each_item(blocks, t.cost() * double(lanes), t.bytes() + more_bytes, [&](int64_t i, char* scratch) {
    f(i * lanes, int(std::min(lanes, lines - i * lanes)), scratch);
  });
}

// ---- fft(x; axes, inverse, scale) ----
void infer_fft(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  want_dtype(x, kComplex, "fft");
  for (int64_t axis : c.ints(0))
    if (axis < 0 || axis >= x.shape.rank)
      fail("axis " + std::to_string(axis) + " is out of range for a tensor of rank " +
           std::to_string(x.shape.rank));
  outs.emplace_back(x.spec());
}

template <class T>
void transform_axis(const std::complex<T>* x, std::complex<T>* out, const Split& v, bool inverse,
                    double scale) {
  const int64_t lines = v.outer * v.inner;
  const Transform<T> t(v.size, lines, inverse, scale);
  each_block(t, lines, 0, [&](int64_t first, int count, char* scratch) {
    Block b{{}, {}, v.inner, v.inner, count};
    for (int k = 0; k < count; ++k)
      b.from[k] = b.to[k] = (first + k) / v.inner * v.size * v.inner + (first + k) % v.inner;
    t.run(x, out, b, scratch, lines == 1);
  });
}

void run_fft(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const auto& axes = c.ints(0);
  const bool inverse = c.integer(1);
  auto all = [&](auto t) {
    using T = decltype(t);
    using C = std::complex<T>;
    const C* from = x.as<C>();
    C* to = outs[0].as<C>();
    double scale = c.number(2);
    if (axes.empty())
      for (int64_t i = 0; i < x.numel; ++i) to[i] = from[i] * T(scale);
    for (size_t i = axes.size(); i-- > 0; from = to, scale = 1)
      transform_axis<T>(from, to, gt::Split(x.shape, int(axes[i])), inverse, scale);
  };
  x.dtype == Dtype::C64 ? all(float{}) : all(double{});
}

// The number of elements that determine the transform of n real numbers.
int64_t half_of(int64_t n) { return n ? n / 2 + 1 : 0; }

// ---- rfft(x; scale) along the last axis: the first half of the transform of real numbers ----
void infer_rfft(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  want_dtype(x, set_of(Dtype::F32) | set_of(Dtype::F64), "rfft");
  if (x.shape.rank < 1) fail("input must have rank of at least 1");
  Spec s{x.dtype == Dtype::F32 ? Dtype::C64 : Dtype::C128, x.shape};
  s.shape[s.shape.rank - 1] = half_of(x.shape[x.shape.rank - 1]);
  outs.emplace_back(s);
}

template <class T>
void real_transform(const T* x, std::complex<T>* out, int64_t lines, int64_t n, double scale) {
  using C = std::complex<T>;
  const int64_t half = n / 2, length = n % 2 ? n : half;
  const Transform<T> t(length, lines, false, 1.0);
  const C* roots = n % 2 ? nullptr : plan_of<T>(half)->half_roots().data();
  const PlanRef<T> keep = plan_of<T>(length);
  each_block(t, lines, t.lanes() * length * int64_t(sizeof(C)) + 64,
             [&](int64_t first, int count, char* scratch) {
               Carve carve{scratch};
               C* z = carve.take<C>(count * length);
               Block b{{}, {}, 1, 1, count};
               for (int k = 0; k < count; ++k)
                 b.from[k] = (n % 2 ? k : first + k) * length, b.to[k] = k * length;
               if (n % 2)  // cannot be read as complex numbers
                 for (int64_t i = 0; i < count * n; ++i) z[i] = C(x[first * n + i]);
               t.run(n % 2 ? z : reinterpret_cast<const C*>(x), z, b, scratch + carve.bytes, lines == 1);
               for (int k = 0; k < count; ++k) {
                 C* y = out + (first + k) * (half + 1);
                 if (n % 2)
                   for (int64_t i = 0; i <= half; ++i) y[i] = z[k * n + i] * T(scale);
                 else
                   loops<T>().unpack(y, z + k * half, roots, half, scale);
               }
             });
}

void run_rfft(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const int64_t n = x.shape[x.shape.rank - 1];
  if (x.dtype == Dtype::F32)
    real_transform(x.as<float>(), outs[0].as<c64>(), x.numel / n, n, c.number(0));
  else
    real_transform(x.as<double>(), outs[0].as<c128>(), x.numel / n, n, c.number(0));
}

// ---- irfft(x; length, scale) along the last axis: real numbers from the first half of their transform ----
void infer_irfft(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  want_dtype(x, kComplex, "irfft");
  const int64_t n = c.integer(0);
  if (x.shape.rank < 1) fail("input must have rank of at least 1");
  if (n < 0 || x.shape[x.shape.rank - 1] != half_of(n))
    fail("a real transform of length " + std::to_string(n) + " has " + std::to_string(half_of(n)) +
         " elements; got shape " + x.shape.str());
  Spec s{real_of(x.dtype), x.shape};
  s.shape[s.shape.rank - 1] = n;
  outs.emplace_back(s);
}

template <class T>
void real_inverse(const std::complex<T>* x, T* out, int64_t lines, int64_t n, double scale) {
  using C = std::complex<T>;
  const int64_t half = n / 2, length = n % 2 ? n : half;
  const Transform<T> t(length, lines, true, scale);
  const PlanRef<T> keep = plan_of<T>(length);
  const C* roots = n % 2 ? nullptr : keep->half_roots().data();
  each_block(t, lines, t.lanes() * length * int64_t(sizeof(C)) + 64,
             [&](int64_t first, int count, char* scratch) {
               Carve carve{scratch};
               C* z = carve.take<C>(count * length);
               Block b{{}, {}, 1, 1, count};
               for (int k = 0; k < count; ++k) {
                 b.from[k] = k * length, b.to[k] = (n % 2 ? k : first + k) * length;
                 const C* line = x + (first + k) * (half + 1);
                 C* to = z + k * length;
                 if (n % 2 == 0) {
                   loops<T>().pack(to, line, roots, half);
                   continue;
                 }
                 to[0] = line[0].real();
                 for (int64_t i = 1; i <= half; ++i) to[i] = line[i], to[n - i] = std::conj(line[i]);
               }
               t.run(z, n % 2 ? z : reinterpret_cast<C*>(out), b, scratch + carve.bytes, lines == 1);
               if (n % 2)
                 for (int64_t i = 0; i < count * n; ++i) out[first * n + i] = z[i].real();
             });
}

void run_irfft(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (x.numel == 0) return;
  const int64_t n = c.integer(0), lines = x.numel / (n / 2 + 1);
  if (x.dtype == Dtype::C64)
    real_inverse(x.as<c64>(), outs[0].as<float>(), lines, n, c.number(1));
  else
    real_inverse(x.as<c128>(), outs[0].as<double>(), lines, n, c.number(1));
}

GT_OP("fft", {infer_fft, run_fft, true, 3});
GT_OP("rfft", {infer_rfft, run_rfft, true, 3});
GT_OP("irfft", {infer_irfft, run_irfft, true, 3});

}  // namespace

template <class T> void transform_line(const PlanRef<T>& plan, std::complex<T>* x) {
  transform_axis<T>(x, x, {Shape(&plan->n, 1), 0}, false, 1.0);
}
template void transform_line(const PlanRef<float>&, std::complex<float>*);
template void transform_line(const PlanRef<double>&, std::complex<double>*);

}  // namespace gt
