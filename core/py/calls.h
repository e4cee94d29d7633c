// Calls of the library by a function that is traced with unknown sizes. Such a trace notes each call as it
// is, before anyone looks at its arguments: `trace.call(function, args, kwargs)`, see graph/recording.py.
#pragma once
#include "objects.h"

namespace gt {

// The result of a call of the library that the current trace takes note of.
PyObject* recorded_call(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames);
// The same for an op on operands that are tensors already.
PyObject* recorded_op(OpObject* op, TensorObject* const* in, int n, CallAttrs* attrs);
void init_calls(PyObject* module);

}  // namespace gt
