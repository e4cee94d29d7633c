// The Python type Program: made from a description that gradtape/_src/engines/native/lower.py writes, run with
// tensors.
#include "program_type.h"

#include "../ops/elementwise.h"

namespace gt {

PyTypeObject* ProgramType;

namespace {

int64_t integer(PyObject* o) {
  int64_t v = PyLong_AsLongLong(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError{};
  return v;
}
PyObject* item(PyObject* sequence, Py_ssize_t i) {
  PyObject* o = PyTuple_Check(sequence) ? PyTuple_GetItem(sequence, i) : PyList_GetItem(sequence, i);
  return checked(o);
}
Py_ssize_t size(PyObject* sequence) { return PySequence_Size(sequence); }
template <class F> void each(PyObject* sequence, F&& f) {
  for (Py_ssize_t i = 0; i < size(sequence); ++i) f(item(sequence, i));
}
std::string text(PyObject* o) {
  const char* s = PyUnicode_AsUTF8(o);
  if (!s) throw PythonError{};
  return s;
}

// (outer, inner, registers, ops, tails, scratch)
//   registers: (kind, spread, width, index); ops: (kernel or "cast", dtype, dtype out, out, ins)
//   tails: (reduction, dtype, over, in, out)
Cluster read_cluster(PyObject* d) {
  Cluster c;
  c.outer = integer(item(d, 0));
  c.inner = integer(item(d, 1));
  each(item(d, 2), [&](PyObject* r) {
    Register reg{Register::Kind(integer(item(r, 0))), Spread(integer(item(r, 1))), uint8_t(integer(item(r, 2))), uint32_t(integer(item(r, 3)))};
    c.widest = std::max(c.widest, reg.width);
    c.registers.push_back(reg);
  });
  if (c.registers.size() > UINT16_MAX + size_t(1)) fail(Code::Runtime, "program: a cluster has too many registers");
  double cost = 0;
  each(item(d, 3), [&](PyObject* o) {
    ClusterOp op;
    std::string name = text(item(o, 0));
    Dtype t = Dtype(integer(item(o, 1)));
    op.out = uint16_t(integer(item(o, 3)));
    each(item(o, 4), [&](PyObject* r) {
      op.in[op.arity] = uint16_t(integer(r));
      const Register& reg = c.registers[op.in[op.arity]];
      bool repeats = reg.kind == Register::Kind::Input && reg.spread == Spread::Scalar;
      op.step[op.arity++] = !repeats;
    });
    if (name == "cast") {
      op.cast = find_cast(t, Dtype(integer(item(o, 2))));
      cost += 0.3;
    } else {
      const Elementwise* k = find_elementwise(name);
      if (!k || !k->loop[int(t)]) fail(Code::Runtime, "program: there is no kernel " + name + " for " + dtype_name(t));
      op.loop = k->loop[int(t)];
      cost += k->cost;
    }
    c.ops.push_back(op);
  });
  each(item(d, 4), [&](PyObject* o) {
    const Reduction* r = find_reduction(text(item(o, 0)));
    Dtype t = Dtype(integer(item(o, 1)));
    if (!r || !r->loop[int(t)]) fail(Code::Runtime, "program: there is no such reduction");
    c.tails.push_back({Tail::Over(integer(item(o, 2))), r->loop[int(t)], uint16_t(integer(item(o, 3))), uint32_t(integer(item(o, 4))),
                       uint8_t(dtype_size(r->out[int(t)]))});
    cost += 0.2;
  });
  c.scratch = uint32_t(integer(item(d, 5)));
  c.cost = cost;
  c.choose_tiles();
  // A column read piece by piece is one element per tile.
  if (c.tile_columns)
    for (ClusterOp& op : c.ops)
      for (int k = 0; k < op.arity; ++k) {
        const Register& reg = c.registers[op.in[k]];
        if (reg.kind == Register::Kind::Input && reg.spread == Spread::Column) op.step[k] = 0;
      }
  return c;
}

void call_python(void* context, int which, const Call& call, Outs& outs) {
  auto* self = static_cast<ProgramObject*>(context);
  PyGILState_STATE gil = PyGILState_Ensure();
  struct Release {
    PyGILState_STATE gil;
    ~Release() { PyGILState_Release(gil); }
  } release{gil};
  Ref<> args(checked(PyTuple_New(call.n)));
  for (int i = 0; i < call.n; ++i) {
    // Elements in the arena are written over later: the function gets a copy of those.
    Tensor given = call[i];
    if (!given.buffer) {
      given.allocate();
      std::memcpy(given.data, call[i].data, size_t(given.nbytes()));
    }
    PyTuple_SET_ITEM(args.get(), i, reinterpret_cast<PyObject*>(new_tensor(std::move(given))));
  }
  Ref<> result(checked(PyObject_CallObject(self->callbacks[size_t(which)], args.get())));
  Ref<> list(checked(PySequence_Fast(result.get(), "a callback returns a sequence of tensors")));
  for (size_t k = 0; k < outs.size(); ++k) {
    Ref<TensorObject> t = to_tensor(PySequence_Fast_GET_ITEM(list.get(), Py_ssize_t(k)));
    outs[k] = t->value;
  }
}

}  // namespace

CallAttrs* attrs_from_tuple(OpObject* op, PyObject* tuple) {
  if (size(tuple) == 0) return nullptr;
  auto* a = new CallAttrs;
  Py_ssize_t i = 0;
  for (const Param& p : op->params) {
    if (is_operand(p.kind) || p.kind == ParamKind::Ignored || p.kind == ParamKind::Extra) continue;
    PyObject* v = item(tuple, i++);
    Attr attr;
    if (PyTuple_Check(v)) {
      attr.kind = Attr::Kind::Ints;
      each(v, [&](PyObject* d) { attr.ints.push_back(integer(d)); });
    } else if (p.kind == ParamKind::Float) {
      attr.kind = Attr::Kind::Float;
      attr.f = PyFloat_AsDouble(v);
    } else if (p.kind == ParamKind::DtypeCode) {
      attr.kind = Attr::Kind::Int;
      Ref<> code(checked(PyObject_CallOneArg(hooks.dtype_code, v)));
      attr.i = integer(code.get());
    } else if (p.kind == ParamKind::Object) {
      attr.kind = Attr::Kind::Object;
      attr.object = Py_NewRef(v);
    } else {
      attr.kind = Attr::Kind::Int;
      attr.i = integer(v);
    }
    a->kinds.push_back(p.kind);
    a->values.values.push_back(std::move(attr));
  }
  return a;
}

// Program(n_inputs, values, steps, results, arena_bytes, in_place=())
//   values: (dtype, shape, place, at, tensor or None); steps: (what, object, ins, outs, attrs)
static PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *values, *steps, *results, *in_place = nullptr;
  long long n_inputs, arena;
  if (!PyArg_ParseTuple(args, "LOOOL|O", &n_inputs, &values, &steps, &results, &arena, &in_place)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* p = reinterpret_cast<ProgramObject*>(self);
  p->program = new Program;
  new (&p->attrs) std::vector<CallAttrs*>;
  new (&p->callbacks) std::vector<PyObject*>;
  PyObject* made = guarded<PyObject*>(nullptr, [&] {
    Program& prog = *p->program;
    prog.n_inputs = uint32_t(n_inputs);
    prog.arena_bytes = arena;
    prog.callback = call_python;
    prog.context = p;
    each(values, [&](PyObject* v) {
      Value value;
      value.place = Place(integer(item(v, 2)));
      value.at = integer(item(v, 3));
      if (value.place == Place::Constant) {
        value.form = as_tensor(item(v, 4))->value;
      } else {
        Shape shape;
        each(item(v, 1), [&](PyObject* d) { shape.push(integer(d)); });
        value.form = Tensor(Spec{Dtype(integer(item(v, 0))), shape});
      }
      prog.values.push_back(std::move(value));
    });
    each(steps, [&](PyObject* s) {
      Step step;
      std::string what = text(item(s, 0));
      PyObject* object = item(s, 1);
      each(item(s, 2), [&](PyObject* v) { step.in.push_back(uint32_t(integer(v))); });
      each(item(s, 3), [&](PyObject* v) { step.out.push_back(uint32_t(integer(v))); });
      if (what == "cluster") {
        step.kind = Step::Kind::Cluster;
        step.cluster = int(prog.clusters.size());
        prog.clusters.push_back(read_cluster(object));
        step.name = "cluster";
      } else if (what == "call") {
        step.kind = Step::Kind::Call;
        step.call = int(p->callbacks.size());
        p->callbacks.push_back(Py_NewRef(object));
        step.name = "call";
      } else {
        OpObject* op = as_op(object);
        step.kind = op->kernel ? Step::Kind::Elementwise : Step::Kind::Op;
        step.kernel = op->kernel;
        step.impl = op->impl;
        step.name = op->name.c_str();  // ops of the table live as long as the process
        if (!op->kernel && !op->impl) fail(Code::Runtime, "program: " + op->name + " has no native code");
        if (CallAttrs* a = attrs_from_tuple(op, item(s, 4))) {
          p->attrs.push_back(a);
          step.attrs = &a->values;
        }
      }
      prog.steps.push_back(std::move(step));
    });
    each(results, [&](PyObject* r) { prog.results.push_back(uint32_t(integer(r))); });
    if (in_place) each(in_place, [&](PyObject* i) { prog.in_place.push_back(int32_t(integer(i))); });
    prog.finish();
    return self;
  });
  if (!made) Py_DECREF(self);
  return made;
}

static void program_dealloc(PyObject* self) {
  auto* p = reinterpret_cast<ProgramObject*>(self);
  delete p->program;
  for (CallAttrs* a : p->attrs) unref(a);
  for (PyObject* c : p->callbacks) Py_DECREF(c);
  p->attrs.~vector();
  p->callbacks.~vector();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

void run_program(ProgramObject* p, const Tensor* const* inputs, std::vector<Tensor>& outs, bool take) {
  std::optional<Error> error;
  bool python_error = false;
  Py_BEGIN_ALLOW_THREADS try { p->program->run(inputs, outs, nullptr, take); } catch (const Error& e) {
    error = e;
  } catch (const PythonError&) {
    python_error = true;
  }
  Py_END_ALLOW_THREADS if (python_error) throw PythonError{};
  if (error) throw *error;
}

// Runs on a list of tensors and variables. The last results are new values of `targets`; they are
// written over the old ones where nobody else holds those.
static PyObject* run_list(PyObject* self, PyObject* list, PyObject* targets) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    auto* p = reinterpret_cast<ProgramObject*>(self);
    size_t n_targets = targets ? size_t(size(targets)) : 0;
    if (!PyList_Check(list) && !PyTuple_Check(list)) fail(Code::Type, "program: expected a list of tensors");
    if (size(list) != Py_ssize_t(p->program->n_inputs)) fail(Code::Value, "program: wrong number of inputs");
    const Tensor* small[32];
    std::vector<const Tensor*> large;
    const Tensor** in = small;
    if (p->program->n_inputs > 32) {
      large.resize(p->program->n_inputs);
      in = large.data();
    }
    for (uint32_t i = 0; i < p->program->n_inputs; ++i) {
      PyObject* o = item(list, i);
      if (is_tensor(o))
        in[i] = &as_tensor(o)->value;
      else if (is_variable(o))
        in[i] = &as_variable(o)->value;
      else
        fail(Code::Type, "program: inputs must be tensors or variables");
      if (!in[i]->data) fail(Code::Runtime, "program: an input has no value");
    }
    for (const Value& v : p->program->values)
      if (v.place == Place::Input && !(in[v.at]->shape == v.form.shape && in[v.at]->dtype == v.form.dtype))
        fail(Code::Value, "program: it was made for " + v.form.spec().str() + " but got " + in[v.at]->spec().str());
    std::vector<Tensor> outs;
    run_program(p, in, outs, targets != nullptr);
    for (size_t k = 0, first = outs.size() - n_targets; k < n_targets; ++k)
      as_variable(item(targets, Py_ssize_t(k)))->value = std::move(outs[first + k]);
    outs.resize(outs.size() - n_targets);
    Ref<> result(checked(PyList_New(Py_ssize_t(outs.size()))));
    for (size_t k = 0; k < outs.size(); ++k) PyList_SET_ITEM(result.get(), Py_ssize_t(k), reinterpret_cast<PyObject*>(new_tensor(std::move(outs[k]))));
    return result.release();
  });
}

