// Tensors and variables whose values are on a device, and their functions for the XLA engine.
#include "device.h"

#include <cstring>
#include <memory>

#include "lending.h"

namespace gt {

namespace {

// The owner of a buffer on a device.
struct OnDevice {
  PyObject* array;
  Py_buffer host;  // of the copy on the host; `obj` is nullptr if there is none
  Shape shape;
  Dtype dtype;
};

void release(void* owner) {
  auto* d = static_cast<OnDevice*>(owner);
  WithLock lock;
  if (d->host.obj) PyBuffer_Release(&d->host);
  Py_XDECREF(d->array);
  delete d;
}

OnDevice* device_of(const Tensor& t) {
  return t.buffer && t.buffer->release == release ? static_cast<OnDevice*>(t.buffer->owner) : nullptr;
}

Tensor from_array(PyObject* array, const Spec& spec) {
  Tensor t(spec);
  t.buffer = adopt(nullptr, 0, release, new OnDevice{Py_NewRef(array), {}, spec.shape, spec.dtype});
  return t;
}

// The array of this value; nullptr if it is not on a device. Borrowed.
PyObject* array_of(const Tensor& t) {
  OnDevice* d = device_of(t);
  return d && d->array && d->dtype == t.dtype && d->shape == t.shape ? d->array : nullptr;
}

Tensor value_of(PyObject* o) {
  if (is_tensor(o)) return as_tensor(o)->value;
  if (!is_variable(o)) fail(Code::Type, "expected a tensor or a variable");
  return value_of(as_variable(o));
}

Spec spec_from(PyObject* shape, PyObject* code) {
  if (!PyTuple_Check(shape)) fail(Code::Type, "expected a shape");
  Spec spec{dtype_code(PyLong_AsLongLong(code)), {}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i)
    spec.shape.push(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i)));
  if (PyErr_Occurred()) throw PythonError{};
  return spec;
}

PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

// from_device(array, shape, dtype code) -> tensor
PyObject* from_device(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (n != 3) fail(Code::Type, "from_device: expected (array, shape, dtype)");
    return reinterpret_cast<PyObject*>(new_tensor(from_array(args[0], spec_from(args[1], args[2]))));
  });
}

Ref<> array_for(PyObject* o) {
  const Tensor now = value_of(o);
  if (PyObject* array = array_of(now)) return Ref<>::borrow(array);
  if (!is_tensor(o)) return {};
  Section here(o);
  return Ref<>::borrow(as_tensor(o)->device);
}

// device_arrays([tensor or variable]) -> list: their arrays, None where there is none yet
PyObject* device_arrays(PyObject*, PyObject* list) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!PyList_Check(list) && !PyTuple_Check(list)) fail(Code::Type, "device_arrays: expected a list");
    Ref<> items(checked(fixed_items(list, "")));
    AllSettled(items.get(), nullptr, AllSettled::Values::Anywhere).let_go();
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
    Ref<> out(checked(PyList_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
      Ref<> array = array_for(PySequence_Fast_GET_ITEM(items.get(), i));
      PyList_SET_ITEM(out.get(), i, array ? array.release() : Py_NewRef(Py_None));
    }
    return out.release();
  });
}

// put_on_device(tensor or variable, array): keeps an array with the same value. It becomes the value of a
// variable.
PyObject* put_on_device(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (n != 2) fail(Code::Type, "put_on_device: expected (value, array)");
    if (is_tensor(args[0])) {
      Section here(args[0]);
      Py_XSETREF(as_tensor(args[0])->device, Py_NewRef(args[1]));
    } else {
      const Tensor now = value_of(args[0]);
      replace(as_variable(args[0]), from_array(args[1], now.spec()));
    }
    Py_RETURN_NONE;
  });
}

PyObject** items_of(PyObject* list) { return reinterpret_cast<PyListObject*>(list)->ob_item; }

// Sets the values of variables, all at once.
void set_values(PyObject* variables, PyObject* const* arrays) {
  const Py_ssize_t count = PyTuple_GET_SIZE(variables);
  std::vector<Tensor> values;
  AllSettled alone(variables, nullptr, AllSettled::Values::Anywhere);
  values.reserve(size_t(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* v = PyTuple_GET_ITEM(variables, i);
    if (!is_variable(v)) fail(Code::Type, "set_on_device: expected variables");
    values.push_back(from_array(arrays[i], as_variable(v)->value.spec()));
  }
  // The old values are freed with `values`, after all variables have changed.
  for (Py_ssize_t i = 0; i < count; ++i)
    exchange(as_variable(PyTuple_GET_ITEM(variables, i))->value, values[size_t(i)]);
}

// set_on_device((variables), [arrays])
PyObject* set_on_device(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (n != 2 || !PyTuple_Check(args[0]) || !PyList_Check(args[1]) ||
        PyTuple_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1]))
      fail(Code::Type, "set_on_device: expected as many arrays as variables");
    set_values(args[0], items_of(args[1]));
    Py_RETURN_NONE;
  });
}

