// The Python type Op: parses a call against the op's signature, runs it and records it.
#include <algorithm>
#include <memory>
#include <bit>
#include <optional>

#include "device.h"
#include "../ops/elementwise.h"
#include "../help.h"
#include "calls.h"

namespace gt {

PyTypeObject* OpType;
Spin& ops_lock = *new Spin;

// ---- operands -----------------------------------------------------------------------------

[[noreturn]] static void wrong_type(const OpObject* op, Dtype t) {
  std::string allowed;
  for (int i = 0; i < kDtypes; ++i)
    if (op->dtypes >> i & 1) allowed += (allowed.empty() ? "" : ", ") + std::string(dtype_name(Dtype(i)));
  fail(Code::Argument, op->name + ": not defined for " + dtype_name(t) +
                           ", which is not in the list of allowed values; expected one of " + allowed +
                           ". Hint: convert with tf.cast(x, dtype).");
}

[[noreturn]] static void mixed_types(const OpObject* op, const std::string& name, int position,
                                     Dtype expected, const Spec& got) {
  const std::string want = dtype_name(expected), is = dtype_name(got.dtype);
  fail(Code::Argument, op->name + ": cannot compute with operands of different types; as input #" +
                           std::to_string(position) + "(zero-based) was expected to be a " + want +
                           " tensor but is a " + is + " tensor; operands must have the same dtype, got tf." +
                           want + " != tf." + is + "; got " + name + ": " + got.str() + ". Hint: tf.cast(" +
                           name + ", tf." + want + ")." GT_MORE("types-and-shapes"));
}

static int type_of(PyObject* o) {
  if (is_tensor(o)) return int(as_tensor(o)->value.dtype);
  if (is_variable(o)) return int(as_variable(o)->value.dtype);
  return -1;
}

static int type_of_all(PyObject* list) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (int t = type_of(PySequence_Fast_GET_ITEM(list, i)); t >= 0) return t;
  return -1;
}

// The common type of the operands if none of them is a tensor: arrays take precedence over numbers, and a
// float among integers makes all of them floats.
static int type_of_values(PyObject* const* items, size_t n) {
  int best = -1;
  for (size_t i = 0; i < n; ++i) {
    PyObject* o = items[i];
    if (!o) continue;
    bool array = !PyFloat_CheckExact(o) && !PyLong_CheckExact(o) && !PyBool_Check(o) && !PyList_Check(o) &&
                 !PyTuple_Check(o);
    int t = int(to_tensor(o)->value.dtype);
    if (array) return t;
    if (best < 0 || (is_int(Dtype(best)) && !is_int(Dtype(t)))) best = t;
  }
  return best;
}

// A tensor, or a symbol, cast to another type, unseen by tapes.
static Ref<TensorObject> as_type(TensorObject* t, Dtype type) {
  if (t->symbol) {
    PyObject* dtype = PyTuple_GET_ITEM(hooks.dtypes, Py_ssize_t(type));
    return to_tensor(Ref<>(checked(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(engine.cast), t,
                                                                dtype, nullptr)))
                         .get());
  }
  if (!t->value.has_value()) no_value();
  Tensor cast = empty(type, t->value.shape);
  run_cast(on_host(t->value), cast);
  return Ref<TensorObject>(new_tensor(std::move(cast)));
}

static Ref<TensorObject> convert_operand(const OpObject* op, const Param& p, PyObject* o, int position,
                                         int common) {
  if (o == Py_None) {
    fail(Code::Value, op->name + ": `" + text_of(p.name) +
                          "` is None; expected a tensor. Hint: a gradient that does not exist is None.");
  }
  switch (p.kind) {
    case ParamKind::Index: {
      Ref<TensorObject> t = to_tensor(o);
      if (t->value.dtype == Dtype::I32 || t->value.dtype == Dtype::I64) return t;
      if (t->value.numel == 0 && !is_tensor(o)) return to_tensor(o, int(Dtype::I32));
      if (!is_int(t->value.dtype))
        fail(Code::Argument, op->name + ": `" + text_of(p.name) +
                                 "` must hold integers; expected int32 or int64; got " +
                                 t->value.spec().str() + ".");
      return as_type(t.get(), Dtype::I64);
    }
    case ParamKind::Condition: {
      Ref<TensorObject> t = to_tensor(o);
      if (t->value.dtype != Dtype::Bool)
        fail(Code::Argument, op->name + ": `" + text_of(p.name) + "` must be bool; got " +
                                 t->value.spec().str() + ". Hint: compare, e.g. x > 0.");
      return t;
    }
    case ParamKind::Free: return to_tensor(o);
    default: {
      int t = type_of(o);
      if (t >= 0 && common >= 0 && t != common)
        mixed_types(op, text_of(p.name), position, Dtype(common),
                    is_tensor(o) ? as_tensor(o)->value.spec() : as_variable(o)->value.spec());
      return to_tensor(o, t >= 0 ? -1 : common);
    }
  }
}

