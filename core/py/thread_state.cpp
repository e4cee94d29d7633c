// The contexts of threads, and two Python types: Scope, with which Python code enters contexts, and Setting,
// a Python value that a scope can change.
#include "thread_state.h"

#include <structmember.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "../fork.h"
#include "../threads.h"
#include "objects.h"

namespace gt {

#ifdef Py_GIL_DISABLED
GT_NEAR_TLS
#endif
thread_local constinit ThreadState* thread_state_ = nullptr;

// A context may be left, or destroyed, in another thread, and a thread may end with contexts it has not left.
// So states are reused and never freed: a late `leave` finds a valid state, without that context. A fork
// waits for threads that are ending, or the child could inherit a state that is locked forever.
static Lock& spare_lock = *new Lock;
static ThreadState* spare_states = nullptr;

ThreadState& new_thread_state() {
  prepare_to_throw();
  struct Owner {
    ThreadState* state = nullptr;
    ~Owner() {
      std::lock_guard hold(spare_lock);
      Holding at_contexts(state->lock);
      for (Context* c : state->contexts) c->thread = nullptr;
      state->contexts.clear();
      state->stale = true;  // its next thread releases what it owns: this one can no longer run Python code
      state->next_spare = spare_states;
      spare_states = state;
      thread_state_ = nullptr;
    }
  };
  static thread_local Owner owner;
  ThreadState* state;
  {
    std::lock_guard hold(spare_lock);
    state = spare_states;
    if (state) spare_states = state->next_spare;
  }
  if (!state) state = new ThreadState;
  owner.state = thread_state_ = state;
  if (state->stale) state->refresh();
  return *state;
}

static void find_tapes(const std::vector<Context*>& contexts, std::vector<Tape*>& tapes) {
  tapes.clear();
  for (const Context* c : contexts) {
    if (c->silences) tapes.clear();
    for (Tape* t : c->tapes)
      if (std::find(tapes.begin(), tapes.end(), t) == tapes.end()) tapes.push_back(t);
  }
}

#ifdef Py_GIL_DISABLED
void Pinned::find_tapes() { gt::find_tapes(here_.contexts, here_.tapes); }
#endif

// What a state owned. Released when nothing is locked, since that may run any code.
struct Before {
  PyObject *trace = nullptr, *tracker = nullptr;
  Before() = default;
  Before(const Before&) = delete;
  ~Before() {
    if constexpr (!kFreeThreaded) return;  // borrowed references
    Py_XDECREF(trace);
    Py_XDECREF(tracker);
  }
};

// Under the lock.
void ThreadState::derive(Before& before) {
  before.trace = trace, before.tracker = tracker;
  stale = false;
  find_tapes(contexts, tapes);
  changed = !contexts.empty();
  trace = tracker = nullptr;
  trace_start = 0;
  trace_keeps_constants = trace_records = notifies = watching = false;
  for (const Context* c : contexts) {
    if (c->sets_trace) {
      trace = c->trace, trace_start = c->trace_start;
      trace_keeps_constants = c->trace_keeps_constants, trace_records = c->trace_records;
    }
    if (c->sets_tracker) tracker = c->tracker;
    if (c->watcher)
      notifies = watching = true;
    else if (c->sets_watcher)
      notifies = false;
  }
  if constexpr (kFreeThreaded) {
    Py_XINCREF(trace);
    Py_XINCREF(tracker);
  }
}

void ThreadState::refresh() {
  Before before;
  Holding hold(lock);
  derive(before);
}

void Context::enter() {
  ThreadState& here = thread_state();
  Before before;
  Holding hold(here.lock);
  // Reserved here, so that leaving a context never allocates.
  size_t most = tapes.size();
  for (Context* c : here.contexts) most += c->tapes.size();
  here.tapes.reserve(most);
  here.contexts.push_back(this);
  thread = &here;
  here.derive(before);
}

void Context::leave() noexcept {
  while (ThreadState* its = thread) {
    Before before;
    const bool mine = its == thread_state_, pinned = mine && its->pins;
    if (!pinned) its->lock.lock();
    const bool entered = thread == its;
    if (entered) {
      auto& contexts = its->contexts;
      contexts.erase(std::remove(contexts.begin(), contexts.end(), this), contexts.end());
      if (!kFreeThreaded || (mine && !pinned)) {
        its->derive(before);
      } else {
        its->stale = true;
        if (pinned) find_tapes(contexts, its->tapes);
      }
      thread = nullptr;  // from here on it may be freed
    }
    if (!pinned) its->lock.unlock();
    if (entered) return;
  }
}

std::vector<Ref<>> current_tapes() {
  std::vector<Ref<>> tapes;
  Pinned here;
  for (Tape* t : active_tapes())
    if (PyObject* o = reinterpret_cast<PyObject*>(t); hold_if_alive(o)) tapes.emplace_back(o);
  return tapes;
}

// The watchers to notify of ops, the outermost first.
std::vector<Ref<>> current_watchers() {
  ThreadState& here = thread_state();
  std::vector<Ref<>> all;
  if (!here.notifies) return all;
  all.reserve(here.contexts.size());  // only this thread adds to them
  std::vector<Ref<>> silenced;        // released when nothing is locked
  Pinned pinned;
  for (const Context* c : here.contexts) {
    if (c->watcher)
      all.push_back(Ref<>::borrow(c->watcher));
    else if (c->sets_watcher)
      silenced.swap(all);
  }
  return all;
}

// ---- Scope --------------------------------------------------------------------------------

namespace {

PyTypeObject *ScopeType = nullptr, *SettingType = nullptr;

struct SettingObject {
  PyObject_HEAD PyObject *otherwise, *join;
};
SettingObject* as_setting(PyObject* o) { return reinterpret_cast<SettingObject*>(o); }

Ref<> value_now(PyObject* setting) {
  Pinned here;
  const auto& contexts = thread_state().contexts;
  for (auto c = contexts.rbegin(); c != contexts.rend(); ++c)
    if ((*c)->setting == setting) return Ref<>::borrow((*c)->value);
  return Ref<>::borrow(as_setting(setting)->otherwise);
}

struct Entry {
  Ref<> value;  // of the setting
  Context context;
  Entry(const Change& change, Ref<> now) : value(std::move(now)), context(change) {
    context.value = value.get();
  }
};

// It can be entered repeatedly: nested, and in several threads.
struct ScopeObject {
  PyObject_HEAD Change change;
  std::vector<std::unique_ptr<Entry>> entries;
};
ScopeObject* as_scope(PyObject* o) { return reinterpret_cast<ScopeObject*>(o); }

PyObject* given(PyObject* o) { return o && o != Py_None ? Py_NewRef(o) : nullptr; }

// How a trace treats tensors from outside; a plain graph takes none.
void read_trace(Change& c) {
  if (!c.trace) return;
  Ref<> start(PyObject_GetAttrString(c.trace, "start"));
  if (!start) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError{};
    PyErr_Clear();
    return;
  }
  Ref<> keeps_constants(checked(PyObject_GetAttrString(c.trace, "keeps_constants")));
  c.trace_start = PyLong_AsUnsignedLongLongMask(start.get());
  c.trace_keeps_constants = keeps_constants.get() == Py_True;
  Ref<> records(checked(PyObject_GetAttrString(c.trace, "records")));
  c.trace_records = records.get() == Py_True;
  if (PyErr_Occurred()) throw PythonError{};
}

Ref<> empty_scope(PyTypeObject* type) {
  Ref<> self(checked(type->tp_alloc(type, 0)));
  new (&as_scope(self.get())->change) Change;
  new (&as_scope(self.get())->entries) std::vector<std::unique_ptr<Entry>>;
  return self;
}

PyObject* scope_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"recording", "tapes",   "trace", "tracker",
                                "watcher",   "setting", "value", nullptr};
  int recording = 1;
  PyObject *tapes = nullptr, *trace = nullptr, *tracker = nullptr, *watcher = nullptr, *setting = nullptr,
           *value = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$pO!OOOO!O:Scope", const_cast<char**>(names), &recording,
                                   &PyTuple_Type, &tapes, &trace, &tracker, &watcher, SettingType, &setting,
                                   &value))
    return nullptr;
  return guarded<PyObject*>(nullptr, [&] {
    Ref<> self = empty_scope(type);
    Change& c = as_scope(self.get())->change;
    c.silences = !recording;
    c.sets_trace = trace, c.sets_tracker = tracker, c.sets_watcher = watcher;
    c.trace = given(trace), c.tracker = given(tracker), c.watcher = given(watcher);
    c.setting = given(setting), c.value = Py_NewRef(value);
    read_trace(c);
    for (Py_ssize_t i = 0; tapes && i < PyTuple_GET_SIZE(tapes); ++i) {
      PyObject* t = PyTuple_GET_ITEM(tapes, i);
      if (!PyObject_TypeCheck(t, TapeType)) fail(Code::Type, "Scope: `tapes` must be a tuple of tapes");
      c.tapes.push_back(reinterpret_cast<Tape*>(t));
      Py_INCREF(t);
    }
    return self.release();
  });
}

