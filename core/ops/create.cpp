// Tensors created from attributes only: zeros, ones, fill, eye.
#include "strided.h"

namespace gt {
namespace {

// One in each element type, as bytes.
struct Element {
  alignas(16) char bytes[16];
};
Element one(Dtype t) {
  Element e{};
  visit(t, [&](auto x) {
    using T = decltype(x);
    T v = T(1.0f);
    std::memcpy(e.bytes, &v, sizeof(T));
  });
  return e;
}

void infer_constant(const Call& c, Outs& outs) {
  outs.emplace_back(Spec{dtype_attr(c, 1), shape_attr(c, 0)});
}

void infer_fill(const Call& c, Outs& outs) {
  want_scalar(c[0], "fill: value");
  outs.emplace_back(Spec{c[0].dtype, shape_attr(c, 0)});
}

void infer_eye(const Call& c, Outs& outs) {
  int64_t dims[2] = {c.integer(0), c.integer(1)};
  if (dims[0] < 0 || dims[1] < 0) fail("eye: the number of rows and columns must be non-negative");
  outs.emplace_back(Spec{dtype_attr(c, 2), Shape(dims, 2)});
}
void run_eye(const Call&, Outs& outs) {
  Tensor& out = outs[0];
  zero(out.data, out.nbytes());
  Element e = one(out.dtype);
  int64_t n = std::min(out.shape[0], out.shape[1]), w = dtype_size(out.dtype);
  for (int64_t i = 0; i < n; ++i) std::memcpy(out.data + i * (out.shape[1] + 1) * w, e.bytes, size_t(w));
}

GT_OP("zeros",
      {infer_constant, [](const Call&, Outs& outs) { zero(outs[0].data, outs[0].nbytes()); }, true, 0.2});
GT_OP("ones", {infer_constant,
               [](const Call&, Outs& outs) {
                 fill(outs[0].data, one(outs[0].dtype).bytes, dtype_size(outs[0].dtype), outs[0].numel);
               },
               true, 0.2});
GT_OP("fill", {infer_fill,
               [](const Call& c, Outs& outs) {
                 fill(outs[0].data, c[0].data, dtype_size(c[0].dtype), outs[0].numel);
               },
               true, 0.2});
GT_OP("eye", {infer_eye, run_eye, true, 0.2});

}  // namespace
}  // namespace gt
