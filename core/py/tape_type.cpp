// The native half of GradientTape: entering and leaving it, what it watches, and its backward pass.
#include <algorithm>
#include <unordered_map>

#include "backward.h"
#include "lending.h"

namespace gt {

PyTypeObject* TapeType;

static Tape* as_tape(PyObject* o) { return reinterpret_cast<Tape*>(o); }

static void forget(Tape* t) {
  while (leave_tape(t)) {}
  std::vector<PyObject*> variables;
  {
    Holding hold(lock_of(t));
    variables.swap(t->variables);
  }
  for (PyObject* v : variables) Py_DECREF(v);
}

static PyObject* tape_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  Tape* t = as_tape(self);
  new (&t->context) Context;
  t->context.tapes.push_back(t);
  new (&t->nodes) std::vector<Node*>;
  new (&t->variables) std::vector<PyObject*>;
  t->watch_accessed = true;
  may_be_found(self);  // by the thread that records on it
  return self;
}

static int tape_clear(PyObject* self) {
  Tape* t = as_tape(self);
  t->context.leave();
  forget(t);
  Py_CLEAR(t->context.tracker);
  Py_CLEAR(t->dict);
  return 0;
}

static int tape_traverse(PyObject* self, visitproc visit, void* arg) {
  Tape* t = as_tape(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(t->dict);
  Py_VISIT(t->context.tracker);
  for (PyObject* v : t->variables) Py_VISIT(v);
  return 0;
}

static void tape_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Tape* t = as_tape(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  tape_clear(self);
  t->context.~Context();
  t->nodes.~vector();
  t->variables.~vector();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Runs a method of a tape in a Section, so that several threads can use one tape.
using Method = PyObject*(PyObject*, PyObject*);
template <Method* method> PyObject* alone(PyObject* self, PyObject* args) {
  Section here(self);
  return method(self, args);
}

static PyObject* tape_configure(PyObject* self, PyObject* args) {
  int persistent, watch, variables_only = 0;
  if (!PyArg_ParseTuple(args, "pp|p", &persistent, &watch, &variables_only)) return nullptr;
  as_tape(self)->persistent = persistent;
  as_tape(self)->watch_accessed = watch;
  as_tape(self)->variables_only = variables_only;
  Py_RETURN_NONE;
}

static PyObject* tape_start(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    Tape* t = as_tape(self);
    if (!t->context.entered()) t->context.enter();
    return Py_NewRef(Py_None);
  });
}

static PyObject* tape_stop(PyObject* self, PyObject*) {
  as_tape(self)->context.leave();
  Py_RETURN_NONE;
}

// Sets the tracker, which is notified of assignments while the tape records.
static PyObject* tape_follow(PyObject* self, PyObject* tracker) {
  Tape* t = as_tape(self);
  t->context.leave();
  t->context.sets_tracker = true;
  Py_XSETREF(t->context.tracker, Py_NewRef(tracker));
  Py_RETURN_NONE;
}

// `with tape:` is entered and left here, in one native call each, which an interrupt cannot split. A tracker
// of assignments is started before the tape records, and stopped after it.
static PyObject* tape_enter(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    Tape* t = as_tape(self);
    if (thread_state().trace_records)
      fail(Code::Untraceable, "a tape that was made outside of the function is entered in it");
    if (t->context.entered())
      fail(Code::Value,
           "Tape is still recording, This can happen if you try to re-enter an already-active tape.");
    if (t->stage != Tape::Stage::Open) forget(t);
    t->stage = Tape::Stage::Open;
    if (t->context.tracker || thread_state().tracker)
      Ref<>(checked(PyObject_CallMethod(self, "_entering", nullptr)));
    t->context.enter();
    return Py_NewRef(self);
  });
}

static PyObject* tape_exit(PyObject* self, PyObject*) {
  Tape* t = as_tape(self);
  if (!t->context.entered()) Py_RETURN_NONE;
  t->context.leave();
  if (!t->context.tracker) Py_RETURN_NONE;
  return PyObject_CallMethod(self, "_left", nullptr);
}

static PyObject* tape_entering(PyObject*, PyObject*) { Py_RETURN_NONE; }

// Ends the recording of a tape that gives its gradient only once.
static PyObject* tape_use_up(PyObject* self, PyObject*) {
  as_tape(self)->context.leave();
  as_tape(self)->stage = Tape::Stage::Used;
  Py_RETURN_NONE;
}

static PyObject* tape_forget(PyObject* self, PyObject*) {
  forget(as_tape(self));
  Py_RETURN_NONE;
}

// Drops the records but keeps the list of variables: watched_variables() works on a used tape too.
static PyObject* tape_release(PyObject* self, PyObject*) {
  while (leave_tape(as_tape(self))) {}
  Py_RETURN_NONE;
}

