// The native part of tf.Variable: a value that can be replaced, one leaf for all of its reads,
// and the operators of a tensor. Everything else is Python (gradtape/variable.py).
#include "../ops/elementwise.h"
#include "objects.h"

namespace gt {

PyTypeObject* VariableType;
PyType_Slot* number_slots();

static uint64_t next_uid = 0;

Ref<TensorObject> read_variable(VariableObject* v) {
  if (!v->value.has_value()) fail(Code::Runtime, "the variable has no value: it was not initialised");
  if (!active_tapes().empty()) touch_variable(v);
  Ref<TensorObject> t(new_tensor(v->value));
  t->node = ref(v->leaf);
  return t;
}

static PyObject* variable_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  VariableObject* v = as_variable(self);
  new (&v->value) Tensor;
  v->leaf = new_leaf();
  v->uid = ++next_uid;
  v->trainable = true;
  return self;
}

static int variable_clear(PyObject* self) {
  Py_CLEAR(as_variable(self)->dict);
  return 0;
}

static int variable_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_variable(self)->dict);
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
  return guarded<PyObject*>(nullptr, [&] { return reinterpret_cast<PyObject*>(read_variable(as_variable(self)).release()); });
}

// The value without telling any tape.
static PyObject* peek(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] { return reinterpret_cast<PyObject*>(new_tensor(as_variable(self)->value)); });
}

static PyObject* set(PyObject* self, PyObject* t) {
  if (!is_tensor(t)) {
    PyErr_SetString(PyExc_TypeError, "expected a Tensor");
    return nullptr;
  }
  as_variable(self)->value = as_tensor(t)->value;
  Py_RETURN_NONE;
}

// _update(op, delta): value = op(value, delta), in place when nobody else holds the value.
static PyObject* update(PyObject* self, PyObject* args) {
  PyObject *op, *delta;
  if (!PyArg_ParseTuple(args, "O!O!", OpType, &op, TensorType, &delta)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Tensor& value = as_variable(self)->value;
    const Tensor& d = as_tensor(delta)->value;
    const Tensor* in[] = {&value, &d};
    bool own = value.buffer && value.buffer->refs.load() == 1 && !value.buffer->release;
    if (own && as_op(op)->kernel && d.dtype == value.dtype && (d.shape == value.shape || d.numel == 1)) {
      run_elementwise(*as_op(op)->kernel, in, value);
    } else {
      if (d.dtype != value.dtype) fail(Code::Value, "the type of the change differs from the variable's");
      Tensor next(infer_elementwise(*as_op(op)->kernel, in));
      next.allocate();
      run_elementwise(*as_op(op)->kernel, in, next);
      value = std::move(next);
    }
    Py_RETURN_NONE;
  });
}

static PyObject* touch(PyObject* self, PyObject*) {
  touch_variable(as_variable(self));
  Py_RETURN_NONE;
}

static PyObject* get_shape(PyObject* self, void*) { return shape_object(as_variable(self)->value.shape); }
static PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(PyTuple_GET_ITEM(hooks.dtypes, int(as_variable(self)->value.dtype))); }
static PyObject* get_uid(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(as_variable(self)->uid); }
static PyObject* get_trainable(PyObject* self, void*) { return PyBool_FromLong(as_variable(self)->trainable); }
static int set_trainable(PyObject* self, PyObject* value, void*) {
  int truth = value ? PyObject_IsTrue(value) : 0;
  if (truth < 0) return -1;
  as_variable(self)->trainable = truth;
  return 0;
}
static Py_hash_t unhashable(PyObject*) {
  PyErr_SetString(PyExc_TypeError, "Variable is unhashable. Instead, use variable.ref() as the key. (Variable: use `is` to compare identity)");
  return -1;
}

static PyMethodDef methods[] = {{"_read", read, METH_NOARGS, "The value, seen by the active tapes."},
                                {"_peek", peek, METH_NOARGS, "The value, unseen by tapes."},
                                {"_set", set, METH_O, "Replaces the value."},
                                {"_update", update, METH_VARARGS, "Changes the value by an element-wise op."},
                                {"_touch", touch, METH_NOARGS, "Tells the active tapes that the variable is used."},
                                {}};
static PyGetSetDef getset[] = {{"_value_shape", get_shape, nullptr, nullptr, nullptr},
                               {"dtype", get_dtype, nullptr, "The element type, a DType.", nullptr},
                               {"_uid", get_uid, nullptr, "Grows with the order of construction.", nullptr},
                               {"trainable", get_trainable, set_trainable, "Whether tapes watch the variable by themselves.", nullptr},
                               {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                               {}};
static PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(VariableObject, dict), READONLY, nullptr},
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
  add(Py_mp_subscript, index_tensor);
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
