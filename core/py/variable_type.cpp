// The native part of tf.Variable: a value that can be replaced, one leaf for all of its reads,
// and the operators of a tensor. Everything else is Python (gradtape/_src/state/variable.py).
#include "device.h"
#include "../ops/elementwise.h"
#include "lending.h"
#include "objects.h"

namespace gt {

PyTypeObject* VariableType;
PyType_Slot* number_slots();

#ifdef Py_GIL_DISABLED
static std::atomic<uint64_t> next_uid{0};
#else
static uint64_t next_uid = 0;
#endif

// The value of the variable according to a tape that follows assignments; nullptr if there is none.
static TensorObject* assigned_value(const Ref<>& tracker, VariableObject* v) {
  Ref<> t(checked(PyObject_CallMethodOneArg(tracker.get(), names.read, reinterpret_cast<PyObject*>(v))));
  if (t.get() == Py_None) return nullptr;
  if (!is_tensor(t.get())) fail(Code::Type, "the value of a variable must be a tensor");
  return as_tensor(t.release());
}

// Passes a new value to the tape that follows assignments. The variable has it already.
static void note_assigned(const Ref<>& tracker, PyObject* self, PyObject* t) {
  if (!is_tensor(t) || !as_tensor(t)->value.has_value())
    fail(Code::Type, "a symbolic tensor has no value yet");
  replace(as_variable(self), as_tensor(t)->value);
  Ref<>(checked(PyObject_CallMethodObjArgs(tracker.get(), names.assign, self, t, nullptr)));
}

static bool has_value(VariableObject* v) {
  Holding hold(v->lock);
  return v->value.has_value();
}

Ref<TensorObject> read_variable(VariableObject* v) {
  ThreadState& here = thread_state();
  if (Ref<> trace = current_trace()) {
    if (!here.tapes.empty()) touch_variable(v);
    Ref<> read(checked(PyObject_CallMethodOneArg(trace.get(), names.read, reinterpret_cast<PyObject*>(v))));
    if (!is_tensor(read.get())) fail(Code::Type, "the value of a variable must be a tensor");
    Ref<TensorObject> t(as_tensor(read.release()));
    if (v->leaf->n_tapes) t->node = ref(v->leaf);
    return t;
  }
  if (!has_value(v)) fail(Code::Runtime, "the variable has no value: it was not initialised");
  // With debug.lines on, reads outside of all tapes are noted too: a question may be about them.
  if (Ref<> tracker = current_tracker(); tracker && (here.notifies || !here.tapes.empty()))
    if (TensorObject* t = assigned_value(tracker, v)) return Ref<TensorObject>(t);
  Ref<TensorObject> t(new_tensor(value_of(v)));
  // A read outside of all tapes is a constant, also for a tape that is opened later.
  if (!here.tapes.empty()) {
    touch_variable(v);
    if (v->leaf->n_tapes) t->node = ref(v->leaf);
  }
  return t;
}

static PyObject* variable_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  VariableObject* v = as_variable(self);
  new (&v->value) Tensor;
  v->uid = ++next_uid;
  v->trainable = true;
  if (guarded<bool>(false, [&] { return v->leaf = new_leaf(), true; })) return self;
  Py_DECREF(self);
  return nullptr;
}

static int variable_clear(PyObject* self) {
  Py_CLEAR(as_variable(self)->dict);
  Py_CLEAR(as_variable(self)->declared);
  return 0;
}

static int variable_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_variable(self)->dict);
  Py_VISIT(as_variable(self)->declared);
  return 0;
}

static void variable_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  VariableObject* v = as_variable(self);
  if (v->weakrefs) PyObject_ClearWeakRefs(self);
  variable_clear(self);
  v->value.~Tensor();
  unref(v->leaf);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject* read(PyObject* self, PyObject*) {
  return guarded<PyObject*>(
      nullptr, [&] { return reinterpret_cast<PyObject*>(read_variable(as_variable(self)).release()); });
}

// The value, unseen by tapes.
static PyObject* peek(PyObject* self, PyObject*) {
  if (Ref<> trace = current_trace()) return PyObject_CallMethodOneArg(trace.get(), names.read, self);
  return guarded<PyObject*>(
      nullptr, [&] { return reinterpret_cast<PyObject*>(new_tensor(value_of(as_variable(self)))); });
}

