// Conversion of Python values for the core: numbers and lists, attributes of a call, index expressions.
#include <algorithm>
#include <cmath>

#include "calls.h"
#include "device.h"

namespace gt {

// ---- tensors ------------------------------------------------------------------------------

template <class V> static Ref<TensorObject> scalar_of(V v, Dtype t) {
  Ref<TensorObject> out(new_tensor());
  Tensor& x = out->value;
  x.dtype = t;
  x.numel = 1;
  x.allocate();
  visit(t, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat>)
      *x.as<T>() = T(float(v));
    else if constexpr (std::is_same_v<T, bool>)
      *x.as<T>() = v != V(0);
    else if constexpr (std::is_same_v<T, c64>)
      *x.as<T>() = T(float(v), 0);
    else if constexpr (std::is_same_v<T, c128>)
      *x.as<T>() = T(double(v), 0);
    else
      *x.as<T>() = T(v);
  });
  return out;
}

Ref<TensorObject> scalar(double v, Dtype t) { return scalar_of(v, t); }

Dtype dtype_code(long long code) {
  if (code < 0 || code >= kDtypes)
    fail(Code::Value, "there is no type with the code " + std::to_string(code));
  return Dtype(code);
}

// Whether a Python float may become float32 because no type is given: not if that makes it infinite. As in
// TensorFlow, it may in functions.
static bool fits_float(double v) {
  return std::isinf(v) || !std::isinf(float(v)) || thread_state().trace_start;
}

static bool fits(long long v, Dtype t) {
  if (!is_int(t)) return true;
  int bits = 8 * dtype_size(t);
  if (in(t, kUnsigned)) return v >= 0 && (bits == 64 || v < (1ll << bits));
  return bits == 64 || (v >= -(1ll << (bits - 1)) && v < (1ll << (bits - 1)));
}

// Nested lists of Python numbers of equal lengths: the usual literals. Null if they contain anything else,
// which is then converted in Python.
class Literal {
 public:
  bool read(PyObject* given) {
    Ref<> fixed(checked(fixed_nest(given)));
    PyObject* list = fixed.get();
    for (PyObject* o = list; is_list(o);) {
      if (shape_.rank == kMaxRank) return false;
      shape_.push(Py_SIZE(o));
      if (Py_SIZE(o) == 0) return false;
      o = PySequence_Fast_GET_ITEM(o, 0);
    }
    return fill(list, 0);
  }
  Ref<TensorObject> make(int dtype) const {
    if (dtype < 0 && floats_ && !std::all_of(numbers_.begin(), numbers_.end(), fits_float)) return {};
    if (dtype < 0)
      dtype = int(floats_ ? Dtype::F32 : bools_ ? Dtype::Bool : small_ ? Dtype::I32 : Dtype::I64);
    Dtype t = Dtype(dtype);
    if (floats_  ? !is_differentiable(t)
        : bools_ ? t != Dtype::Bool
                 : !(is_differentiable(t) || t == Dtype::I64 || (t == Dtype::I32 && small_)))
      return {};
    Tensor x = empty(t, shape_);
    visit(t, [&](auto zero) {
      using T = decltype(zero);
      for (size_t i = 0; i < numbers_.size(); ++i) {
        if constexpr (std::is_integral_v<T>)
          x.as<T>()[i] = T(integers_[i]);
        else if constexpr (std::is_floating_point_v<T>)
          x.as<T>()[i] = T(numbers_[i]);
        else
          x.as<T>()[i] = T(float(numbers_[i]));
      }
    });
    return Ref<TensorObject>(new_tensor(std::move(x)));
  }

