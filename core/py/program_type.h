// The Python type Program: a compiled graph that runs on tensors.
#pragma once
#include <optional>

#include "../program.h"
#include "objects.h"

namespace gt {

struct ProgramObject {
  PyObject_HEAD Program* program;
  std::vector<CallAttrs*> attrs;     // of the steps; owned
  std::vector<PyObject*> callbacks;  // owned
};
extern PyTypeObject* ProgramType;
void init_program_type(PyObject* module);
void init_loop(PyObject* module);
void init_runner(PyObject* module);
void init_update_type(PyObject* module);

// Runs without the interpreter's lock; throws what the steps throw.
void run_program(ProgramObject* p, const Tensor* const* inputs, std::vector<Tensor>& outs);
// Runs, then assigns the last results to the targets, a tuple of variables, all at once. `outs` then holds
// the other results, followed by the old values of the targets. `settled`: the variables among the inputs and
// the targets, which are unlocked while it runs.
class AllSettled;
void update_variables(ProgramObject* p, const Tensor* const* inputs, PyObject* targets,
                      std::vector<Tensor>& outs, AllSettled& settled);
// Whether each result that overwrites an input is the new value of just that variable.
bool writes_over(const Program& p, PyObject* inputs, PyObject* targets);

// The native form of attributes given as Python values, the opposite of attrs_tuple. Owned by the caller.
// `first`: the first operand, to which axes refer; nullptr: there is none.
CallAttrs* attrs_from_tuple(OpObject* op, PyObject* tuple, const Tensor* first);

// Runs on a list or tuple of tensors and variables, assigns the last results to `targets` and returns the
// others.
std::vector<Tensor> run_update(ProgramObject* p, PyObject* list, PyObject* targets);
PyObject* tensor_list(std::vector<Tensor>& tensors, size_t n);  // of the first n; new reference

// The result of a traced function, by a Runner (runner.cpp), for the leaves of its arguments.
PyObject* run_runner(PyObject* runner, const std::vector<Ref<>>& leaves);

}  // namespace gt
