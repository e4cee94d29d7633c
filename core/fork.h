// Forks. The child has one thread and sees the state of the others as it was at that moment: a lock that one
// of them held is never released there. So a fork waits until none of our locks is held and no thread is
// inside OpenBLAS, which has locks of its own.
#pragma once
#include <mutex>

namespace gt {

// A mutex that is free in the child. All of them are created while the core is loaded, and never destroyed. A
// fork takes them youngest first: a thread that holds one takes none that was created later, and does not
// wait for the interpreter's lock, which the forking thread may have.
class Lock {
 public:
  Lock();
  Lock(const Lock&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct Locks;
  std::mutex mutex_;
  Lock* next_;
};

}  // namespace gt
