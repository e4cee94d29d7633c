// Exchange of values with the core: Python numbers, the buffer protocol, NumPy, DLPack.
#include "../help.h"
#include "device.h"
#include "objects.h"

namespace gt {

PyObject* tensor_item(const Tensor& t) {
  return visit(t.dtype, [&](auto zero) -> PyObject* {
    using T = decltype(zero);
    const T v = *t.as<T>();
    if constexpr (std::is_same_v<T, bool>)
      return PyBool_FromLong(v);
    else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat>)
      return PyFloat_FromDouble(double(float(v)));
    else if constexpr (std::is_floating_point_v<T>)
      return PyFloat_FromDouble(double(v));
    else if constexpr (std::is_same_v<T, c64> || std::is_same_v<T, c128>)
      return PyComplex_FromDoubles(double(v.real()), double(v.imag()));
    else if constexpr (std::is_unsigned_v<T>)
      return PyLong_FromUnsignedLongLong(v);
    else
      return PyLong_FromLongLong(v);
  });
}

// ---- the buffer protocol ------------------------------------------------------------------

int tensor_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (thread_state().notifies && guarded<int>(-1, [&] { return note_leaving(self), 0; }) < 0) return -1;
  Tensor& t = as_tensor(self)->value;
  if (flags & PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError, "a Tensor cannot be changed; copy it with .numpy()");
    return -1;
  }
  if (!t.has_value()) {
    PyErr_SetString(PyExc_BufferError, "a symbolic tensor has no value");
    return -1;
  }
  if (is_held(t.dtype)) {
    PyErr_Format(PyExc_BufferError, "there are no buffers of %s", dtype_name(t.dtype));
    return -1;
  }
  if (guarded<int>(-1, [&] { return on_host(t), 0; }) < 0) return -1;
  if (t.dtype == Dtype::BF16 && flags & PyBUF_FORMAT) {
    PyErr_SetString(PyExc_BufferError, "buffers have no format for bfloat16");
    return -1;
  }
  // shape and strides live behind the view until it is released
  int rank = t.shape.rank;
  Py_ssize_t* dims = static_cast<Py_ssize_t*>(PyMem_Malloc(sizeof(Py_ssize_t) * size_t(2 * rank + 1)));
  if (!dims) {
    PyErr_NoMemory();
    return -1;
  }
  Py_ssize_t stride = dtype_size(t.dtype);
  for (int i = rank; i-- > 0;) {
    dims[i] = Py_ssize_t(t.shape[i]);
    dims[rank + i] = stride;
    stride *= dims[i];
  }
  view->buf = t.data;
  view->obj = Py_NewRef(self);
  view->len = Py_ssize_t(t.nbytes());
  view->itemsize = dtype_size(t.dtype);
  view->readonly = 1;
  view->ndim = rank;
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(facts_of(t.dtype).format) : nullptr;
  view->shape = flags & PyBUF_ND ? dims : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? dims + rank : nullptr;
  view->suboffsets = nullptr;
  view->internal = dims;
  return 0;
}

void tensor_release_buffer(PyObject*, Py_buffer* view) { PyMem_Free(view->internal); }

PyObject* tensor_to_numpy(TensorObject* self) {
  if (thread_state().notifies) note_leaving(reinterpret_cast<PyObject*>(self));
  const Tensor& t = self->value;
  if (!t.has_value()) {
    PyErr_SetString(PyExc_AttributeError,
                    "'SymbolicTensor' object has no attribute 'numpy': its value is not known while a "
                    "function is traced" GT_MORE("traced-values"));
    return nullptr;
  }
  if (is_held(t.dtype)) return held_value(t);
  on_host(self->value);
  PyObject* type = PyTuple_GET_ITEM(hooks.np_dtypes, int(t.dtype));
  Ref<> bf16;  // NumPy's type depends on whether ml_dtypes is installed
  if (t.dtype == Dtype::BF16) {
    bf16 = Ref<>(
        checked(PyObject_GetAttrString(PyTuple_GET_ITEM(hooks.dtypes, int(t.dtype)), "as_numpy_dtype")));
    type = bf16.get();
  }
  if (t.shape.rank == 0) {
    Ref<> item(checked(tensor_item(t)));
    return PyObject_CallOneArg(type, item.get());
  }
  Ref<> dims(checked(PyTuple_New(t.shape.rank)));
  for (int i = 0; i < t.shape.rank; ++i) PyTuple_SET_ITEM(dims.get(), i, PyLong_FromLongLong(t.shape[i]));
  Ref<> array(checked(PyObject_CallFunctionObjArgs(hooks.np_empty, dims.get(), type, nullptr)));
  if (t.numel == 0) return array.release();
  Py_buffer view;
  if (PyObject_GetBuffer(array.get(), &view, PyBUF_WRITABLE)) throw PythonError{};
  if (t.dtype == Dtype::BF16 && view.itemsize == 4)  // without ml_dtypes, bfloat16 becomes float32
    for (int64_t i = 0; i < t.numel; ++i) static_cast<float*>(view.buf)[i] = float(t.as<bfloat>()[i]);
  else
    std::memcpy(view.buf, t.data, size_t(t.nbytes()));
  PyBuffer_Release(&view);
  return array.release();
}

