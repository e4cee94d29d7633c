// Making plans of Fourier transforms: factors, roots of unity, and the cache of plans.
#include "fft_plan.h"

#include <cmath>
#include <mutex>
#include <unordered_map>

#include "../fork.h"

namespace gt {
namespace {

// e^(-2 pi i k / n), from the sine and cosine of at most an eighth of the circle, where they are exact.
template <class T> std::complex<T> root(int64_t k, int64_t n) {
  int64_t a = 8 * (k % n);
  const bool below = a > 4 * n;
  if (below) a = 8 * n - a;
  const bool left = a > 2 * n;
  if (left) a = 4 * n - a;
  const bool steep = a > n;
  if (steep) a = 2 * n - a;
  const double angle = M_PI / 4 * double(a) / double(n);
  double c = std::cos(angle), s = std::sin(angle);
  if (steep) std::swap(c, s);
  return {T(left ? -c : c), T(below ? s : -s)};
}

constexpr int kPrimes[] = {3, 5, 7, 11, 13};

// The smallest length of at least n that is quick: a power of two times 1, 3, 5, 9 or 15.
int64_t quick_length(int64_t n) {
  int64_t best = INT64_MAX;
  for (int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t m = odd;
    while (m < n) m *= 2;
    best = std::min(best, m);
  }
  return best;
}

constexpr int64_t kMostBytes = int64_t(64) << 20;  // of plans that are kept

template <class T> struct Cache {
  Lock lock;
  std::unordered_map<int64_t, PlanRef<T>> plans;
};
// Never destroyed: threads may outlive statics.
auto& cache_of_floats = *new Cache<float>;
auto& cache_of_doubles = *new Cache<double>;
template <class T> Cache<T>& cache_of() {
  if constexpr (std::is_same_v<T, float>)
    return cache_of_floats;
  else
    return cache_of_doubles;
}

}  // namespace

template <class T> PlanRef<T> plan_of(int64_t n) {
  Cache<T>& cache = cache_of<T>();
  {
    std::lock_guard hold(cache.lock);
    auto found = cache.plans.find(n);
    if (found != cache.plans.end()) return found->second;
  }
  auto plan = std::make_shared<const Plan<T>>(n);
  std::lock_guard hold(cache.lock);
  int64_t bytes = 0;
  for (auto& [_, p] : cache.plans) bytes += p->bytes();
  if (bytes > kMostBytes) cache.plans.clear();
  return cache.plans.emplace(n, plan).first->second;
}

template <class T> Plan<T>::Plan(int64_t length) : n(length) {
  int64_t rest = n;
  std::vector<int> factors;
  int twos = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  for (int p : kPrimes)
    for (; rest % p == 0; rest /= p) factors.push_back(p);
  for (; twos == 3 || twos > 4; twos -= 3) factors.push_back(8);
  for (; twos >= 2; twos -= 2) factors.push_back(4);
  if (twos) factors.push_back(2);
  smooth_ = rest == 1 && factors.size() <= size_t(FftPlan::kMostStages);
  if (!smooth_) return;
  make_stages(factors);
  for (int64_t d = int64_t(std::sqrt(double(n))); d >= 4 && rows_ == 1; --d)
    if (n % d == 0) rows_ = d;
}

template <class T> void Plan<T>::make_stages(const std::vector<int>& factors) {
  stages_.n = n;
  std::vector<size_t> from;
  int64_t done = 1;
  for (int r : factors) {
    from.push_back(twiddles_.size());
    for (int64_t j = 0; j < done; ++j)
      for (int q = 1; q < r; ++q) {
        const C w = root<T>(j * q, done * r);
        twiddles_.push_back(w.real());
        twiddles_.push_back(w.imag());
      }
    stages_.stage[stages_.stages++] = {r, done, n / (done * r), nullptr};
    done *= r;
  }
  for (int i = 0; i < stages_.stages; ++i) stages_.stage[i].twiddles = twiddles_.data() + from[size_t(i)];
}

template <class T> auto Plan<T>::split() const -> const Split& {
  return split_.get([this] {
    Split s{rows_, n / rows_, plan_of<T>(rows_), plan_of<T>(n / rows_), {}, {}};
    for (int64_t i = 0; i < s.rows; ++i)
      for (int64_t j = 0; j < s.columns; ++j) {
        const C w = root<T>(i * j, n);
        s.re.push_back(w.real());
        s.im.push_back(w.imag());
      }
    return s;
  });
}

template <class T> auto Plan<T>::convolution() const -> const Convolution& {
  return convolution_.get([this] {
    const int64_t m = quick_length(2 * n - 1);
    Convolution c{plan_of<T>(m), {}, std::vector<C>(size_t(m), C(0))};
    for (int64_t k = 0; k < n; ++k) {
      const C w = root<T>(int64_t(__int128(k) * k % (2 * n)), 2 * n);
      c.chirp.push_back(w);
      c.kernel[size_t(k)] = c.kernel[size_t((m - k) % m)] = std::conj(w) / T(m);
    }
    transform_line<T>(c.plan, c.kernel.data());
    return c;
  });
}

template <class T> auto Plan<T>::half_roots() const -> const std::vector<C>& {
  return half_roots_.get([this] {
    std::vector<C> roots;
    for (int64_t k = 0; k <= n; ++k) roots.push_back(root<T>(k, 2 * n));
    return roots;
  });
}

template <class T> int64_t Plan<T>::bytes() const {
  size_t reals = twiddles_.size();
  if (const Split* s = split_.made()) reals += 2 * s->re.size();
  if (const Convolution* c = convolution_.made()) reals += 2 * (c->kernel.size() + c->chirp.size());
  if (const std::vector<C>* roots = half_roots_.made()) reals += 2 * roots->size();
  return int64_t(reals * sizeof(T));
}

template class Plan<float>;
template class Plan<double>;
template PlanRef<float> plan_of(int64_t);
template PlanRef<double> plan_of(int64_t);

}  // namespace gt
