// `Composite`: a public function written in Python with other ops. It calls the function, unless the current
// trace records calls, or the class of an argument (a ragged tensor) handles them.
#include "calls.h"

#include <algorithm>

namespace gt {

PyObject* recorded_call(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guarded<PyObject*>(nullptr, [&] {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    Ref<> trace = current_trace();
    // Without the interpreter's lock: another thread has just left the trace's scope.
    if (!trace) return checked(PyObject_Vectorcall(function, args, nargsf, kwnames));
    Ref<> positional(checked(PyTuple_New(n))), named(checked(PyDict_New()));
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
      if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0) throw PythonError{};
    return checked(PyObject_CallMethodObjArgs(trace.get(), names.call, function, positional.get(),
                                              named.get(), nullptr));
  });
}

PyObject* recorded_op(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs) {
  Ref<> apply(checked(PyObject_GetAttrString(PyImport_AddModule("gradtape._core"), "apply")));
  Ref<> operands(checked(PyList_New(n)));
  for (int i = 0; i < n; ++i)
    PyList_SET_ITEM(operands.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(in[i])));
  PyObject* args[] = {reinterpret_cast<PyObject*>(op), operands.get(), attrs_tuple(attrs)};
  Ref<> results(checked(recorded_call(apply.get(), args, 3, nullptr)));
  return checked(op->many ? PySequence_Tuple(results.get()) : PySequence_GetItem(results.get(), 0));
}

// ---- classes that handle calls ------------------------------------------------------------

namespace {

struct CallHandler {
  PyTypeObject* type;
  Shared<PyObject*> handler;  // (function, args, kwargs) -> result, or NotImplemented
  CallHandler* next;
};
Shared<CallHandler*> latest_handler = nullptr;  // never freed
Mutex handlers_lock;

// Whether one of the arguments, or of the items of lists among them, is of this class.
bool holds(const CallHandler& entry, PyObject* o, int depth = 0) {
  if (is_tensor(o) || is_variable(o)) return false;
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
    if (depth >= 8) return false;
    Ref<> items(fixed_items(o, ""));
    for (Py_ssize_t i = 0; items && i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      if (holds(entry, PySequence_Fast_GET_ITEM(items.get(), i), depth + 1)) return true;
    if (!items) PyErr_Clear();
    return false;
  }
  return PyObject_TypeCheck(o, entry.type);
}

}  // namespace

PyObject* handled_call(PyObject* function, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  for (const CallHandler* entry = latest_handler; entry; entry = entry->next) {
    if (!std::any_of(args, args + all, [&](PyObject* o) { return holds(*entry, o); })) continue;
    Ref<> handler = Ref<>::borrow(entry->handler), positional(PyTuple_New(n)), named(PyDict_New());
    if (!positional || !named) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
    for (Py_ssize_t i = n; i < all; ++i)
      if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, i - n), args[i]) < 0) return nullptr;
    Ref<> out(PyObject_CallFunctionObjArgs(handler.get(), function, positional.get(), named.get(), nullptr));
    if (out.get() != Py_NotImplemented) return out.release();
  }
  return Py_NewRef(Py_NotImplemented);
}

bool has_call_handlers() { return latest_handler != nullptr; }

// take_calls(class, handler)
static PyObject* take_calls(PyObject*, PyObject* args) {
  PyObject *type, *handler;
  if (!PyArg_ParseTuple(args, "O!O:take_calls", &PyType_Type, &type, &handler)) return nullptr;
  return guarded<PyObject*>(nullptr, [&] {
    Holding hold(handlers_lock);
    for (CallHandler* entry = latest_handler; entry; entry = entry->next)
      if (entry->type == reinterpret_cast<PyTypeObject*>(type)) {
        entry->handler = Py_NewRef(handler);  // the old one stays: another thread may be calling it
        return Py_NewRef(Py_None);
      }
    latest_handler =
        new CallHandler{reinterpret_cast<PyTypeObject*>(Py_NewRef(type)), Py_NewRef(handler), latest_handler};
    return Py_NewRef(Py_None);
  });
}

// ---- Composite ----------------------------------------------------------------------------

namespace {

struct CompositeObject {
  PyObject_HEAD PyObject* function;
  PyObject *dict, *weakrefs;
  vectorcallfunc call;
};
CompositeObject* as_composite(PyObject* o) { return reinterpret_cast<CompositeObject*>(o); }

PyObject* composite_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (thread_state().trace_records) return recorded_call(self, args, nargsf, kwnames);
  if (has_call_handlers()) {
    Ref<> out(handled_call(self, args, PyVectorcall_NARGS(nargsf), kwnames));
    if (out.get() != Py_NotImplemented) return out.release();
  }
  return PyObject_Vectorcall(as_composite(self)->function, args, nargsf, kwnames);
}

PyObject* composite_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* function;
  if (!PyArg_ParseTuple(args, "O:Composite", &function)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_composite(self)->function = Py_NewRef(function);
  as_composite(self)->call = composite_call;
  keep_for_ever(self);  // they are functions of modules, which threads share
  return self;
}

int composite_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_composite(self)->function);
  Py_VISIT(as_composite(self)->dict);
  return 0;
}

int composite_clear(PyObject* self) {
  Py_CLEAR(as_composite(self)->function);
  Py_CLEAR(as_composite(self)->dict);
  return 0;
}

void composite_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (as_composite(self)->weakrefs) PyObject_ClearWeakRefs(self);
  composite_clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Binds it as a method, when it is in a class of the library.
PyObject* composite_get(PyObject* self, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* composite_repr(PyObject* self) {
  return PyUnicode_FromFormat("<gradtape function %R>", as_composite(self)->function);
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(CompositeObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompositeObject, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompositeObject, call), READONLY, nullptr},
    {}};
PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(composite_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(composite_dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(composite_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(composite_clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(composite_get)},
                       {Py_tp_repr, reinterpret_cast<void*>(composite_repr)},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {}};
PyType_Spec spec = {"gradtape._core.Composite", sizeof(CompositeObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

void init_calls(PyObject* module) {
  static PyMethodDef functions[] = {
      {"take_calls", take_calls, METH_VARARGS,
       "take_calls(class, handler): public functions that are called with instances of the class call "
       "`handler(function, args, kwargs)` first, and go on as usual where that is NotImplemented."},
      {}};
  PyModule_AddFunctions(module, functions);
  PyModule_AddObjectRef(module, "Composite", checked(PyType_FromSpec(&spec)));
}

}  // namespace gt