static PyObject* trace_assign(const Ref<>& trace, PyObject* self, PyObject* t) {
  return PyObject_CallMethodObjArgs(trace.get(), names.assign, self, t, nullptr);
}

// While a function is traced, a change of the value is part of its graph. No tape follows it.
template <class F> void trace_change(const Ref<>& trace, PyObject* self, F&& next_value) {
  Ref<> next;
  {
    Quiet quiet(true);
    next = Ref<>(checked(next_value()));
  }
  Ref<>(checked(trace_assign(trace, self, next.get())));
}

static void trace_update(const Ref<>& trace, PyObject* self, OpObject* op, PyObject* delta) {
  trace_change(trace, self,
               [&] { return call_binary(op, read_variable(as_variable(self)).object(), delta); });
}

static PyObject* set(PyObject* self, PyObject* t) {
  if (!is_tensor(t)) {
    PyErr_SetString(PyExc_TypeError, "expected a Tensor");
    return nullptr;
  }
  if (Ref<> trace = current_trace()) return trace_assign(trace, self, t);
  if (as_tensor(t)->symbol) {
    PyErr_SetString(
        PyExc_TypeError,
        "a symbolic tensor is out of scope: it was made while a function was traced and has no value here");
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] {
    if (Ref<> tracker = current_tracker())
      note_assigned(tracker, self, t);
    else
      replace(as_variable(self), as_tensor(t)->value);
    return Py_NewRef(Py_None);
  });
}

// ---- changes ------------------------------------------------------------------------------

static void apply(VariableObject* v, const OpObject* op, const Tensor& delta) {
  Tensor next;  // in the end the old value, destroyed last: that may run any code
  OnHost held(v);
  Tensor& value = held.value();
  if (!value.has_value()) fail(Code::Runtime, "the variable has no value: it was not initialised");
  const Tensor* in[] = {&value, &delta};
  Spec s = infer_elementwise(*op->kernel, in);
  if (value.is_sole() && s.dtype == value.dtype && s.shape == value.shape)
    return run_elementwise(*op->kernel, in, value);
  next = Tensor(s);
  next.allocate();
  run_elementwise(*op->kernel, in, next);
  exchange(value, next);
}

static Shape shape_of(VariableObject* v) {
  Holding hold(v->lock);
  return v->value.shape;
}

// An assigned value must have the variable's shape; Python raises the error or, for a variable whose shape is
// not fixed, returns.
static void check_shape(PyObject* self, const char* method, TensorObject* t) {
  if (t->value.shape == shape_of(as_variable(self))) return;
  Ref<>(checked(PyObject_CallMethod(self, "_check_shape", "sO", method, reinterpret_cast<PyObject*>(t))));
}

struct AssignArguments {
  PyObject* value = nullptr;
  bool read = true;
};

// (value, use_locking=None, name=None, read_value=True)
static AssignArguments parse_assign(const char* method, const char* first, PyObject* const* args,
                                    Py_ssize_t n, PyObject* kwnames) {
  const char* names[] = {first, "use_locking", "name", "read_value"};
  PyObject* bound[4] = {};
  if (n > 4)
    fail(Code::Type, std::string(method) + "() takes at most 4 arguments (" + std::to_string(n) + " given)");
  for (Py_ssize_t i = 0; i < n; ++i) bound[i] = args[i];
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    int k = 0;
    while (k < 4 && PyUnicode_CompareWithASCIIString(name, names[k]) != 0) ++k;
    if (k == 4)
      fail(Code::Type, std::string(method) + "() got an unexpected keyword argument '" + text_of(name) + "'");
    if (bound[k])
      fail(Code::Type, std::string(method) + "() got multiple values for argument '" + names[k] + "'");
    bound[k] = args[n + i];
  }
  if (!bound[0]) fail(Code::Type, std::string(method) + "() missing required argument: '" + first + "'");
  int read = bound[3] ? PyObject_IsTrue(bound[3]) : 1;
  if (read < 0) throw PythonError{};
  return {bound[0], bool(read)};
}