// ---- module functions ---------------------------------------------------------------------

// from_buffer(object, dtype code): a tensor with a copy of a C-contiguous buffer.
static PyObject* from_buffer(PyObject*, PyObject* args) {
  PyObject* source;
  int code;
  if (!PyArg_ParseTuple(args, "Oi", &source, &code)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Py_buffer view;
    if (PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS)) throw PythonError{};
    struct Release {
      Py_buffer* view;
      ~Release() { PyBuffer_Release(view); }
    } release{&view};
    Shape shape;
    for (int i = 0; i < view.ndim; ++i) shape.push(view.shape[i]);
    const Dtype dtype = dtype_code(code);
    if (view.itemsize != dtype_size(dtype))
      fail(Code::Value, "the elements of the buffer have another size than the type");
    Tensor t = empty(dtype, shape);
    std::memcpy(t.data, view.buf, size_t(view.len));
    return reinterpret_cast<PyObject*>(new_tensor(std::move(t)));
  });
}

static Shape static_shape(PyObject* dims) {
  Shape shape;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims); ++i)
    shape.push(PyTuple_GET_ITEM(dims, i) == Py_None ? -1 : PyLong_AsLongLong(PyTuple_GET_ITEM(dims, i)));
  if (PyErr_Occurred()) throw PythonError{};
  return shape;
}

// set_static_shape(tensor, shape): sets the shape of a tensor without a value, for traces.
static PyObject* set_static_shape(PyObject*, PyObject* args) {
  PyObject *tensor, *dims;
  if (!PyArg_ParseTuple(args, "OO!", &tensor, &PyTuple_Type, &dims)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!is_tensor(tensor) || !as_tensor(tensor)->symbol) fail(Code::Type, "a symbolic tensor is expected");
    Tensor& value = as_tensor(tensor)->value;
    value = Tensor(Spec{value.dtype, static_shape(dims)});
    Py_RETURN_NONE;
  });
}

// symbol(shape, dtype code, symbol): a tensor without a value, for traces.
static PyObject* symbolic(PyObject*, PyObject* args) {
  PyObject *dims, *symbol;
  int code;
  if (!PyArg_ParseTuple(args, "O!iO", &PyTuple_Type, &dims, &code, &symbol)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    TensorObject* t = new_tensor(Tensor(Spec{dtype_code(code), static_shape(dims)}));
    if (symbol != Py_None) t->symbol = Py_NewRef(symbol);
    return reinterpret_cast<PyObject*>(t);
  });
}

// ---- DLPack (dmlc/dlpack, version 0.8 layout) ---------------------------------------------

namespace {
struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct Exported {
  DLManagedTensor managed;
  Tensor value;
  int64_t strides[kMaxRank];
};
enum : uint8_t { kDLInt, kDLUInt, kDLFloat, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };

uint8_t code_of(Dtype t) {
  if (t == Dtype::Bool) return kDLBool;
  if (t == Dtype::BF16) return kDLBfloat;
  if (in(t, kSigned)) return kDLInt;
  if (in(t, kUnsigned)) return kDLUInt;
  return is_complex(t) ? kDLComplex : kDLFloat;
}

void forget_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // a consumer has taken it
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  m->deleter(m);
}
}  // namespace

static PyObject* to_dlpack(PyObject*, PyObject* o) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<TensorObject> t = to_tensor(o);
    if (!t->value.has_value()) fail(Code::Type, "to_dlpack: a symbolic tensor has no value");
    on_host(t->value);
    auto* e = new Exported{{}, t->value, {}};
    int64_t stride = 1;
    for (int i = e->value.shape.rank; i-- > 0;) {
      e->strides[i] = stride;
      stride *= e->value.shape[i];
    }
    e->managed.tensor = {e->value.data,
                         {1, 0},
                         e->value.shape.rank,
                         {code_of(e->value.dtype), uint8_t(8 * dtype_size(e->value.dtype)), 1},
                         e->value.shape.dims,
                         e->strides,
                         0};
    e->managed.context = e;
    e->managed.deleter = [](DLManagedTensor* m) { delete static_cast<Exported*>(m->context); };
    PyObject* capsule = PyCapsule_New(&e->managed, "dltensor", forget_capsule);
    if (!capsule) delete e;
    return capsule;
  });
}

