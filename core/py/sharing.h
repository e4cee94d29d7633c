// What threads share where CPython has no lock (Py_GIL_DISABLED). With the lock what these names stand for is
// plain: a number is a number, and a lock is nothing. An Atomic and a SpinLock are what they are in both, for
// threads that end without the lock. docs/design.md ("Threads") says what is protected by which.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace gt {

// A variable of a thread at a fixed offset from the thread pointer, instead of behind a call.
#if defined(__GLIBC__) && defined(__GNUC__)
#define GT_NEAR_TLS __attribute__((tls_model("initial-exec")))
#else
#define GT_NEAR_TLS
#endif

// A word that one thread writes and others read: what was written before it is seen by who sees it.
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
  // Puts `v` there if there is nothing yet; gives what is there then.
  T put_first(T v) {
    T nothing{};
    return value_.compare_exchange_strong(nothing, v, std::memory_order_acq_rel) ? v : nothing;
  }

 private:
  std::atomic<T> value_{};
};

// For a few instructions that call nothing of Python's: whoever waits for it keeps the world from stopping.
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

// References to a thing. Who takes the last one away has it to itself.
class Count {
 public:
  constexpr Count(int32_t n = 0) : n_(n) {}
  void add() { n_.fetch_add(1, std::memory_order_relaxed); }
  bool take() { return n_.fetch_sub(1, std::memory_order_acq_rel) == 1; }  // true: it was the last
  // Of a thing that is found and not held: false if nobody holds it any more.
  bool add_if_any() {
    int32_t n = n_.load(std::memory_order_relaxed);
    while (n && !n_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) {}
    return n;
  }

 private:
  std::atomic<int32_t> n_;
};

using Spin = SpinLock;

// For longer work: who waits for it lets the world stop. Not for code that may come by here again.
class Mutex {
 public:
  void lock() { PyMutex_Lock(&mutex_); }
  void unlock() { PyMutex_Unlock(&mutex_); }

 private:
  PyMutex mutex_{};
};

// What the interpreter's lock was: nobody else is in a section of the same object, until this thread waits
// for something, when others may come by. For what runs Python code.
class Section {
 public:
  explicit Section(PyObject* o) { PyCriticalSection_Begin(&section_, o); }
  ~Section() { PyCriticalSection_End(&section_); }
  Section(const Section&) = delete;

 private:
  PyCriticalSection section_;
};

// An object that stays: threads do not count their references to it, for which they would have to wait for
// each other.
inline void keep_for_ever(PyObject* o) {
  o->ob_tid = _Py_UNOWNED_TID;
  o->ob_ref_local = _Py_IMMORTAL_REFCNT_LOCAL;
  o->ob_ref_shared = 0;
}

// Of an object that is found and not held: may_be_found when it is made, hold_if_alive when it is found;
// false if nobody holds it any more. Whoever frees it must wait until those that may find it have looked.
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

// The items of a list or of anything that can be iterated, as a list or tuple that does not change. nullptr,
// with an exception, if `o` is no sequence.
inline PyObject* fixed_items(PyObject* o, const char* message) {
  if (PyTuple_Check(o)) return Py_NewRef(o);
  if (!PyList_Check(o)) return PySequence_Fast(o, message);
  return kFreeThreaded ? PyList_AsTuple(o) : Py_NewRef(o);
}

// Holds a lock for as long as it lives.
template <class L> class Holding {
 public:
  explicit Holding(L& lock) : lock_(lock) { lock_.lock(); }
  ~Holding() { lock_.unlock(); }
  Holding(const Holding&) = delete;

 private:
  L& lock_;
};

// Things that come one by one and stay where they are: one thread adds, others read meanwhile.
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
  // Under a lock of whoever adds.
  void add(T value) {
    Entry* e = new Entry{std::move(value), nullptr};
    Shared<Entry*>* end = &first_;
    while (*end) end = &static_cast<Entry*>(*end)->next;
    *end = e;
    ++size_;
  }
  size_t size() const { return size_; }  // for whoever adds

 private:
  Shared<Entry*> first_{nullptr};
  size_t size_ = 0;
};

}  // namespace gt
