// Reads the lists, tuples and numbers that gradtape/_src/engines/native/lower.py writes, and checks them.
#pragma once
#include <string>

#include "../cluster.h"
#include "objects.h"

namespace gt::reading {

inline int64_t integer(PyObject* o) {
  int64_t v = PyLong_AsLongLong(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError{};
  return v;
}
// The length of a list or a tuple.
inline Py_ssize_t size(PyObject* sequence) {
  if (!PyList_Check(sequence) && !PyTuple_Check(sequence))
    fail(Code::Type, std::string("expected a list or a tuple; got an object of type ") +
                         Py_TYPE(sequence)->tp_name + ".");
  return PySequence_Fast_GET_SIZE(sequence);
}
inline PyObject* item(PyObject* sequence, Py_ssize_t i) {
  if (i >= size(sequence)) fail(Code::Value, "a list is too short");
  return PySequence_Fast_GET_ITEM(sequence, i);
}
// `f` may change the list, so a reference to each item is held.
template <class F> void each(PyObject* sequence, F&& f) {
  for (Py_ssize_t i = 0; i < size(sequence); ++i) f(Ref<>::borrow(item(sequence, i)).get());
}
// A number below `limit`, such as that of a register.
template <class T> T number(PyObject* o, uint64_t limit, const char* what) {
  int64_t v = integer(o);
  if (v < 0 || uint64_t(v) >= limit)
    fail(Code::Value, std::string("there is no ") + what + " with the number " + std::to_string(v));
  return T(v);
}
inline Dtype dtype_of(PyObject* o) { return number<Dtype>(o, kDtypes, "type"); }
inline Tensor form_of(PyObject* dtype, PyObject* dims) {
  Shape shape;
  each(dims, [&](PyObject* d) { shape.push(number<int64_t>(d, INT64_MAX, "size")); });
  return Tensor(Spec{dtype_of(dtype), shape});
}
inline std::string text(PyObject* o) {
  const char* s = PyUnicode_AsUTF8(o);
  if (!s) throw PythonError{};
  return s;
}

// A cluster, as its description says.
Cluster read_cluster(PyObject* description);

}  // namespace gt::reading
