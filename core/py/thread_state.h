// What a thread is doing: which tapes record, which trace is being written, who is told of
// assignments and of ops, what settings of Python's are. All of it follows from the contexts that the thread
// has entered and not left; there is no other way to change it.
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

// What is different for a while. Whoever has it owns what it points to.
struct Change {
  std::vector<Tape*> tapes;  // that record
  bool silences = false;     // tapes that were entered before do not record
  bool sets_trace = false, sets_tracker = false, sets_watcher = false;
  PyObject *trace = nullptr, *tracker = nullptr;
  PyObject* watcher = nullptr;  // told beside those that were entered before; nullptr: nobody is told
  uint64_t trace_start =
      0;  // of the trace: tensors made before this count come from outside (0: it takes none)
  bool trace_keeps_constants = false;  // of the trace: tensors created during it are constants of its graph
  bool trace_records = false;          // of the trace: it takes note of calls as they are (see calls.h)
  PyObject *setting = nullptr, *value = nullptr;
  Atomic<ThreadState*> thread =
      nullptr;  // that entered it; nullptr: it is not entered (here, so that Context has standard layout)
};

// A change that is entered and left: by a tape, or a scope (Scope in Python, Quiet here). It leaves by itself
// when it dies, in whichever thread that is, so that a thread never points at anything that is gone.
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

// Written by its thread alone, but for what is said of others.
struct alignas(64) ThreadState {   // each in cache lines of its own
  std::vector<Context*> contexts;  // entered and not left, oldest first; under the lock
  // What follows from them.
  std::vector<Tape*> tapes;  // that record, outermost first. Borrowed: see Pinned
  PyObject* trace =
      nullptr;  // a gradtape._src.graph.trace.Trace, or nullptr: variables are read and set through it
  PyObject* tracker =
      nullptr;            // told of each assignment, and asked for values, while a tape follows assignments
  bool changed = false;   // there are contexts: something is different in this thread
  bool told = false;      // somebody is called after every op that runs by itself: see current_watchers
  bool watching = false;  // somebody would be, though not now: every op has to run by itself
  uint64_t trace_start = 0;
  bool trace_keeps_constants = false, trace_records = false;
  const Node* stepping = nullptr;  // the record whose gradient rule is running
  // Without the interpreter's lock: another thread has left a context of this one, which looks again when it
  // next asks for its state. Until then it owns the trace and the tracker that it had.
  Shared<bool> stale = false;
  SpinLock lock;  // of whoever is at its contexts
  int pins = 0;   // see Pinned
  ThreadState* next_spare = nullptr;

  void derive(Before& before);
  void look_again();
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
      here.look_again();
  return here;
}
inline const std::vector<Tape*>& active_tapes() { return thread_state().tapes; }

// While it lives no other thread leaves a context of this one, so that its tapes are there. For a few steps
// that call nothing of Python's.
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

// While it lives no tape records, and no trace is written either unless `keep_trace`.
struct Quiet : Context {
  explicit Quiet(bool keep_trace = false) {
    silences = true;
    sets_trace = !keep_trace;
    enter();
  }
};

void init_thread_state(PyObject* module);

}  // namespace gt