// Converts an assigned value to the type of the variable, and notes on active tapes that the variable is
// used.
static Ref<TensorObject> incoming(PyObject* self, PyObject* value) {
  VariableObject* v = as_variable(self);
  Ref<TensorObject> t = to_tensor(value, int(v->value.dtype));
  if (!t->value.has_value() && !thread_state().trace)
    fail(Code::Type, "a symbolic tensor has no value yet, so it cannot be assigned outside of its function");
  if (!active_tapes().empty()) touch_variable(v);
  return t;
}

static PyObject* assign(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guarded<PyObject*>(nullptr, [&] {
    AssignArguments a = parse_assign("assign", "value", args, n, kwnames);
    Ref<TensorObject> t = incoming(self, a.value);
    check_shape(self, "assign", t.get());
    if (Ref<> trace = current_trace())
      Ref<>(checked(trace_assign(trace, self, t.object())));
    else if (Ref<> tracker = current_tracker())
      note_assigned(tracker, self, t.object());
    else
      replace(as_variable(self), t->value);
    return Py_NewRef(a.read ? self : Py_None);
  });
}

template <OpObject* EngineOps::*op>
PyObject* assign_by(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const char* method = op == &EngineOps::add ? "assign_add" : "assign_sub";
  return guarded<PyObject*>(nullptr, [&] {
    AssignArguments a = parse_assign(method, "delta", args, n, kwnames);
    Ref<TensorObject> t = incoming(self, a.value);
    check_shape(self, method, t.get());
    if (Ref<> trace = current_trace())
      trace_update(trace, self, engine.*op, t.object());
    else if (Ref<> tracker = current_tracker())
      note_assigned(
          tracker, self,
          Ref<>(checked(call_binary(engine.*op, read_variable(as_variable(self)).object(), t.object())))
              .get());
    else {
      const Tensor& delta = on_host(t->value);
      apply(as_variable(self), engine.*op, delta);
    }
    return Py_NewRef(a.read ? self : Py_None);
  });
}

// Runs a native op whose first operand and result are the variable's value, in place if possible. Moves the
// old value into `before` if the value was replaced.
static void rewrite(Tensor& value, const char* name, const Tensor* const* in, int n, const Attrs& attrs,
                    Tensor& before) {
  const Impl* impl = find_impl(name);
  for (int i = 0; i < n; ++i)
    if (!in[i]->data) fail(Code::Type, "a symbolic tensor has no value yet");
  Call call{in, n, attrs};
  Outs outs;
  impl->infer(call, outs);
  if (value.is_sole())
    outs[0] = value;
  else if (impl->allocates)
    outs[0].allocate();
  impl->run(call, outs);
  before = std::move(outs[0]);
  exchange(value, before);
}

// _put(key, value): variable[key] = value, which must have as many elements as the slice.
static PyObject* put(PyObject* self, PyObject* args) {
  PyObject *key, *update;
  if (!PyArg_ParseTuple(args, "OO!", &key, TensorType, &update)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    struct Owner {
      CallAttrs* p;
      ~Owner() { unref(p); }
    } attrs{index_attrs(shape_of(as_variable(self)), key)};
    if (!attrs.p)
      fail(Code::Type,
           "assign: only slices can be assigned to. Hint: scatter_nd_update(indices, updates), or "
           "v.assign(tf.where(mask, x, v)).");
    attrs.p->values.values.pop_back(),
        attrs.p->kinds.pop_back();  // index_update has no parameter for the shape of the slice
    if (Ref<> trace = current_trace()) {
      trace_change(trace, self, [&] {
        TensorObject* operands[] = {read_variable(as_variable(self)).release(), as_tensor(update)};
        Ref<TensorObject> held(operands[0]);
        return run_op(engine.index_update, operands, 2, attrs.p);
      });
      Py_RETURN_NONE;
    }
    if (Ref<> tracker = current_tracker()) {
      Ref<TensorObject> held = read_variable(as_variable(self));
      TensorObject* operands[] = {held.get(), as_tensor(update)};
      note_assigned(tracker, self, Ref<>(checked(run_op(engine.index_update, operands, 2, attrs.p))).get());
      Py_RETURN_NONE;
    }
    if (is_held(as_tensor(update)->value.dtype)) {  // strings have no elements in the core to overwrite
      Ref<TensorObject> held = read_variable(as_variable(self));
      TensorObject* operands[] = {held.get(), as_tensor(update)};
      Ref<> made(checked(run_op(engine.index_update, operands, 2, attrs.p)));
      replace(as_variable(self), as_tensor(made.get())->value);
      Py_RETURN_NONE;
    }
    on_host(as_tensor(update)->value);
    Tensor before;
    OnHost held(as_variable(self));
    const Tensor* in[] = {&held.value(), &as_tensor(update)->value};
    rewrite(held.value(), "index_update", in, 2, attrs.p->values, before);
    Py_RETURN_NONE;
  });
}

