// Who waits for variables that a run is writing to, and how they hear that it is done.
#include "lending.h"

#include <atomic>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace gt {

namespace {

// Both change under the interpreter's lock only; waiters sleep on the first without it.
std::atomic<int32_t> returned{0};
int waiting = 0;

// Counts processes from the first to this one. A run does not go on in a child that was forked from it.
uint32_t process = 1;

}  // namespace

void wait_for(VariableObject* v) {
  Ref<> held = Ref<>::borrow(reinterpret_cast<PyObject*>(v));
  while (v->lent) {
    if (v->lent != process)
      fail(
          Code::Runtime,
          "the variable was being changed by another thread when this process was forked: its value is lost. "
          "Hint: assign it, or start processes with spawn.");
    const int32_t seen = returned.load();
    ++waiting;
    without_lock([&] { returned.wait(seen); });
    --waiting;
    if (PyErr_CheckSignals()) throw PythonError{};
  }
}

void settle_all(PyObject* sequence) {
  auto size = [&] { return PySequence_Fast_GET_SIZE(sequence); };
  for (Py_ssize_t i = 0; i < size(); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(sequence, i);
    if (is_tensor(o) || !is_variable(o) || !as_variable(o)->lent) continue;
    wait_for(as_variable(o));
    i = -1;  // others may be lent by now
  }
}

void replace(VariableObject* v, Tensor value) {
  if (v->lent == process) wait_for(v);
  v->lent = 0;
  v->value = std::move(value);
}

bool may_lend() {
#if defined(__unix__) || defined(__APPLE__)
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++process, waiting = 0; });
  (void)registered;
#endif
  return waiting == 0;
}

void lend(VariableObject* v) { v->lent = process; }

void give_back(const std::vector<VariableObject*>& lent) {
  if (lent.empty()) return;
  for (VariableObject* v : lent) v->lent = 0;
  returned.fetch_add(1);
  returned.notify_all();
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

Loans::~Loans() {
  if (!any_) return;
  each([](VariableObject* v) { v->lent = 0; });
  returned.fetch_add(1);
  returned.notify_all();
}

}  // namespace gt