 private:
  static bool is_list(PyObject* o) { return PyList_CheckExact(o) || PyTuple_CheckExact(o); }
  // The same lists as tuples, which other threads do not change. New reference.
  static PyObject* fixed_nest(PyObject* o, int depth = 0) {
    if (!kFreeThreaded || !is_list(o) || depth > kMaxRank) return Py_NewRef(o);
    Ref<> items(checked(fixed_items(o, "")));
    const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
    if (!n || !is_list(PyTuple_GET_ITEM(items.get(), 0))) return items.release();
    Ref<> nest(checked(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(nest.get(), i, fixed_nest(PyTuple_GET_ITEM(items.get(), i), depth + 1));
    return nest.release();
  }
  bool fill(PyObject* o, int depth) {
    if (is_list(o)) {
      if (depth == shape_.rank || Py_SIZE(o) != shape_[depth]) return false;
      for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i)
        if (!fill(PySequence_Fast_GET_ITEM(o, i), depth + 1)) return false;
      return true;
    }
    if (depth != shape_.rank) return false;
    int64_t integer = 0;
    double number;
    bool first = numbers_.empty();
    if (PyFloat_CheckExact(o)) {
      number = PyFloat_AS_DOUBLE(o);
      if (bools_) return false;
      floats_ = true;
    } else if (PyLong_CheckExact(o)) {
      int overflow;
      integer = PyLong_AsLongLongAndOverflow(o, &overflow);
      if (overflow || bools_ || integer > (1ll << 53) || integer < -(1ll << 53)) return false;
      number = double(integer);
      small_ &= fits(integer, Dtype::I32);
    } else if (PyBool_Check(o)) {
      if (!first && !bools_) return false;
      bools_ = true;
      integer = o == Py_True;
      number = double(integer);
    } else {
      return false;
    }
    numbers_.push_back(number);
    integers_.push_back(integer);
    return true;
  }
  Shape shape_;
  std::vector<double> numbers_;
  std::vector<int64_t> integers_;
  bool floats_ = false, bools_ = false, small_ = true;
};

Ref<TensorObject> to_tensor(PyObject* o, int dtype) {
  if (is_tensor(o)) {
    if (dtype < 0 || int(as_tensor(o)->value.dtype) == dtype) return Ref<TensorObject>::borrow(as_tensor(o));
  } else if (is_variable(o)) {
    if (dtype < 0 || int(as_variable(o)->value.dtype) == dtype) return read_variable(as_variable(o));
  } else if (PyFloat_CheckExact(o)) {
    if (dtype < 0 && fits_float(PyFloat_AS_DOUBLE(o))) dtype = int(Dtype::F32);
    if (dtype >= 0 && is_differentiable(Dtype(dtype))) return scalar_of(PyFloat_AS_DOUBLE(o), Dtype(dtype));
  } else if (dtype >= 0 && is_held(Dtype(dtype))) {
    // where a number raises an error too
  } else if (PyLong_CheckExact(o)) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) {
      if (dtype < 0) dtype = int(fits(v, Dtype::I32) ? Dtype::I32 : Dtype::I64);
      if (dtype != int(Dtype::Bool) && fits(v, Dtype(dtype))) return scalar_of(v, Dtype(dtype));
    }
  } else if (PyBool_Check(o)) {
    return scalar_of((long long)(o == Py_True), dtype < 0 ? Dtype::Bool : Dtype(dtype));
  }
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
    Literal literal;
    if (literal.read(o))
      if (Ref<TensorObject> t = literal.make(dtype)) return t;
  }
  Ref<> code(PyLong_FromLong(dtype));
  Ref<> t(checked(PyObject_CallFunctionObjArgs(hooks.convert, o, code.get(), nullptr)));
  if (!is_tensor(t.get())) fail(Code::Type, "conversion did not give a tensor");
  return Ref<TensorObject>(as_tensor(t.release()));
}

bool converts_quietly(PyObject* o) {
  if (is_tensor(o) || is_variable(o) || PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) ||
      PyList_Check(o) || PyTuple_Check(o))
    return true;
  if (o == Py_None || PyUnicode_Check(o)) return false;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
  return !PyObject_HasAttr(type, names.defer) &&
         (PyObject_HasAttr(type, names.array) || PyObject_HasAttr(type, names.tensor));
}

// ---- attributes ---------------------------------------------------------------------------