// ---- runs to which variables donate their arrays --------------------------------------------------

// A variable whose array a run may overwrite, and the place of the array among its arguments.
struct Donor {
  VariableObject* variable;  // borrowed: the caller of the run has a reference
  Py_ssize_t at;
};

// Variables that are lent to a run, until they have their new values.
struct Lent {
  std::vector<VariableObject*> variables;
  void end() {
    give_back(variables);
    variables.clear();
  }
  ~Lent() { end(); }
};

// Calls a compiled function with arrays. Donated arrays are overwritten if only the variable and `args` refer
// to them, and copied if not. Returns null if a variable has another value by now.
Ref<> call_donating(PyObject* call, PyObject* args, const std::vector<Donor>& donors, Lent& lent) {
  auto array_at = [&](const Donor& g) { return items_of(args)[g.at]; };
  auto is_held = [&](const Donor& g) {  // by something else
    // Without the interpreter's lock reference counts are not reliable.
    return kFreeThreaded || g.variable->value.buffer->refs.load(std::memory_order_acquire) != 1 ||
           Py_REFCNT(array_at(g)) != 2;
  };
  // Not within is_held: value_of takes a reference, which would be counted.
  auto is_replaced = [&](const Donor& g) { return array_of(value_of(g.variable)) != array_at(g); };
  for (const Donor& g : donors)
    if (is_replaced(g)) return {};
  std::vector<Ref<>> copies(donors.size());
  const bool lends = may_lend();
  for (size_t k = 0; k < donors.size(); ++k)
    if (!lends || is_held(donors[k]))
      copies[k] = Ref<>(checked(PyObject_CallMethod(array_at(donors[k]), "copy", nullptr)));
  // Other threads may have run during the copies.
  for (size_t k = 0; k < donors.size(); ++k) {
    const Donor& g = donors[k];
    if (g.variable->lent || is_replaced(g) || (!copies[k] && is_held(g))) return {};
  }
  for (size_t k = 0; k < donors.size(); ++k) {
    if (copies[k]) {
      PyList_SetItem(args, donors[k].at, copies[k].release());
      continue;
    }
    // The copy on the host may be the very memory that will be written over.
    Tensor& value = donors[k].variable->value;
    if (OnDevice* d = device_of(value); d->host.obj) PyBuffer_Release(&d->host);
    value.data = value.buffer->data = nullptr;
    lend(donors[k].variable);
    lent.variables.push_back(donors[k].variable);
  }
  return Ref<>(checked(PyObject_Vectorcall(call, items_of(args), size_t(PyList_GET_SIZE(args)), nullptr)));
}

// call_on_device(call, [array], ((variable, at, from), ...)) -> the function's results, a list. It may
// overwrite the arrays of the variables, which are the arguments number `at`; the new values are the results
// number `from`. NotImplemented if a variable has another value by now.
PyObject* call_on_device(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (n != 3 || !PyList_Check(args[1]) || !PyTuple_Check(args[2]))
      fail(Code::Type, "call_on_device: expected a function, a list of arrays and a tuple of variables");
    std::vector<Donor> donors;
    std::vector<Py_ssize_t> from;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[2]); ++k) {
      PyObject* v;
      Py_ssize_t at, source;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(args[2], k), "Onn", &v, &at, &source)) throw PythonError{};
      if (is_tensor(v) || !is_variable(v) || at < 0 || at >= PyList_GET_SIZE(args[1]))
        fail(Code::Type, "call_on_device: expected a variable and the place of its array");
      donors.push_back({as_variable(v), at});
      from.push_back(source);
    }
    Lent lent;
    Ref<> outs = call_donating(args[0], args[1], donors, lent);
    if (!outs) Py_RETURN_NOTIMPLEMENTED;
    if (!PyList_Check(outs.get())) fail(Code::Type, "call_on_device: expected a function that gives a list");
    std::vector<Tensor> values;
    for (size_t k = 0; k < donors.size(); ++k) {
      if (from[k] < 0 || from[k] >= PyList_GET_SIZE(outs.get()))
        fail(Code::Value, "call_on_device: there are fewer results");
      // Not by `value_of`: the variable is lent to this run, which would wait for itself.
      Spec spec;
      {
        Holding hold(donors[k].variable->lock);
        spec = donors[k].variable->value.spec();
      }
      values.push_back(from_array(items_of(outs.get())[from[k]], spec));
    }
    for (size_t k = 0; k < donors.size(); ++k) {
      Holding hold(donors[k].variable->lock);
      exchange(donors[k].variable->value, values[k]);
    }
    lent.end();
    return outs.release();
  });
}

