// Values that Python holds: a buffer that names an array. `Tensor::data` is null, in each copy of the tensor.
// On a device of another engine (an array of JAX's) the elements come to the host when somebody looks;
// strings (an array of NumPy's, of bytes objects) and types that are only stored (one of their bits) never
// do: ops on them are Python's, `hooks.held`.
#pragma once
#include <optional>

#include "lending.h"

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

// The same tensor with elements that can be read, if its type has any. For whoever passes values on.
inline const Tensor& settled_on_host(Tensor& t) {
  if (!t.data && !is_held(t.dtype)) [[unlikely]]
    fetch(t);
  return t;
}

// What `numpy()` gives for a value that Python holds: a copy of the array, or the item of one without axes.
PyObject* held_value(const Tensor& t);

// A variable whose value has elements that can be read, and that no run is writing to.
class OnHost {
 public:
  explicit OnHost(VariableObject* v);
  Tensor& value() { return held_->value(); }

 private:
  std::optional<Settled> held_;
};

void fetch_all(PyObject* sequence);  // a list or tuple of tensors and variables

void init_device(PyObject* module);

}  // namespace gt