static void add_leaf(TensorObject* x) {
#ifdef Py_GIL_DISABLED
  Node* leaf = new_leaf();
  if (x->node.put_first(leaf) != leaf) unref(leaf);  // another thread has set one
#else
  x->node = new_leaf();
#endif
}

static PyObject* tape_watch(PyObject* self, PyObject* o) {
  Tape* t = as_tape(self);
  if (is_tensor(o)) {
    TensorObject* x = as_tensor(o);
    if (!x->node) add_leaf(x);
    join_tape(x->node, t);
  } else if (is_variable(o)) {
    if (join_tape(as_variable(o)->leaf, t)) add_variable(t, as_variable(o));
  } else {
    PyErr_SetString(PyExc_TypeError, "watch: expected a Tensor or a Variable");
    return nullptr;
  }
  Py_RETURN_NONE;
}

static PyObject* tape_variables(PyObject* self, PyObject*) {
  std::vector<Ref<>> held;
  std::vector<PyObject*> sorted;
  {
    Holding hold(lock_of(as_tape(self)));
    sorted = as_tape(self)->variables;
    for (PyObject* v : sorted) held.push_back(Ref<>::borrow(v));
  }
  std::sort(sorted.begin(), sorted.end(),
            [](PyObject* a, PyObject* b) { return as_variable(a)->uid < as_variable(b)->uid; });
  PyObject* tuple = PyTuple_New(Py_ssize_t(sorted.size()));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < sorted.size(); ++i) PyTuple_SET_ITEM(tuple, Py_ssize_t(i), Py_NewRef(sorted[i]));
  return tuple;
}

// backward(targets, cotangents, sources, bare_zeros=False) -> list of gradients, None where there is none;
// with `bare_zeros`, the number 0 for one that is zero whatever the values are.
static PyObject* tape_backward(PyObject* self, PyObject* args) {
  PyObject *targets, *cotangents, *sources;
  int bare_zeros = 0;
  if (!PyArg_ParseTuple(args, "O!O!O!|p", &PyList_Type, &targets, &PyList_Type, &cotangents, &PyList_Type,
                        &sources, &bare_zeros))
    return nullptr;
  return guarded<PyObject*>(
      nullptr, [&] { return backward(as_tape(self), targets, cotangents, sources, bare_zeros).release(); });
}

static PyObject* tape_pullback(PyObject* self, PyObject* args) {
  PyObject *targets, *sources;
  if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &targets, &PyList_Type, &sources)) return nullptr;
  return guarded<PyObject*>(nullptr, [&] { return pullback(as_tape(self), targets, sources).release(); });
}

static PyObject* tape_reached_by(PyObject* self, PyObject* args) {
  PyObject *targets, *sources;
  if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &targets, &PyList_Type, &sources)) return nullptr;
  return guarded<PyObject*>(nullptr, [&] { return reached_by(as_tape(self), targets, sources).release(); });
}

static PyObject* tape_tracks(PyObject* self, PyObject* o) {
  Node* n = node_of(o);
  return PyBool_FromLong(n && on_tape(n, as_tape(self)));
}

// A value of a record: (tensor, address of its buffer, bytes of the buffer), or 0, 0 if it was not saved and
// only type and shape are known.
static PyObject* value_entry(const Tensor& value, Node* node, uint32_t output) {
  Ref<TensorObject> t(new_tensor(value));
  t->node = ref(node);
  t->output = output;
  auto place = reinterpret_cast<uintptr_t>(value.buffer);
  return checked(Py_BuildValue("(OKK)", t.object(), static_cast<unsigned long long>(place),
                               static_cast<unsigned long long>(value.buffer ? value.buffer->bytes : 0)));
}

// All records and leaves, oldest first, as (number, op, origins, operands, results, owner). op: None for
// leaves and custom gradients; origins: (number of a record or 0, which of its results) per operand; owner: a
// variable, a gradient function or None.
static PyObject* tape_records(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    Tape* t = as_tape(self);
    std::unordered_map<Node*, PyObject*> variables;
    HeldNodes nodes(t);
    std::vector<Ref<>> held;
    {
      Holding hold(lock_of(t));
      for (PyObject* v : t->variables) held.push_back(Ref<>::borrow(v));
    }
    for (auto& v : held) variables[as_variable(v.get())->leaf] = v.get();
    std::sort(nodes.begin(), nodes.end(), [](Node* a, Node* b) { return a->seq < b->seq; });
    Ref<> list(checked(PyList_New(0)));
    for (Node* n : nodes) {
      bool call = n->op || n->closure;
      int n_in = call ? n->n_in : 0, n_out = call ? n->n_out : 0;
      auto found = variables.find(n);
      bool variable = found != variables.end();
      PyObject* owner = variable ? found->second : n->closure;
      Ref<> origins(checked(PyTuple_New(n_in))), operands(checked(PyTuple_New(n_in))),
          results(checked(PyTuple_New(variable ? 1 : n_out)));
      for (int i = 0; i < n_in; ++i) {
        const Edge& e = n->edges()[i];
        bool here = e.node && on_tape(e.node, t);
        PyTuple_SET_ITEM(origins.get(), i,
                         checked(Py_BuildValue(
                             "(KI)", here ? static_cast<unsigned long long>(e.node->seq) : 0ull, e.output)));
        PyTuple_SET_ITEM(operands.get(), i, value_entry(n->value(i), e.node, e.output));
      }
      for (int k = 0; k < n_out; ++k)
        PyTuple_SET_ITEM(results.get(), k, value_entry(n->value(n_in + k), n, uint32_t(k)));
      if (variable) PyTuple_SET_ITEM(results.get(), 0, value_entry(value_of(as_variable(owner)), n, 0));
      PyObject* op = n->op ? reinterpret_cast<PyObject*>(n->op) : Py_None;
      Ref<> record(
          checked(Py_BuildValue("(KOOOOO)", static_cast<unsigned long long>(n->seq), op, origins.get(),
                                operands.get(), results.get(), owner ? owner : Py_None)));
      if (PyList_Append(list.get(), record.get())) throw PythonError{};
    }
    return list.release();
  });
}

