// Variables that are lent to a run. An optimizer's step overwrites the elements of variables without holding
// the interpreter's lock. Until it is done, other threads that read or change those variables wait.
//
// The guarantee (docs/design.md, "Threads"): a run reads all its variables at one moment and changes them at
// one moment.
#pragma once
#include "../program.h"
#include "objects.h"

namespace gt {

void wait_for(VariableObject* v);  // until it is no longer lent; other threads run meanwhile

// A variable that is not lent. Needed to read or change its value: without the interpreter's lock, this
// object holds the variable's. While it exists, nothing of Python may be called.
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

// The same for all variables among some objects: none is lent, and while this exists no other thread reads or
// changes them. Their elements can be read on the host, unless their values may stay where they are. Locks
// are taken in the order of addresses.
class AllSettled {
 public:
  enum class Values { OnHost, Anywhere };
  explicit AllSettled(PyObject* sequence,  // lists or tuples that nobody changes
                      PyObject* more = nullptr, Values values = Values::OnHost);
  ~AllSettled() { let_go(); }
  AllSettled(const AllSettled&) = delete;
  void let_go();  // before its destructor does

 private:
#ifdef Py_GIL_DISABLED
  std::vector<VariableObject*> all_;
#endif
};

// Like std::swap, but type and shape are not written if they stay the same: other threads read them without
// the lock.
inline void exchange(Tensor& to, Tensor& from) {
  std::swap(to.buffer, from.buffer);
  std::swap(to.data, from.data);
  if (to.numel != from.numel) to.numel = from.numel;
  if (to.dtype != from.dtype) to.dtype = from.dtype;
  if (!(to.shape == from.shape)) to.shape = from.shape;
}

// Sets the value of the variable.
void replace(VariableObject* v, Tensor value);

// Whether a run may borrow now. Not while a thread waits: it could wait forever for a run that keeps
// borrowing.
bool may_lend();

// Lends variables to a run of another engine (device.cpp), until they are given back.
void lend(VariableObject* v);
void give_back(const std::vector<VariableObject*>& lent);

// The variables lent to a run, from before it computes until its results are in them.
class Loans {
 public:
  // `targets`: the variables that get the last results, in order; a tuple that outlives this.
  Loans(const Program::Run& run, PyObject* targets, size_t n_results);
  ~Loans();
  Loans(const Loans&) = delete;

  // The end of a run, when its results are put into the targets: until they are given back, no other thread
  // reads or changes them.
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
  size_t first_;  // the first result that is a new value
  bool any_ = false;
};

}  // namespace gt
