// Sine, cosine, tangent and their inverses.
#include "all.h"
#include "map.h"
#include "math.h"

namespace gt {

namespace {

constexpr DtypeSet S = kFloat | kComplex;

// Of double: a chunk without arguments far from 0 goes through vector code, others one by one, which gives
// the arguments near 0 among them the same results.
template <class Near, class Any>
void near_or_any(void* out_, const void* const* in, const uint8_t* step, int64_t n) {
  const double* x = static_cast<const double*>(in[0]);
  double* out = static_cast<double*>(out_);
  const int64_t chunk = step[0] ? 64 : n;
  for (int64_t i = 0; i < n; i += chunk) {
    const int64_t m = n - i < chunk ? n - i : chunk;
    const double* a = x + i * step[0];
    uint64_t far = 0;
    for (int64_t j = 0; j < (step[0] ? m : 1); ++j) far |= uint64_t(math::is_far(a[j]));
    const void* part[] = {a};
    if (far)
      map1<Any, double, double, Way::Single>(out + i, part, step, m);
    else
      map1<Near, double, double, Way::Vector>(out + i, part, step, m);
  }
}
template <class Near, class Any> constexpr Elementwise with_near(Elementwise row, Near, Any) {
  row.loop[int(Dtype::F64)] = near_or_any<Near, Any>;
  row.out[int(Dtype::F64)] = Dtype::F64;
  return row;
}
#define GT_WITH_NEAR(name, cost)                                                              \
  with_near(                                                                                  \
      unary_math<S & ~set_of(Dtype::F64)>(#name, cost, [](auto x) { return math::name(x); }), \
      [](double x) { return math::near_##name(x); }, [](double x) { return math::name(x); })

constexpr Elementwise table[] = {
    GT_WITH_NEAR(sin, 0.5),
    GT_WITH_NEAR(cos, 0.5),
    GT_WITH_NEAR(tan, 0.8),
    unary_math<S>("asin", 0.8, [](auto x) { return math::asin(x); }),
    unary_math<S>("acos", 0.8, [](auto x) { return math::acos(x); }),
    unary_math<S>("atan", 0.8, [](auto x) { return math::atan(x); }),
};

}  // namespace

Rows<Elementwise> trigonometric_rows() { return rows_of(table); }

}  // namespace gt
