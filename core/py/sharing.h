// Locks, atomics and reference counts for free-threaded CPython (Py_GIL_DISABLED). In a build with the
// interpreter's lock they are plain numbers and empty locks; only Atomic and SpinLock are real in both, for
// threads that end without that lock. docs/design.md ("Threads") says which one protects what.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace gt {

// A thread-local variable at a fixed offset from the thread pointer, read without a call.
#if defined(__GLIBC__) && defined(__GNUC__)
#define GT_NEAR_TLS __attribute__((tls_model("initial-exec")))
#else
#define GT_NEAR_TLS
#endif

// A word that one thread writes and others read. A thread that reads a value also sees what was written
// before it.
template <class T> class Atomic {
 public:
  constexpr Atomic() = default;
  constexpr Atomic(T v) : value_(v) {}
  Atomic(const Atomic& o) : value_(T(o)) {}
  operator T() const { return value_.load(std::memory_order_acquire); }
  T operator->() const { return T(*this); }
  Atomic& operator=(T v) {
    value_.store(v, std::memory_order_release);
    return *this;
  }
  Atomic& operator=(const Atomic& o) { return *this = T(o); }
  T operator++() { return value_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  T operator--() { return value_.fetch_sub(1, std::memory_order_acq_rel) - 1; }
  // Sets it to `v` if it was zero; returns its value.
  T put_first(T v) {
    T nothing{};
    return value_.compare_exchange_strong(nothing, v, std::memory_order_acq_rel) ? v : nothing;
  }

 private:
  std::atomic<T> value_{};
};

// For a few instructions that call nothing of Python's: a thread waiting for it cannot be paused by Python
// (stop-the-world).
class SpinLock {
 public:
  void lock() {
    for (int tries = 0; taken_.exchange(true, std::memory_order_acquire); ++tries)
      if (tries > 64) std::this_thread::yield();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

#ifdef Py_GIL_DISABLED

inline constexpr bool kFreeThreaded = true;

template <class T> using Shared = Atomic<T>;

// A reference count. The thread that drops the last reference is the only one to use the object.
class Count {
 public:
  constexpr Count(int32_t n = 0) : n_(n) {}
  void add() { n_.fetch_add(1, std::memory_order_relaxed); }
  bool take() { return n_.fetch_sub(1, std::memory_order_acq_rel) == 1; }  // true: it was the last
  // For an object found without holding a reference: false if its count is zero.
  bool add_if_any() {
    int32_t n = n_.load(std::memory_order_relaxed);
    while (n && !n_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) {}
    return n;
  }

 private:
  std::atomic<int32_t> n_;
};

using Spin = SpinLock;

// For longer work: a waiting thread can be paused by Python. Not recursive.
class Mutex {
 public:
  void lock() { PyMutex_Lock(&mutex_); }
  void unlock() { PyMutex_Unlock(&mutex_); }

 private:
  PyMutex mutex_{};
};

// A critical section of Python's, for code that runs Python code: one thread at a time is in a section of an
// object, and lets others in while it waits, as with the interpreter's lock.
class Section {
 public:
  explicit Section(PyObject* o) { PyCriticalSection_Begin(&section_, o); }
  ~Section() { PyCriticalSection_End(&section_); }
  Section(const Section&) = delete;

 private:
  PyCriticalSection section_;
};

// Makes an object immortal, so that threads do not contend for its reference count.
inline void keep_for_ever(PyObject* o) {
  o->ob_tid = _Py_UNOWNED_TID;
  o->ob_ref_local = _Py_IMMORTAL_REFCNT_LOCAL;
  o->ob_ref_shared = 0;
}

// For objects that are found without holding a reference: call may_be_found when one is made, hold_if_alive
// when it is found, which returns false if it is being freed. Its memory must not be freed while another
// thread may call hold_if_alive.
#if PY_VERSION_HEX >= 0x030E0000
inline void may_be_found(PyObject* o) { PyUnstable_EnableTryIncRef(o); }
inline bool hold_if_alive(PyObject* o) { return Py_REFCNT(o) && PyUnstable_TryIncRef(o); }
#else
inline void may_be_found(PyObject* o) {  // before any other thread has it
  o->ob_ref_shared = _Py_REF_MAYBE_WEAKREF;
}
inline bool hold_if_alive(PyObject* o) {
  if (_Py_IsOwnedByCurrentThread(o)) return Py_REFCNT(o) && (Py_INCREF(o), true);
  Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&o->ob_ref_shared);
  do {
    if (shared == 0 || shared == _Py_REF_MERGED) return false;
  } while (
      !_Py_atomic_compare_exchange_ssize(&o->ob_ref_shared, &shared, shared + (1 << _Py_REF_SHARED_SHIFT)));
  return true;
}
#endif

#else

inline constexpr bool kFreeThreaded = false;

template <class T> using Shared = T;

class Count {
 public:
  constexpr Count(int32_t n = 0) : n_(n) {}
  void add() { ++n_; }
  bool take() { return --n_ == 0; }
  bool add_if_any() { return n_++ != 0; }

 private:
  int32_t n_;
};

struct Spin {
  void lock() {}
  void unlock() {}
};
using Mutex = Spin;

struct Section {
  explicit Section(PyObject*) {}
  ~Section() {}  // so that one that is only there to live is no unused variable
};

inline void keep_for_ever(PyObject*) {}
inline void may_be_found(PyObject*) {}
inline bool hold_if_alive(PyObject* o) { return Py_REFCNT(o) && (Py_INCREF(o), true); }

#endif

// The items of an iterable, as a list or tuple that does not change. nullptr, with an exception, if `o` is
// not iterable.
inline PyObject* fixed_items(PyObject* o, const char* message) {
  if (PyTuple_Check(o)) return Py_NewRef(o);
  if (!PyList_Check(o)) return PySequence_Fast(o, message);
  return kFreeThreaded ? PyList_AsTuple(o) : Py_NewRef(o);
}

// Holds a lock while it exists.
template <class L> class Holding {
 public:
  explicit Holding(L& lock) : lock_(lock) { lock_.lock(); }
  ~Holding() { lock_.unlock(); }
  Holding(const Holding&) = delete;

 private:
  L& lock_;
};

// A list that only grows, whose elements do not move: one thread adds while others read.
template <class T> class Growing {
 public:
  struct Entry {
    T value;
    Shared<Entry*> next;
  };
  Growing() = default;
  Growing(const Growing&) = delete;
  ~Growing() {
    for (Entry *e = first_, *next; e; e = next) {
      next = e->next;
      delete e;
    }
  }
  const T* find_if(auto&& test) const {
    for (Entry* e = first_; e; e = e->next)
      if (test(e->value)) return &e->value;
    return nullptr;
  }
  void each(auto&& f) const {
    for (Entry* e = first_; e; e = e->next) f(e->value);
  }
  // Under the caller's lock.
  void add(T value) {
    Entry* e = new Entry{std::move(value), nullptr};
    Shared<Entry*>* end = &first_;
    while (*end) end = &static_cast<Entry*>(*end)->next;
    *end = e;
    ++size_;
  }
  size_t size() const { return size_; }  // under the same lock

 private:
  Shared<Entry*> first_{nullptr};
  size_t size_ = 0;
};

}  // namespace gt