// _scatter(mode, indices, updates, rows): combines slices of the value with updates. With `rows` an index is
// a row number, else its last axis holds coordinates.
static PyObject* scatter(PyObject* self, PyObject* args) {
  int mode, rows;
  PyObject *indices, *updates;
  if (!PyArg_ParseTuple(args, "iO!O!p", &mode, TensorType, &indices, TensorType, &updates, &rows))
    return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (thread_state().trace || thread_state().tracker)
      fail(Code::Runtime, "a scatter in a trace is made of ops");
    on_host(as_tensor(updates)->value);
    Tensor at = on_host(as_tensor(indices)->value);
    Tensor before;
    OnHost held(as_variable(self));
    Tensor& value = held.value();
    if (at.dtype != Dtype::I32 && at.dtype != Dtype::I64)
      fail(Code::Type, "scatter: indices must be int32 or int64");
    if (as_tensor(updates)->value.dtype != value.dtype)
      fail(Code::Type, "scatter: the type of the updates differs from the variable's");
    if (rows) at.shape.push(1);
    Attrs attrs;
    attrs.values.emplace_back();
    attrs.values[0].kind = Attr::Kind::Int;
    attrs.values[0].i = mode;
    const Tensor* in[] = {&value, &at, &as_tensor(updates)->value};
    rewrite(value, "tensor_scatter", in, 3, attrs, before);
    Py_RETURN_NONE;
  });
}

// variable[key]: a tensor that keeps variable and key, so that it can be assigned to.
static PyObject* index_variable(PyObject* self, PyObject* key) {
  PyObject* t = index_tensor(self, key);
  if (t && is_tensor(t) && Py_REFCNT(t) == 1 && !as_tensor(t)->variable) {
    as_tensor(t)->variable = Py_NewRef(self);
    as_tensor(t)->key = Py_NewRef(key);
  }
  return t;
}

static PyObject* numpy(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] { return tensor_to_numpy(read_variable(as_variable(self)).get()); });
}

// _update(op, delta): value = op(value, delta), in place if nothing else refers to the value.
static PyObject* update(PyObject* self, PyObject* args) {
  PyObject *op, *delta;
  if (!PyArg_ParseTuple(args, "O!O!", OpType, &op, TensorType, &delta)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (Ref<> trace = current_trace()) {
      trace_update(trace, self, as_op(op), delta);
      Py_RETURN_NONE;
    }
    const Tensor& d = as_tensor(delta)->value;
    if (!as_op(op)->kernel || as_op(op)->kernel->arity != 2)
      fail(Code::Type, "_update: expected an element-wise op of two operands");
    if (d.dtype != as_variable(self)->value.dtype)
      fail(Code::Value, "the type of the change differs from the variable's");
    if (!d.has_value()) fail(Code::Type, "a symbolic tensor has no value yet");
    on_host(as_tensor(delta)->value);
    if (Ref<> tracker = current_tracker()) {
      note_assigned(
          tracker, self,
          Ref<>(checked(call_binary(as_op(op), read_variable(as_variable(self)).object(), delta))).get());
      Py_RETURN_NONE;
    }
    apply(as_variable(self), as_op(op), d);
    Py_RETURN_NONE;
  });
}

static PyObject* touch(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    touch_variable(as_variable(self));
    return Py_NewRef(Py_None);
  });
}

