// What a native operation is: a name, a rule for the shapes of its results, and code that
// computes them. Files in core/ops/ register theirs with GT_OP; gradtape/_src/ops/ gives them
// derivatives, public names and documentation.
#pragma once
#include <string_view>
#include <vector>

#include "tensor.h"

namespace gt {

// One attribute of a call, already normalised (axes are non-negative, dtypes are codes).
struct Attr {
  enum class Kind : uint8_t { None, Int, Float, Ints, Object } kind = Kind::None;
  int64_t i = 0;              // Int, Bool, Dtype, Axis
  double f = 0;               // Float
  std::vector<int64_t> ints;  // Axes, Shape, Perm, Ints
  void* object = nullptr;     // Str (an interned Python string); never read by kernels
  bool operator==(const Attr&) const = default;
};

struct Attrs {
  std::vector<Attr> values;
  const Attr& operator[](size_t k) const { return values[k]; }
  size_t size() const { return values.size(); }
};

// One call of an operation: its operands and attributes.
struct Call {
  const Tensor* const* in;
  int n;
  const Attrs& attrs;

  const Tensor& operator[](int k) const { return *in[k]; }
  int64_t integer(int k) const { return attrs[k].i; }
  double number(int k) const { return attrs[k].f; }
  const std::vector<int64_t>& ints(int k) const { return attrs[k].ints; }
};

using Outs = std::vector<Tensor>;

struct Impl {
  // Appends one Tensor without a value for each result; throws Error on wrong operands. Operands may have no
  // value (symbols), so it must look at shapes and types only.
  void (*infer)(const Call&, Outs&);
  // Fills the results. Each has its shape and type from `infer`; one that the code does not
  // `share` must be given memory with `claim` first, unless `allocates` is set below.
  void (*run)(const Call&, Outs&);
  bool allocates = true;  // results are given memory before `run` is called
  // A rough figure of the work per element (of operands and results together), in nanoseconds: decides when
  // releasing the interpreter's lock is worth it.
  double cost = 0.5;
  // `run` looks at the shapes of its operands only: it also runs while a function is traced.
  bool shapes_only = false;
};

const Impl* find_impl(std::string_view name);  // nullptr when there is none
void add_impl(const char* name, const Impl&);
std::vector<std::string> impl_names();

struct Registrar {
  Registrar(const char* name, const Impl& impl) { add_impl(name, impl); }
};
#define GT_JOIN2(a, b) a##b
#define GT_JOIN(a, b) GT_JOIN2(a, b)
#define GT_OP(...) \
  static const ::gt::Registrar GT_JOIN(gt_op_, __COUNTER__) { __VA_ARGS__ }

// The shape that x and y broadcast to, by NumPy's rules.
Shape broadcast(const Shape& x, const Shape& y);

}  // namespace gt