// ---- DeviceCall: a compiled function of another engine, as a program ------------------------------

struct DeviceCallObject {
  PyObject_HEAD PyObject *call,  // takes arrays, gives a list of them
      *slow,     // (inputs, variables) -> outputs, called if an input is not on the device yet
      *donated;  // a tuple: the numbers of the variables that donate their arrays
  std::vector<Spec>* results;
};
DeviceCallObject* as_call(PyObject* o) { return reinterpret_cast<DeviceCallObject*>(o); }

// DeviceCall(call, slow, donated, [(shape, dtype code)])
PyObject* call_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *call, *slow, *donated, *results;
  if (!PyArg_ParseTuple(args, "OOO!O!:DeviceCall", &call, &slow, &PyTuple_Type, &donated, &PyList_Type,
                        &results))
    return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    auto specs = std::make_unique<std::vector<Spec>>();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); ++i) {
      PyObject* pair = PyList_GET_ITEM(results, i);
      if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
        fail(Code::Type, "DeviceCall: expected pairs of a shape and a type");
      specs->push_back(spec_from(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)));
    }
    PyObject* self = checked(type->tp_alloc(type, 0));
    DeviceCallObject* c = as_call(self);
    c->call = Py_NewRef(call), c->slow = Py_NewRef(slow), c->donated = Py_NewRef(donated);
    c->results = specs.release();
    return self;
  });
}

int call_clear(PyObject* self) {
  Py_CLEAR(as_call(self)->call);
  Py_CLEAR(as_call(self)->slow);
  Py_CLEAR(as_call(self)->donated);
  return 0;
}

int call_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_call(self)->call);
  Py_VISIT(as_call(self)->slow);
  return 0;
}

void call_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  call_clear(self);
  delete as_call(self)->results;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// A NumPy array stands for a value that has only been on the host so far.
bool is_on_host(PyObject* array) {
  return array == Py_None || std::strcmp(Py_TYPE(array)->tp_name, "numpy.ndarray") == 0;
}

// update(inputs, variables) -> list of the results that are not new values of the variables
PyObject* call_update(PyObject* self, PyObject* const* args, Py_ssize_t n_args) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (n_args != 2 || !PyTuple_Check(args[1])) fail(Code::Type, "DeviceCall: expected inputs and variables");
    DeviceCallObject* c = as_call(self);
    const Py_ssize_t n_targets = PyTuple_GET_SIZE(args[1]);
    Ref<> arrays(checked(device_arrays(nullptr, args[0])));
    auto slow = [&] {
      arrays = {};  // or these references would force copies
      return PyObject_CallFunctionObjArgs(c->slow, args[0], args[1], nullptr);
    };
    const Py_ssize_t n = PyList_GET_SIZE(arrays.get());
    for (Py_ssize_t i = 0; i < n; ++i)
      if (is_on_host(items_of(arrays.get())[i])) return slow();
    std::vector<Donor> donors;
    for (Py_ssize_t k = 0; n_targets && k < PyTuple_GET_SIZE(c->donated); ++k) {
      const Py_ssize_t i = PyLong_AsSsize_t(PyTuple_GET_ITEM(c->donated, k));
      if (i < 0 || i >= n) fail(Code::Value, "DeviceCall: there is no such input");
      PyObject* v = PySequence_Fast_GET_ITEM(args[0], i);
      if (!is_tensor(v) && is_variable(v)) donors.push_back({as_variable(v), i});
    }
    Lent lent;
    Ref<> outs = call_donating(c->call, arrays.get(), donors, lent);
    if (!outs) return slow();
    const Py_ssize_t count = Py_ssize_t(c->results->size()), first = count - n_targets;
    if (!PyList_Check(outs.get()) || PyList_GET_SIZE(outs.get()) != count || first < 0)
      fail(Code::Runtime, "DeviceCall: the function gives another number of results");
    Ref<> tensors(checked(PyList_New(first)));
    for (Py_ssize_t k = 0; k < first; ++k)
      PyList_SET_ITEM(tensors.get(), k,
                      reinterpret_cast<PyObject*>(
                          new_tensor(from_array(items_of(outs.get())[k], (*c->results)[size_t(k)]))));
    lent.end();
    set_values(args[1], items_of(outs.get()) + first);
    return tensors.release();
  });
}

