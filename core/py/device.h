// Values on a device of another engine (an array of JAX's): a buffer that names the array, and whose elements
// come to the host when somebody looks. `Tensor::data` is null until then, in each copy of the tensor.
#pragma once
#include "objects.h"

namespace gt {

// Brings the elements to the host; calls Python, so other threads may run meanwhile. Fails if there is no
// value at all.
void fetch(Tensor& t);

// The same tensor with elements that can be read. Whoever reads elements under the interpreter's lock comes
// by here.
inline const Tensor& on_host(Tensor& t) {
  if (!t.data) [[unlikely]]
    fetch(t);
  return t;
}

// The value of a variable, with elements that can be read and that no run is writing to.
Tensor& host_value(VariableObject* v);

void fetch_all(PyObject* sequence);  // a list or tuple of tensors and variables

void init_device(PyObject* module);

}  // namespace gt
