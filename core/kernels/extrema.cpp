// The largest, the smallest, any and all, along an axis.
#include "all.h"
#include "reduce.h"

namespace gt {

namespace {

struct Max {
  static constexpr bool kInRegisters = true;
  template <class T> static T first(T x) { return x; }
  template <class T> static T combine(T a, T b) { return larger(a, b); }
  template <class T> static T empty() { return T(-__builtin_inf()); }
};
struct Min {
  static constexpr bool kInRegisters = true;
  template <class T> static T first(T x) { return x; }
  template <class T> static T combine(T a, T b) { return smaller(a, b); }
  template <class T> static T empty() { return T(__builtin_inf()); }
};

// One loop per width finds the largest and the smallest of signed and unsigned integers: it takes the largest
// as signed integers after flipping bits. Flipping all bits reverses the order; flipping the first bit brings
// unsigned integers into the order of signed ones.
template <class T> constexpr T kFirstBit = T(Wrap<T>(1) << (8 * sizeof(T) - 1));
template <class T> struct Flipped {
  T flip;
  template <class A> A first(A x) const { return A(x ^ flip); }
  template <class A> static A combine(A a, A b) { return larger(a, b); }
  template <class A> A empty() const { return A(kFirstBit<T> ^ flip); }
};
template <class T>
[[gnu::noinline]] void reduce_flipped(T flip, void* out_, const void* in, int64_t size, int64_t inner) {
  T* out = static_cast<T*>(out_);
  Reduce<Flipped<T>, T>{{flip}}.run(out, in, size, inner);
  for (int64_t j = 0; j < inner; ++j) out[j] ^= flip;
}
template <bool largest, class T> void of_integers(void* out, const void* in, int64_t size, int64_t inner) {
  using S = std::make_signed_t<T>;
  const S flip = S((largest ? 0 : -1) ^ (std::is_signed_v<T> ? 0 : kFirstBit<S>));
  reduce_flipped<S>(flip, out, in, size, inner);
}
template <bool largest, class F> constexpr Reduction extremum(const char* name, F f) {
  Reduction r = reduction<kFloat>(name, f);
  each_type<kInt>([&]<class T>() {
    r.loop[int(DtypeOf<T>::value)] = of_integers<largest, T>;
    r.out[int(DtypeOf<T>::value)] = DtypeOf<T>::value;
  });
  return r;
}

// Of bytes that are 0 or 1, as bools are, the largest says whether there is any, and the smallest whether all
// are.
void any(void* out, const void* in, int64_t size, int64_t inner) {
  if (size == 0)
    __builtin_memset(out, 0, size_t(inner));
  else
    of_integers<true, int8_t>(out, in, size, inner);
}
void all(void* out, const void* in, int64_t size, int64_t inner) {
  if (size == 0)
    __builtin_memset(out, 1, size_t(inner));
  else
    of_integers<false, int8_t>(out, in, size, inner);
}
constexpr Reduction of_bools(const char* name, ReduceLoop loop) {
  Reduction r{name, {}, {}};
  r.loop[int(Dtype::Bool)] = loop;
  r.out[int(Dtype::Bool)] = Dtype::Bool;
  return r;
}

constexpr Reduction table[] = {
    extremum<true>("max", Max{}),
    extremum<false>("min", Min{}),
    of_bools("any", any),
    of_bools("all", all),
};

}  // namespace

Rows<Reduction> extremum_rows() { return rows_of(table); }

}  // namespace gt
