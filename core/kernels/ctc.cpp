// The forward-backward algorithm of connectionist temporal classification (Graves et al. 2006), in
// logarithms, over all states of a time step at once. Every step is shifted so that its largest state is 0;
// the shifts are added up in double.
#include "ctc.h"

#include "all.h"
#include "math.h"

namespace gt {

namespace {

template <class T> constexpr T kNever = T(-1e30);  // the logarithm of 0, with which one can still compute

inline float below(float x) { return math::exp_negative(x); }  // exp(x) for x <= 0
inline double below(double x) { return math::exp(x); }

// out[s] = log(the sum of exp of from[s], from[s + d], and from[s + 2d] + jump[s]) + emit[s], shifted so that
// the largest is 0; that goes back. d is the neighbour a path comes from.
template <class T, int d>
T step(T* __restrict out, const T* __restrict from, const T* __restrict jump, const T* __restrict emit,
       int64_t n) {
  n = n / 16 * 16;  // it is so already: no loop for a remainder
  T most = kNever<T>;
#pragma omp simd reduction(max : most)
  for (int64_t s = 0; s < n; ++s) {
    const T a = from[s], b = from[s + d], c = from[s + 2 * d] + jump[s];
    const T high = a > b ? a : b, low = a > b ? b : a, m = high > c ? high : c, next = high > c ? c : high;
    const T value = m + math::log(1 + below(next - m) + below(low - m)) + emit[s];
    out[s] = value > kNever<T> ? value : kNever<T>;
    most = out[s] > most ? out[s] : most;
  }
  GT_VECTOR_LOOP
  for (int64_t s = 0; s < n; ++s) {
    const T value = out[s] - most;
    out[s] = value > kNever<T> ? value : kNever<T>;
  }
  return most;
}

template <class T> struct Sequence {
  const CtcSequence& q;
  const int64_t n = 2 * q.length + 1, all = ctc_states(q.length), line = ctc_line(q.length);
  T *emit = static_cast<T*>(q.room), *beta = emit + line, *ahead = beta + line, *jump = ahead + line,
    *alphas = jump + line;
  T* norms = alphas + q.steps * line;  // log sum exp of the logits of each step

  const T* logits(int64_t t) const { return static_cast<const T*>(q.logits) + t * q.stride; }
  T* back(int64_t t) const { return static_cast<T*>(q.back) + t * q.stride; }
  T* alpha(int64_t t) const { return alphas + t * line; }
  void clear(T* x, T value = kNever<T>) const {
    for (int64_t s = 0; s < line; ++s) x[s] = value;
  }
  // Lines begin with two states that are none.
  void emissions(int64_t t) const {
    const T *x = logits(t), blank = x[q.blank] - norms[t];
    for (int64_t s = n + 2; s < line; ++s) emit[s] = kNever<T>;
    emit[2] = blank;
    for (int64_t k = 0; k < q.length; ++k)
      emit[2 * k + 3] = x[q.labels[k]] - norms[t], emit[2 * k + 4] = blank;
  }
  void softmax(int64_t t) const {
    const T* __restrict x = logits(t);
    T* __restrict y = back(t);
    T most = x[0], sum = 0;
#pragma omp simd reduction(max : most)
    for (int64_t c = 0; c < q.classes; ++c) most = x[c] > most ? x[c] : most;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < q.classes; ++c) {
      const T e = below(x[c] - most);
      y[c] = e;
      sum += e;
    }
    norms[t] = most + math::log(sum);
    const T inverse = 1 / sum;
    GT_VECTOR_LOOP
    for (int64_t c = 0; c < q.classes; ++c) y[c] *= inverse;
  }
  void fill_back(T value) const {
    for (int64_t t = 0; t < q.steps; ++t)
      for (int64_t c = 0; c < q.classes; ++c) back(t)[c] = value;
  }

  // The logarithm of the probability of all paths.
  double forward() const {
    double total = 0;
    for (int64_t t = 0; t < q.steps; ++t) {
      T* a = alpha(t);
      clear(a);
      softmax(t);
      if (norms[t] != norms[t]) return NAN;
      emissions(t);
      T most;
      if (t == 0) {
        most = emit[2];
        if (q.length && emit[3] > most) most = emit[3];
        a[2] = emit[2] - most;
        if (q.length) a[3] = emit[3] - most;
      } else {
        most = step<T, -1>(a + 2, alpha(t - 1) + 2, jump + 2, emit + 2, all);
      }
      if (!(most > kNever<T> / 2)) return -INFINITY;
      total += double(most);
    }
    if (q.steps == 0) return q.length ? -INFINITY : 0;
    const T *a = alpha(q.steps - 1) + 2, x = a[n - 1], y = q.length ? a[n - 2] : kNever<T>, m = x > y ? x : y;
    if (!(m > kNever<T> / 2)) return -INFINITY;
    return total + double(m + math::log(math::exp(x - m) + math::exp(y - m)));
  }
  // Takes from the softmax in `back` the probability of each class given that the path is one of ours.
  void backward() const {
    clear(ahead);
    for (int64_t t = q.steps - 1; t >= 0; --t) {
      if (t == q.steps - 1) {
        clear(beta);
        beta[2 + n - 1] = 0;
        if (q.length) beta[2 + n - 2] = 0;
      } else {
        emissions(t + 1);
        GT_VECTOR_LOOP
        for (int64_t s = 2; s < all + 2; ++s)
          ahead[s] = beta[s] + emit[s] > kNever<T> ? beta[s] + emit[s] : kNever<T>;
        clear(emit, 0);
        step<T, 1>(beta + 2, ahead + 2, jump + 4, emit + 2, all);
      }
      T* __restrict w = emit + 2;
      const T *a = alpha(t) + 2, *b = beta + 2;
      T most = a[0] + b[0], sum = 0;
#pragma omp simd reduction(max : most)
      for (int64_t s = 0; s < all; ++s) most = a[s] + b[s] > most ? a[s] + b[s] : most;
#pragma omp simd reduction(+ : sum)
      for (int64_t s = 0; s < all; ++s) {
        const T e = below(a[s] + b[s] - most);
        w[s] = e;
        sum += e;
      }
      T *y = back(t), blank = w[0];
      const T inverse = 1 / sum;
      for (int64_t k = 0; k < q.length; ++k) {
        y[q.labels[k]] -= w[2 * k + 1] * inverse;
        blank += w[2 * k + 2];
      }
      y[q.blank] -= blank * inverse;
    }
  }
  double run() const {
    clear(jump);  // a path may jump over the blank between two labels unless they are equal
    for (int64_t k = 1; k < q.length; ++k)
      if (q.labels[k] != q.labels[k - 1]) jump[2 + 2 * k + 1] = 0;
    const double total = forward();
    if (total != total)
      fill_back(T(NAN));
    else if (total == -INFINITY)
      fill_back(0);  // there is no path, and nothing to learn from it
    else
      backward();
    return -total;
  }
};

template <class T> double loss(const CtcSequence& q) { return Sequence<T>{q}.run(); }

constexpr CtcLoops both[] = {{loss<float>}, {loss<double>}};

}  // namespace

const CtcLoops* ctc_loops() { return both; }

}  // namespace gt