static Ref<> declared_of(PyObject* self) {
  Section here(self);
  return Ref<>::borrow(as_variable(self)->declared);
}
static PyObject* get_value_shape(PyObject* self, void*) { return shape_object(shape_of(as_variable(self))); }
static PyObject* get_shape(PyObject* self, void*) {
  if (Ref<> declared = declared_of(self)) return declared.release();
  return get_value_shape(self, nullptr);
}
static PyObject* get_declared(PyObject* self, void*) {
  Ref<> declared = declared_of(self);
  return declared ? declared.release() : Py_NewRef(Py_None);
}
static int set_declared(PyObject* self, PyObject* shape, void*) {
  Ref<> before;
  Section here(self);
  before = Ref<>(as_variable(self)->declared);
  as_variable(self)->declared = shape && shape != Py_None ? Py_NewRef(shape) : nullptr;
  return 0;
}
static PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(PyTuple_GET_ITEM(hooks.dtypes, int(as_variable(self)->value.dtype)));
}
static PyObject* get_uid(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(as_variable(self)->uid);
}
static PyObject* get_trainable(PyObject* self, void*) {
  return PyBool_FromLong(as_variable(self)->trainable);
}
static int set_trainable(PyObject* self, PyObject* value, void*) {
  int truth = value ? PyObject_IsTrue(value) : 0;
  if (truth < 0) return -1;
  as_variable(self)->trainable = truth;
  return 0;
}
static Py_hash_t unhashable(PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "Variable is unhashable. Instead, use variable.ref() as the key. (Variable: use `is` to "
                  "compare identity)");
  return -1;
}

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
static PyCFunction fast(FastCall f) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)); }

static PyMethodDef methods[] = {
    {"assign", fast(assign), METH_FASTCALL | METH_KEYWORDS,
     "assign(value, use_locking=None, name=None, read_value=True)\n\nReplaces the value; returns the "
     "variable."},
    {"assign_add", fast(assign_by<&EngineOps::add>), METH_FASTCALL | METH_KEYWORDS,
     "assign_add(delta, use_locking=None, name=None, read_value=True)\n\nAdds to the value; returns the "
     "variable."},
    {"assign_sub", fast(assign_by<&EngineOps::sub>), METH_FASTCALL | METH_KEYWORDS,
     "assign_sub(delta, use_locking=None, name=None, read_value=True)\n\nSubtracts from the value; returns "
     "the variable."},
    {"numpy", numpy, METH_NOARGS, "The value as a NumPy array (a copy) or NumPy scalar."},
    {"_put", put, METH_VARARGS, "Replaces a slice of the value."},
    {"_scatter", scatter, METH_VARARGS, "Combines slices of the value with updates."},
    {"_read", read, METH_NOARGS, "The value, seen by the active tapes."},
    {"_peek", peek, METH_NOARGS, "The value, unseen by tapes."},
    {"_set", set, METH_O, "Replaces the value."},
    {"_update", update, METH_VARARGS, "Changes the value by an element-wise op."},
    {"_touch", touch, METH_NOARGS, "Notes on the active tapes that the variable is used."},
    {}};
static PyGetSetDef getset[] = {
    {"_value_shape", get_value_shape, nullptr, nullptr, nullptr},
    {"shape", get_shape, nullptr, "The shape, a TensorShape; sizes that are not fixed are None.", nullptr},
    {"_declared", get_declared, set_declared, "The shape with unknown sizes, or None.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type, a DType.", nullptr},
    {"_uid", get_uid, nullptr, "A number that increases in the order of construction.", nullptr},
    {"trainable", get_trainable, set_trainable, "Whether tapes watch the variable when it is read.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(VariableObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(VariableObject, weakrefs), READONLY, nullptr},
    {}};

void init_variable_type(PyObject* module) {
  std::vector<PyType_Slot> slots;
  for (PyType_Slot* s = number_slots(); s->slot; ++s) slots.push_back(*s);
  auto add = [&](int slot, auto* p) { slots.push_back({slot, reinterpret_cast<void*>(p)}); };
  add(Py_tp_new, variable_new);
  add(Py_tp_dealloc, variable_dealloc);
  add(Py_tp_traverse, variable_traverse);
  add(Py_tp_clear, variable_clear);
  add(Py_tp_hash, unhashable);
  add(Py_mp_subscript, index_variable);
  add(Py_tp_methods, methods);
  add(Py_tp_getset, getset);
  add(Py_tp_members, members);
  slots.push_back({});
  PyType_Spec spec = {"gradtape._core.Variable", sizeof(VariableObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  VariableType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Variable", reinterpret_cast<PyObject*>(VariableType));
}

}  // namespace gt
