// Contexts of threads, and Scope: the one way in which Python changes what a thread does.
#include "thread_state.h"

#include <structmember.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "objects.h"

namespace gt {

thread_local constinit ThreadState* thread_state_ = nullptr;

// A context may be left, or die, in another thread, and a thread may end with contexts that it has not left.
static std::mutex& contexts_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

ThreadState& new_thread_state() {
  struct Owner {
    ThreadState state;
    ~Owner() {
      std::lock_guard lock(contexts_mutex());
      for (Context* c : state.contexts) c->thread = nullptr;
      thread_state_ = nullptr;
    }
  };
  static thread_local Owner owner;
  thread_state_ = &owner.state;
  return owner.state;
}

void ThreadState::refresh() {
  tapes.clear();
  trace = tracker = watcher = nullptr;
  trace_start = 0;
  trace_lifts = false;
  for (const Context* c : contexts) {
    if (c->silences) tapes.clear();
    for (Tape* t : c->tapes)
      if (std::find(tapes.begin(), tapes.end(), t) == tapes.end()) tapes.push_back(t);
    if (c->sets_trace) trace = c->trace, trace_start = c->trace_start, trace_lifts = c->trace_lifts;
    if (c->sets_tracker) tracker = c->tracker;
    if (c->sets_watcher) watcher = c->watcher;
  }
}

void Context::enter() {
  ThreadState& here = thread_state();
  std::lock_guard lock(contexts_mutex());
  // Leaving must not need memory.
  size_t most = tapes.size();
  for (Context* c : here.contexts) most += c->tapes.size();
  here.tapes.reserve(most);
  here.contexts.push_back(this);
  thread = &here;
  here.refresh();
}

void Context::leave() noexcept {
  if (!thread) return;
  std::lock_guard lock(contexts_mutex());
  if (!thread) return;
  auto& contexts = thread->contexts;
  contexts.erase(std::remove(contexts.begin(), contexts.end(), this), contexts.end());
  thread->refresh();
  thread = nullptr;
}

// ---- Scope --------------------------------------------------------------------------------

namespace {

struct ScopeObject {
  PyObject_HEAD
  Context context;
};
ScopeObject* as_scope(PyObject* o) { return reinterpret_cast<ScopeObject*>(o); }

PyObject* given(PyObject* o) { return o && o != Py_None ? Py_NewRef(o) : nullptr; }

// What a trace says about tensors from outside; a plain graph takes none.
void read_trace(Context& c) {
  if (!c.trace || !PyObject_HasAttrString(c.trace, "start")) return;
  Ref<> start(checked(PyObject_GetAttrString(c.trace, "start"))), lifts(checked(PyObject_GetAttrString(c.trace, "lifts")));
  c.trace_start = PyLong_AsUnsignedLongLongMask(start.get());
  c.trace_lifts = lifts.get() == Py_True;
  if (PyErr_Occurred()) throw PythonError{};
}

PyObject* scope_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"recording", "tapes", "trace", "tracker", "watcher", nullptr};
  int recording = 1;
  PyObject *tapes = nullptr, *trace = nullptr, *tracker = nullptr, *watcher = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$pO!OOO:Scope", const_cast<char**>(names), &recording, &PyTuple_Type, &tapes, &trace,
                                   &tracker, &watcher))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  Context& c = *new (&as_scope(self)->context) Context;
  c.silences = !recording;
  c.sets_trace = trace, c.sets_tracker = tracker, c.sets_watcher = watcher;
  c.trace = given(trace), c.tracker = given(tracker), c.watcher = given(watcher);
  PyObject* made = guarded<PyObject*>(nullptr, [&] {
    read_trace(c);
    for (Py_ssize_t i = 0; tapes && i < PyTuple_GET_SIZE(tapes); ++i) {
      PyObject* t = PyTuple_GET_ITEM(tapes, i);
      if (!PyObject_TypeCheck(t, TapeType)) fail(Code::Type, "Scope: `tapes` must be a tuple of tapes");
      c.tapes.push_back(reinterpret_cast<Tape*>(Py_NewRef(t)));
    }
    return self;
  });
  if (!made) Py_DECREF(self);
  return made;
}