// Whether a value that should be a number, or a list of them, is or holds a tensor of a trace.
static bool is_symbolic(PyObject* value, int depth = 0) {
  if (is_tensor(value)) return as_tensor(value)->symbol;
  if (is_variable(value)) return thread_state().trace;
  if ((!PyList_Check(value) && !PyTuple_Check(value)) || depth > 8) return false;
  Ref<> items(checked(fixed_items(value, "")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    if (is_symbolic(PySequence_Fast_GET_ITEM(items.get(), i), depth + 1)) return true;
  return false;
}

[[noreturn]] static void bad_attr(const OpObject* op, const Param& p, PyObject* value, const char* expected) {
  if (is_symbolic(value))
    fail(Code::Untraceable, op->name + ": `" + text_of(p.name) + "` depends on the values of tensors");
  Ref<> repr(PyObject_Repr(value));
  if (!repr) clear_exception();
  fail(Code::Argument, op->name + ": `" + text_of(p.name) + "` is not valid; expected " + expected +
                           "; got " + (repr ? text_of(repr.get()) : "?") + ".");
}

static bool integer(PyObject* o, int64_t& out) {
  Ref<> i(PyLong_Check(o)  ? Py_NewRef(o)
          : is_variable(o) ? PyNumber_Index(read_variable(as_variable(o)).object())
                           : PyNumber_Index(o));
  if (!i) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
    PyErr_Clear();
    return false;
  }
  int overflow;
  out = PyLong_AsLongLongAndOverflow(i.get(), &overflow);
  if (overflow) fail(Code::Value, "an integer is out of range; expected one that fits into int64");
  return true;
}

// A float tensor in a list of integers: TensorFlow packs such a list into one tensor and casts it to int32.
static bool truncated(PyObject* o, int64_t& out) {
  if (!is_tensor(o) && !is_variable(o)) return false;
  Ref<TensorObject> x = to_tensor(o);
  if (!x->value.has_value()) return false;
  const Tensor& t = on_host(x->value);
  if (t.shape.rank != 0 || is_held(t.dtype)) return false;
  return visit(t.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      const T value = t.as<T>()[0];
      if (!(std::abs(value) < T(1ll << 31))) return false;
      out = int64_t(value);
      return true;
    }
    return false;
  });
}

static bool integers(PyObject* o, std::vector<int64_t>& out) {
  int64_t one;
  if (is_tensor(o) && as_tensor(o)->value.has_value()) {
    const Tensor& t = on_host(as_tensor(o)->value);
    if (t.shape.rank > 1 || !is_int(t.dtype)) return false;
    visit(t.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T>)
        for (int64_t i = 0; i < t.numel; ++i) out.push_back(int64_t(t.as<T>()[i]));
    });
    return true;
  }
  if (!PyList_Check(o) && !PyTuple_Check(o) && integer(o, one)) {
    out.push_back(one);
    return true;
  }
  Ref<> list(fixed_items(o, ""));
  if (!list) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
    PyErr_Clear();
    return false;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list.get(), i);
    if (!integer(item, one) && !truncated(item, one)) return false;
    out.push_back(one);
  }
  return true;
}

// The message of TensorFlow's op, which depends on the kind of parameter.
static std::string out_of_range(ParamKind kind, int64_t axis, int rank) {
  const std::string at = std::to_string(axis), most = std::to_string(rank);
  if (kind == ParamKind::Axes)
    return "Invalid reduction dimension (" + at + " for input with " + most + " dimension(s))";
  if (kind == ParamKind::NewAxis)
    return "Tried to expand dim index " + at + " for tensor with " + std::to_string(rank - 1) + " dimensions";
  return "Expected dimension in the range [-" + most + ", " + most + "), but got " + at;
}

static int64_t normal_axis(const OpObject* op, const Param& p, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    fail(Code::Argument, op->name + ": " + out_of_range(p.kind, axis, rank) + ": `" + text_of(p.name) +
                             "` is out of range; expected an axis in [" + std::to_string(-rank) + ", " +
                             std::to_string(rank) + "); got " + std::to_string(axis) + ".");
  return axis < 0 ? axis + rank : axis;
}

