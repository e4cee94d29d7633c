// Who takes calls of the library over. A trace of unknown sizes notes each call as it is, before anyone looks
// at its arguments: `trace.call(function, args, kwargs)`, see graph/recording.py. Classes of Python (ragged
// and sparse tensors, extension types, Keras' inputs) do what a public function means for them.
#pragma once
#include "objects.h"

namespace gt {

// The result of a call of the library that the current trace takes note of.
PyObject* recorded_call(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames);
// The same for an op on operands that are tensors already.
PyObject* recorded_op(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs);
// The result of a call that a class among its arguments takes over; NotImplemented if none does.
PyObject* taken_call(PyObject* function, PyObject* const* args, Py_ssize_t n, PyObject* kwnames);
bool has_takers();
void init_calls(PyObject* module);

}  // namespace gt
