// How threads wait for variables that are lent to a run, and are woken when it is done.
#include "lending.h"

#include <algorithm>
#include <atomic>

#include "device.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace gt {

namespace {

// Waiting threads sleep on `returned`, without the interpreter's lock.
std::atomic<int32_t> returned{0};
std::atomic<int> waiting{0};

// How many forks led to this process, plus one. A run does not continue in a forked child.
uint32_t process = 1;

}  // namespace

void wait_for(VariableObject* v) {
  Ref<> held = Ref<>::borrow(reinterpret_cast<PyObject*>(v));
  struct Waits {
    Waits() {
      ++waiting;
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~Waits() { --waiting; }
  } waits;
  // `returned` is read before `lent`: a return in between changes it, and the wait below ends at once.
  for (int32_t seen = returned.load(); v->lent; seen = returned.load()) {
    if (v->lent != process)
      fail(
          Code::Runtime,
          "the variable was being changed by another thread when this process was forked: its value is lost. "
          "Hint: assign it, or start processes with spawn.");
    without_lock([&] { returned.wait(seen); });
    if (PyErr_CheckSignals()) throw PythonError{};
  }
}

#ifdef Py_GIL_DISABLED
AllSettled::AllSettled(PyObject* sequence, PyObject* more, Values values) {
  for (PyObject* some : {sequence, more})
    for (Py_ssize_t i = 0; some && i < PySequence_Fast_GET_SIZE(some); ++i)
      if (PyObject* o = PySequence_Fast_GET_ITEM(some, i); !is_tensor(o) && is_variable(o))
        all_.push_back(as_variable(o));
  std::sort(all_.begin(), all_.end());
  all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
  for (;;) {
    VariableObject* waits = nullptr;
    Tensor away;  // a value on a device
    for (VariableObject* v : all_) v->lock.lock();
    for (VariableObject* v : all_) {
      Tensor& t = v->value;
      if (v->lent) {
        waits = v;
      } else if (values == Values::OnHost && !t.data && t.buffer && !is_held(t.dtype)) {
        if (t.buffer->data)
          t.data = t.buffer->data;
        else
          away = t;
      }
    }
    if (!waits && !away.buffer) return;
    for (VariableObject* v : all_) v->lock.unlock();
    try {
      if (waits)
        wait_for(waits);
      else
        fetch(away);
    } catch (...) {
      all_.clear();
      throw;
    }
  }
}

void AllSettled::let_go() {
  for (VariableObject* v : all_) v->lock.unlock();
  all_.clear();
}
#else
AllSettled::AllSettled(PyObject* sequence, PyObject* more, Values) {
  for (PyObject* some : {sequence, more}) {
    if (!some) continue;
    auto size = [&] { return PySequence_Fast_GET_SIZE(some); };
    for (Py_ssize_t i = 0; i < size(); ++i) {
      PyObject* o = PySequence_Fast_GET_ITEM(some, i);
      if (is_tensor(o) || !is_variable(o) || !as_variable(o)->lent) continue;
      wait_for(as_variable(o));
      i = -1;  // others may be lent by now
    }
  }
}
void AllSettled::let_go() {}
#endif

void replace(VariableObject* v, Tensor value) {
  v->lock.lock();
  while (v->lent == process) {
    v->lock.unlock();
    wait_for(v);
    v->lock.lock();
  }
  v->lent = 0;
  exchange(v->value, value);
  v->lock.unlock();
}

bool may_lend() {
#if defined(__unix__) || defined(__APPLE__)
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++process, waiting = 0; });
  (void)registered;
#endif
  return waiting == 0;
}

// A waiting thread increments `waiting` before it reads `lent`: either it is seen here, or it sees that the
// variable was returned. Without waiting threads, `returned` is not written, so threads do not contend for
// it.
static void tell_waiters() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!waiting) return;
  returned.fetch_add(1);
  returned.notify_all();
}

void lend(VariableObject* v) { v->lent = process; }

void give_back(const std::vector<VariableObject*>& lent) {
  if (lent.empty()) return;
  for (VariableObject* v : lent) v->lent = 0;
  tell_waiters();
}

template <class F> void Loans::each(F&& f) const {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(targets_); ++k)
    if (run_.takes(first_ + size_t(k))) f(as_variable(PyTuple_GET_ITEM(targets_, k)));
}

Loans::Loans(const Program::Run& run, PyObject* targets, size_t n_results)
    : run_(run), targets_(targets), first_(n_results - size_t(PyTuple_GET_SIZE(targets))) {
  each([&](VariableObject* v) {
    v->lent = process;
    any_ = true;
  });
}

#ifdef Py_GIL_DISABLED
// A target that was not lent to this run may be lent to another by now; that one keeps the elements alive
// itself.
Loans::End::End(Loans& loans) : loans_(loans) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(loans.targets_); ++k)
    held_.push_back(as_variable(PyTuple_GET_ITEM(loans.targets_, k)));
  std::sort(held_.begin(), held_.end());
  held_.erase(std::unique(held_.begin(), held_.end()), held_.end());
  for (VariableObject* v : held_) v->lock.lock();
}
Loans::End::~End() {
  loans_.give_back();
  for (VariableObject* v : held_) v->lock.unlock();
}
#else
Loans::End::End(Loans& loans) : loans_(loans) {}
Loans::End::~End() { loans_.give_back(); }
#endif

Loans::~Loans() { give_back(); }

void Loans::give_back() {
  if (!any_) return;
  any_ = false;
  each([](VariableObject* v) { v->lent = 0; });
  tell_waiters();
}

}  // namespace gt
