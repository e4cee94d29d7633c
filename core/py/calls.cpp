// `Composite`: a public function of Python over ops. It calls the function, unless the current trace wants to
// know of the call itself.
#include "calls.h"

namespace gt {

PyObject* recorded_call(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guarded<PyObject*>(nullptr, [&] {
    static PyObject* method = PyUnicode_InternFromString("call");
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    Ref<> trace = Ref<>::borrow(thread_state().trace), positional(checked(PyTuple_New(n))),
          named(checked(PyDict_New()));
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
      if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0) throw PythonError{};
    return checked(
        PyObject_CallMethodObjArgs(trace.get(), method, function, positional.get(), named.get(), nullptr));
  });
}

PyObject* recorded_op(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs) {
  static PyObject* apply = checked(PyObject_GetAttrString(PyImport_AddModule("gradtape._core"), "apply"));
  Ref<> operands(checked(PyList_New(n)));
  for (int i = 0; i < n; ++i)
    PyList_SET_ITEM(operands.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(in[i])));
  PyObject* args[] = {reinterpret_cast<PyObject*>(op), operands.get(), attrs_tuple(attrs)};
  Ref<> results(checked(recorded_call(apply, args, 3, nullptr)));
  return checked(op->many ? PySequence_Tuple(results.get()) : PySequence_GetItem(results.get(), 0));
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
  return PyObject_Vectorcall(as_composite(self)->function, args, nargsf, kwnames);
}

PyObject* composite_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* function;
  if (!PyArg_ParseTuple(args, "O:Composite", &function)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_composite(self)->function = Py_NewRef(function);
  as_composite(self)->call = composite_call;
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

// As a method, of a class of the library.
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
  PyModule_AddObjectRef(module, "Composite", checked(PyType_FromSpec(&spec)));
}

}  // namespace gt
