// The Python type Program: made from the description that gradtape/_src/engines/native/lower.py writes, and
// run on tensors.
#include "program_type.h"

#include "device.h"
#include "lending.h"
#include "reading.h"

namespace gt {

using namespace reading;

PyTypeObject* ProgramType;

namespace {

void call_python(void* context, const Step& step, const Call& call, Outs& outs) {
  auto* self = static_cast<ProgramObject*>(context);
  WithLock lock;
  Ref<> args(checked(PyTuple_New(call.n)));
  for (int i = 0; i < call.n; ++i) {
    // Elements in the arena are overwritten later, so the function gets a copy.
    Tensor given = call[i];
    if (!given.buffer) {
      given.allocate();
      std::memcpy(given.data, call[i].data, size_t(given.nbytes()));
    }
    PyTuple_SET_ITEM(args.get(), i, reinterpret_cast<PyObject*>(new_tensor(std::move(given))));
  }
  Ref<> result(PyObject_CallObject(self->callbacks[size_t(step.call)], args.get()));
  if (!result) {
    locate_exception(step.where.get());
    throw PythonError{};
  }
  Ref<> results(checked(PySequence_Tuple(result.get())));
  if (size_t(PyTuple_GET_SIZE(results.get())) < outs.size())
    fail(Code::Value, "a callback returns fewer tensors than it has results");
  for (size_t k = 0; k < outs.size(); ++k) {
    Ref<TensorObject> t = to_tensor(PyTuple_GET_ITEM(results.get(), Py_ssize_t(k)));
    if (!t->value.has_value()) fail(Code::Type, "a callback returns a symbolic tensor, which has no value");
    settled_on_host(t->value);
    if (t->value.dtype != outs[k].dtype || !(t->value.shape == outs[k].shape))
      fail(Code::Value,
           "a callback returns " + t->value.spec().str() + " where " + outs[k].spec().str() + " is expected");
    outs[k] = t->value;
  }
}

}  // namespace

CallAttrs* attrs_from_tuple(OpObject* op, PyObject* tuple, const Tensor* first) {
  auto attrs = std::make_unique<CallAttrs>();
  for (const Param& p : op->params) {
    if (!is_attribute(p.kind)) continue;
    Ref<> v = Ref<>::borrow(item(tuple, Py_ssize_t(attrs->kinds.size())));
    attrs->kinds.push_back(p.kind);
    attrs->values.values.push_back(parse_attr(p.kind, v.get(), op, p, first));
  }
  if (size(tuple) != Py_ssize_t(attrs->kinds.size()))
    fail(Code::Value, op->name + ": wrong number of attributes");
  return attrs->kinds.empty() ? nullptr : attrs.release();
}

void check_operands(const OpObject* op, size_t n) {
  size_t single = 0;
  bool list = false;
  for (const Param& p : op->params) {
    list |= p.kind == ParamKind::Operands;
    single += is_operand(p.kind) && p.kind != ParamKind::Operands;
  }
  if (list ? n < single + 1 : n != single)
    fail(Code::Value, op->name + ": wrong number of operands; got " + std::to_string(n) + ".");
}

// Program(n_inputs, values, steps, results, arena_bytes, in_place=(), bands=())
//   values: (dtype, shape, place, at, tensor or None); steps: (what, object, ins, outs, attrs[, line]);
//   bands: (first step, blocks, for each step: (whether operand k is cut, ...))
static PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *values, *steps, *results, *in_place = nullptr, *bands = nullptr;
  long long n_inputs, arena;
  if (!PyArg_ParseTuple(args, "LOOOL|OO", &n_inputs, &values, &steps, &results, &arena, &in_place, &bands))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* p = reinterpret_cast<ProgramObject*>(self);
  new (&p->attrs) std::vector<CallAttrs*>;
  new (&p->callbacks) std::vector<PyObject*>;
  PyObject* made = guarded<PyObject*>(nullptr, [&] {
    p->program = new Program;
    Program& prog = *p->program;
    if (n_inputs < 0 || n_inputs > INT32_MAX) fail(Code::Value, "program: wrong number of inputs");
    prog.n_inputs = uint32_t(n_inputs);
    prog.arena_bytes = arena;
    prog.callback = call_python;
    prog.context = p;
    each(values, [&](PyObject* v) {
      Value value;
      value.place = number<Place>(item(v, 2), 6, "place");
      value.at = integer(item(v, 3));
      if (value.place == Place::Constant) {
        if (!is_tensor(item(v, 4))) fail(Code::Type, "program: a constant must be a tensor");
        value.form = settled_on_host(as_tensor(item(v, 4))->value);
      } else {
        value.form = form_of(item(v, 0), item(v, 1));
      }
      prog.values.push_back(std::move(value));
    });
    each(steps, [&](PyObject* s) {
      Step step;
      std::string what = text(item(s, 0));
      PyObject* object = item(s, 1);
      auto value_of = [&](PyObject* v) { return number<uint32_t>(v, prog.values.size(), "value"); };
      each(item(s, 2), [&](PyObject* v) { step.in.push_back(value_of(v)); });
      each(item(s, 3), [&](PyObject* v) { step.out.push_back(value_of(v)); });
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
        if (!is_op(object)) fail(Code::Type, "program: a step must be an op, a cluster or a call");
        OpObject* op = as_op(object);
        check_operands(op, step.in.size());
        step.kind = op->kernel ? Step::Kind::Elementwise : Step::Kind::Op;
        step.kernel = op->kernel;
        step.impl = op->impl;
        step.name = op->name.c_str();  // ops of the table live as long as the process
        step.op = op;
        if (!op->kernel && !op->impl) fail(Code::Runtime, "program: " + op->name + " has no native code");
        if (CallAttrs* a =
                attrs_from_tuple(op, item(s, 4), step.in.empty() ? nullptr : &prog.values[step.in[0]].form)) {
          p->attrs.push_back(a);
          step.attrs = &a->values;
        }
      }
      if (size(s) > 5 && item(s, 5) != Py_None)
        step.where = std::shared_ptr<PyObject>(Py_NewRef(item(s, 5)), [](PyObject* o) { Py_DECREF(o); });
      prog.steps.push_back(std::move(step));
    });
    each(results,
         [&](PyObject* r) { prog.results.push_back(number<uint32_t>(r, prog.values.size(), "value")); });
    if (in_place)
      each(in_place,
           [&](PyObject* i) { prog.in_place.push_back(int32_t(std::max<int64_t>(-1, integer(i)))); });
    if (bands)
      each(bands, [&](PyObject* b) {
        Band band;
        band.first = number<uint32_t>(item(b, 0), prog.steps.size(), "step");
        band.blocks = number<uint32_t>(item(b, 1), 1 << 16, "block");
        each(item(b, 2), [&](PyObject* step) {
          std::vector<bool>& cut = band.cut.emplace_back();
          each(step, [&](PyObject* operand) { cut.push_back(PyObject_IsTrue(operand) == 1); });
        });
        prog.bands.push_back(std::move(band));
      });
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

void run_program(ProgramObject* p, const Tensor* const* inputs, std::vector<Tensor>& outs) {
  Program::Run run(*p->program, inputs);
  without_lock([&] { run.compute(outs); });
}

void update_variables(ProgramObject* p, const Tensor* const* inputs, PyObject* targets,
                      std::vector<Tensor>& outs, AllSettled& settled) {
  const size_t n_targets = size_t(PyTuple_GET_SIZE(targets)), first = p->program->results.size() - n_targets;
  // Not if it calls code outside of the program, which may fail or read the variables.
  Program::Run run(*p->program, inputs, !p->program->calls() && may_lend());
  Loans loans(run, targets, p->program->results.size());
  settled.let_go();
  without_lock([&] { run.compute(outs); });
  // No other code runs until all have changed: the old values are freed with `outs`.
  Loans::End end(loans);
  for (size_t k = 0; k < n_targets; ++k)
    exchange(as_variable(PyTuple_GET_ITEM(targets, Py_ssize_t(k)))->value, outs[first + k]);
}

namespace {

// The inputs of one run; up to 32 need no memory.
class Inputs {
 public:
  // From a list or tuple of tensors and variables, which must fit the program. A run must follow at once.
  Inputs(const Program& p, PyObject* given, PyObject* targets = nullptr) {
    if (!PyList_Check(given) && !PyTuple_Check(given))
      fail(Code::Type, "program: expected a list of tensors");
    items_ = Ref<>(checked(fixed_items(given, "")));
    PyObject* list = items_.get();
    fetch_all(list);
    settled_.emplace(list, targets);
    if (size(list) != Py_ssize_t(p.n_inputs)) fail(Code::Value, "program: wrong number of inputs");
    if (p.n_inputs > 32) large_.resize(p.n_inputs), at_ = large_.data();
    for (uint32_t i = 0; i < p.n_inputs; ++i) {
      PyObject* o = PySequence_Fast_GET_ITEM(list, Py_ssize_t(i));
      if (is_tensor(o))
        at_[i] = &as_tensor(o)->value;
      else if (is_variable(o))
        at_[i] = &as_variable(o)->value;
      else
        fail(Code::Type, "program: inputs must be tensors or variables");
    }
    p.check_inputs(at_);
  }
  Inputs(const Inputs&) = delete;
  const Tensor* const* get() const { return at_; }
  AllSettled& settled() { return *settled_; }
  PyObject* list() const { return items_.get(); }

 private:
  Ref<> items_;
  std::optional<AllSettled> settled_;
  const Tensor* small_[32];
  std::vector<const Tensor*> large_;
  const Tensor** at_ = small_;
};

}  // namespace

PyObject* tensor_list(std::vector<Tensor>& tensors, size_t n) {
  Ref<> list(checked(PyList_New(Py_ssize_t(n))));
  for (size_t k = 0; k < n; ++k)
    PyList_SET_ITEM(list.get(), Py_ssize_t(k),
                    reinterpret_cast<PyObject*>(new_tensor(std::move(tensors[k]))));
  return list.release();
}

// run(inputs) -> list of results
static PyObject* program_run(PyObject* self, PyObject* list) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    auto* p = reinterpret_cast<ProgramObject*>(self);
    std::vector<Tensor> outs;
    Inputs in(*p->program, list);
    Program::Run run(*p->program, in.get());
    in.settled().let_go();
    without_lock([&] { run.compute(outs); });
    return tensor_list(outs, outs.size());
  });
}

