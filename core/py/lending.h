// Variables that lend their elements to a run. An optimizer's step writes the new values over the old ones,
// without the interpreter's lock. Until it is done nobody else may read or change those variables: who wants
// to, waits.
//
// What is promised (docs/threads.md): a run reads all its variables at one moment and changes them at one
// moment.
#pragma once
#include "../program.h"
#include "objects.h"

namespace gt {

void wait_for(VariableObject* v);  // until its elements are its own again; other threads run meanwhile

// The value, when no run is writing to it. Whoever reads or changes the elements of a variable comes by here.
inline Tensor& settled(VariableObject* v) {
  if (v->lent) [[unlikely]]
    wait_for(v);
  return v->value;
}
void settle_all(
    PyObject* sequence);  // a list or tuple: none of the variables in it is lent when this returns

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
  ~Loans();  // under the interpreter's lock
  Loans(const Loans&) = delete;

 private:
  template <class F> void each(F&& f) const;
  const Program::Run& run_;
  PyObject* targets_;
  size_t first_;  // of the results that are new values
  bool any_ = false;
};

}  // namespace gt
