// The state of a thread: which tapes record, which trace is being written, who is notified of assignments and
// ops, and settings of Python's. All of it is derived from the contexts that the thread has entered and not
// left; there is no other way to change it.
#pragma once
#include <Python.h>

#include <cstdint>
#include <vector>

#include "sharing.h"

namespace gt {

struct Node;
struct Tape;
struct ThreadState;
struct Before;

// What a context changes. Its owner also owns the objects that it points to.
struct Change {
  std::vector<Tape*> tapes;  // that record
  bool silences = false;     // tapes that were entered before do not record
  bool sets_trace = false, sets_tracker = false, sets_watcher = false;
  PyObject *trace = nullptr, *tracker = nullptr;
  PyObject* watcher = nullptr;  // notified in addition to those entered before; nullptr: none is notified
  uint64_t trace_start =
      0;  // of the trace: tensors made before this count come from outside (0: it takes none)
  bool trace_keeps_constants = false;  // of the trace: tensors with values made during it join its graph, too
  bool trace_records = false;          // of the trace: it is a recording of calls (see calls.h)
  PyObject *setting = nullptr, *value = nullptr;
  Atomic<ThreadState*> thread =
      nullptr;  // that entered it; nullptr: not entered (a member here to give Context standard layout)
};

// A change that is entered and left: by a tape, or a scope (Scope in Python, Quiet here). The destructor
// leaves it, in whichever thread it runs, so that no thread keeps a dangling pointer.
struct Context : Change {
  Context() = default;
  explicit Context(const Change& change) : Change(change) { thread = nullptr; }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { leave(); }
  bool entered() const { return thread != nullptr; }
  void enter();
  void leave() noexcept;
};

// Written by its own thread only, except where noted.
struct alignas(64) ThreadState {   // each in cache lines of its own
  std::vector<Context*> contexts;  // entered and not left, oldest first; under the lock
  // What is derived from them.
  std::vector<Tape*> tapes;  // that record, outermost first. Borrowed: see Pinned
  PyObject* trace =
      nullptr;  // a gradtape._src.graph.trace.Trace, or nullptr: variables are read and set through it
  PyObject* tracker =
      nullptr;            // notified of assignments, and asked for values, while a tape follows assignments
  bool changed = false;   // there are contexts
  bool notifies = false;  // watchers are called after every single op: see current_watchers
  bool watching = false;  // there are watchers, perhaps paused: ops must run one by one, not compiled
  uint64_t trace_start = 0;
  bool trace_keeps_constants = false, trace_records = false;
  const Node* stepping = nullptr;  // the record whose gradient rule is running
  // If free-threaded: another thread has left a context of this one, which updates its state when it next
  // reads it. Until then it owns its old trace and tracker.
  Shared<bool> stale = false;
  SpinLock lock;  // of its contexts
  int pins = 0;   // see Pinned
  ThreadState* next_spare = nullptr;

  void derive(Before& before);
  void refresh();
};

#ifdef Py_GIL_DISABLED
GT_NEAR_TLS
#endif
extern thread_local constinit ThreadState* thread_state_;
ThreadState& new_thread_state();
inline ThreadState& thread_state() {
  ThreadState& here = thread_state_ ? *thread_state_ : new_thread_state();
  if constexpr (kFreeThreaded)
    if (here.stale && !here.pins) [[unlikely]]
      here.refresh();
  return here;
}
inline const std::vector<Tape*>& active_tapes() { return thread_state().tapes; }

// While it exists, no other thread leaves a context of this one, so its tapes stay alive. For short work that
// calls nothing of Python's.
class Pinned {
#ifdef Py_GIL_DISABLED
 public:
  Pinned() {
    if (here_.pins++) return;
    here_.lock.lock();
    if (here_.stale) [[unlikely]]
      find_tapes();
  }
  ~Pinned() {
    if (--here_.pins == 0) here_.lock.unlock();
  }
  Pinned(const Pinned&) = delete;

 private:
  void find_tapes();
  ThreadState& here_ = thread_state();
#else
 public:
  ~Pinned() {}  // so that one that is only there to live is no unused variable
#endif
};

// While it exists, no tape records, and no trace is written either unless `keep_trace`.
struct Quiet : Context {
  explicit Quiet(bool keep_trace = false) {
    silences = true;
    sets_trace = !keep_trace;
    enter();
  }
};

void init_thread_state(PyObject* module);

}  // namespace gt