// ---- calls --------------------------------------------------------------------------------

constexpr size_t kMostParams = 16;

// Puts the arguments of a call in the order of the signature.
static void bind(OpObject* op, PyObject* const* args, Py_ssize_t n_args, PyObject* kwnames,
                 PyObject** bound) {
  size_t n = op->params.size();
  if (size_t(n_args) > n)
    fail(Code::Type, op->name + "() takes at most " + std::to_string(n) + " arguments (" +
                         std::to_string(n_args) + " given)");
  for (Py_ssize_t i = 0; i < n_args; ++i) bound[i] = args[i];
  Py_ssize_t n_named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < n_named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    size_t k = 0;
    while (k < n && op->params[k].name != name) ++k;
    if (k == n)
      for (k = 0; k < n && PyUnicode_Compare(op->params[k].name, name) != 0;) ++k;
    if (k == n) fail(Code::Type, op->name + "() got an unexpected keyword argument '" + text_of(name) + "'");
    if (bound[k]) fail(Code::Type, op->name + "() got multiple values for argument '" + text_of(name) + "'");
    bound[k] = args[n_args + i];
  }
  for (size_t k = 0; k < n; ++k)
    if (!bound[k] && !(bound[k] = op->params[k].fallback))
      fail(Code::Type, op->name + "() missing required argument: '" + text_of(op->params[k].name) + "'");
}

static bool wants_fallback(OpObject* op, PyObject** bound) {
  for (size_t k = 0; k < op->params.size(); ++k) {
    const Param& p = op->params[k];
    if (p.kind != ParamKind::Extra || bound[k] == p.fallback) continue;
    int same = PyObject_RichCompareBool(bound[k], p.fallback, Py_EQ);
    if (same < 0) throw PythonError{};
    if (!same) return true;
  }
  return false;
}

// Whether equal objects are identical and immortal, as most attributes are.
static bool is_lasting(const Param& p, PyObject* o) {
  if (o == p.fallback || o == Py_None || PyBool_Check(o)) return true;
  if (PyLong_CheckExact(o)) {
    int overflow;
    long v = PyLong_AsLongAndOverflow(o, &overflow);
    return !overflow && v >= -5 && v <= 256;  // CPython has one object for each of these
  }
  for (int i = 0; i < kDtypes; ++i)
    if (PyTuple_GET_ITEM(hooks.dtypes, i) == o) return true;
  return false;
}

// The attributes of a call, shared by calls with the same such objects and the same rank.
static CallAttrs* parse_attrs(OpObject* op, PyObject** bound, const Tensor* first) {
  constexpr size_t kMostKnown = 16;
  KnownAttrs key{first ? first->shape.rank : 0, {}, nullptr};
  size_t n = 0;
  bool lasting = true;
  for (size_t k = 0; k < op->params.size(); ++k) {
    const Param& p = op->params[k];
    if (!is_attribute(p.kind)) continue;
    lasting =
        lasting && n < std::size(key.objects) && p.kind != ParamKind::Reshape && is_lasting(p, bound[k]);
    if (lasting) key.objects[n] = bound[k];
    ++n;
  }
  if (n == 0) return nullptr;
  if (lasting)
    if (const KnownAttrs* known = op->known.find_if([&](const KnownAttrs& k) {
          return k.rank == key.rank && std::equal(key.objects, key.objects + n, k.objects);
        }))
      return ref(known->attrs);
  auto attrs = std::make_unique<CallAttrs>();
  for (size_t k = 0; k < op->params.size(); ++k) {
    const Param& p = op->params[k];
    if (!is_attribute(p.kind)) continue;
    attrs->kinds.push_back(p.kind);
    attrs->values.values.push_back(parse_attr(p.kind, bound[k], op, p, first));
  }
  if (lasting) {
    Holding hold(ops_lock);
    if (op->known.size() < kMostKnown) {
      key.attrs = ref(attrs.get());
      op->known.add(key);
    }
  }
  return attrs.release();
}