// Whether each result that overwrites an input is the new value of just that variable.
bool writes_over(const Program& p, PyObject* inputs, PyObject* targets) {
  const size_t n = size_t(PyTuple_GET_SIZE(targets)), first = p.results.size() - n;
  for (size_t k = 0; k < p.in_place.size(); ++k) {
    if (p.in_place[k] < 0) continue;
    if (k < first ||
        PySequence_Fast_GET_ITEM(inputs, p.in_place[k]) != PyTuple_GET_ITEM(targets, Py_ssize_t(k - first)))
      return false;
  }
  return true;
}

// Returns the results that are not new values of the variables. Those, the last results, overwrite the old
// values where nothing else refers to them.
std::vector<Tensor> run_update(ProgramObject* p, PyObject* list, PyObject* targets) {
  const Program& program = *p->program;
  const size_t n_targets = size_t(PyTuple_GET_SIZE(targets));
  if (n_targets > program.results.size())
    fail(Code::Value, "program: it has fewer results than variables are to change");
  for (size_t k = 0; k < n_targets; ++k)
    if (!is_variable(PyTuple_GET_ITEM(targets, Py_ssize_t(k))))
      fail(Code::Type, "program: only variables can be given new values");
  std::vector<Tensor> outs;
  Inputs in(program, list, targets);
  if (!writes_over(program, in.list(), targets))
    fail(Code::Value, "program: it was made to change other variables");
  update_variables(p, in.get(), targets, outs, in.settled());
  outs.resize(outs.size() - n_targets);
  return outs;
}

