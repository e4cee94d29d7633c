// The Python type Update: a program whose results are the new values of variables, such as a step of an
// optimizer. It checks that the arguments are those it was made for, runs, and changes the variables; their
// memory is overwritten where nothing else refers to it.
#include "device.h"
#include "lending.h"
#include "program_type.h"

namespace gt {

namespace {

PyTypeObject* UpdateType;

struct Rows {  // an input that holds row numbers, and how many rows there are
  size_t input;
  int64_t count;
};

struct UpdateObject {
  PyObject_HEAD ProgramObject* program;
  PyObject* variables;  // tuple: the variables of the pairs (gradient, variable), in order; these may be
                        // Keras' own objects
  PyObject* externals;  // tuple: variables and tensors, the inputs after the gradients
  PyObject* targets;    // tuple: the variables that get the results
  std::vector<const Value*> forms;  // of the inputs
  std::vector<Rows> rows;
};
UpdateObject* as_update(PyObject* o) { return reinterpret_cast<UpdateObject*>(o); }

bool every_is(PyObject* tuple, bool (*test)(PyObject*)) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (!test(PyTuple_GET_ITEM(tuple, i))) return false;
  return true;
}

// Update(program, variables, externals, targets, rows): rows are pairs (input, number of rows).
PyObject* update_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *program, *variables, *externals, *targets, *rows;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!", ProgramType, &program, &PyTuple_Type, &variables, &PyTuple_Type,
                        &externals, &PyTuple_Type, &targets, &PyTuple_Type, &rows))
    return nullptr;
  const Program& p = *reinterpret_cast<ProgramObject*>(program)->program;
  auto variable = [](PyObject* o) { return is_variable(o); };
  auto input = [](PyObject* o) { return is_variable(o) || is_tensor(o); };
  if (!every_is(targets, variable) || !every_is(externals, input) ||
      size_t(PyTuple_GET_SIZE(targets)) != p.results.size() ||
      PyTuple_GET_SIZE(externals) > Py_ssize_t(p.n_inputs)) {
    PyErr_SetString(PyExc_TypeError, "Update: the variables do not fit the program");
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  UpdateObject* u = as_update(self);
  u->program = reinterpret_cast<ProgramObject*>(Py_NewRef(program));
  u->variables = Py_NewRef(variables);
  u->externals = Py_NewRef(externals);
  u->targets = Py_NewRef(targets);
  new (&u->forms) std::vector<const Value*>;
  new (&u->rows) std::vector<Rows>;
  PyObject* made = guarded<PyObject*>(nullptr, [&] {
    u->forms.resize(p.n_inputs, nullptr);
    for (const Value& v : p.values)
      if (v.place == Place::Input) u->forms[size_t(v.at)] = &v;
    const size_t given = p.n_inputs - size_t(PyTuple_GET_SIZE(externals));
    for (size_t k = 0; k < p.in_place.size(); ++k) {
      const int32_t i = p.in_place[k];
      if (i >= 0 && (size_t(i) < given || PyTuple_GET_ITEM(externals, i - Py_ssize_t(given)) !=
                                              PyTuple_GET_ITEM(targets, Py_ssize_t(k))))
        fail(Code::Value, "Update: the program was made to change other variables");
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); ++i) {
      PyObject* row = PyTuple_GET_ITEM(rows, i);
      long long at, count;
      if (!PyTuple_Check(row)) fail(Code::Type, "Update: expected pairs (input, number of rows)");
      if (!PyArg_ParseTuple(row, "LL", &at, &count)) throw PythonError{};
      const bool fits = at >= 0 && size_t(at) < p.n_inputs && u->forms[size_t(at)];
      const Dtype t = fits ? u->forms[size_t(at)]->form.dtype : Dtype::Bool;
      if (t != Dtype::I32 && t != Dtype::I64)
        fail(Code::Value, "Update: the numbers of rows are not an input of integers");
      u->rows.push_back({size_t(at), count});
    }
    return self;
  });
  if (!made) Py_DECREF(self);
  return made;
}

int update_clear(PyObject* self) {
  UpdateObject* u = as_update(self);
  Py_CLEAR(u->program);
  Py_CLEAR(u->variables);
  Py_CLEAR(u->externals);
  Py_CLEAR(u->targets);
  return 0;
}

