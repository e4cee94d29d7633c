// Runs ops on operands that are tensors already: natively, in Python, or into a trace; then records the call
// on the tapes.
#include <algorithm>

#include "device.h"
#include "../ops/elementwise.h"
#include "calls.h"

namespace gt {

static PyObject* object(TensorObject* t) { return reinterpret_cast<PyObject*>(t); }

// Above this much work (in nanoseconds) other Python threads may run meanwhile.
constexpr double kWorthReleasing = 20000;

// ---- errors -------------------------------------------------------------------------------

// `op: what is wrong; got x: float32[3,4], y: float32[5].`
static Error with_operands(const Error& e, const OpObject* op, const std::vector<Spec>& given) {
  std::string got;
  int param = 0;
  for (int i = 0; i < std::min(int(given.size()), 8); ++i) {
    while (param < int(op->params.size()) && !is_operand(op->params[param].kind)) ++param;
    if (param == int(op->params.size())) break;
    bool list = op->params[param].kind == ParamKind::Operands;
    got += (i ? ", " : "") + text_of(op->params[param].name) + (list ? "[" + std::to_string(i) + "]" : "") +
           ": " + given[size_t(i)].str();
    if (!list) ++param;
  }
  const char* joined = e.text.ends_with('.') ? " Got " : "; got ";  // TensorFlow's sentences are not changed
  return {e.code, op->name + ": " + e.text + (got.empty() ? "" : joined + got + ".")};
}

void raise(const StepError& e) {
  try {
    raise(with_operands(e, static_cast<const OpObject*>(e.op), e.given));
  } catch (const std::bad_alloc&) {
    raise(static_cast<const Error&>(e));
  }
  locate_exception(e.where.get());
}

// ---- running ------------------------------------------------------------------------------

void no_value() {
  fail(Code::Runtime,
       "an operand has no value: the gradient rule that called this op reads a value it was not found to "
       "read");
}

// Types and shapes of the results of an op written in Python, from its `infer([(dtype, shape)], attrs) ->
// [(shape, dtype)]`, which an op that was added to the table directly gets on first use.
static void infer_python(OpObject* op, const Tensor* const* in, int n, PyObject* attrs, Outs& outs) {
  auto dims = [](const Shape& s) {
    Ref<> t(checked(PyTuple_New(s.rank)));
    for (int i = 0; i < s.rank; ++i) PyTuple_SET_ITEM(t.get(), i, checked(PyLong_FromLongLong(s[i])));
    return t;
  };
  PyObject* self = object(reinterpret_cast<TensorObject*>(op));
  Ref<> infer(PyObject_GetAttrString(self, "infer"));
  if (!infer) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError{};
    PyErr_Clear();
    Ref<> module(checked(PyImport_ImportModule("gradtape._src.control.python_op")));
    Ref<>(checked(PyObject_CallMethod(module.get(), "adopt", "O", self)));
    infer = Ref<>(checked(PyObject_GetAttrString(self, "infer")));
  }
  Ref<> specs(checked(PyList_New(n)));
  for (int i = 0; i < n; ++i)
    PyList_SET_ITEM(specs.get(), i,
                    checked(Py_BuildValue("(iO)", int(in[i]->dtype), dims(in[i]->shape).get())));
  Ref<> made(checked(PyObject_CallFunctionObjArgs(infer.get(), specs.get(), attrs, nullptr)));
  Ref<> list(checked(fixed_items(made.get(), "infer must return a list")));
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list.get()); ++k) {
    PyObject* shape;
    int dtype;
    PyObject* spec = PySequence_Fast_GET_ITEM(list.get(), k);
    if (!PyTuple_Check(spec)) fail(Code::Type, "infer must return a list of tuples (shape, dtype)");
    if (!PyArg_ParseTuple(spec, "O!i", &PyTuple_Type, &shape, &dtype)) throw PythonError{};
    Shape s;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i)
      s.push(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i)));
    if (PyErr_Occurred()) throw PythonError{};
    outs.emplace_back(Spec{dtype_code(dtype), s});
  }
  if (outs.empty() && !op->many) fail(Code::Value, "infer must return a list of one (shape, dtype)");
}

static void infer_native(OpObject* op, const Tensor* const* in, int n, const Attrs& attrs, Outs& outs) {
  if (op->kernel)
    outs.emplace_back(infer_elementwise(*op->kernel, in));
  else
    op->impl->infer({in, n, attrs}, outs);
}