// update(inputs, variables) -> list of the results that are not new values of the variables
static PyObject* program_update(PyObject* self, PyObject* args) {
  PyObject *list, *targets;
  if (!PyArg_ParseTuple(args, "OO!", &list, &PyTuple_Type, &targets)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<Tensor> outs = run_update(reinterpret_cast<ProgramObject*>(self), list, targets);
    return tensor_list(outs, outs.size());
  });
}

// profile(inputs, repeats) -> list of (what, seconds per run) by step
static PyObject* program_profile(PyObject* self, PyObject* args) {
  PyObject* list;
  int repeats;
  if (!PyArg_ParseTuple(args, "Oi", &list, &repeats)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    auto* p = reinterpret_cast<ProgramObject*>(self);
    if (repeats < 1)
      fail(Code::Value, "profile: expected at least one run; got repeats=" + std::to_string(repeats) + ".");
    std::vector<double> times(p->program->steps.size(), 0.0);
    for (int i = 0; i < repeats; ++i) {
      Inputs in(*p->program, list);
      Program::Run run(*p->program, in.get());
      in.settled().let_go();
      without_lock([&] {
        std::vector<Tensor> outs;
        run.compute(outs, times.data());
      });
      if (PyErr_CheckSignals()) throw PythonError{};
    }
    Ref<> result(checked(PyList_New(0)));
    for (size_t s = 0; s < times.size(); ++s) {
      const Step& step = p->program->steps[s];
      std::string what = step.name;
      if (step.kind == Step::Kind::Cluster) {
        const Cluster& c = p->program->clusters[size_t(step.cluster)];
        what += "(" + std::to_string(c.ops.size()) + " ops, " + std::to_string(c.epilogues.size()) +
                " epilogues, " + std::to_string(c.outer) + "x" + std::to_string(c.inner) + ")";
      } else {
        for (uint32_t v : step.in) what += " " + p->program->values[v].form.shape.str();
      }
      Ref<> row(checked(Py_BuildValue("(sd)", what.c_str(), times[s] / repeats)));
      if (PyList_Append(result.get(), row.get())) throw PythonError{};
    }
    return result.release();
  });
}