static PyObject* from_dlpack(PyObject*, PyObject* capsule) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    if (!m) throw PythonError{};
    const DLTensor& d = m->tensor;
    int code = -1;
    for (int i = 0; i < kDtypes; ++i)
      if (code_of(Dtype(i)) == d.dtype.code && 8 * dtype_size(Dtype(i)) == d.dtype.bits) code = i;
    if (code < 0 || d.dtype.lanes != 1) fail(Code::Type, "from_dlpack: this element type has no counterpart");
    if (d.ndim < 0 || (d.ndim && !d.shape)) fail(Code::Value, "from_dlpack: the shape is not valid");
    for (int i = 0; i < d.ndim; ++i)
      if (d.shape[i] < 0) fail(Code::Value, "from_dlpack: a dimension is negative");
    if (d.device.type != 1) fail(Code::Value, "from_dlpack: the data is not in the memory of the CPU");
    if ((reinterpret_cast<uintptr_t>(d.data) + d.byte_offset) % size_t(dtype_size(Dtype(code))))
      fail(Code::Value, "from_dlpack: the elements are not aligned; copy them first");
    Tensor t(Spec{Dtype(code), Shape(d.shape, d.ndim)});
    int64_t stride = 1;
    for (int i = d.ndim; d.strides && i-- > 0;) {
      if (d.shape[i] != 1 && d.strides[i] != stride && t.numel)
        fail(Code::Value, "from_dlpack: the data is not contiguous; copy it first");
      stride *= d.shape[i];
    }
    t.buffer = adopt(
        static_cast<char*>(d.data) + d.byte_offset, size_t(t.nbytes()),
        [](void* owner) {
          auto* m = static_cast<DLManagedTensor*>(owner);
          // The producer's deleter may use Python, and buffers are freed on any thread.
          WithLock lock;
          if (m->deleter) m->deleter(m);
        },
        m);
    if (!t.buffer->data) t.buffer->data = reinterpret_cast<char*>(t.buffer);  // no elements
    t.data = t.buffer->data;
    PyCapsule_SetName(capsule, "used_dltensor");
    return reinterpret_cast<PyObject*>(new_tensor(std::move(t)));
  });
}

// record(outputs, inputs, closure): `closure(*cotangents)` computes the gradients of the inputs.
// record(outputs, inputs, closure, keep): `closure(cotangents, inputs, outputs)` does, where a cotangent may
// be None and only the values in the mask `keep` (inputs, then outputs) are saved.
static PyObject* record_function(PyObject*, PyObject* args) {
  PyObject *outs, *ins, *closure, *keep = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!O|O", &PyTuple_Type, &outs, &PyTuple_Type, &ins, &closure, &keep))
    return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<TensorObject*> in, out;
    std::vector<Ref<TensorObject>> reads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ins); ++i) {
      reads.push_back(to_tensor(PyTuple_GET_ITEM(ins, i)));
      in.push_back(reads.back().get());
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outs); ++i) {
      if (!is_tensor(PyTuple_GET_ITEM(outs, i))) fail(Code::Type, "record: outputs must be tensors");
      out.push_back(as_tensor(PyTuple_GET_ITEM(outs, i)));
    }
    const uint64_t mask = keep ? PyLong_AsUnsignedLongLongMask(keep) : 0;
    if (PyErr_Occurred()) throw PythonError{};
    if (!active_tapes().empty())
      record_closure(closure, in.data(), int(in.size()), out.data(), int(out.size()), keep != nullptr, mask);
    Py_RETURN_NONE;
  });
}

// to_tensor(value, dtype code or -1)
static PyObject* convert_value(PyObject*, PyObject* args) {
  PyObject* value;
  int code = -1;
  if (!PyArg_ParseTuple(args, "O|i", &value, &code)) return nullptr;
  return guarded<PyObject*>(nullptr, [&] {
    if (code != -1) dtype_code(code);
    return reinterpret_cast<PyObject*>(to_tensor(value, code).release());
  });
}

static PyObject* is_tracked(PyObject*, PyObject* o) {
  Node* n = node_of(o);
  Dtype t = is_tensor(o)     ? as_tensor(o)->value.dtype
            : is_variable(o) ? as_variable(o)->value.dtype
                             : Dtype::Bool;
  Pinned here;
  if (n && is_differentiable(t))
    for (Tape* tape : active_tapes())
      if (!tape->variables_only && on_tape(n, tape)) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}

static PyMethodDef functions[] = {
    {"to_tensor", convert_value, METH_VARARGS, "Any value as a tensor."},
    {"is_tracked", is_tracked, METH_O, "Whether an active tape tracks a tensor or variable."},
    {"from_buffer", from_buffer, METH_VARARGS, "A tensor with a copy of a buffer's elements."},
    {"symbolic", symbolic, METH_VARARGS, "A tensor without a value, for traces."},
    {"set_static_shape", set_static_shape, METH_VARARGS, "Sets the shape of such a tensor."},
    {"to_dlpack", to_dlpack, METH_O, "A DLPack capsule of a tensor's value."},
    {"from_dlpack", from_dlpack, METH_O, "A tensor that shares the memory of a DLPack capsule."},
    {"record", record_function, METH_VARARGS, "Records outputs whose gradient a Python function computes."},
    {}};

void init_exchange(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace gt