// The type used to infer a call on values held by Python: its shapes are those of the same call on such
// numbers, and results of that type are held values again. Only a cast to a named type makes them from other
// values.
static Dtype in_place_of(Dtype held, const Attrs& attrs) {
  if (held == Dtype::Str) return Dtype::U64;
  for (const Attr& a : attrs.values)
    if (a.kind == Attr::Kind::Int && a.i == int64_t(Dtype::U8)) return Dtype::I8;
  return Dtype::U8;
}

static void infer_held(OpObject* op, const Tensor* const* in, int n, const Attrs& attrs, Outs& outs) {
  const Dtype held = (*std::find_if(in, in + n, [](const Tensor* t) { return is_held(t->dtype); }))->dtype;
  const Dtype number = in_place_of(held, attrs);
  std::vector<Tensor> numbers;
  std::vector<const Tensor*> values;
  numbers.reserve(size_t(n));
  for (int i = 0; i < n; ++i) {
    if (is_held(in[i]->dtype)) numbers.emplace_back(Spec{number, in[i]->shape});
    values.push_back(is_held(in[i]->dtype) ? &numbers.back() : in[i]);
  }
  infer_native(op, values.data(), n, attrs, outs);
  for (Tensor& y : outs)
    if (y.dtype == number) y.dtype = held;
}

void infer_results(OpObject* op, const Tensor* const* in, int n, CallAttrs* attrs, Outs& outs) {
  static const Attrs none;
  const Attrs& values = attrs ? attrs->values : none;
  if (!op->kernel && !op->impl)
    infer_python(op, in, n, attrs_tuple(attrs), outs);
  else if (std::any_of(in, in + n, [](const Tensor* t) { return is_held(t->dtype); }))
    infer_held(op, in, n, values, outs);
  else
    infer_native(op, in, n, values, outs);
}

// A call on tensors of a trace: shapes are inferred, and the call is written into the graph.
static PyObject* trace(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs, PyObject* symbol) {
  std::vector<const Tensor*> operand_values;
  for (int i = 0; i < n; ++i) {
    operand_values.push_back(&in[i]->value);
    if (!in[i]->symbol && !in[i]->value.has_value()) no_value();
  }
  Outs specs;
  infer_results(op, operand_values.data(), n, attrs, specs);
  Ref<> operands(checked(PyTuple_New(n))), results(checked(PyTuple_New(Py_ssize_t(specs.size()))));
  for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(operands.get(), i, Py_NewRef(object(in[i])));
  for (size_t k = 0; k < specs.size(); ++k)
    PyTuple_SET_ITEM(results.get(), Py_ssize_t(k), object(new_tensor(std::move(specs[k]))));
  Ref<>(checked(PyObject_CallMethodObjArgs(symbol, names.trace, object(reinterpret_cast<TensorObject*>(op)),
                                           operands.get(), results.get(), attrs_tuple(attrs), nullptr)));
  if (!active_tapes().empty()) {
    std::vector<TensorObject*> out;
    for (size_t k = 0; k < specs.size(); ++k)
      out.push_back(as_tensor(PyTuple_GET_ITEM(results.get(), Py_ssize_t(k))));
    record(op, attrs, in, n, out.data(), int(out.size()));
  }
  return op->many ? results.release() : Py_NewRef(PyTuple_GET_ITEM(results.get(), 0));
}

// Integer division has no result for a zero divisor.
static void check_divisor(const OpObject* op, const Tensor& y) {
  if (!op->no_zero || !is_int(y.dtype)) return;
  bool zero = visit(y.dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_integral_v<T>)
      return std::find(y.as<T>(), y.as<T>() + y.numel, T(0)) != y.as<T>() + y.numel;
    return false;
  });
  if (zero) fail("Integer division by zero");
}

// Integers have no negative integer powers.
static void check_exponent(const Tensor& y) {
  bool negative = visit(y.dtype, [&](auto t) {
    using T = decltype(t);
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      return std::any_of(y.as<T>(), y.as<T>() + y.numel, [](T e) { return e < 0; });
    return false;
  });
  if (negative) fail("Integers to negative integer powers are not allowed");
}

