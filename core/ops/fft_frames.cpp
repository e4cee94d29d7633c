// Overlapping frames of a signal along the last axis, and their sum: each is the other's transpose.
#include "indices.h"

namespace gt {
namespace {

int64_t last(const Shape& s) { return s[s.rank - 1]; }

// ---- frames(x; length, step, count): [..., n] to [..., count, length] ----
void infer_frames(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  const int64_t length = c.integer(0), step = c.integer(1), count = c.integer(2);
  if (x.shape.rank < 1) fail("a signal has at least one axis; got shape " + x.shape.str());
  if (length < 0 || step < 1 || count < 0)
    fail("length and count must not be negative, and step must be positive");
  if (count > 0 && checked_add(checked_mul(count - 1, step), length) > last(x.shape))
    fail(std::to_string(count) + " frames of length " + std::to_string(length) + " do not fit into " +
         x.shape.str());
  Spec s{x.dtype, x.shape};
  s.shape[s.shape.rank - 1] = count;
  s.shape.push(length);
  outs.emplace_back(s);
}

void run_frames(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  if (outs[0].numel == 0) return;
  const int64_t length = c.integer(0), step = c.integer(1), count = c.integer(2), n = last(x.shape);
  const int width = dtype_size(x.dtype);
  Nest nest;
  nest.push(x.numel / n, n, count * length);
  nest.push(count, step, length);
  nest.push(length, 1, 1);
  strided_copy(outs[0].data, x.data, width, nest);
}

// ---- overlap_add(x; step, size): [..., count, length] to [..., size] ----
void infer_overlap(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  want_dtype(x, kNumber, "overlap_add");
  const int64_t step = c.integer(0), size = c.integer(1);
  if (x.shape.rank < 2) fail("frames have at least two axes; got shape " + x.shape.str());
  if (step < 1) fail("step must be positive; got " + std::to_string(step));
  const int64_t count = x.shape[x.shape.rank - 2], length = last(x.shape);
  if (count > 0 && checked_add(checked_mul(count - 1, step), length) > size)
    fail("frames of shape " + x.shape.str() + " do not fit into " + std::to_string(size));
  Spec s{x.dtype, Shape(x.shape.dims, x.shape.rank - 1)};
  s.shape[s.shape.rank - 1] = size;
  outs.emplace_back(s);
}

void run_overlap(const Call& c, Outs& outs) {
  const Tensor& x = c[0];
  Tensor& out = outs[0];
  zero(out.data, out.nbytes());
  if (x.numel == 0) return;
  const int64_t step = c.integer(0), size = c.integer(1), count = x.shape[x.shape.rank - 2],
                length = last(x.shape);
  visit(x.dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (!std::is_same_v<T, bool>)
      each_chunk(out.numel / size, grain_rows(count * length), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
          for (int64_t f = 0; f < count; ++f) {
            const T* from = x.as<T>() + (b * count + f) * length;
            T* to = out.as<T>() + b * size + f * step;
            for (int64_t i = 0; i < length; ++i) to[i] = wrap(to[i], from[i], Combine::Add);
          }
      });
  });
}

GT_OP("frames", {infer_frames, run_frames});
GT_OP("overlap_add", {infer_overlap, run_overlap});

}  // namespace
}  // namespace gt