// run(inputs) -> list of results
static PyObject* program_run(PyObject* self, PyObject* list) { return run_list(self, list, nullptr); }

// update(inputs, variables) -> list of the results that are not new values of the variables
static PyObject* program_update(PyObject* self, PyObject* args) {
  PyObject *list, *targets;
  if (!PyArg_ParseTuple(args, "OO!", &list, &PyTuple_Type, &targets)) return nullptr;
  return run_list(self, list, targets);
}

// profile(inputs, repeats) -> list of (what, seconds per run) by step
static PyObject* program_profile(PyObject* self, PyObject* args) {
  PyObject* list;
  int repeats;
  if (!PyArg_ParseTuple(args, "O!i", &PyList_Type, &list, &repeats)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    auto* p = reinterpret_cast<ProgramObject*>(self);
    std::vector<const Tensor*> in;
    each(list, [&](PyObject* o) { in.push_back(is_tensor(o) ? &as_tensor(o)->value : &as_variable(o)->value); });
    std::vector<double> times(p->program->steps.size(), 0.0);
    for (int i = 0; i < repeats; ++i) {
      std::vector<Tensor> outs;
      p->program->run(in.data(), outs, times.data());
    }
    Ref<> result(checked(PyList_New(0)));
    for (size_t s = 0; s < times.size(); ++s) {
      const Step& step = p->program->steps[s];
      std::string what = step.name;
      if (step.kind == Step::Kind::Cluster) {
        const Cluster& c = p->program->clusters[size_t(step.cluster)];
        what += "(" + std::to_string(c.ops.size()) + " ops, " + std::to_string(c.tails.size()) + " tails, " + std::to_string(c.outer) + "x" +
                std::to_string(c.inner) + ")";
      } else {
        for (uint32_t v : step.in) what += " " + p->program->values[v].form.shape.str();
      }
      Ref<> row(checked(Py_BuildValue("(sd)", what.c_str(), times[s] / repeats)));
      PyList_Append(result.get(), row.get());
    }
    return result.release();
  });
}

