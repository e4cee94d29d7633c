// Runner: runs a traced function on the arguments of a call, without Python code of ours around it.
#include "program_type.h"

namespace gt {

namespace {

struct RunnerObject {
  PyObject_HEAD PyObject *program,  // a Program, or another object with `update`
      *inputs,    // a tuple: the number of a leaf of the arguments, or a captured variable or tensor
      *assigned,  // a tuple: the variables that it changes, in the same form
      *result;    // the structure of the result, with numbers of outputs; or a function of the outputs
};
RunnerObject* as_runner(PyObject* o) { return reinterpret_cast<RunnerObject*>(o); }

// Whether a structure can be made here: lists, tuples, dicts, numbers of outputs, None.
bool is_structure(PyObject* o) {
  auto all = [](PyObject* items, auto at) {
    for (Py_ssize_t i = 0; i < Py_SIZE(items); ++i)
      if (!is_structure(at(items, i))) return false;
    return true;
  };
  if (PyTuple_CheckExact(o)) return all(o, [](PyObject* t, Py_ssize_t i) { return PyTuple_GET_ITEM(t, i); });
  if (PyList_CheckExact(o)) return all(o, [](PyObject* t, Py_ssize_t i) { return PyList_GET_ITEM(t, i); });
  if (PyDict_CheckExact(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!is_structure(value)) return false;
    return true;
  }
  return o == Py_None || PyLong_CheckExact(o);
}

// The structure with the outputs, a list, in place of their numbers.
Ref<> filled(PyObject* structure, PyObject* outs) {
  if (structure == Py_None) return Ref<>::borrow(structure);
  if (PyLong_CheckExact(structure)) {
    const Py_ssize_t k = PyLong_AsSsize_t(structure);
    if (k < 0 || k >= PyList_GET_SIZE(outs)) fail(Code::Value, "Runner: there is no such output");
    return Ref<>::borrow(PyList_GET_ITEM(outs, k));
  }
  if (PyDict_CheckExact(structure)) {
    Ref<> dict(checked(PyDict_New()));
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(structure, &at, &key, &value);)
      if (PyDict_SetItem(dict.get(), key, filled(value, outs).get())) throw PythonError{};
    return dict;
  }
  const bool is_tuple = PyTuple_CheckExact(structure);
  const Py_ssize_t n = Py_SIZE(structure);
  Ref<> made(checked(is_tuple ? PyTuple_New(n) : PyList_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i)
    if (is_tuple)
      PyTuple_SET_ITEM(made.get(), i, filled(PyTuple_GET_ITEM(structure, i), outs).release());
    else
      PyList_SET_ITEM(made.get(), i, filled(PyList_GET_ITEM(structure, i), outs).release());
  return made;
}

// The items, with leaves of the arguments in place of their numbers.
Ref<> with_leaves(PyObject* items, const std::vector<Ref<>>& leaves) {
  const Py_ssize_t n = PyTuple_GET_SIZE(items);
  if (!n) return Ref<>::borrow(items);
  Ref<> out(checked(PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(items, i);
    if (PyLong_CheckExact(item)) {
      const Py_ssize_t k = PyLong_AsSsize_t(item);
      if (k < 0 || size_t(k) >= leaves.size()) fail(Code::Value, "Runner: there is no such argument");
      item = leaves[size_t(k)].get();
    }
    PyTuple_SET_ITEM(out.get(), i, Py_NewRef(item));
  }
  return out;
}

// Runner(program, inputs, assigned, result)
PyObject* runner_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *program, *inputs, *assigned, *result;
  if (!PyArg_ParseTuple(args, "OO!O!O:Runner", &program, &PyTuple_Type, &inputs, &PyTuple_Type, &assigned,
                        &result))
    return nullptr;
  if (!PyCallable_Check(result) && !is_structure(result)) {
    PyErr_SetString(PyExc_TypeError,
                    "Runner: expected a structure of lists, tuples and dicts, or a function");
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  RunnerObject* r = as_runner(self);
  r->program = Py_NewRef(program);
  r->inputs = Py_NewRef(inputs);
  r->assigned = Py_NewRef(assigned);
  r->result = Py_NewRef(result);
  return self;
}

int runner_clear(PyObject* self) {
  RunnerObject* r = as_runner(self);
  Py_CLEAR(r->program);
  Py_CLEAR(r->inputs);
  Py_CLEAR(r->assigned);
  Py_CLEAR(r->result);
  return 0;
}

int runner_traverse(PyObject* self, visitproc visit, void* arg) {
  RunnerObject* r = as_runner(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(r->program);
  Py_VISIT(r->inputs);
  Py_VISIT(r->assigned);
  Py_VISIT(r->result);
  return 0;
}

void runner_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  runner_clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot runner_slots[] = {{Py_tp_new, reinterpret_cast<void*>(runner_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(runner_dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(runner_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(runner_clear)},
                              {}};
PyType_Spec runner_spec = {"gradtape._core.Runner", sizeof(RunnerObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, runner_slots};
PyTypeObject* RunnerType;

}  // namespace

PyObject* run_runner(PyObject* self, const std::vector<Ref<>>& leaves) {
  if (Py_TYPE(self) != RunnerType) fail(Code::Type, "expected a Runner");
  Ref<> held = Ref<>::borrow(self);
  RunnerObject* r = as_runner(self);
  Ref<> inputs = with_leaves(r->inputs, leaves), assigned = with_leaves(r->assigned, leaves), outs;
  if (Py_TYPE(r->program) == ProgramType) {
    std::vector<Tensor> tensors =
        run_update(reinterpret_cast<ProgramObject*>(r->program), inputs.get(), assigned.get());
    if (PyLong_CheckExact(r->result) && tensors.size() == 1)
      return reinterpret_cast<PyObject*>(new_tensor(std::move(tensors[0])));
    outs = Ref<>(tensor_list(tensors, tensors.size()));
  } else {
    outs = Ref<>(
        checked(PyObject_CallMethodObjArgs(r->program, names.update, inputs.get(), assigned.get(), nullptr)));
    if (!PyList_Check(outs.get())) fail(Code::Value, "Runner: expected a list of outputs");
  }
  if (PyCallable_Check(r->result)) return checked(PyObject_CallOneArg(r->result, outs.get()));
  return filled(r->result, outs.get()).release();
}

void init_runner(PyObject* module) {
  RunnerType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&runner_spec)));
  PyModule_AddObjectRef(module, "Runner", reinterpret_cast<PyObject*>(RunnerType));
}

}  // namespace gt
