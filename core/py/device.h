// Values held by Python: the buffer refers to an array, and `Tensor::data` is null in each copy of the
// tensor. Elements of a JAX array on a device are copied to the host when they are first read. Strings (a
// NumPy array of bytes objects) and storage-only types (a NumPy array of their bits) have no elements in the
// core: ops on them are written in Python, `hooks.held`.
#pragma once
#include <optional>

#include "lending.h"

namespace gt {

// Copies the elements to the host; calls Python, so other threads may run meanwhile. Fails if there is no
// value at all.
void fetch(Tensor& t);

// The same tensor, with elements that can be read. To be called before elements are read under the
// interpreter's lock.
inline const Tensor& on_host(Tensor& t) {
  if (!t.data) [[unlikely]]
    fetch(t);
  return t;
}

// The same, but held types stay as they are: for values that are only passed on.
inline const Tensor& settled_on_host(Tensor& t) {
  if (!t.data && !is_held(t.dtype)) [[unlikely]]
    fetch(t);
  return t;
}

// What `numpy()` returns for a value held by Python: a copy of the array, or its item if it is a scalar.
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
