// Pooling: the largest element or the mean of windows, vector code along the channels.
#include "all.h"
#include "conv.h"
#include "conv_vector.h"
#include "map.h"

namespace gt {

namespace {

template <class T> const T* at(const void* p, int64_t i) { return static_cast<const T*>(p) + i; }
template <class T> T* at(void* p, int64_t i) { return static_cast<T*>(p) + i; }

// Element by element, or a vector of them: the loops below are written once for both.
template <class T> struct One {
  using Value = T;
  using Index = int64_t;
  static constexpr int kWidth = 1;
  static Index number(int64_t k) { return k; }
  static T load(const T* p) { return *p; }
  static void store(T* p, T x) { *p = x; }
  static bool beats(T x, T best) {
    if constexpr (T(0.5) != T(0))
      return x > best || (x != x && best == best);
    else
      return x > best;
  }
  template <class A> static A choose(bool c, A x, A y) { return c ? x : y; }
};
template <class T> struct Many {
  using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using Value = V<T>;
  typedef Int Index __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int kWidth = kLanes<T>;
  static Index number(int64_t k) { return Index{} + Int(k); }
  static Value load(const T* p) { return gt::load(p); }
  static void store(T* p, Value x) { gt::store(p, x); }
  static Index beats(Value x, Value best) { return (x > best) | ((x != x) & (best == best)); }
  template <class A> static A choose(Index c, A x, A y) { return c ? x : y; }
};

template <class T, class L> struct Window {
  using Value = typename L::Value;
  using Index = typename L::Index;

  static Value max(const PoolRow& r, int64_t x) {
    Value best = L::load(at<T>(r.x[0], x));
    for (int64_t k = 1; k < r.taps; ++k) {
      const Value v = L::load(at<T>(r.x[k], x));
      best = L::choose(L::beats(v, best), v, best);
    }
    return best;
  }
  static Index argmax(const PoolRow& r, int64_t x) {
    Value best = L::load(at<T>(r.x[0], x));
    Index place = L::number(0);
    for (int64_t k = 1; k < r.taps; ++k) {
      const Value v = L::load(at<T>(r.x[k], x));
      const auto win = L::beats(v, best);
      best = L::choose(win, v, best);
      place = L::choose(win, L::number(k), place);
    }
    return place;
  }
};

// Calls f(loads, x, o) for every channel of every pixel: where it is in x, and in the result.
template <class T, class F> void each(const PoolRow& r, F&& f) {
  for (int64_t i = 0; i < r.pixels; ++i) {
    const int64_t x = i * r.x_step, o = i * r.out_step;
    int64_t c = 0;
    if constexpr (std::is_floating_point_v<T>)
      for (; c + Many<T>::kWidth <= r.channels; c += Many<T>::kWidth) f(Many<T>{}, x + c, o + c);
    for (; c < r.channels; ++c) f(One<T>{}, x + c, o + c);
  }
}

template <class T> struct Pool {
  static void max(const PoolRow& r) {
    each<T>(r, [&]<class L>(L, int64_t x, int64_t o) { L::store(at<T>(r.out, o), Window<T, L>::max(r, x)); });
  }
  static void argmax(const PoolRow& r) {
    each<T>(r, [&]<class L>(L, int64_t x, int64_t o) {
      const auto place = Window<T, L>::argmax(r, x);
      int64_t* out = at<int64_t>(r.out, o);
      if constexpr (L::kWidth == 1)
        out[0] = r.place[place] + x;
      else
        for (int j = 0; j < L::kWidth; ++j) out[j] = r.place[place[j]] + x + j;
    });
  }
  static void pick(const PoolRow& r) {
    each<T>(r, [&]<class L>(L, int64_t x, int64_t o) {
      auto best = L::load(at<T>(r.x[0], x)), out = L::load(at<T>(r.t[0], x));
      for (int64_t k = 1; k < r.taps; ++k) {
        const auto v = L::load(at<T>(r.x[k], x));
        const auto win = L::beats(v, best);
        best = L::choose(win, v, best);
        out = L::choose(win, L::load(at<T>(r.t[k], x)), out);
      }
      L::store(at<T>(r.out, o), out);
    });
  }
  static void unpool(const PoolRow& r) {
    each<T>(r, [&]<class L>(L, int64_t x, int64_t o) {
      using Value = typename L::Value;
      using Index = typename L::Index;
      const Index place = Window<T, L>::argmax(r, x);
      const Value g = L::load(at<T>(r.g, o));
      for (int64_t k = 0; k < r.taps; ++k) {
        T* to = at<T>(r.to[k], x);
        const Value v = L::choose(place == L::number(k), g, Value{});
        L::store(to, r.add ? L::load(to) + v : v);
      }
    });
  }
  static void average(const PoolRow& r) {
    const T scale = T(1) / T(r.taps);
    each<T>(r, [&]<class L>(L, int64_t x, int64_t o) {
      auto sum = L::load(at<T>(r.x[0], x));
      for (int64_t k = 1; k < r.taps; ++k) sum += L::load(at<T>(r.x[k], x));
      L::store(at<T>(r.out, o), sum * scale);
    });
  }
  static void spread(const PoolRow& r) {
    const T scale = T(1) / T(r.taps);
    each<T>(r, [&]<class L>(L, int64_t x, int64_t o) {
      const auto v = L::load(at<T>(r.g, o)) * scale;
      for (int64_t k = 0; k < r.taps; ++k) {
        T* to = at<T>(r.to[k], x);
        L::store(to, r.add ? L::load(to) + v : v);
      }
    });
  }
};

}  // namespace

const PoolLoops* pool_loops() {
  static PoolLoops table[kDtypes];
  each_type<kReal & ~kHalf>([&]<class T>() {
    PoolLoops& p = table[int(DtypeOf<T>::value)];
    p.max = Pool<T>::max, p.argmax = Pool<T>::argmax;
    if constexpr (std::is_floating_point_v<T>)
      p.pick = Pool<T>::pick, p.unpool = Pool<T>::unpool, p.average = Pool<T>::average,
      p.spread = Pool<T>::spread;
  });
  return table;
}

}  // namespace gt
