// Sums and products along an axis.
#include "all.h"
#include "reduce.h"

namespace gt {

namespace {

struct Sum {
  template <class T> static T first(T x) { return x; }
  template <class T> static T combine(T a, T b) { return add(a, b); }
  template <class T> static T empty() { return T(0); }
};
struct SumSquares : Sum {
  template <class T> static T first(T x) { return mul(x, x); }
};
struct Product {
  template <class T> static T first(T x) { return x; }
  template <class T> static T combine(T a, T b) { return mul(a, b); }
  template <class T> static T empty() { return T(1); }
};

constexpr Reduction table[] = {
    signed_too(reduction<kNumberBits>("sum", Sum{})),
    signed_too(reduction<kNumberBits>("sum_squares", SumSquares{})),
    signed_too(reduction<kNumberBits>("prod", Product{})),
};

}  // namespace

Rows<Reduction> sum_rows() { return rows_of(table); }

}  // namespace gt
