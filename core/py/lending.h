// Variables that lend their elements to a run. An optimizer's step writes the new values over the old ones,
// without the interpreter's lock. Until it is done nobody else may read or change those variables: who wants
// to, waits.
//
// What is promised (docs/design.md, "Threads"): a run reads all its variables at one moment and changes them
// at one moment.
#pragma once
#include "../program.h"
#include "objects.h"

namespace gt {

void wait_for(VariableObject* v);  // until its elements are its own again; other threads run meanwhile

// A variable that no run is writing to. Whoever reads or changes its value comes by here: where the
// interpreter has no lock, nobody else does while this lives. What is done meanwhile calls nothing of
// Python's.
class Settled {
 public:
  explicit Settled(VariableObject* v) : v_(v) {
    v->lock.lock();
    while (v->lent) [[unlikely]] {
        v->lock.unlock();
        wait_for(v);
        v->lock.lock();
      }
  }
  ~Settled() { v_->lock.unlock(); }
  Settled(const Settled&) = delete;
  Tensor& value() { return v_->value; }

 private:
  VariableObject* v_;
};
inline Tensor value_of(VariableObject* v) { return Settled(v).value(); }

// The variables among some objects, all at one moment: none is lent, and while this lives nobody else reads
// or changes them. Their elements can be read. Locks are taken in the order of addresses.
class AllSettled {
 public:
  explicit AllSettled(PyObject* sequence, PyObject* more = nullptr);  // lists or tuples, which do not change
  ~AllSettled() { let_go(); }
  AllSettled(const AllSettled&) = delete;
  void let_go();  // sooner

 private:
#ifdef Py_GIL_DISABLED
  std::vector<VariableObject*> all_;
#endif
};

// Puts a value there, and leaves the old one in `from`. Type and shape are not written where they stay the
// same: others look at them without the lock.
inline void exchange(Tensor& to, Tensor& from) {
  std::swap(to.buffer, from.buffer);
  std::swap(to.data, from.data);
  if (to.numel != from.numel) to.numel = from.numel;
  if (to.dtype != from.dtype) to.dtype = from.dtype;
  if (!(to.shape == from.shape)) to.shape = from.shape;
}

// Gives the variable another value, whatever it had before.
void replace(VariableObject* v, Tensor value);

// Whether a run may borrow now. Not while somebody waits: one that borrows again and again would never let
// them in.
bool may_lend();

// The same for a run of another engine, in device.cpp: the variables are nobody else's until they are given
// back.
void lend(VariableObject* v);
void give_back(const std::vector<VariableObject*>& lent);

// The loans of a run, from before it computes until its results are in the variables.
class Loans {
 public:
  // `targets`: the variables that get the last results, in order; a tuple that outlives this.
  Loans(const Program::Run& run, PyObject* targets, size_t n_results);
  ~Loans();
  Loans(const Loans&) = delete;

  // The last moment of a run: while it lives nobody else reads or changes the targets; then they are given
  // back.
  class End {
   public:
    explicit End(Loans& loans);
    ~End();

   private:
    Loans& loans_;
#ifdef Py_GIL_DISABLED
    std::vector<VariableObject*> held_;
#endif
  };

 private:
  void give_back();
  template <class F> void each(F&& f) const;
  const Program::Run& run_;
  PyObject* targets_;
  size_t first_;  // of the results that are new values
  bool any_ = false;
};

}  // namespace gt
