// A tensor as the kernels see it: an element type, a row-major shape and a place in a buffer.
#pragma once
#include <string>

#include "dtype.h"
#include "error.h"
#include "memory.h"

namespace gt {

constexpr int kMaxRank = 12;

struct Shape {
  int8_t rank = 0;
  int64_t dims[kMaxRank];

  Shape() = default;
  Shape(const Shape& o) : rank(o.rank) { copy(o); }
  Shape& operator=(const Shape& o) {
    rank = o.rank;
    copy(o);
    return *this;
  }
  Shape(const int64_t* d, int64_t n) {
    if (n > kMaxRank)
      fail("a tensor has at most " + std::to_string(kMaxRank) + " dimensions, got " + std::to_string(n));
    rank = int8_t(n);
    for (int i = 0; i < n; ++i) dims[i] = d[i];
  }
  int64_t operator[](int i) const { return dims[i]; }
  int64_t& operator[](int i) { return dims[i]; }
  void push(int64_t d) {
    if (rank == kMaxRank) fail("a tensor has at most " + std::to_string(kMaxRank) + " dimensions");
    dims[rank++] = d;
  }
  bool operator==(const Shape& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] != o.dims[i]) return false;
    return true;
  }
  int64_t numel() const {  // throws when the product does not fit
    int64_t n = 1;
    bool zero = false;
    for (int i = 0; i < rank; ++i) zero |= dims[i] == 0;
    if (zero) return 0;
    for (int i = 0; i < rank; ++i)
      if (__builtin_mul_overflow(n, dims[i], &n))
        fail(Code::ResourceExhausted,
             "a tensor of shape " + str() + " has more elements than can be counted");
    return n;
  }
  std::string str() const {
    std::string s = "[";
    for (int i = 0; i < rank; ++i)
      s += (i ? "," : "") + (dims[i] < 0 ? std::string("?") : std::to_string(dims[i]));
    return s + "]";
  }

 private:
  void copy(const Shape& o) {
    for (int i = 0; i < rank; ++i) dims[i] = o.dims[i];
  }
};

// Element type and shape without a value.
struct Spec {
  Dtype dtype = Dtype::F32;
  Shape shape;
  std::string str() const { return std::string(dtype_name(dtype)) + shape.str(); }
};

// An immutable dense row-major value. Without a buffer it is a Spec: its shape and type are
// known, its elements are not.
struct Tensor {
  Buffer* buffer = nullptr;
  char* data = nullptr;
  int64_t numel = 0;
  Dtype dtype = Dtype::F32;
  Shape shape;

  Tensor() = default;
  explicit Tensor(const Spec& s) : numel(s.shape.numel()), dtype(s.dtype), shape(s.shape) {}
  Tensor(const Tensor& o) : buffer(o.buffer), data(o.data), numel(o.numel), dtype(o.dtype), shape(o.shape) {
    ref(buffer);
  }
  Tensor(Tensor&& o) noexcept
      : buffer(o.buffer), data(o.data), numel(o.numel), dtype(o.dtype), shape(o.shape) {
    o.buffer = nullptr;
    o.data = nullptr;
  }
  // Releasing a foreign buffer may run code that reads this tensor, so the old buffer is released last.
  Tensor& operator=(const Tensor& o) {
    ref(o.buffer);
    numel = o.numel, dtype = o.dtype, shape = o.shape;
    put(o.buffer, o.data);
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    std::swap(buffer, o.buffer);
    std::swap(data, o.data);
    numel = o.numel, dtype = o.dtype, shape = o.shape;
    return *this;
  }
  ~Tensor() { unref(buffer); }

  bool has_value() const { return buffer != nullptr; }
  // Whether nothing else refers to the elements, so that they may be overwritten. That stays true as long as
  // no thread can copy this tensor; other threads finished reading before they released their references.
  bool is_sole() const {
    return buffer && buffer->refs.load(std::memory_order_acquire) == 1 && !buffer->release;
  }
  int64_t nbytes() const { return numel * dtype_size(dtype); }
  Spec spec() const { return {dtype, shape}; }
  void forget() { put(nullptr, nullptr); }  // keeps type and shape, releases the elements
  // Gives the tensor a buffer of its own, uninitialised.
  void allocate() {
    if (is_held(dtype)) no_elements(dtype);
    int64_t bytes;
    if (__builtin_mul_overflow(numel, int64_t(dtype_size(dtype)), &bytes))
      fail(Code::ResourceExhausted,
           "a tensor of shape " + shape.str() + " and type " + dtype_name(dtype) + " does not fit in memory");
    forget();
    buffer = gt::allocate(size_t(bytes));
    data = buffer->data;
  }
  // Allocates its elements, unless it has memory that nothing else refers to, such as a place in a program.
  void claim() {
    if (!data || (buffer && !is_sole())) allocate();
  }
  // Takes the elements of `x`, starting at element `offset`, without a copy.
  void share(const Tensor& x, int64_t offset = 0) {
    ref(x.buffer);
    put(x.buffer, x.data + offset * dtype_size(dtype));
  }
  template <class T> T* as() { return reinterpret_cast<T*>(data); }
  template <class T> const T* as() const { return reinterpret_cast<const T*>(data); }

 private:
  void put(Buffer* owned, char* at) {
    Buffer* before = buffer;
    buffer = owned;
    data = at;
    unref(before);
  }
};

inline Tensor empty(Dtype t, const Shape& s) {
  Tensor x(Spec{t, s});
  x.allocate();
  return x;
}

}  // namespace gt