PyObject* scope_enter(PyObject* self, PyObject*) {
  Context& c = as_scope(self)->context;
  if (c.entered()) {
    PyErr_SetString(PyExc_RuntimeError, "the scope was entered already");
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] {
    c.enter();
    return Py_NewRef(self);
  });
}

PyObject* scope_exit(PyObject* self, PyObject*) {
  as_scope(self)->context.leave();
  Py_RETURN_NONE;
}

int scope_traverse(PyObject* self, visitproc visit, void* arg) {
  Context& c = as_scope(self)->context;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(c.trace);
  Py_VISIT(c.tracker);
  Py_VISIT(c.watcher);
  for (Tape* t : c.tapes) Py_VISIT(reinterpret_cast<PyObject*>(t));
  return 0;
}

int scope_clear(PyObject* self) {
  Context& c = as_scope(self)->context;
  c.leave();
  Py_CLEAR(c.trace);
  Py_CLEAR(c.tracker);
  Py_CLEAR(c.watcher);
  std::vector<Tape*> tapes;
  tapes.swap(c.tapes);
  for (Tape* t : tapes) Py_DECREF(reinterpret_cast<PyObject*>(t));
  return 0;
}

void scope_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  scope_clear(self);
  as_scope(self)->context.~Context();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef scope_methods[] = {{"__enter__", scope_enter, METH_NOARGS, nullptr}, {"__exit__", scope_exit, METH_VARARGS, nullptr}, {}};
PyType_Slot scope_slots[] = {{Py_tp_new, reinterpret_cast<void*>(scope_new)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(scope_dealloc)},
                             {Py_tp_traverse, reinterpret_cast<void*>(scope_traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(scope_clear)},
                             {Py_tp_methods, scope_methods},
                             {Py_tp_doc, const_cast<char*>("Scope(*, recording=True, tapes=(), trace=..., tracker=..., watcher=...)\n--\n\n"
                                                           "While entered, this thread records on `tapes` and, with recording=True, on those it had entered "
                                                           "before; writes `trace`; tells `tracker` and `watcher`.")},
                             {}};
PyType_Spec scope_spec = {"gradtape._core.Scope", sizeof(ScopeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, scope_slots};

PyObject* or_none(PyObject* o) { return Py_NewRef(o ? o : Py_None); }
PyObject* current_trace(PyObject*, PyObject*) { return or_none(thread_state().trace); }
PyObject* assign_tracker(PyObject*, PyObject*) { return or_none(thread_state().tracker); }
PyObject* op_watcher(PyObject*, PyObject*) { return or_none(thread_state().watcher); }
PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(!active_tapes().empty()); }

PyObject* recording_tapes(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (Tape* t : std::vector<Tape*>(active_tapes()))
    if (list && PyList_Append(list, reinterpret_cast<PyObject*>(t))) Py_CLEAR(list);
  return list;
}

PyObject* may_differentiate_again(PyObject*, PyObject*) {
  size_t n = 0;
  for (Tape* t : active_tapes())
    if (!t->variables_only) n += t->persistent ? 2 : 1;
  return PyBool_FromLong(n > 1);
}

PyMethodDef functions[] = {
    {"current_trace", current_trace, METH_NOARGS, "The trace this thread is writing, or None."},
    {"assign_tracker", assign_tracker, METH_NOARGS, "Who is told of assignments on this thread, or None."},
    {"op_watcher", op_watcher, METH_NOARGS, "Who is told of ops on this thread, or None."},
    {"is_recording", is_recording, METH_NOARGS, "Whether a tape of this thread records."},
    {"recording_tapes", recording_tapes, METH_NOARGS, "The tapes of this thread that record now."},
    {"may_differentiate_again", may_differentiate_again, METH_NOARGS,
     "Whether a backward pass over what is recorded now could be recorded itself."},
    {}};

}  // namespace

void init_thread_state(PyObject* module) {
  PyModule_AddObjectRef(module, "Scope", Ref<>(checked(PyType_FromSpec(&scope_spec))).get());
  PyModule_AddFunctions(module, functions);
}

}  // namespace gt