static PyMethodDef methods[] = {{"profile", program_profile, METH_VARARGS, "Seconds per step over several runs."},
                                {"update", program_update, METH_VARARGS, "Runs, and gives variables their new values."},
                                {"run", program_run, METH_O, "Runs the program on a list of tensors; returns the list of results."}, {}};
static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(program_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(program_dealloc)},
                              {Py_tp_methods, methods},
                              {}};
static PyType_Spec spec = {"gradtape._core.Program", sizeof(ProgramObject), 0, Py_TPFLAGS_DEFAULT, slots};

// ---- what the passes of gradtape/_src/graph ask ------------------------------------------------

namespace {

struct OwnedAttrs {
  CallAttrs* p;
  ~OwnedAttrs() { unref(p); }
};

// infer(op, [(dtype, shape)], attrs) -> [(shape, dtype)]
PyObject* infer(PyObject*, PyObject* args) {
  PyObject *op_object, *specs, *attrs;
  if (!PyArg_ParseTuple(args, "O!OO", OpType, &op_object, &specs, &attrs)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    static const Attrs none;
    OpObject* op = as_op(op_object);
    std::vector<Tensor> in;
    each(specs, [&](PyObject* s) {
      Shape shape;
      each(item(s, 1), [&](PyObject* d) { shape.push(integer(d)); });
      in.emplace_back(Spec{Dtype(integer(item(s, 0))), shape});
    });
    std::vector<const Tensor*> pointers;
    for (Tensor& t : in) pointers.push_back(&t);
    OwnedAttrs owned{attrs_from_tuple(op, attrs)};
    Outs outs;
    if (op->kernel)
      outs.emplace_back(infer_elementwise(*op->kernel, pointers.data()));
    else if (op->impl)
      op->impl->infer({pointers.data(), int(pointers.size()), owned.p ? owned.p->values : none}, outs);
    else
      infer_python(op, pointers.data(), int(pointers.size()), attrs, outs);
    Ref<> list(checked(PyList_New(0)));
    for (Tensor& t : outs) {
      Ref<> dims(checked(PyTuple_New(t.shape.rank)));
      for (int i = 0; i < t.shape.rank; ++i) PyTuple_SET_ITEM(dims.get(), i, PyLong_FromLongLong(t.shape[i]));
      Ref<> one(checked(Py_BuildValue("(Oi)", dims.get(), int(t.dtype))));
      PyList_Append(list.get(), one.get());
    }
    return list.release();
  });
}

