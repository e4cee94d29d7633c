// The handlers that run before and after a fork: they take and release all locks, in the right order.
#include "fork.h"

#include "blas.h"
#include "threads.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace gt {

struct Locks {
  inline static constinit Lock* first = nullptr;
  template <class F> static void each(F&& f) {
    for (Lock* l = first; l; l = l->next_) f(*l);
  }
};

Lock::Lock() : next_(Locks::first) { Locks::first = this; }

#if defined(__unix__) || defined(__APPLE__)
namespace {

// Locks first: a thread that loads OpenBLAS holds one, and calls it.
void before() {
  Locks::each([](Lock& l) { l.lock(); });
  InsideBlas::keep_out();
}

void in_parent() {
  InsideBlas::let_in();
  Locks::each([](Lock& l) { l.unlock(); });
}

void in_child() {
  InsideBlas::let_in_after_fork();
  Locks::each([](Lock& l) { l.unlock(); });
  leave_pool_behind();
}

[[maybe_unused]] const int registered = pthread_atfork(before, in_parent, in_child);

}  // namespace
#endif

}  // namespace gt
