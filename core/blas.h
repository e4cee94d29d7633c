// BLAS and LAPACK, loaded at first use from the library of the scipy-openblas32 wheel.
#pragma once
#include <atomic>
#include <cstdint>

#include "dtype.h"

namespace gt {

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112, kConjTrans = 113;

template <class T>
using RealGemm = void (*)(int order, int ta, int tb, int m, int n, int k, T alpha, const T* a, int lda,
                          const T* b, int ldb, T beta, T* c, int ldc);
template <class T>
using ComplexGemm = void (*)(int order, int ta, int tb, int m, int n, int k, const T* alpha, const T* a,
                             int lda, const T* b, int ldb, const T* beta, T* c, int ldc);
template <class T>
using RealGemv = void (*)(int order, int trans, int m, int n, T alpha, const T* a, int lda, const T* x,
                          int incx, T beta, T* y, int incy);
template <class T>
using ComplexGemv = void (*)(int order, int trans, int m, int n, const T* alpha, const T* a, int lda,
                             const T* x, int incx, const T* beta, T* y, int incy);

// Marks a thread as inside the library, which takes a buffer of 32 MB for each thread inside. It ends the
// process if there is no memory for another, so a thread that might need one waits until another has left.
class InsideBlas {
 public:
  InsideBlas() {
    if (!thread_is_known_) [[unlikely]]
      get_to_know_thread();
    if (inside_.fetch_add(1, std::memory_order_acquire) >= buffers_.load(std::memory_order_relaxed))
        [[unlikely]]
      enter_slowly();
  }
  ~InsideBlas() {
    if (hole_) [[unlikely]]
      look_for_buffer();
    inside_.fetch_sub(1, std::memory_order_release);
  }
  InsideBlas(const InsideBlas&) = delete;
  static void first_was_inside();  // a call of one thread is over: there is a buffer

  // Around a fork: waits until no thread is inside, and blocks those that want to enter. The library has a
  // lock that would stay locked in the child if a thread held it, and buffers that would stay in use.
  static void keep_out();
  static void let_in();
  static void let_in_after_fork();  // in the child, which has one thread

 private:
  static void get_to_know_thread();
  void enter_slowly();
  bool find_room();
  void look_for_buffer();
  inline static constinit thread_local bool thread_is_known_ = false;
  static constexpr int kForking = 1 << 30;
  inline static std::atomic<int> inside_{0};   // threads; and kForking, which is more than any buffers_
  inline static std::atomic<int> buffers_{0};  // the library is known to have
  void* hole_ = nullptr;                       // where the next one goes
  [[maybe_unused]] int number_ = 0;
};

// A function of the library.
template <class F> class Routine;
template <class R, class... A> class Routine<R (*)(A...)> {
 public:
  using Pointer = R (*)(A...);
  Routine() = default;
  explicit Routine(void* f) : f_(reinterpret_cast<Pointer>(f)) {}
  R operator()(A... a) const {
    InsideBlas here;
    return f_(a...);
  }

 private:
  Pointer f_ = nullptr;
};

struct Blas {
  Routine<RealGemm<float>> sgemm;
  Routine<RealGemm<double>> dgemm;
  Routine<ComplexGemm<c64>> cgemm;
  Routine<ComplexGemm<c128>> zgemm;
  Routine<RealGemv<float>> sgemv;
  Routine<RealGemv<double>> dgemv;
  Routine<ComplexGemv<c64>> cgemv;
  Routine<ComplexGemv<c128>> zgemv;
};

// Path of the library (the Python layer knows it); takes effect before the first use only.
void set_blas_path(const char* path);
const Blas& blas();
const char* blas_config();  // what the library says about itself

// After blas(), any other routine by its plain name, e.g. blas_symbol("LAPACKE_sgetrf") or
// blas_symbol("spotrf_"); throws when there is none. Look it up once and keep it.
void* blas_symbol(const char* name);
template <class F> Routine<F> blas_function(const char* name) { return Routine<F>(blas_symbol(name)); }

}  // namespace gt