static PyObject* tape_size(PyObject* self, void*) {
  size_t n;
  {
    Holding hold(lock_of(as_tape(self)));
    n = as_tape(self)->nodes.size();
  }
  return PyLong_FromSize_t(n);
}
static PyObject* tape_recording(PyObject* self, void*) {
  return PyBool_FromLong(as_tape(self)->context.entered());
}
static PyObject* tape_stage(PyObject* self, void*) {
  static const char* const names[] = {"new", "open", "used"};
  return PyUnicode_FromString(names[int(as_tape(self)->stage)]);
}
static PyObject* tape_persistent(PyObject* self, void*) { return PyBool_FromLong(as_tape(self)->persistent); }

static PyObject* tape_watch_accessed(PyObject* self, void*) {
  return PyBool_FromLong(as_tape(self)->watch_accessed);
}

static PyMethodDef methods[] = {
    {"_configure", alone<tape_configure>, METH_VARARGS, nullptr},
    {"__enter__", alone<tape_enter>, METH_NOARGS, "Starts to record."},
    {"__exit__", alone<tape_exit>, METH_VARARGS, "Stops recording."},
    {"_entering", tape_entering, METH_NOARGS,
     "Called before the tape records, where assignments are followed."},
    {"_use_up", alone<tape_use_up>, METH_NOARGS,
     "Stops the recording of a tape that gives only one gradient."},
    {"_follow", alone<tape_follow>, METH_O, "Sets the tracker of assignments while the tape records."},
    {"_start", alone<tape_start>, METH_NOARGS, "Puts the tape on top of this thread's active tapes."},
    {"_stop", alone<tape_stop>, METH_NOARGS, "Takes the tape from this thread's active tapes."},
    {"_forget", alone<tape_forget>, METH_NOARGS, "Drops everything recorded and watched."},
    {"_release", alone<tape_release>, METH_NOARGS, "Drops the records; the watched variables stay listed."},
    {"_watch", tape_watch, METH_O, "Tracks a tensor or variable from now on."},
    {"_variables", alone<tape_variables>, METH_NOARGS, "Watched variables, in order of construction."},
    {"_backward", alone<tape_backward>, METH_VARARGS, "Gradients of targets with respect to sources."},
    {"_pullback", alone<tape_pullback>, METH_VARARGS,
     "The graph of a backward pass and its inputs, or None."},
    {"_reached_by", alone<tape_reached_by>, METH_VARARGS,
     "For each source a bit mask of the targets that its gradient depends on."},
    {"_records", alone<tape_records>, METH_NOARGS, "All records and leaves, for inspection."},
    {"_tracks", tape_tracks, METH_O, "Whether the tape tracks a tensor or variable."},
    {}};
static PyGetSetDef getset[] = {
    {"_size", tape_size, nullptr, "Number of live records and leaves.", nullptr},
    {"_recording", tape_recording, nullptr, nullptr, nullptr},
    {"_stage", tape_stage, nullptr, "new, open, or used: by a gradient of a tape that is not persistent.",
     nullptr},
    {"_persistent", tape_persistent, nullptr, nullptr, nullptr},
    {"_watch_accessed", tape_watch_accessed, nullptr, nullptr, nullptr},
    {}};
static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Tape, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Tape, weakrefs), READONLY, nullptr},
    {}};
static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(tape_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(tape_dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(tape_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(tape_clear)},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, getset},
                              {Py_tp_members, members},
                              {}};
static PyType_Spec spec = {"gradtape._core.Tape", sizeof(Tape), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

void init_tape_type(PyObject* module) {
  TapeType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Tape", reinterpret_cast<PyObject*>(TapeType));
}

}  // namespace gt
