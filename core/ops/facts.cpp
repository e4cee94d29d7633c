// Properties of a tensor other than its values: shape, size and rank as tensors, and its bytes read as
// another type.
#include <algorithm>

#include "strided.h"

namespace gt {
namespace {

// ---- shape(x; [dtype]), size(x; [dtype]), rank(x): int32 without the attribute ----
template <class F> void put_integer(Tensor& out, int64_t n, F&& value) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t v = value(int(i));
    if (out.dtype == Dtype::I64)
      out.as<int64_t>()[i] = v;
    else if (v > INT32_MAX)
      fail("a size of " + std::to_string(v) + " does not fit in int32; expected out_type=tf.int64");
    else
      out.as<int32_t>()[i] = int32_t(v);
  }
}
Dtype fact_type(const Call& c) {
  if (!c.attrs.size()) return Dtype::I32;
  Dtype t = dtype_attr(c, 0);
  if (t != Dtype::I32 && t != Dtype::I64)
    fail(std::string("out_type must be int32 or int64, got ") + dtype_name(t));
  return t;
}
void infer_shape(const Call& c, Outs& outs) {
  int64_t n = c[0].shape.rank;
  outs.emplace_back(Spec{fact_type(c), Shape(&n, 1)});
}
void infer_number(const Call& c, Outs& outs) { outs.emplace_back(Spec{fact_type(c), {}}); }
void run_shape(const Call& c, Outs& outs) {
  put_integer(outs[0], c[0].shape.rank, [&](int i) { return c[0].shape[i]; });
}
void run_size(const Call& c, Outs& outs) {
  put_integer(outs[0], 1, [&](int) { return c[0].numel; });
}
void run_rank(const Call& c, Outs& outs) {
  put_integer(outs[0], 1, [&](int) { return int64_t(c[0].shape.rank); });
}

// ---- bitcast(x; dtype) ----
void infer_bitcast(const Call& c, Outs& outs) {
  Spec s{dtype_attr(c, 0), c[0].shape};
  want_dtype(c[0], kNumber, "bitcast");
  if (s.dtype == Dtype::Bool || is_held(s.dtype))
    fail(std::string("cannot bitcast to ") + dtype_name(s.dtype));
  int from = dtype_size(c[0].dtype), to = dtype_size(s.dtype);
  if (to < from) {
    s.shape.push(from / to);
  } else if (to > from) {
    int last = s.shape.rank - 1;
    if (last < 0 || s.shape[last] != to / from)
      fail("Cannot bitcast from " + std::string(dtype_name(c[0].dtype)) + " to " + dtype_name(s.dtype) +
           ": the last dimension must be " + std::to_string(to / from));
    s.shape.rank -= 1;
  }
  outs.emplace_back(s);
}

// ---- divisor(x): x itself, which must not hold a zero. Programs divide integers by it. ----
void infer_divisor(const Call& c, Outs& outs) { outs.emplace_back(c[0].spec()); }
void run_divisor(const Call& c, Outs& outs) {
  const Tensor& y = c[0];
  visit(y.dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_integral_v<T>)
      if (std::find(y.as<T>(), y.as<T>() + y.numel, T(0)) != y.as<T>() + y.numel)
        fail("Integer division by zero");
  });
  outs[0].share(y);
}

GT_OP("shape", {infer_shape, run_shape, true, 0, true});
GT_OP("size", {infer_number, run_size, true, 0, true});
GT_OP("rank", {infer_number, run_rank, true, 0, true});
GT_OP("divisor", {infer_divisor, run_divisor, false, 0.2});
GT_OP("bitcast", {infer_bitcast, [](const Call& c, Outs& outs) { outs[0].share(c[0]); }, false, 0});

}  // namespace
}  // namespace gt