static PyObject* run_kernel(OpObject* op, TensorObject* const* in, int n) {
  const Elementwise& k = *op->kernel;
  if (n != k.arity) fail("expects " + std::to_string(k.arity) + " operands");
  const Tensor* values[4];
  for (int i = 0; i < n; ++i) values[i] = &in[i]->value;
  Ref<TensorObject> out(new_tensor());
  Tensor& y = out->value;
  int t = int(values[n - 1]->dtype);
  if (n == 1 && k.loop[t]) {
    y.dtype = k.out[t], y.shape = values[0]->shape, y.numel = values[0]->numel;
  } else if (n == 2 && k.loop[t] && values[0]->shape == values[1]->shape) {
    y.dtype = k.out[t], y.shape = values[0]->shape, y.numel = values[0]->numel;
  } else {
    y = Tensor(infer_elementwise(k, values));
  }
  if (op->no_zero) check_divisor(op, *values[1]);
  if (op->no_negative && is_int(values[1]->dtype)) check_exponent(*values[1]);
  y.allocate();
  if (double(y.numel) * k.cost > kWorthReleasing) {
    without_lock([&] { run_elementwise(k, values, y); });
  } else {
    run_elementwise(k, values, y);
  }
  if (!active_tapes().empty()) {
    TensorObject* result = out.get();
    record(op, nullptr, in, n, &result, 1);
  }
  return object(out.release());
}

static PyObject* finish(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs,
                        std::vector<Ref<TensorObject>>& results) {
  if (!active_tapes().empty()) {
    std::vector<TensorObject*> out;
    for (auto& r : results) out.push_back(r.get());
    record(op, attrs, in, n, out.data(), int(out.size()));
  }
  if (!op->many) return object(results[0].release());
  PyObject* tuple = checked(PyTuple_New(Py_ssize_t(results.size())));
  for (size_t k = 0; k < results.size(); ++k)
    PyTuple_SET_ITEM(tuple, Py_ssize_t(k), object(results[k].release()));
  return tuple;
}

static PyObject* run_held(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs);

static PyObject* run_impl(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs) {
  static const Attrs none;
  const Tensor* small[8];
  std::vector<const Tensor*> large;
  const Tensor** values = small;
  if (n > 8) {
    large.resize(size_t(n));
    values = large.data();
  }
  double elements = 0;
  for (int i = 0; i < n; ++i) {
    values[i] = &in[i]->value;
    elements += double(in[i]->value.numel);
  }
  Call call{values, n, attrs ? attrs->values : none};
  // Reused, so that the list of results is not allocated for each call.
  static thread_local Outs spare;
  Outs outs;
  outs.swap(spare);
  struct Return {
    Outs& outs;
    ~Return() {
      outs.clear();
      if (outs.capacity() <= 16) outs.swap(spare);
    }
  } give_back{outs};
  op->impl->infer(call, outs);
  for (Tensor& y : outs) {
    elements += double(y.numel);
    if (is_held(y.dtype)) return run_held(op, in, n, attrs);  // tf.zeros of strings, a cast to 8 bits
    if (op->impl->allocates) y.allocate();
  }
  if (elements * op->impl->cost > kWorthReleasing) {
    without_lock([&] { op->impl->run(call, outs); });
  } else {
    op->impl->run(call, outs);
  }
  if (!op->many) {
    Ref<TensorObject> out(new_tensor(std::move(outs[0])));
    TensorObject* result = out.get();
    if (!active_tapes().empty()) record(op, attrs, in, n, &result, 1);
    return object(out.release());
  }
  std::vector<Ref<TensorObject>> results;
  results.reserve(outs.size());
  for (Tensor& y : outs) results.emplace_back(new_tensor(std::move(y)));
  return finish(op, in, n, attrs, results);
}

// An op written in Python: the ops it calls are not recorded, since it has a rule of its own.
static PyObject* run_python(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs) {
  PyObject* extra = attrs_tuple(attrs);
  Py_ssize_t n_extra = PyTuple_GET_SIZE(extra);
  Ref<> args(checked(PyTuple_New(n + n_extra)));
  for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(object(in[i])));
  for (Py_ssize_t i = 0; i < n_extra; ++i)
    PyTuple_SET_ITEM(args.get(), n + i, Py_NewRef(PyTuple_GET_ITEM(extra, i)));
  Ref<> result;
  {
    Quiet quiet(true);
    result = Ref<>(checked(PyObject_CallObject(op->python, args.get())));
  }
  std::vector<Ref<TensorObject>> results;
  auto take = [&](PyObject* o) {
    Ref<TensorObject> t = to_tensor(o);
    // A fresh object, so that a result which is one of the operands has a history of its own.
    results.emplace_back(new_tensor(t->value));
  };
  if (op->many) {
    Ref<> list(checked(PySequence_Tuple(result.get())));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i) take(PyTuple_GET_ITEM(list.get(), i));
  } else {
    take(result.get());
  }
  return finish(op, in, n, attrs, results);
}

