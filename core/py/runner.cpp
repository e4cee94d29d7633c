// Runner: runs a traced function on tensors, without Python code of ours around it.
#include "program_type.h"

namespace gt {

namespace {

struct RunnerObject {
  PyObject_HEAD PyObject *program,  // a Program, or another object with `update`
      *externals,                   // a tuple: the variables and tensors it uses besides its arguments
      *assigned,                    // a tuple: the variables that it changes
      *finish;                      // makes the result from the outputs; None: the only output is the result
};
RunnerObject* as_runner(PyObject* o) { return reinterpret_cast<RunnerObject*>(o); }

// Runner(program, externals, assigned, finish)
PyObject* runner_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *program, *externals, *assigned, *finish;
  if (!PyArg_ParseTuple(args, "OO!O!O:Runner", &program, &PyTuple_Type, &externals, &PyTuple_Type, &assigned,
                        &finish))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  RunnerObject* r = as_runner(self);
  r->program = Py_NewRef(program);
  r->externals = Py_NewRef(externals);
  r->assigned = Py_NewRef(assigned);
  r->finish = Py_NewRef(finish);
  return self;
}

int runner_clear(PyObject* self) {
  RunnerObject* r = as_runner(self);
  Py_CLEAR(r->program);
  Py_CLEAR(r->externals);
  Py_CLEAR(r->assigned);
  Py_CLEAR(r->finish);
  return 0;
}

int runner_traverse(PyObject* self, visitproc visit, void* arg) {
  RunnerObject* r = as_runner(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(r->program);
  Py_VISIT(r->externals);
  Py_VISIT(r->assigned);
  Py_VISIT(r->finish);
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

PyObject* run_runner(PyObject* self, PyObject* arguments) {
  if (Py_TYPE(self) != RunnerType) fail(Code::Type, "expected a Runner");
  Ref<> held = Ref<>::borrow(self);
  RunnerObject* r = as_runner(self);
  Ref<> inputs(PyTuple_GET_SIZE(r->externals) ? checked(PySequence_Concat(arguments, r->externals))
                                              : Py_NewRef(arguments));
  Ref<> outs;
  if (Py_TYPE(r->program) == ProgramType) {
    std::vector<Tensor> tensors =
        run_update(reinterpret_cast<ProgramObject*>(r->program), inputs.get(), r->assigned);
    if (r->finish == Py_None && tensors.size() == 1)
      return reinterpret_cast<PyObject*>(new_tensor(std::move(tensors[0])));
    outs = Ref<>(tensor_list(tensors, tensors.size()));
  } else {
    outs = Ref<>(
        checked(PyObject_CallMethodObjArgs(r->program, names.update, inputs.get(), r->assigned, nullptr)));
  }
  if (r->finish != Py_None) return checked(PyObject_CallOneArg(r->finish, outs.get()));
  if (!PyList_Check(outs.get()) || PyList_GET_SIZE(outs.get()) != 1)
    fail(Code::Value, "Runner: expected one output");
  return Py_NewRef(PyList_GET_ITEM(outs.get(), 0));
}

void init_runner(PyObject* module) {
  RunnerType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&runner_spec)));
  PyModule_AddObjectRef(module, "Runner", reinterpret_cast<PyObject*>(RunnerType));
}

}  // namespace gt
