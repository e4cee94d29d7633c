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
struct Any {
  static bool first(bool x) { return x; }
  static bool combine(bool a, bool b) { return a | b; }
  template <class T> static T empty() { return false; }
};
struct All {
  static bool first(bool x) { return x; }
  static bool combine(bool a, bool b) { return a & b; }
  template <class T> static T empty() { return true; }
};

constexpr Reduction table[] = {
    reduction<kReal>("max", Max{}),
    reduction<kReal>("min", Min{}),
    reduction<kBool>("any", Any{}),
    reduction<kBool>("all", All{}),
};

}  // namespace

Rows<Reduction> extremum_rows() { return rows_of(table); }

}  // namespace gt
