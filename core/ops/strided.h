// Copies between strided views, filling, and the small checks that the movement, slicing, join
// and indexed ops share. Elements are moved by their width (1, 2, 4, 8 or 16 bytes), not type.
#pragma once
#include <functional>
#include <utility>

#include "../op.h"
#include "../threads.h"

namespace gt {

// A nest of loops over elements: how often each loop runs and how far one iteration moves in the source and
// in the result, in elements. Strides may be negative or (source only) zero.
struct Nest {
  static constexpr int kMax = 2 * kMaxRank + 2;  // tile and friends use two loops an axis
  int rank = 0;
  int64_t size[kMax], src[kMax], dst[kMax];

  void push(int64_t n, int64_t s, int64_t d) {
    size[rank] = n, src[rank] = s, dst[rank] = d;
    ++rank;
  }
};

// dst[sum of i * nest.dst] = src[sum of i * nest.src] for every index i. No two indices may
// write the same place. Large copies use all threads.
void strided_copy(char* dst, const char* src, int width, Nest nest);

void copy_bytes(char* dst, const char* src, int64_t bytes);     // threaded memcpy
void fill(char* dst, const char* value, int width, int64_t n);  // n copies of one element
void zero(char* dst, int64_t bytes);

// Row-major strides of a shape.
struct Strides {
  int64_t at[kMaxRank];
  explicit Strides(const Shape& s) {
    int64_t n = 1;
    for (int i = s.rank - 1; i >= 0; --i) {
      at[i] = n;
      if (__builtin_mul_overflow(n, s[i], &n)) n = 0;  // only next to a zero: nothing is read
    }
  }
  int64_t operator[](int i) const { return at[i]; }
};

// A shape seen from one axis: [outer, size, inner].
struct Split {
  int64_t outer = 1, size = 1, inner = 1;
  Split(const Shape& s, int axis) : size(s[axis]) {
    for (int i = 0; i < axis; ++i) outer *= s[i];
    for (int i = axis + 1; i < s.rank; ++i) inner *= s[i];
  }
};
inline int64_t product(const Shape& s, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= s[i];
  return n;
}

inline int64_t checked_add(int64_t x, int64_t y) {
  if (__builtin_add_overflow(x, y, &x)) fail(Code::ResourceExhausted, "a dimension does not fit in 64 bits");
  return x;
}
inline int64_t checked_mul(int64_t x, int64_t y) {
  if (__builtin_mul_overflow(x, y, &x)) fail(Code::ResourceExhausted, "a dimension does not fit in 64 bits");
  return x;
}
// The shape given by an attribute.
inline Shape shape_attr(const Call& c, int k) {
  const auto& v = c.ints(k);
  for (int64_t d : v)
    if (d < 0) fail("a dimension must be non-negative, got " + std::to_string(d));
  return Shape(v.data(), int64_t(v.size()));
}
inline Dtype dtype_attr(const Call& c, int k) {
  int64_t d = c.integer(k);
  if (d < 0 || d >= kDtypes) fail("unknown dtype code " + std::to_string(d));
  return Dtype(d);
}
inline int axis_attr(const Call& c, int k, int rank) {
  int64_t a = c.integer(k);
  if (a < 0 || a >= rank)
    fail("axis " + std::to_string(a) + " is out of range for a tensor of rank " + std::to_string(rank));
  return int(a);
}
inline void want_dtype(const Tensor& x, DtypeSet set, const char* what) {
  if (!in(x.dtype, set)) fail(std::string(what) + " is not defined for " + dtype_name(x.dtype));
}
inline void want_same_dtype(const Tensor& x, const Tensor& y) {
  if (x.dtype != y.dtype)
    fail(std::string("operands must have the same dtype, got ") + dtype_name(x.dtype) + " and " +
         dtype_name(y.dtype));
}
inline void want_scalar(const Tensor& x, const char* what) {
  if (x.numel != 1) fail(std::string(what) + " must be a scalar, got shape " + x.shape.str());
}

// parallel_for without its costs when there is one chunk.
template <class F> void each_chunk(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  if (n <= grain)
    f(int64_t(0), n);
  else
    parallel_for(n, grain, f);
}
// The number of rows that make a chunk worth a thread, given the work in one row.
inline int64_t grain_rows(int64_t work, int64_t target = 1 << 16) {
  return work >= target ? 1 : target / (work > 0 ? work : 1);
}

// Calls f with a value whose type has `width` bytes.
struct alignas(8) Wide {
  uint64_t lo, hi;
};
template <class F> void visit_width(int width, F&& f) {
  switch (width) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Wide{});
  }
}

}  // namespace gt