PyMethodDef call_methods[] = {
    {"update", fast(call_update), METH_FASTCALL, "Runs, and assigns the variables their new values."}, {}};
PyType_Slot call_slots[] = {{Py_tp_new, reinterpret_cast<void*>(call_new)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(call_dealloc)},
                            {Py_tp_traverse, reinterpret_cast<void*>(call_traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(call_clear)},
                            {Py_tp_methods, call_methods},
                            {}};
PyType_Spec call_spec = {"gradtape._core.DeviceCall", sizeof(DeviceCallObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, call_slots};

PyMethodDef functions[] = {
    {"from_device", fast(from_device), METH_FASTCALL, "A tensor whose value is an array on a device."},
    {"device_arrays", device_arrays, METH_O, "The arrays that tensors and variables have on a device."},
    {"call_on_device", fast(call_on_device), METH_FASTCALL,
     "Calls a function to which variables donate their arrays."},
    {"put_on_device", fast(put_on_device), METH_FASTCALL,
     "Keeps an array with the value of a tensor or variable."},
    {"set_on_device", fast(set_on_device), METH_FASTCALL, "Assigns arrays on a device to variables."},
    {}};

}  // namespace

static Spin fetching;

void fetch(Tensor& t) {
  OnDevice* d = device_of(t);
  if (!d) fail(Code::Type, "a symbolic tensor has no value");
  if (is_held(t.dtype)) no_elements(t.dtype);
  // Held, because other code runs meanwhile and may replace the value of the variable.
  Tensor held = t;
  if (!held.buffer->data) {
    Ref<> array = Ref<>::borrow(d->array);
    Py_buffer view;
    // Arrays on the CPU export their memory as a buffer; not all types of elements have a format for that.
    if (!PyObject_CheckBuffer(array.get()) || PyObject_GetBuffer(array.get(), &view, PyBUF_C_CONTIGUOUS)) {
      if (PyErr_Occurred()) clear_exception();
      Ref<> bytes(checked(PyObject_CallOneArg(hooks.fetch, array.get())));
      if (PyObject_GetBuffer(bytes.get(), &view, PyBUF_SIMPLE)) throw PythonError{};
    }
    static char nothing;
    const bool wrong = view.len != held.nbytes();
    bool first = false;
    if (!wrong) {
      Holding hold(fetching);
      first = !held.buffer->data;
      if (first) {
        d->host = view;
        held.buffer->data = view.len ? static_cast<char*>(view.buf) : &nothing;
      }
    }
    if (!first) PyBuffer_Release(&view);  // another thread was
    if (wrong) fail(Code::Runtime, "a value on a device has another size than its tensor");
  }
  if (t.buffer == held.buffer) t.data = held.buffer->data;
}

PyObject* held_value(const Tensor& t) {
  PyObject* array = array_of(t);
  if (!array) fail(Code::Runtime, "a value that Python holds has another shape than its array");
  if (t.dtype != Dtype::Str) return PyObject_CallFunction(hooks.stored, "Oi", array, int(t.dtype));
  return PyObject_CallMethod(array, t.shape.rank ? "copy" : "item", nullptr);
}

OnHost::OnHost(VariableObject* v) {
  for (;;) {
    held_.emplace(v);
    Tensor& t = held_->value();
    if (t.data || !t.buffer) return;
    if (t.buffer->data && !is_held(t.dtype)) {
      t.data = t.buffer->data;
      return;
    }
    Tensor away = t;
    held_.reset();
    fetch(away);
  }
}

void fetch_all(PyObject* sequence) {
  auto size = [&] { return PySequence_Fast_GET_SIZE(sequence); };
  for (Py_ssize_t i = 0; i < size(); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(sequence, i);
    if (kFreeThreaded && !is_tensor(o)) continue;  // see AllSettled
    Tensor* t = is_tensor(o) ? &as_tensor(o)->value : is_variable(o) ? &as_variable(o)->value : nullptr;
    if (!t || t->data || !t->buffer || is_held(t->dtype)) continue;
    Ref<> held = Ref<>::borrow(o);
    fetch(*t);
    i = -1;  // others may have new values by now
  }
}

void init_device(PyObject* module) {
  PyModule_AddFunctions(module, functions);
  PyModule_AddObjectRef(module, "DeviceCall", Ref<>(checked(PyType_FromSpec(&call_spec))).get());
}

}  // namespace gt