PyObject* scope_enter(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    const Change& change = as_scope(self)->change;
    PyObject* join = change.setting ? as_setting(change.setting)->join : nullptr;
    Ref<> value = !join ? Ref<>::borrow(change.value)
                        : Ref<>(checked(PyObject_CallFunctionObjArgs(join, value_now(change.setting).get(),
                                                                     change.value, nullptr)));
    Ref<> result = Ref<>::borrow(change.setting ? value.get() : self);
    Section here(self);
    auto& entries = as_scope(self)->entries;
    entries.push_back(std::make_unique<Entry>(change, std::move(value)));
    try {
      entries.back()->context.enter();
    } catch (...) {
      entries.pop_back();
      throw;
    }
    return result.release();
  });
}

// Leaves the context that this thread entered last; if it has none, one of another thread.
PyObject* scope_exit(PyObject* self, PyObject*) {
  Section alone(self);
  auto& entries = as_scope(self)->entries;
  auto here = std::find_if(entries.rbegin(), entries.rend(),
                           [](auto& e) { return e->context.thread == &thread_state(); });
  if (here == entries.rend()) here = entries.rbegin();
  if (here != entries.rend()) {
    std::unique_ptr<Entry> left = std::move(*here);
    entries.erase(std::next(here).base());
    left->context.leave();
  }
  Py_RETURN_NONE;
}

