// The interpreter's lock: let go of around native work, taken for Python code on any thread.
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

// Python ends a thread that asks for the lock while the interpreter shuts down. That unwinds its stack, which
// C++ code does not survive and objects of Python must not see: the thread stays where it is until the
// process ends.
[[noreturn]] inline void stay_here() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}
#if defined(__GLIBCXX__)
#define GT_CATCH_THREAD_END             \
  catch (const abi::__forced_unwind&) { \
    ::gt::stay_here();                  \
  }
#else
// Elsewhere (macOS, musl) a thread ends without unwinding; a try needs a handler.
#define GT_CATCH_THREAD_END \
  catch (...) {             \
    throw;                  \
  }
#endif

// Runs `work` without the lock. Whatever it throws travels on once the lock is taken again.
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