static PyObject* call(OpObject* op, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  PyObject* bound[kMostParams] = {};
  bind(op, args, PyVectorcall_NARGS(nargsf), kwnames, bound);
  if (op->fallback && wants_fallback(op, bound))
    return PyObject_Vectorcall(op->fallback, args, nargsf, kwnames);

  size_t n_params = op->params.size();
  int common = -1;
  Ref<> list;  // the operands of an op that takes a list
  PyObject* plain[kMostParams] = {};
  bool any_common = false;
  for (size_t k = 0; k < n_params && common < 0; ++k) {
    if (op->params[k].kind == ParamKind::Operand) {
      any_common = true;
      common = type_of(bound[k]);
      plain[k] = bound[k];
    } else if (op->params[k].kind == ParamKind::Operands) {
      PyObject* seq = bound[k];
      if (is_tensor(seq) || is_variable(seq) || !PySequence_Check(seq)) {
        // A single tensor is taken as the list of its rows, unless the row has `one_is_all`: tf.concat(x,
        // axis) is x.
        bool whole = (is_tensor(seq) || is_variable(seq)) && op->one_is_all;
        list = Ref<>(checked(whole ? PyTuple_Pack(1, seq) : PySequence_Tuple(seq)));
      } else {
        list = Ref<>(checked(PySequence_Tuple(seq)));  // conversions run Python code, which may change a list
      }
      common = type_of_all(list.get());
      if (common < 0)
        common =
            type_of_values(PySequence_Fast_ITEMS(list.get()), size_t(PySequence_Fast_GET_SIZE(list.get())));
    }
  }
  // If the op has only one type (bool), Python values are converted to it.
  if (any_common && common < 0)
    common = std::has_single_bit(op->dtypes) ? std::countr_zero(op->dtypes) : type_of_values(plain, n_params);
  if (common >= 0 && !(op->dtypes >> common & 1)) wrong_type(op, Dtype(common));

  std::vector<Ref<TensorObject>> operands;
  operands.reserve(4);
  int position = 0;
  for (size_t k = 0; k < n_params; ++k) {
    const Param& p = op->params[k];
    if (!is_operand(p.kind)) continue;
    if (p.kind == ParamKind::Operands) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
        operands.push_back(
            convert_operand(op, p, PySequence_Fast_GET_ITEM(list.get(), i), position++, common));
    } else {
      operands.push_back(convert_operand(op, p, bound[k], position++, common));
    }
  }
  struct Owner {
    CallAttrs* p = nullptr;
    ~Owner() { unref(p); }
  } attrs{parse_attrs(op, bound, operands.empty() ? nullptr : &operands[0]->value)};
  static_assert(sizeof(Ref<TensorObject>) == sizeof(TensorObject*));
  return run_op(op, reinterpret_cast<TensorObject* const*>(operands.data()), int(operands.size()), attrs.p);
}

// A call whose arguments are not all tensors, if the class of one handles it; else nullptr.
static PyObject* handled(OpObject* op, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  if (!has_call_handlers()) return nullptr;
  Ref<> out(checked(handled_call(reinterpret_cast<PyObject*>(op), args, n, kwnames)));
  return out.get() == Py_NotImplemented ? nullptr : out.release();
}

static PyObject* op_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (thread_state().trace_records) return recorded_call(self, args, nargsf, kwnames);
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    OpObject* op = as_op(self);
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    // The usual call of an element-wise op has nothing to parse.
    if (op->kernel && !kwnames) {
      if (n == 1 && op->kernel->arity == 1 && op->params[0].kind == ParamKind::Operand)
        return call_unary(op, args[0]);
      if (n == 2 && op->kernel->arity == 2 && op->params[1].kind == ParamKind::Operand &&
          (type_of(args[0]) >= 0 || type_of(args[1]) >= 0))
        return call_binary(op, args[0], args[1]);
    }
    if (PyObject* out = handled(op, args, n, kwnames)) return out;
    return call(op, args, nargsf, kwnames);
  });
}

PyObject* call_unary(OpObject* op, PyObject* x) {
  if (thread_state().trace_records) return recorded_call(reinterpret_cast<PyObject*>(op), &x, 1, nullptr);
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!is_tensor(x))
      if (PyObject* out = handled(op, &x, 1, nullptr)) return out;
    Ref<TensorObject> t =
        is_tensor(x) ? Ref<TensorObject>::borrow(as_tensor(x)) : convert_operand(op, op->params[0], x, 0, -1);
    if (!in(t->value.dtype, op->dtypes)) wrong_type(op, t->value.dtype);
    TensorObject* operands[] = {t.get()};
    return run_op(op, operands, 1, nullptr);
  });
}