int scope_traverse(PyObject* self, visitproc visit, void* arg) {
  const Change& c = as_scope(self)->change;
  Py_VISIT(Py_TYPE(self));
  for (PyObject* o : {c.trace, c.tracker, c.watcher, c.setting, c.value}) Py_VISIT(o);
  for (Tape* t : c.tapes) Py_VISIT(reinterpret_cast<PyObject*>(t));
  for (auto& e : as_scope(self)->entries) Py_VISIT(e->value.get());
  return 0;
}

int scope_clear(PyObject* self) {
  Change& c = as_scope(self)->change;
  auto entries = std::move(as_scope(self)->entries);
  entries.clear();
  Py_CLEAR(c.trace);
  Py_CLEAR(c.tracker);
  Py_CLEAR(c.watcher);
  Py_CLEAR(c.setting);
  Py_CLEAR(c.value);
  std::vector<Tape*> tapes;
  tapes.swap(c.tapes);
  for (Tape* t : tapes) Py_DECREF(reinterpret_cast<PyObject*>(t));
  return 0;
}

void scope_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  scope_clear(self);
  as_scope(self)->entries.~vector();
  as_scope(self)->change.~Change();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef scope_methods[] = {
    {"__enter__", scope_enter, METH_NOARGS, nullptr}, {"__exit__", scope_exit, METH_VARARGS, nullptr}, {}};
PyType_Slot scope_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(scope_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(scope_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(scope_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(scope_clear)},
    {Py_tp_methods, scope_methods},
    {Py_tp_doc,
     const_cast<char*>(
         "Scope(*, recording=True, tapes=(), trace=..., tracker=..., watcher=..., "
         "setting=..., value=None)\n--\n\n"
         "While entered, this thread records on `tapes` and, with recording=True, on those it had entered "
         "before; writes `trace`; tells `tracker` and `watcher`; `setting` has a value, which entering "
         "gives.")},
    {}};
PyType_Spec scope_spec = {"gradtape._core.Scope", sizeof(ScopeObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, scope_slots};

// ---- Setting ------------------------------------------------------------------------------

PyObject* setting_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"default", "join", nullptr};
  PyObject *otherwise = nullptr, *join = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Setting", const_cast<char**>(names), &otherwise, &join))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_setting(self)->otherwise = Py_NewRef(otherwise);
  as_setting(self)->join = given(join);
  keep_for_ever(self);  // settings belong to modules, which threads share
  return self;
}