// apply(op, tensors, attrs) -> tuple of results
PyObject* apply(PyObject*, PyObject* args) {
  PyObject *op_object, *tensors, *attrs;
  if (!PyArg_ParseTuple(args, "O!OO", OpType, &op_object, &tensors, &attrs)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<Ref<TensorObject>> in;
    each(tensors, [&](PyObject* t) { in.push_back(to_tensor(t)); });
    OwnedAttrs owned{attrs_from_tuple(as_op(op_object), attrs)};
    PyObject* result = checked(run_op(as_op(op_object), reinterpret_cast<TensorObject* const*>(in.data()), int(in.size()), owned.p));
    if (PyTuple_Check(result)) return result;
    Ref<> one(result);
    return PyTuple_Pack(1, one.get());
  });
}

// record_op(op, operands, results, attrs): tells the tapes of a call that is in the graph already
PyObject* record_call(PyObject*, PyObject* args) {
  PyObject *op_object, *ins, *outs, *attrs;
  if (!PyArg_ParseTuple(args, "O!OOO", OpType, &op_object, &ins, &outs, &attrs)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<TensorObject*> in, out;
    each(ins, [&](PyObject* t) { in.push_back(as_tensor(t)); });
    each(outs, [&](PyObject* t) { out.push_back(as_tensor(t)); });
    OwnedAttrs owned{attrs_from_tuple(as_op(op_object), attrs)};
    record(as_op(op_object), owned.p, in.data(), int(in.size()), out.data(), int(out.size()));
    Py_RETURN_NONE;
  });
}