static Ref<TensorObject> to_real(TensorObject* t) {  // integers divide as floats
  return as_type(t, dtype_size(t->value.dtype) <= 2 ? Dtype::F32 : Dtype::F64);
}

PyObject* call_binary(OpObject* op, PyObject* x, PyObject* y) {
  if (thread_state().trace_records) {
    PyObject* args[] = {x, y};
    return recorded_call(reinterpret_cast<PyObject*>(op), args, 2, nullptr);
  }
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (is_tensor(x) && is_tensor(y) && as_tensor(x)->value.dtype == as_tensor(y)->value.dtype &&
        op->kernel && in(as_tensor(x)->value.dtype, op->dtypes)) {
      TensorObject* operands[] = {as_tensor(x), as_tensor(y)};
      return run_op(op, operands, 2, nullptr);
    }
    PyObject* args[] = {x, y};
    if (PyObject* out = handled(op, args, 2, nullptr)) return out;
    if (!op->kernel) return call(op, args, 2, nullptr);
    int common = type_of(x) >= 0 ? type_of(x) : type_of(y);
    Ref<TensorObject> a = convert_operand(op, op->params[0], x, 0, common),
                      b = convert_operand(op, op->params[1], y, 1, common);
    if (op->true_division && is_int(Dtype(common))) a = to_real(a.get()), b = to_real(b.get());
    if (!in(a->value.dtype, op->dtypes)) wrong_type(op, a->value.dtype);
    TensorObject* operands[] = {a.get(), b.get()};
    return run_op(op, operands, 2, nullptr);
  });
}

PyObject* attrs_tuple(CallAttrs* a) {
  if (!a) return names.nothing;
  if (PyObject* known = a->tuple) return known;
  Ref<> made(checked(PyTuple_New(Py_ssize_t(a->kinds.size()))));
  for (size_t k = 0; k < a->kinds.size(); ++k)
    PyTuple_SET_ITEM(made.get(), Py_ssize_t(k), checked(attr_object(a->kinds[k], a->values[k])));
#ifdef Py_GIL_DISABLED
  if (a->tuple.put_first(made.get()) == made.get()) made.release();
#else
  if (!a->tuple) a->tuple = made.release();
#endif
  return a->tuple;
}

// ---- the type -----------------------------------------------------------------------------

static void op_dealloc(PyObject* self) {
  OpObject* op = as_op(self);
  PyTypeObject* type = Py_TYPE(self);
  if (op->weakrefs) PyObject_ClearWeakRefs(self);
  for (Param& p : op->params) {
    Py_XDECREF(p.name);
    Py_XDECREF(p.fallback);
  }
  for (Rule& r : op->rules) Py_XDECREF(r.function);
  Py_XDECREF(op->python);
  Py_XDECREF(op->fallback);
  Py_XDECREF(op->row);
  Py_XDECREF(op->dict);
  op->params.~vector();
  op->rules.~vector();
  op->known.each([](const KnownAttrs& k) { unref(k.attrs); });
  op->known.~Growing();
  op->reads.~Growing();
  op->name.~basic_string();
  type->tp_free(self);
  Py_DECREF(type);
}