PyObject* setting_now(PyObject* self, PyObject*) { return value_now(self).release(); }

PyObject* setting_to(PyObject* self, PyObject* value) {
  return guarded<PyObject*>(nullptr, [&] {
    Ref<> scope = empty_scope(ScopeType);
    as_scope(scope.get())->change.setting = Py_NewRef(self);
    as_scope(scope.get())->change.value = Py_NewRef(value);
    return scope.release();
  });
}

int setting_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_setting(self)->otherwise);
  Py_VISIT(as_setting(self)->join);
  return 0;
}

void setting_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_XDECREF(as_setting(self)->otherwise);
  Py_XDECREF(as_setting(self)->join);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef setting_methods[] = {{"now", setting_now, METH_NOARGS, "The value in this thread."},
                                 {"to", setting_to, METH_O, "A scope that sets the value."},
                                 {}};
PyType_Slot setting_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(setting_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(setting_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(setting_traverse)},
    {Py_tp_methods, setting_methods},
    {Py_tp_doc,
     const_cast<char*>(
         "Setting(default, join=None)\n--\n\n"
         "A value of each thread that scopes set. With `join` it becomes join(value before, value given).")},
    {}};
PyType_Spec setting_spec = {"gradtape._core.Setting", sizeof(SettingObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, setting_slots};

PyObject* or_none(PyObject* o) { return Py_NewRef(o ? o : Py_None); }
PyObject* trace_now(PyObject*, PyObject*) { return or_none(thread_state().trace); }
PyObject* assign_tracker(PyObject*, PyObject*) { return or_none(thread_state().tracker); }
PyObject* op_watcher(PyObject*, PyObject*) {
  return guarded<PyObject*>(nullptr, [] {
    std::vector<Ref<>> watchers = current_watchers();
    return or_none(watchers.empty() ? nullptr : watchers.back().get());
  });
}
PyObject* is_watching(PyObject*, PyObject*) { return PyBool_FromLong(thread_state().watching); }
PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(!active_tapes().empty()); }

PyObject* recording_tapes(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (auto& t : current_tapes())
    if (list && PyList_Append(list, t.get())) Py_CLEAR(list);
  return list;
}

PyObject* may_differentiate_again(PyObject*, PyObject*) {
  size_t n = 0;
  Pinned here;
  for (Tape* t : active_tapes())
    if (!t->variables_only) n += t->persistent ? 2 : 1;
  return PyBool_FromLong(n > 1);
}

PyMethodDef functions[] = {
    {"current_trace", trace_now, METH_NOARGS, "The trace this thread is writing, or None."},
    {"assign_tracker", assign_tracker, METH_NOARGS, "The tracker of assignments on this thread, or None."},
    {"op_watcher", op_watcher, METH_NOARGS, "The innermost watcher of the ops of this thread, or None."},
    {"is_watching", is_watching, METH_NOARGS,
     "Whether ops of this thread are watched, so that each must run by itself."},
    {"is_recording", is_recording, METH_NOARGS, "Whether a tape of this thread records."},
    {"recording_tapes", recording_tapes, METH_NOARGS, "The tapes of this thread that record now."},
    {"may_differentiate_again", may_differentiate_again, METH_NOARGS,
     "Whether a backward pass over what is recorded now could be recorded itself."},
    {}};

}  // namespace

void init_thread_state(PyObject* module) {
  thread_state();
  ScopeType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&scope_spec)));
  SettingType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&setting_spec)));
  PyModule_AddObjectRef(module, "Scope", reinterpret_cast<PyObject*>(ScopeType));
  PyModule_AddObjectRef(module, "Setting", reinterpret_cast<PyObject*>(SettingType));
  PyModule_AddFunctions(module, functions);
}

}  // namespace gt