// recorded_symbols() -> [tensor]: the tensors of traces that this thread's tapes know, as the tapes know them
PyObject* recorded_symbols(PyObject*, PyObject*) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<> list(checked(PyList_New(0)));
    for (Tape* tape : active_tapes())
      for (Node* n : tape->nodes) {
        if (!n->symbols) continue;
        for (int i = 0; i < n->n_in + n->n_out; ++i) {
          Node* from = i < n->n_in ? n->edges()[i].node : n;
          if (!n->symbols[i] || !from || !is_differentiable(n->values()[i].dtype)) continue;
          Ref<TensorObject> t(new_tensor(Tensor(n->values()[i].spec())));
          t->node = ref(from);
          t->output = i < n->n_in ? n->edges()[i].output : uint32_t(i - n->n_in);
          t->symbol = Py_NewRef(n->symbols[i]);
          PyList_Append(list.get(), t.object());
        }
      }
    return list.release();
  });
}

PyObject* make_scalar(PyObject*, PyObject* args) {
  double number;
  int code;
  if (!PyArg_ParseTuple(args, "di", &number, &code)) return nullptr;
  return guarded<PyObject*>(nullptr, [&] { return reinterpret_cast<PyObject*>(scalar(number, Dtype(code)).release()); });
}

PyMethodDef functions[] = {{"infer", infer, METH_VARARGS, "Shapes and types of an op's results."},
                           {"apply", apply, METH_VARARGS, "Runs an op on tensors with attributes that are normal already."},
                           {"record_op", record_call, METH_VARARGS, "Tells the tapes of a call whose results exist already."},
                           {"recorded_symbols", recorded_symbols, METH_NOARGS, "The tensors of traces that this thread's tapes know."},
                           {"scalar", make_scalar, METH_VARARGS, "A tensor of one number."},
                           {}};

}  // namespace

void init_program_type(PyObject* module) {
  PyModule_AddFunctions(module, functions);
  ProgramType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject*>(ProgramType));
}

}  // namespace gt