static PyMethodDef methods[] = {
    {"profile", program_profile, METH_VARARGS, "Seconds per step over several runs."},
    {"update", program_update, METH_VARARGS, "Runs, and assigns the variables their new values."},
    {"run", program_run, METH_O, "Runs the program on a list of tensors; returns the list of results."},
    {}};
static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(program_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(program_dealloc)},
                              {Py_tp_methods, methods},
                              {}};
static PyType_Spec spec = {"gradtape._core.Program", sizeof(ProgramObject), 0, Py_TPFLAGS_DEFAULT, slots};

// ---- functions for the passes of gradtape/_src/graph -------------------------------------------

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
    OpObject* op = as_op(op_object);
    std::vector<Tensor> in;
    each(specs, [&](PyObject* s) { in.push_back(form_of(item(s, 0), item(s, 1))); });
    check_operands(op, in.size());
    std::vector<const Tensor*> pointers;
    for (Tensor& t : in) pointers.push_back(&t);
    OwnedAttrs owned{attrs_from_tuple(op, attrs, in.empty() ? nullptr : &in[0])};
    Outs outs;
    infer_results(op, pointers.data(), int(pointers.size()), owned.p, outs);
    Ref<> list(checked(PyList_New(0)));
    for (Tensor& t : outs) {
      Ref<> dims(checked(PyTuple_New(t.shape.rank)));
      for (int i = 0; i < t.shape.rank; ++i) PyTuple_SET_ITEM(dims.get(), i, PyLong_FromLongLong(t.shape[i]));
      Ref<> one(checked(Py_BuildValue("(Oi)", dims.get(), int(t.dtype))));
      if (PyList_Append(list.get(), one.get())) throw PythonError{};
    }
    return list.release();
  });
}

// The operands of a call, given as a list.
std::vector<Ref<TensorObject>> operands_of(OpObject* op, PyObject* list) {
  std::vector<Ref<TensorObject>> all;
  each(list, [&](PyObject* t) { all.push_back(to_tensor(t)); });
  check_operands(op, all.size());
  return all;
}
TensorObject* const* pointers_to(const std::vector<Ref<TensorObject>>& all) {
  static_assert(sizeof(Ref<TensorObject>) == sizeof(TensorObject*));
  return reinterpret_cast<TensorObject* const*>(all.data());
}

