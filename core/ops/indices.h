// Reading and checking index operands, and adding rows: shared by gather, scatter and segments.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "../kernels/loops.h"
#include "strided.h"

namespace gt {

inline void want_indices(const Tensor& x, const char* what = "indices") {
  if (x.dtype != Dtype::I32 && x.dtype != Dtype::I64)
    fail(Code::Type, std::string(what) + " must be int32 or int64, got " + dtype_name(x.dtype));
}

// Calls f with the typed pointer of an index operand.
template <class F> void visit_indices(const Tensor& x, F&& f) {
  if (x.dtype == Dtype::I32)
    f(x.as<int32_t>());
  else
    f(x.as<int64_t>());
}

// "[1,2]" for element `at` of a tensor.
inline std::string coordinates(const Shape& s, int64_t at) {
  Shape c = s;
  for (int i = s.rank - 1; i >= 0; --i) c[i] = at % s[i], at /= s[i];
  return c.str();
}

// Throws "indices[0] = 5 is not in [0, 2)" for the first index that is not.
template <class I>
void check_indices(const I* p, const Tensor& indices, int64_t limit, const char* what = "indices") {
  int64_t bad = 0;  // no branch: this loop runs over every index of every gather
  for (int64_t i = 0; i < indices.numel; ++i) bad |= int64_t(uint64_t(p[i]) >= uint64_t(limit));
  if (!bad) return;
  for (int64_t i = 0; i < indices.numel; ++i)
    if (p[i] < 0 || int64_t(p[i]) >= limit)
      fail(what + (indices.shape.rank ? coordinates(indices.shape, i) : std::string()) + " = " +
           std::to_string(p[i]) + " is not in [0, " + std::to_string(limit) + ")");
}

// The ways to combine two elements, in the order of the `mode` attributes.
enum class Combine : int64_t { Update, Add, Sub, Max, Min, Mul, Div };

template <class T>
constexpr bool is_real = std::is_arithmetic_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat>;
template <class T> T wrap(T x, T y, Combine how) {  // integers: overflow wraps
  if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    return T(how == Combine::Add ? U(x) + U(y) : how == Combine::Sub ? U(x) - U(y) : U(x) * U(y));
  } else {
    return how == Combine::Add ? T(x + y) : how == Combine::Sub ? T(x - y) : T(x * y);
  }
}
template <Combine how, class T> T combine(T x, T y) {
  if constexpr (std::is_same_v<T, bool> && how == Combine::Add) {
    return x || y;
  } else if constexpr (std::is_same_v<T, bool> || how == Combine::Update) {
    return y;
  } else if constexpr (how == Combine::Add || how == Combine::Sub || how == Combine::Mul) {
    return wrap(x, y, how);
  } else if constexpr (how == Combine::Div) {
    if constexpr (std::is_integral_v<T>) {
      if (y == 0) return 0;
      if constexpr (std::is_signed_v<T>)
        if (y == T(-1)) return wrap<T>(T(0), x, Combine::Sub);  // the one quotient that overflows
    }
    return T(x / y);
  } else if constexpr (is_real<T>) {
    return (how == Combine::Max ? x < y : y < x) || y != y ? y : x;  // NaN stays, as in the long loop
  } else {
    return y;
  }
}

// row(out, x, n): out[i] = combine(out[i], x[i]) for i < n.
class RowLoop {
 public:
  RowLoop(Dtype t, Combine how) : width_(dtype_size(t)) {
    constexpr const char* names[] = {"copy", "add", "sub", "maximum", "minimum", "mul", "div"};
    short_ = visit(t, [&](auto x) { return pick<decltype(x)>(how); });
    // The caller rejects division by zero; only floats are divided here, in the same way on every processor.
    if (how != Combine::Update && !(how == Combine::Div && !is_differentiable(t)))
      if (const Elementwise* e = find_elementwise(names[int(how)])) long_ = e->loop[int(t)];
    copies_ = how == Combine::Update;
  }
  void operator()(char* out, const char* x, int64_t n) const {
    if (copies_) {
      std::memcpy(out, x, size_t(n * width_));
    } else if (n >= 16 && long_) {
      const void* in[2] = {out, x};
      const uint8_t step[2] = {1, 1};
      long_(out, in, step, n);
    } else {
      short_(out, x, n);
    }
  }

 private:
  using Short = void (*)(void* out, const void* x, int64_t n);
  template <Combine how, class T> static void loop(void* out, const void* x, int64_t n) {
    T* o = static_cast<T*>(out);
    const T* v = static_cast<const T*>(x);
    for (int64_t i = 0; i < n; ++i) o[i] = combine<how>(o[i], v[i]);
  }
  template <class T> static Short pick(Combine how) {
    constexpr Short loops[] = {loop<Combine::Update, T>, loop<Combine::Add, T>, loop<Combine::Sub, T>,
                               loop<Combine::Max, T>,    loop<Combine::Min, T>, loop<Combine::Mul, T>,
                               loop<Combine::Div, T>};
    return loops[int(how)];
  }
  Short short_;
  Loop long_ = nullptr;
  int64_t width_;
  bool copies_;
};
inline DtypeSet combine_dtypes(Combine how) {
  return how == Combine::Update ? kAny : how == Combine::Max || how == Combine::Min ? kReal : kNumber;
}

// Calls f(first column, columns) over [0, n) so that every column of a scatter is written by
// one thread, in the order of the indices: the result does not depend on the threads.
template <class F> void each_column_block(int64_t rows, int64_t n, F&& f) {
  int64_t block = rows * n < (1 << 16) ? n : std::max<int64_t>(64, (n + 15) / 16);
  each_chunk((n + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) f(b * block, std::min(block, n - b * block));
  });
}

}  // namespace gt