// A native op on values held by Python: a hook replaces them by indices, which the kernels move. They have no
// gradients.
static PyObject* run_held(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs) {
  for (int i = 0; i < n; ++i)
    if (in[i]->symbol)
      return thread_state().trace_records ? recorded_op(op, in, n, attrs)
                                          : trace(op, in, n, attrs, in[i]->symbol);
  Ref<> operands(checked(PyTuple_New(n)));
  for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(operands.get(), i, Py_NewRef(object(in[i])));
  PyObject* self = object(reinterpret_cast<TensorObject*>(op));
  return checked(PyObject_CallFunctionObjArgs(hooks.held, self, operands.get(), attrs_tuple(attrs), nullptr));
}

// Whether a tensor with a value must become an input of the current trace: it is older than the trace, or it
// is differentiable and the trace keeps such tensors as constants of its graph.
static bool is_outside(const ThreadState& here, TensorObject* t) {
  return !t->symbol && t->value.has_value() &&
         (t->born <= here.trace_start || (here.trace_keeps_constants && is_differentiable(t->value.dtype)));
}

// In a trace, tensors from outside become inputs of the graph, so that tapes around its runs track them.
static PyObject* run_captured(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs) {
  std::vector<Ref<TensorObject>> owned;
  std::vector<TensorObject*> operands(in, in + n);
  ThreadState& here = thread_state();
  Ref<> trace = Ref<>::borrow(here.trace);
  for (int i = 0; i < n; ++i) {
    if (!is_outside(here, in[i])) continue;
    Ref<> symbol(checked(PyObject_CallMethodOneArg(trace.get(), names.symbol_for, object(in[i]))));
    if (!is_tensor(symbol.get())) fail(Code::Type, "a trace must give a tensor of its own for a tensor");
    owned.emplace_back(as_tensor(symbol.release()));
    owned.back()->node = ref(static_cast<Node*>(in[i]->node));
    owned.back()->output = in[i]->output;
    operands[size_t(i)] = owned.back().get();
  }
  return run_op(op, operands.data(), n, attrs);
}

// Watchers may raise, or change the watchers.
static void tell_watchers(PyObject* op, PyObject* operands, PyObject* result) {
  for (auto& w : current_watchers())
    Ref<>(checked(PyObject_CallFunctionObjArgs(w.get(), op, operands, result, nullptr)));
}

// Passes the call and its result to the watchers.
static PyObject* watched(OpObject* op, TensorObject* const* in, int n, PyObject* out) {
  Ref<> result(out), operands(checked(PyTuple_New(n)));
  for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(operands.get(), i, Py_NewRef(object(in[i])));
  tell_watchers(object(reinterpret_cast<TensorObject*>(op)), operands.get(), result.get());
  return result.release();
}

void note_leaving(PyObject* tensor) {
  Ref<> operands(checked(PyTuple_Pack(1, tensor)));
  tell_watchers(Py_None, operands.get(), Py_None);
}

PyObject* run_op(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs) {
  try {
    ThreadState& here = thread_state();
    if (op->impl && op->impl->shapes_only && !here.trace_records) return run_impl(op, in, n, attrs);
    if (here.trace_start && !here.trace_records)
      for (int i = 0; i < n; ++i)
        if (is_outside(here, in[i])) return run_captured(op, in, n, attrs);
    for (int i = 0; i < n; ++i) {
      if (in[i]->symbol)
        return here.trace_records ? recorded_op(op, in, n, attrs) : trace(op, in, n, attrs, in[i]->symbol);
      if (!in[i]->value.data) {
        if (!in[i]->value.has_value()) no_value();
        if (is_held(in[i]->value.dtype)) {
          if (!op->python) return run_held(op, in, n, attrs);
          continue;
        }
        fetch(in[i]->value);
      }
    }
    PyObject* out = op->kernel ? run_kernel(op, in, n)
                    : op->impl ? run_impl(op, in, n, attrs)
                               : run_python(op, in, n, attrs);
    return here.notifies ? watched(op, in, n, out) : out;
  } catch (const Error& e) {
    std::vector<Spec> given;
    for (int i = 0; i < n; ++i) given.push_back(in[i]->value.spec());
    throw with_operands(e, op, given);
  }
}

}  // namespace gt