static void resolve_reshape(const OpObject* op, std::vector<int64_t>& dims, const Tensor& x) {
  int64_t known = 1, numel = x.numel;
  int free = -1;
  // In an empty tensor, -1 is computed without the sizes 0: [0, 28, 28] to [0, -1] is [0, 784], and rounded
  // down.
  bool empty = x.numel == 0 && std::find(dims.begin(), dims.end(), 0) != dims.end();
  if (empty) {
    numel = 1;
    for (int i = 0; i < x.shape.rank; ++i) numel *= std::max<int64_t>(x.shape[i], 1);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (empty && dims[i] == 0) continue;
    if (dims[i] == -1) {
      if (free >= 0) fail(op->name + ": only one dimension of `shape` may be -1");
      free = int(i);
    } else if (dims[i] < 0) {
      fail(op->name + ": a dimension cannot be negative; got " + std::to_string(dims[i]) + ".");
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      fail(op->name + ": the requested shape has more elements than can be counted");
    }
  }
  if (free < 0) return;
  if (known == 0 || (numel % known && !empty))
    fail(op->name + ": Input to reshape is a tensor with " + std::to_string(x.numel) +
         " values, but the requested shape requires a multiple of " + std::to_string(known) + ".");
  dims[free] = numel / known;
}

Attr parse_attr(ParamKind kind, PyObject* value, const OpObject* op, const Param& p, const Tensor* first) {
  Attr a;
  Ref<> list;
  int rank = first ? first->shape.rank : 0;
  switch (kind) {
    case ParamKind::Axes:
      a.kind = Attr::Kind::Ints;
      if (value == Py_None) {
        for (int i = 0; i < rank; ++i) a.ints.push_back(i);
        return a;
      }
      if (!integers(value, a.ints)) bad_attr(op, p, value, "an integer, a list of integers or None");
      for (int64_t& axis : a.ints) axis = normal_axis(op, p, axis, rank);
      std::sort(a.ints.begin(), a.ints.end());
      if (std::adjacent_find(a.ints.begin(), a.ints.end()) != a.ints.end())
        fail(op->name + ": Invalid reduction arguments: Axes contains duplicate dimension");
      return a;
    case ParamKind::Axis:
    case ParamKind::NewAxis:
      a.kind = Attr::Kind::Int;
      // expand_dims takes a list of one axis, too.
      if (kind == ParamKind::NewAxis && PyList_Check(value)) {
        list = Ref<>(checked(fixed_items(value, "")));
        if (PySequence_Fast_GET_SIZE(list.get()) == 1) value = PySequence_Fast_GET_ITEM(list.get(), 0);
      }
      // None means the first axis in ops that have it as default (argmax).
      if (!(value == Py_None && p.fallback == Py_None) && !integer(value, a.i))
        bad_attr(op, p, value, "an integer");
      a.i = normal_axis(op, p, a.i, kind == ParamKind::NewAxis ? rank + 1 : rank);
      return a;
    case ParamKind::Perm: {
      a.kind = Attr::Kind::Ints;
      if (value == Py_None) {
        for (int i = rank; i-- > 0;) a.ints.push_back(i);
        return a;
      }
      if (!integers(value, a.ints)) bad_attr(op, p, value, "a list of integers or None");
      if (int(a.ints.size()) != rank)
        fail(op->name + ": transpose expects a vector of size " + std::to_string(rank) +
             "; got a permutation of size " + std::to_string(a.ints.size()) + ".");
      std::vector<bool> seen(size_t(rank), false);
      for (int64_t& axis : a.ints) {
        axis = normal_axis(op, p, axis, rank);
        if (seen[size_t(axis)]) fail(op->name + ": `perm` names axis " + std::to_string(axis) + " twice");
        seen[size_t(axis)] = true;
      }
      return a;
    }
    case ParamKind::Shape:
    case ParamKind::Reshape:
    case ParamKind::Ints:
      a.kind = Attr::Kind::Ints;
      if (!integers(value, a.ints)) bad_attr(op, p, value, "a list of integers");
      if (kind == ParamKind::Reshape) resolve_reshape(op, a.ints, *first);
      if (kind == ParamKind::Shape)
        for (int64_t d : a.ints)
          if (d < 0) fail(op->name + ": Dimension " + std::to_string(d) + " must be >= 0");
      if (kind != ParamKind::Ints && a.ints.size() > size_t(kMaxRank))
        fail(op->name + ": a tensor has at most " + std::to_string(kMaxRank) + " dimensions; got " +
             std::to_string(a.ints.size()) + ".");
      return a;
    case ParamKind::Int:
      a.kind = Attr::Kind::Int;
      if (!integer(value, a.i)) bad_attr(op, p, value, "an integer");
      return a;
    case ParamKind::Bool: {
      a.kind = Attr::Kind::Int;
      int truth = PyObject_IsTrue(value);
      if (truth < 0) throw PythonError{};
      a.i = truth;
      return a;
    }
    case ParamKind::Float:
      a.kind = Attr::Kind::Float;
      a.f = PyFloat_AsDouble(value);
      if (a.f == -1 && PyErr_Occurred()) {
        clear_exception();
        bad_attr(op, p, value, "a number");
      }
      return a;
    case ParamKind::Dtype: {
      a.kind = Attr::Kind::Int;
      if (value == Py_None && p.fallback) value = p.fallback;
      for (int i = 0; i < kDtypes; ++i)
        if (PyTuple_GET_ITEM(hooks.dtypes, i) == value) {
          a.i = i;
          return a;
        }
      Ref<> code(checked(PyObject_CallOneArg(hooks.dtype_code, value)));
      a.i = PyLong_AsLongLong(code.get());
      return a;
    }
    default:
      a.kind = Attr::Kind::Object;
      a.object = Py_NewRef(value);
      return a;
  }
}