int update_traverse(PyObject* self, visitproc visit, void* arg) {
  UpdateObject* u = as_update(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(u->program);
  Py_VISIT(u->variables);
  Py_VISIT(u->externals);
  Py_VISIT(u->targets);
  return 0;
}

void update_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  update_clear(self);
  as_update(self)->forms.~vector();
  as_update(self)->rows.~vector();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

bool fits(const Value* form, const Tensor& x) {
  return x.data && (!form || (x.dtype == form->form.dtype && x.shape == form->form.shape));
}

bool rows_exist(const Tensor& x, int64_t count) {
  for (int64_t i = 0; i < x.numel; ++i) {
    int64_t row = x.dtype == Dtype::I64 ? x.as<int64_t>()[i] : x.as<int32_t>()[i];
    if (row < 0 || row >= count) return false;
  }
  return true;
}

// The inputs of one run; up to 32 need no memory.
struct Inputs {
  const Tensor* small[32];
  std::vector<const Tensor*> large;
  const Tensor** at = small;
  explicit Inputs(size_t n) {
    if (n > 32) large.resize(n), at = large.data();
  }
};

// Runs with the given gradients; returns false and changes nothing if something does not fit. The variables
// must be settled (lending.h).
bool run(UpdateObject* u, Inputs& in, size_t given) {
  std::vector<Tensor> outs;
  AllSettled settled(u->externals, u->targets);
  const Program& p = *u->program->program;
  size_t n_externals = size_t(PyTuple_GET_SIZE(u->externals));
  if (given + n_externals != p.n_inputs) return false;
  for (size_t i = 0; i < n_externals; ++i) {
    PyObject* o = PyTuple_GET_ITEM(u->externals, Py_ssize_t(i));
    in.at[given + i] = is_variable(o) ? &as_variable(o)->value : &as_tensor(o)->value;
  }
  for (size_t i = 0; i < p.n_inputs; ++i)
    if (!fits(u->forms[i], *in.at[i])) return false;
  for (const Rows& r : u->rows)
    if (!rows_exist(*in.at[r.input], r.count)) return false;
  if (u->program->program->run_over(in.at)) return true;
  update_variables(u->program, in.at, u->targets, outs, settled);
  return true;
}

// step(pairs): pairs (gradient, variable) with dense gradients. Returns whether it was made for these.
PyObject* update_step(PyObject* self, PyObject* pairs) {
  UpdateObject* u = as_update(self);
  if (thread_state().trace || thread_state().tracker || !PyList_CheckExact(pairs)) Py_RETURN_FALSE;
  return guarded<PyObject*>(nullptr, [&] {
    Ref<> items(checked(fixed_items(pairs, "")));
    fetch_all(u->externals);
    Inputs in(u->program->program->n_inputs);
    size_t n = size_t(PySequence_Fast_GET_SIZE(items.get()));
    if (n > u->program->program->n_inputs || n != size_t(PyTuple_GET_SIZE(u->variables)))
      return Py_NewRef(Py_False);
    for (size_t i = 0; i < n; ++i) {
      PyObject* pair = PySequence_Fast_GET_ITEM(items.get(), Py_ssize_t(i));
      if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) return Py_NewRef(Py_False);
      PyObject* g = PyTuple_GET_ITEM(pair, 0);
      if (!is_tensor(g) || PyTuple_GET_ITEM(pair, 1) != PyTuple_GET_ITEM(u->variables, Py_ssize_t(i)))
        return Py_NewRef(Py_False);
      in.at[i] = &as_tensor(g)->value;
    }
    return PyBool_FromLong(run(u, in, n));
  });
}

// run(gradients): a flat list of tensors.
PyObject* update_run(PyObject* self, PyObject* list) {
  UpdateObject* u = as_update(self);
  if (!PyList_CheckExact(list)) {
    PyErr_SetString(PyExc_TypeError, "Update: expected a list of tensors");
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] {
    Ref<> items(checked(fixed_items(list, "")));
    fetch_all(items.get());
    fetch_all(u->externals);
    Inputs in(u->program->program->n_inputs);
    size_t n = size_t(PySequence_Fast_GET_SIZE(items.get()));
    if (n > u->program->program->n_inputs) return Py_NewRef(Py_False);
    for (size_t i = 0; i < n; ++i) {
      PyObject* g = PySequence_Fast_GET_ITEM(items.get(), Py_ssize_t(i));
      if (!is_tensor(g)) return Py_NewRef(Py_False);
      in.at[i] = &as_tensor(g)->value;
    }
    return PyBool_FromLong(run(u, in, n));
  });
}

PyMethodDef methods[] = {
    {"step", update_step, METH_O,
     "Runs on a list of pairs (gradient, variable); False if it was not made for them."},
    {"run", update_run, METH_O, "Runs on a list of tensors; False if it was not made for them."},
    {}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(update_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(update_dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(update_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(update_clear)},
                       {Py_tp_methods, methods},
                       {}};
PyType_Spec spec = {"gradtape._core.Update", sizeof(UpdateObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                    slots};

}  // namespace

void init_update_type(PyObject* module) {
  UpdateType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Update", reinterpret_cast<PyObject*>(UpdateType));
}

}  // namespace gt
