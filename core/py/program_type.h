// Programs as Python objects.
#pragma once
#include <optional>

#include "../program.h"
#include "objects.h"

namespace gt {

struct ProgramObject {
  PyObject_HEAD
  Program* program;
  std::vector<CallAttrs*> attrs;      // of the steps; owned
  std::vector<PyObject*> callbacks;   // owned
};
extern PyTypeObject* ProgramType;
void init_program_type(PyObject* module);
void init_loop(PyObject* module);
void init_update_type(PyObject* module);

// Runs without the interpreter's lock; throws what the steps throw. For `take` see Program::run.
void run_program(ProgramObject* p, const Tensor* const* inputs, std::vector<Tensor>& outs, bool take = false);

// The native form of attributes given as Python values, the opposite of attrs_tuple. Owned by the caller.
CallAttrs* attrs_from_tuple(OpObject* op, PyObject* tuple);

}  // namespace gt
