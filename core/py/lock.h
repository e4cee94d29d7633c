// The interpreter's lock: released around native work, taken for Python code on any thread.
#pragma once
#include <Python.h>

#include <chrono>
#include <exception>
#include <thread>

#include "../error.h"
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

namespace gt {

// Python ends a thread that takes the lock while the interpreter shuts down. That unwinds its stack, and
// destructors would touch Python objects: instead the thread sleeps here until the process ends.
[[noreturn]] inline void stay_here() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}
#if defined(__GLIBCXX__)
#define GT_CATCH_THREAD_END             \
  catch (const abi::__forced_unwind&) { \
    ::gt::stay_here();                  \
  }
#else
// On macOS and musl a thread ends without unwinding; the handler is there only because a try needs one.
#define GT_CATCH_THREAD_END \
  catch (...) {             \
    throw;                  \
  }
#endif

// Runs `work` without the lock. What it throws is rethrown once the lock is taken again.
template <class F> void without_lock(F&& work) {
  std::exception_ptr error;
  PyThreadState* state = PyEval_SaveThread();
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  try {
    PyEval_RestoreThread(state);
  }
  GT_CATCH_THREAD_END
  if (error) std::rethrow_exception(error);
}

// Holds the lock for as long as it lives, on any thread.
class WithLock {
 public:
  WithLock() {
    try {
      state_ = PyGILState_Ensure();
    }
    GT_CATCH_THREAD_END
  }
  ~WithLock() { PyGILState_Release(state_); }
  WithLock(const WithLock&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace gt
