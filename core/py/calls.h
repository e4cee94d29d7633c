// Overrides of public functions. A recording (graph/recording.py) notes each call before its arguments are
// looked at: `trace.call(function, args, kwargs)`. Python classes (ragged and sparse tensors, extension
// types, Keras' inputs) handle calls that have them as arguments.
#pragma once
#include "objects.h"

namespace gt {

// Notes a call in the current recording, and returns its result.
PyObject* recorded_call(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames);
// The same for an op on operands that are tensors already.
PyObject* recorded_op(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs);
// The result of a call that the class of an argument handles; NotImplemented if none does.
PyObject* handled_call(PyObject* function, PyObject* const* args, Py_ssize_t n, PyObject* kwnames);
bool has_call_handlers();
void init_calls(PyObject* module);

}  // namespace gt