// Op(name, native, params, dtypes, rules, flags, python, fallback, row)
//   native: name of the kernel or implementation; "" for an op written in Python
//   params: [(name, kind, default or Op.REQUIRED)]; rules: [(kind, function or None)]
static PyObject* op_new(PyTypeObject* type, PyObject* args, PyObject*) {
  const char *name, *native;
  PyObject *params, *rules, *flags, *python, *fallback, *row;
  unsigned dtypes;
  if (!PyArg_ParseTuple(args, "ssO!IO!O!OOO", &name, &native, &PyList_Type, &params, &dtypes, &PyList_Type,
                        &rules, &PySet_Type, &flags, &python, &fallback, &row))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  OpObject* op = as_op(self);
  new (&op->name) std::string;
  new (&op->params) std::vector<Param>;
  new (&op->rules) std::vector<Rule>;
  new (&op->known) Growing<KnownAttrs>;
  new (&op->reads) Growing<Reads>;
  op->call = op_call;
  op->dtypes = dtypes;
  auto some = [](PyObject* o) { return o == Py_None ? nullptr : Py_NewRef(o); };
  op->python = some(python);
  op->fallback = some(fallback);
  op->row = some(row);
  auto flag = [&](const char* f) {
    Ref<> key(PyUnicode_FromString(f));
    return PySet_Contains(flags, key.get()) == 1;
  };
  op->many = flag("many");
  op->joint = flag("joint");
  op->gaps = flag("gaps");
  op->no_nan = flag("no_nan");
  op->no_zero = flag("no_zero");
  op->no_negative = flag("no_negative");
  op->true_division = flag("true_division");
  op->one_is_all = flag("one_is_all");
  op->differentiable = flag("differentiable");
  PyObject* made = guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    op->name = name;
    if (*native) {
      op->kernel = flag("elementwise") ? find_elementwise(native) : nullptr;
      op->impl = op->kernel ? nullptr : find_impl(native);
      if (!op->kernel && !op->impl)
        fail(Code::Lookup, std::string(name) + ": there is no native kernel named " + native);
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
      const char* p;
      int kind;
      PyObject* fallback_value;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(params, i), "siO", &p, &kind, &fallback_value))
        throw PythonError{};
      bool required = fallback_value == Py_Ellipsis;
      if (kind < 0 || kind > int(ParamKind::Extra))
        fail(Code::Value, std::string(name) + ": there is no such kind of parameter");
      op->params.reserve(op->params.size() + 1);
      op->params.push_back({checked(PyUnicode_InternFromString(p)), ParamKind(kind),
                            required ? nullptr : Py_NewRef(fallback_value)});
    }
    int operands = 0;
    for (const Param& p : op->params) operands += is_operand(p.kind);
    if (op->kernel && op->kernel->arity != operands)
      fail(Code::Value, std::string(name) + ": the kernel has another number of operands");
    if (op->params.size() > kMostParams) fail(Code::Value, std::string(name) + ": too many parameters");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rules); ++i) {
      int kind;
      PyObject* function;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(rules, i), "iO", &kind, &function)) throw PythonError{};
      Rule r;
      if (kind < 0 || kind > int(Rule::Kind::Zero))
        fail(Code::Value, std::string(name) + ": there is no such kind of rule");
      r.kind = Rule::Kind(kind);
      if ((r.kind == Rule::Kind::Derivative || r.kind == Rule::Kind::Vjp) && !PyCallable_Check(function))
        fail(Code::Type, std::string(name) + ": a rule must be a function");
      r.function = some(function);
      op->rules.push_back(r);
    }
    return self;
  });
  if (!made) Py_DECREF(self);
  if (made && (op->kernel || op->impl)) keep_for_ever(self);  // ops of the table live as long as the process
  return made;
}

static PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(as_op(self)->name.c_str()); }
static PyObject* get_row(PyObject* self, void*) {
  return Py_NewRef(as_op(self)->row ? as_op(self)->row : Py_None);
}
static PyObject* get_python(PyObject* self, void*) {
  return Py_NewRef(as_op(self)->python ? as_op(self)->python : Py_None);
}
static PyObject* get_shares(PyObject* self, void*) {
  return PyBool_FromLong(as_op(self)->impl && !as_op(self)->impl->allocates);
}
static PyObject* get_reads(PyObject* self, void*) {
  PyObject* list = PyList_New(0);
  as_op(self)->reads.each([&](const Reads& kind) {
    for (uint64_t bits : kind.masks) {
      Ref<> mask(PyLong_FromUnsignedLongLong(bits));
      PyList_Append(list, mask.get());
    }
  });
  return list;
}
static PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<gradtape op '%s'>", as_op(self)->name.c_str());
}

static PyGetSetDef getset[] = {
    {"op_name", get_name, nullptr, "The name of the op in the table.", nullptr},
    {"row", get_row, nullptr, "The op's row of the table.", nullptr},
    {"_python", get_python, nullptr, "The function of an op written in Python, or None.", nullptr},
    {"_shares", get_shares, nullptr, "Whether a result may share memory with an operand.", nullptr},
    {"_reads", get_reads, nullptr, "Bit masks of the values each rule reads, for each kind of call so far.",
     nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(OpObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OpObject, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, call), READONLY, nullptr},
    {}};
static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(op_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(op_dealloc)},
                              {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                              {Py_tp_repr, reinterpret_cast<void*>(repr)},
                              {Py_tp_getset, getset},
                              {Py_tp_members, members},
                              {}};
static PyType_Spec spec = {"gradtape._core.Op", sizeof(OpObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};

void init_op_type(PyObject* module) {
  OpType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Op", reinterpret_cast<PyObject*>(OpType));
}

}  // namespace gt