// apply(op, tensors, attrs) -> tuple of results
PyObject* apply(PyObject*, PyObject* args) {
  PyObject *op_object, *tensors, *attrs;
  if (!PyArg_ParseTuple(args, "O!OO", OpType, &op_object, &tensors, &attrs)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    OpObject* op = as_op(op_object);
    std::vector<Ref<TensorObject>> in = operands_of(op, tensors);
    OwnedAttrs owned{attrs_from_tuple(op, attrs, in.empty() ? nullptr : &in[0]->value)};
    PyObject* result = checked(run_op(op, pointers_to(in), int(in.size()), owned.p));
    if (PyTuple_Check(result)) return result;
    Ref<> one(result);
    return PyTuple_Pack(1, one.get());
  });
}

// record_op(op, operands, results, attrs): records on the tapes a call that is in the graph already
PyObject* record_call(PyObject*, PyObject* args) {
  PyObject *op_object, *ins, *outs, *attrs;
  if (!PyArg_ParseTuple(args, "O!OOO", OpType, &op_object, &ins, &outs, &attrs)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    OpObject* op = as_op(op_object);
    std::vector<Ref<TensorObject>> in = operands_of(op, ins), out;
    each(outs, [&](PyObject* t) {
      if (!is_tensor(t)) fail(Code::Type, "record_op: results must be tensors");
      out.push_back(Ref<TensorObject>::borrow(as_tensor(t)));
    });
    OwnedAttrs owned{attrs_from_tuple(op, attrs, in.empty() ? nullptr : &in[0]->value)};
    record(op, owned.p, pointers_to(in), int(in.size()), pointers_to(out), int(out.size()));
    Py_RETURN_NONE;
  });
}

// recorded_symbols() -> [tensor]: the tensors of traces that are on this thread's tapes, linked to their
// records
PyObject* recorded_symbols(PyObject*, PyObject*) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<> list(checked(PyList_New(0)));
    for (auto& tape : current_tapes()) {
      HeldNodes nodes(reinterpret_cast<Tape*>(tape.get()));
      for (Node* n : nodes) {
        if (!n->symbols) continue;
        for (int i = 0; i < n->n_in + n->n_out; ++i) {
          Node* from = i < n->n_in ? n->edges()[i].node : n;
          if (!n->symbols[i] || !from || !is_differentiable(n->value(i).dtype)) continue;
          Ref<TensorObject> t(new_tensor(Tensor(n->value(i).spec())));
          t->node = ref(from);
          t->output = i < n->n_in ? n->edges()[i].output : uint32_t(i - n->n_in);
          t->symbol = Py_NewRef(n->symbols[i]);
          if (PyList_Append(list.get(), t.object())) throw PythonError{};
        }
      }
    }
    return list.release();
  });
}

PyObject* make_scalar(PyObject*, PyObject* args) {
  double number;
  int code;
  if (!PyArg_ParseTuple(args, "di", &number, &code)) return nullptr;
  return guarded<PyObject*>(
      nullptr, [&] { return reinterpret_cast<PyObject*>(scalar(number, dtype_code(code)).release()); });
}

PyMethodDef functions[] = {
    {"infer", infer, METH_VARARGS, "Shapes and types of an op's results."},
    {"apply", apply, METH_VARARGS, "Runs an op on tensors, with normalised attributes."},
    {"record_op", record_call, METH_VARARGS, "Records a call whose results exist already."},
    {"recorded_symbols", recorded_symbols, METH_NOARGS,
     "The tensors of traces that are on this thread's tapes."},
    {"scalar", make_scalar, METH_VARARGS, "A tensor of one number."},
    {}};

}  // namespace

void init_program_type(PyObject* module) {
  PyModule_AddFunctions(module, functions);
  ProgramType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject*>(ProgramType));
}

}  // namespace gt
