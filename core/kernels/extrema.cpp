// The largest, the smallest, any and all, along an axis.
#include "all.h"
#include "reduce.h"

namespace gt {

namespace {

template <class T> constexpr T lowest() {
  if constexpr (kIsReal<T>)
    return T(-__builtin_inf());
  else
    return std::is_signed_v<T> ? T(Wrap<T>(1) << (8 * sizeof(T) - 1)) : T(0);
}
template <class T> constexpr T highest() {
  if constexpr (kIsReal<T>)
    return T(__builtin_inf());
  else
    return T(~lowest<T>());
}

struct Max {
  static constexpr bool kInRegisters = true;
  template <class T> static T first(T x) { return x; }
  template <class T> static T combine(T a, T b) { return larger(a, b); }
  template <class T> static T empty() { return lowest<T>(); }
};
struct Min {
  static constexpr bool kInRegisters = true;
  template <class T> static T first(T x) { return x; }
  template <class T> static T combine(T a, T b) { return smaller(a, b); }
  template <class T> static T empty() { return highest<T>(); }
};
// Of bytes that are 0 or 1, as bools are, the largest says whether there is any, and the smallest whether all
// are.
void any(void* out, const void* in, int64_t size, int64_t inner) {
  Reduce<Max, uint8_t>::run(out, in, size, inner);
}
void all(void* out, const void* in, int64_t size, int64_t inner) {
  if (size == 0)
    __builtin_memset(out, 1, size_t(inner));
  else
    Reduce<Min, uint8_t>::run(out, in, size, inner);
}
constexpr Reduction of_bools(const char* name, ReduceLoop loop) {
  Reduction r{name, {}, {}};
  r.loop[int(Dtype::Bool)] = loop;
  r.out[int(Dtype::Bool)] = Dtype::Bool;
  return r;
}

constexpr Reduction table[] = {
    reduction<kReal>("max", Max{}),
    reduction<kReal>("min", Min{}),
    of_bools("any", any),
    of_bools("all", all),
};

}  // namespace

Rows<Reduction> extremum_rows() { return rows_of(table); }

}  // namespace gt