PyObject* attr_object(ParamKind kind, const Attr& a) {
  switch (kind) {
    case ParamKind::Bool: return PyBool_FromLong(long(a.i));
    case ParamKind::Float: return PyFloat_FromDouble(a.f);
    case ParamKind::Int:
    case ParamKind::Axis:
    case ParamKind::NewAxis: return PyLong_FromLongLong(a.i);
    case ParamKind::Dtype: return Py_NewRef(PyTuple_GET_ITEM(hooks.dtypes, Py_ssize_t(a.i)));
    case ParamKind::Object: return Py_NewRef(static_cast<PyObject*>(a.object));
    default: {
      PyObject* t = PyTuple_New(Py_ssize_t(a.ints.size()));
      for (size_t i = 0; t && i < a.ints.size(); ++i)
        PyTuple_SET_ITEM(t, Py_ssize_t(i), PyLong_FromLongLong(a.ints[i]));
      return t;
    }
  }
}

PyObject* shape_object(const Shape& s) {
  PyObject* dims = PyTuple_New(s.rank);
  if (!dims) return nullptr;
  for (int i = 0; i < s.rank; ++i)
    PyTuple_SET_ITEM(dims, i, s[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(s[i]));
  PyObject* shape = PyObject_CallOneArg(hooks.shape, dims);
  Py_DECREF(dims);
  return shape;
}

// ---- indexing -----------------------------------------------------------------------------

namespace {

struct Region {
  Attr begin, step, size, shape;
  Region() {
    for (Attr* a : {&begin, &step, &size, &shape}) a->kind = Attr::Kind::Ints;
  }
  void take(int64_t b, int64_t s, int64_t n, bool keep) {
    begin.ints.push_back(b);
    step.ints.push_back(s);
    size.ints.push_back(n);
    if (keep) shape.ints.push_back(n);
  }
};

// Whether an index is of the common kinds; others (masks, arrays) are left to Python.
bool is_plain(PyObject* k) {
  if (k == Py_None || k == Py_Ellipsis || PyLong_CheckExact(k)) return true;
  if (PySlice_Check(k)) {
    auto traced = [](PyObject* o) { return is_tensor(o) && as_tensor(o)->symbol; };
    PySliceObject* s = reinterpret_cast<PySliceObject*>(k);
    return !traced(s->start) && !traced(s->stop) && !traced(s->step);
  }
  if (PyBool_Check(k)) return false;
  if (is_tensor(k))
    return as_tensor(k)->value.shape.rank == 0 && is_int(as_tensor(k)->value.dtype) &&
           as_tensor(k)->value.has_value();
  if (is_variable(k)) return as_variable(k)->value.shape.rank == 0 && is_int(as_variable(k)->value.dtype);
  return PyIndex_Check(k) && !PySequence_Check(k);
}

int64_t bound_of(PyObject* o, const char* what) {
  int64_t v;
  if (!integer(o, v))
    fail(Code::Type, std::string("index: Only integers are valid indices; the ") + what +
                         " of a slice must be an integer or None");
  return v;
}

}  // namespace

CallAttrs* index_attrs(const Shape& dims, PyObject* key) {
  Ref<> keys;
  if (PyTuple_Check(key))
    keys = Ref<>::borrow(key);
  else if (PyList_Check(key))
    keys = Ref<>(checked(PyList_AsTuple(key)));
  else
    keys = Ref<>(checked(PyTuple_Pack(1, key)));
  Py_ssize_t n = PyTuple_GET_SIZE(keys.get());
  int rank = dims.rank, taken = 0, dots = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* k = PyTuple_GET_ITEM(keys.get(), i);
    if (!is_plain(k)) return nullptr;
    if (k == Py_Ellipsis)
      ++dots;
    else if (k != Py_None)
      ++taken;
  }
  if (dots > 1) fail("index: Multiple ellipses in slice spec not allowed");
  if (taken && rank == 0) fail("index: Attempting to slice scalar input.");
  if (taken > rank)
    fail("index: Index out of range using input dim " + std::to_string(rank) + "; input has only " +
         std::to_string(rank) + " dims");
  Region r;
  int axis = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* k = PyTuple_GET_ITEM(keys.get(), i);
    if (k == Py_None) {
      r.shape.ints.push_back(1);
    } else if (k == Py_Ellipsis) {
      for (int skip = rank - taken; skip > 0; --skip, ++axis) r.take(0, 1, dims[axis], true);
    } else if (PySlice_Check(k)) {
      PySliceObject* s = reinterpret_cast<PySliceObject*>(k);
      int64_t d = dims[axis];
      int64_t step = s->step == Py_None ? 1 : bound_of(s->step, "step");
      step = std::max<int64_t>(step, -PY_SSIZE_T_MAX);
      if (step == 0) fail("index: strides[" + std::to_string(axis) + "] must be non-zero");
      Py_ssize_t start =
          s->start == Py_None ? (step < 0 ? PY_SSIZE_T_MAX : 0) : Py_ssize_t(bound_of(s->start, "start"));
      Py_ssize_t stop = s->stop == Py_None ? (step < 0 ? PY_SSIZE_T_MIN : PY_SSIZE_T_MAX)
                                           : Py_ssize_t(bound_of(s->stop, "stop"));
      int64_t count = PySlice_AdjustIndices(Py_ssize_t(d), &start, &stop, Py_ssize_t(step));
      r.take(count ? start : 0, step, count, true);
      ++axis;
    } else {
      int64_t at, d = dims[axis];
      if (!integer(k, at)) fail(Code::Type, "index: expected an integer");
      if (at < -d || at >= d)
        fail("index: slice index " + std::to_string(at) + " of dimension " + std::to_string(axis) +
             " out of bounds.");
      r.take(at < 0 ? at + d : at, 1, 1, false);
      ++axis;
    }
  }
  for (; axis < rank; ++axis) r.take(0, 1, dims[axis], true);
  if (r.shape.ints.size() > size_t(kMaxRank)) fail("index: the result would have too many dimensions");
  CallAttrs* attrs = new CallAttrs;
  attrs->kinds.assign(4, ParamKind::Ints);
  attrs->values.values = {std::move(r.begin), std::move(r.step), std::move(r.size), std::move(r.shape)};
  return attrs;
}

PyObject* index_tensor(PyObject* self, PyObject* key) {
  if (thread_state().trace_records) {
    PyObject* args[] = {self, key};
    return recorded_call(names.getitem, args, 2, nullptr);
  }
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<TensorObject> x = to_tensor(self);
    struct Owner {
      CallAttrs* p;
      ~Owner() { unref(p); }
    } attrs{index_attrs(x->value.shape, key)};
    if (!attrs.p) return PyObject_CallFunctionObjArgs(hooks.index, x.object(), key, nullptr);
    if (!engine.index) fail(Code::Runtime, "the op table is not complete: there is no row named index");
    TensorObject* in[] = {x.get()};
    return run_op(engine.index, in, 1, attrs.p);
  });
}

}  // namespace gt
