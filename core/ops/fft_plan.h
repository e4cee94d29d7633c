// How a Fourier transform of a given length is computed. A length whose prime factors are at most 13 is
// a list of stages (kernels/fft.cpp); long ones of these are two shorter transforms, of the columns and of
// the rows of a matrix (Bailey's four steps). All others are convolutions of a suitable length
// (Bluestein's chirp).
#pragma once
#include <atomic>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "../kernels/fft.h"

namespace gt {

template <class T> class Plan;
template <class T> using PlanRef = std::shared_ptr<const Plan<T>>;

// The plan of a length; cached.
template <class T> PlanRef<T> plan_of(int64_t n);

// A part that is computed on first use. Threads that need it at the same time compute one each, and the first
// is kept: waiting for another thread could deadlock after a fork.
template <class V> class Part {
 public:
  ~Part() { delete made(); }
  const V* made() const { return made_.load(std::memory_order_acquire); }  // or nullptr
  template <class F> const V& get(F&& make) const {
    const V* kept = made();
    if (kept) return *kept;
    auto mine = std::make_unique<const V>(make());
    return made_.compare_exchange_strong(kept, mine.get()) ? *mine.release() : *kept;
  }

 private:
  mutable std::atomic<const V*> made_{nullptr};
};

template <class T> class Plan {
 public:
  using C = std::complex<T>;

  // n = rows * columns; factors of the elements between the two transforms, by rows.
  struct Split {
    int64_t rows = 1, columns = 1;
    PlanRef<T> of_columns, of_rows;  // of length `rows` and of length `columns`
    std::vector<T> re, im;
  };
  // y = chirp * (kernel convolved with chirp * x); `kernel` is already transformed and scaled.
  struct Convolution {
    PlanRef<T> plan;
    std::vector<C> chirp, kernel;
  };

  explicit Plan(int64_t n);
  const int64_t n;
  bool smooth() const { return smooth_; }
  bool splits() const { return rows_ > 1; }
  const FftPlan& stages() const { return stages_; }
  // Computed on first use, which must not be on a thread of the pool.
  const Split& split() const;
  const Convolution& convolution() const;
  const std::vector<C>& half_roots() const;  // e^(-pi i k / n), for real transforms of length 2 n
  int64_t bytes() const;

 private:
  void make_stages(const std::vector<int>& factors);
  bool smooth_ = false;
  int64_t rows_ = 1;
  FftPlan stages_;
  std::vector<T> twiddles_;
  Part<Split> split_;
  Part<Convolution> convolution_;
  Part<std::vector<C>> half_roots_;
};

// Transforms a line of complex numbers on the calling thread, forward and without a factor; for plans.
template <class T> void transform_line(const PlanRef<T>& plan, std::complex<T>* x);

}  // namespace gt
