// Forks. The child has one thread, and finds what others were doing as it was at that moment: a lock that one
// of them held is never let go of there. So a fork waits until nobody holds a lock of ours, and nobody is
// inside OpenBLAS, which has locks of its own.
#pragma once
#include <mutex>

namespace gt {

// A mutex that is free in the child. All of them are made while the core is loaded, and for good. A fork
// takes them youngest first: a thread that holds one takes none that was made after it, and does not wait for
// the interpreter's lock, which the thread that forks may have.
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
