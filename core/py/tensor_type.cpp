// The Python type Tensor: operators, indexing, conversion to Python numbers and NumPy.
#include "../help.h"
#include "device.h"
#include "objects.h"

namespace gt {

PyTypeObject* TensorType;
EngineOps engine;
Hooks hooks;

Names names;

void init_names() {
  const std::pair<PyObject**, const char*> all[] = {{&names.array, "__array__"},
                                                    {&names.assign, "assign"},
                                                    {&names.call, "call"},
                                                    {&names.read, "read"},
                                                    {&names.defer, "__gradtape_defer__"},
                                                    {&names.slow_call, "_call"},
                                                    {&names.symbol_for, "symbol_for"},
                                                    {&names.tensor, "__tf_tensor__"},
                                                    {&names.trace, "trace"},
                                                    {&names.update, "update"}};
  for (auto& [name, text] : all) *name = checked(PyUnicode_InternFromString(text));
  names.nothing = checked(PyTuple_New(0));
  Ref<> operators(checked(PyImport_ImportModule("operator")));
  names.getitem = checked(PyObject_GetAttrString(operators.get(), "getitem"));
}

// Freed objects are kept for reuse, in an intrusive list: most tensors live for one operation.
constexpr int kMostSpare = 1024;
#ifdef Py_GIL_DISABLED
namespace {

std::atomic<uint64_t> numbers_taken{0};
constexpr uint64_t kNumbers = 1024;  // how many a thread reserves at a time

// Per-thread state.
struct Own {
  TensorObject* spare = nullptr;  // `dict` holds the next
  int n_spare = 0;
  uint64_t number = 0, last_number = 0;  // the last one used, and the last one reserved
  bool keeps = false, over = false;
};
GT_NEAR_TLS thread_local constinit Own own;

struct OwnExit {
  ~OwnExit() {
    own.over = true;  // later objects are freed, not kept
    own.keeps = false;
    while (own.spare) {
      TensorObject* t = own.spare;
      own.spare = as_tensor(t->dict);
      PyObject_Free(t);
    }
    own.n_spare = 0;
  }
};

// Whether this thread may keep one more object.
bool keeps() {
  if (!own.keeps && !own.over) {
    static thread_local OwnExit at_exit;
    (void)at_exit;
    own.keeps = true;
  }
  return own.keeps;
}

}  // namespace

uint64_t next_number() {
  if (own.number == own.last_number) {
    own.number = numbers_taken.fetch_add(kNumbers, std::memory_order_relaxed);
    own.last_number = own.number + kNumbers;
  }
  return ++own.number;
}

void number_above(uint64_t seen) {
  if (seen > own.number) [[unlikely]]
    own.number = own.last_number = 0;
}

uint64_t numbers_so_far() {
  own.number = own.last_number = 0;
  return numbers_taken.load(std::memory_order_relaxed);
}
#else
static struct {
  TensorObject* spare = nullptr;
  int n_spare = 0;
} own;
static constexpr bool keeps() { return true; }
#endif

TensorObject* new_tensor() {
  TensorObject* t;
  if (own.spare) {
    t = own.spare;
    own.spare = as_tensor(t->dict);
    --own.n_spare;
    PyObject_Init(reinterpret_cast<PyObject*>(t), TensorType);
  } else {
    t = PyObject_New(TensorObject, TensorType);
    if (!t) throw PythonError{};
  }
  new (&t->value) Tensor;
  new (&t->node) Shared<Node*>(nullptr);
  t->output = 0;
  t->born = next_number();
  t->symbol = t->dict = t->weakrefs = t->variable = t->key = t->device = nullptr;
  return t;
}

TensorObject* new_tensor(Tensor value) {
  TensorObject* t = new_tensor();
  t->value = std::move(value);
  return t;
}

static void tensor_dealloc(PyObject* self) {
  TensorObject* t = as_tensor(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  t->value.~Tensor();
  if (t->node) unref(t->node);
  Py_CLEAR(t->symbol);
  Py_CLEAR(t->dict);
  Py_CLEAR(t->variable);
  Py_CLEAR(t->key);
  Py_CLEAR(t->device);
  if (own.n_spare < kMostSpare && keeps()) {
    t->dict = reinterpret_cast<PyObject*>(own.spare);
    own.spare = t;
    ++own.n_spare;
  } else {
    PyObject_Free(t);
  }
  Py_DECREF(TensorType);
}

// ---- operators ----------------------------------------------------------------------------

static bool is_ours(PyObject* o) { return is_tensor(o) || is_variable(o); }

static Dtype dtype_of(PyObject* o) {
  return is_tensor(o) ? as_tensor(o)->value.dtype : as_variable(o)->value.dtype;
}

// Whether an operator of a tensor or variable takes `o` as the other operand.
static bool takes(PyObject* ours, PyObject* o) {
  return is_ours(o) || converts_quietly(o) ||
         (dtype_of(ours) == Dtype::Str && (PyUnicode_Check(o) || PyBytes_Check(o)));
}

// For an operand that is no tensor and does not implement the operator: the error of its conversion.
static PyObject* refused(PyObject* ours, PyObject* o) {
  Ref<> code(PyLong_FromLong(int(dtype_of(ours))));
  Ref<> t(code ? PyObject_CallFunctionObjArgs(hooks.convert, o, code.get(), nullptr) : nullptr);
  return t ? Py_NewRef(Py_NotImplemented) : nullptr;
}

template <OpObject* EngineOps::*op, class Slot> PyObject* binary(PyObject* x, PyObject* y, Slot slot) {
  if (is_ours(x) ? takes(x, y) : takes(y, x)) return call_binary(engine.*op, x, y);
  if (!is_ours(x)) return refused(y, x);  // Python has tried the operator of x before
  if (PyNumberMethods* methods = Py_TYPE(y)->tp_as_number; methods && methods->*slot) {
    PyObject* out;
    if constexpr (std::is_same_v<Slot, ternaryfunc PyNumberMethods::*>)
      out = (methods->*slot)(x, y, Py_None);
    else
      out = (methods->*slot)(x, y);
    if (out != Py_NotImplemented) return out;
    Py_DECREF(out);
  }
  return refused(x, y);
}
template <OpObject* EngineOps::*op, binaryfunc PyNumberMethods::*slot>
PyObject* binary(PyObject* x, PyObject* y) {
  return binary<op>(x, y, slot);
}
static bool is_bool(PyObject* o) { return is_ours(o) && dtype_of(o) == Dtype::Bool; }
static PyObject* multiply(PyObject* x, PyObject* y) {
  if (is_bool(x) || is_bool(y)) return PyObject_CallFunctionObjArgs(hooks.times_bools, x, y, nullptr);
  return binary<&EngineOps::mul, &PyNumberMethods::nb_multiply>(x, y);
}
template <OpObject* EngineOps::*op> PyObject* unary(PyObject* x) { return call_unary(engine.*op, x); }

// `&`, `|`, `^` are logical on booleans and bitwise on integers.
template <OpObject* EngineOps::*logical, OpObject* EngineOps::*bitwise, binaryfunc PyNumberMethods::*slot>
PyObject* bits(PyObject* x, PyObject* y) {
  Dtype t = dtype_of(is_ours(x) ? x : y);
  return t == Dtype::Bool ? binary<logical, slot>(x, y) : binary<bitwise, slot>(x, y);
}
static PyObject* invert(PyObject* x) {
  return dtype_of(x) == Dtype::Bool ? unary<&EngineOps::logical_not>(x) : unary<&EngineOps::invert>(x);
}
static PyObject* positive(PyObject* x) { return Py_NewRef(x); }
static PyObject* power(PyObject* x, PyObject* y, PyObject*) {
  return binary<&EngineOps::pow>(x, y, &PyNumberMethods::nb_power);
}

PyObject* compare(PyObject* x, PyObject* y, int how) {
  if (!is_ours(x)) Py_RETURN_NOTIMPLEMENTED;
  OpObject* ops[] = {engine.less,      engine.less_equal, engine.equal,
                     engine.not_equal, engine.greater,    engine.greater_equal};
  bool equality = how == Py_EQ || how == Py_NE;
  if (!takes(x, y)) {
    if (equality) return PyBool_FromLong(how == Py_NE);
    if (richcmpfunc theirs = Py_TYPE(y)->tp_richcompare) {
      static const int mirrored[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
      PyObject* out = theirs(y, x, mirrored[how]);
      if (out != Py_NotImplemented) return out;
      Py_DECREF(out);
    }
    return refused(x, y);
  }
  PyObject* result = call_binary(ops[how], x, y);
  // Tensors of different shapes are not equal; different types are an error.
  bool typed = is_ours(y) && dtype_of(x) != dtype_of(y);
  if (!result && equality && !typed && !PyErr_ExceptionMatches(hooks.argument_error) &&
      PyErr_ExceptionMatches(PyTuple_GET_ITEM(hooks.errors, int(Code::InvalidArgument)))) {
    PyErr_Clear();
    return guarded<PyObject*>(
        nullptr, [&] { return reinterpret_cast<PyObject*>(scalar(how == Py_NE, Dtype::Bool).release()); });
  }
  return result;
}

// ---- Python numbers -----------------------------------------------------------------------

// Raises the error for a tensor of a trace that is used where Python needs its value.
static void not_in_graph(const char* use) {
  Ref<> errors(PyImport_ImportModule("gradtape._src.base.errors"));
  Ref<> type(errors ? PyObject_GetAttrString(errors.get(), "OperatorNotAllowedInGraphError") : nullptr);
  if (type)
    PyErr_Format(
        type.get(),
        "%s is not allowed: it has no value while a function is traced. Hint: use tf.cond, tf.while_loop or "
        "tf.map_fn; AutoGraph "
        "does it by itself where it can read the source and is not switched off." GT_MORE("traced-values"),
        use);
}

static PyObject* item_or_error(PyObject* self, const char* what) {
  Tensor* v = &as_tensor(self)->value;
  if (as_tensor(self)->symbol && std::string_view(what) == "bool")
    not_in_graph("Using a symbolic `tf.Tensor` as a Python `bool`");
  else if (as_tensor(self)->symbol)
    PyErr_Format(PyTuple_GET_ITEM(hooks.errors, int(Code::Untraceable)),
                 "a symbolic tensor has no value yet, so it cannot become a Python %s", what);
  else
    return guarded<PyObject*>(nullptr, [&] {
      if (v->numel != 1)
        fail(Code::Type, std::string("only tensors with one element can be converted to a Python ") + what +
                             ", got shape " + v->shape.str());
      if (!v->has_value()) fail(Code::Runtime, "the tensor has no value");
      if (!is_held(v->dtype)) return tensor_item(on_host(*v));
      PyObject* value = held_value(*v);
      if (!value || !v->shape.rank) return value;
      return PyObject_CallMethod(Ref<>(value).get(), "item", nullptr);
    });
  return nullptr;
}
// float() and int() of a complex number take the real part, as in NumPy.
static PyObject* real_part(PyObject* item, PyObject* (*as)(PyObject*)) {
  if (!PyComplex_Check(item)) return as(item);
  Ref<> real(PyFloat_FromDouble(PyComplex_RealAsDouble(item)));
  return real ? as(real.get()) : nullptr;
}
static PyObject* to_float(PyObject* self) {
  if (thread_state().notifies && guarded<int>(-1, [&] { return note_leaving(self), 0; }) < 0) return nullptr;
  Ref<> item(item_or_error(self, "float"));
  return item ? real_part(item.get(), PyNumber_Float) : nullptr;
}
static PyObject* to_int(PyObject* self) {
  Ref<> item(item_or_error(self, "int"));
  return item ? real_part(item.get(), PyNumber_Long) : nullptr;
}
static PyObject* to_index(PyObject* self) {
  if (const Dtype t = as_tensor(self)->value.dtype; !is_int(t)) {
    PyErr_Format(PyExc_TypeError, "only integer scalar tensors can be used as an index, got %s",
                 dtype_name(t));
    return nullptr;
  }
  return to_int(self);
}
static int to_bool(PyObject* self) {
  if (as_tensor(self)->value.numel == 0 && !as_tensor(self)->symbol) return 0;
  if (as_tensor(self)->value.numel != 1 && !as_tensor(self)->symbol) {
    PyErr_SetString(PyExc_ValueError,
                    "The truth value of an array with more than one element is ambiguous. Use "
                    "tf.reduce_any(x) or tf.reduce_all(x)");
    return -1;
  }
  Ref<> item(item_or_error(self, "bool"));
  return item ? PyObject_IsTrue(item.get()) : -1;
}
static PyObject* to_complex(PyObject* self, PyObject*) {
  Ref<> item(item_or_error(self, "complex"));
  return item ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyComplex_Type), item.get()) : nullptr;
}

// ---- sequence -----------------------------------------------------------------------------

static Py_ssize_t length(PyObject* self) {
  const Shape& s = as_tensor(self)->value.shape;
  if (as_tensor(self)->symbol && (s.rank == 0 || s[0] < 0)) {
    PyErr_SetString(
        PyExc_TypeError,
        "len is not well defined for a symbolic Tensor. Please call `x.shape` rather than `len(x)` "
        "for shape information.");
    return -1;
  }
  if (s.rank == 0) {
    PyErr_SetString(PyExc_TypeError, "Scalar tensor has no `len()`");
    return -1;
  }
  return Py_ssize_t(s[0]);
}
static PyObject* item_at(PyObject* self, Py_ssize_t i) {
  if (as_tensor(self)->value.shape.rank && i >= as_tensor(self)->value.shape[0]) {
    PyErr_SetNone(PyExc_IndexError);  // ends iteration
    return nullptr;
  }
  Ref<> key(PyLong_FromSsize_t(i));
  return key ? index_tensor(self, key.get()) : nullptr;
}
static PyObject* iterate(PyObject* self) {
  if (as_tensor(self)->value.shape.rank == 0) {
    PyErr_SetString(PyExc_TypeError, "Cannot iterate over a scalar tensor.");
    return nullptr;
  }
  if (as_tensor(self)->symbol && thread_state().trace) {
    not_in_graph("Iterating over a symbolic `tf.Tensor`");
    return nullptr;
  }
  return PySeqIter_New(self);
}

// ---- attributes ---------------------------------------------------------------------------

// Whether this is a tensor of a trace whose rank is unknown.
static bool has_unknown_rank(PyObject* self) {
  const TensorObject* t = as_tensor(self);
  if (!t->symbol || t->value.shape.rank) return false;
  Ref<> unknown(PyObject_GetAttrString(t->symbol, "unknown_rank"));
  if (!unknown) PyErr_Clear();
  return unknown.get() == Py_True;
}

static PyObject* get_shape(PyObject* self, void*) {
  if (has_unknown_rank(self)) return PyObject_CallOneArg(hooks.shape, Py_None);
  return shape_object(as_tensor(self)->value.shape);
}
static PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(PyTuple_GET_ITEM(hooks.dtypes, int(as_tensor(self)->value.dtype)));
}
static PyObject* get_ndim(PyObject* self, void*) {
  if (has_unknown_rank(self)) Py_RETURN_NONE;
  return PyLong_FromLong(as_tensor(self)->value.shape.rank);
}
static PyObject* get_symbol(PyObject* self, void*) {
  PyObject* s = as_tensor(self)->symbol;
  return Py_NewRef(s ? s : Py_None);
}
static int set_symbol(PyObject* self, PyObject* symbol, void*) {
  Py_XSETREF(as_tensor(self)->symbol, symbol && symbol != Py_None ? Py_NewRef(symbol) : nullptr);
  return 0;
}
static PyObject* get_id(PyObject* self, void*) { return PyLong_FromVoidPtr(self); }
static PyObject* get_tracked(PyObject* self, void*) {
  Node* n = as_tensor(self)->node;
  return PyBool_FromLong(n && n->n_tapes);
}
static PyObject* get_origin(PyObject* self, void*) {
  TensorObject* t = as_tensor(self);
  return t->variable ? PyTuple_Pack(2, t->variable, t->key) : Py_NewRef(Py_None);
}
static PyObject* get_dims(PyObject* self, void*) {
  const Shape& s = as_tensor(self)->value.shape;
  PyObject* dims = PyTuple_New(s.rank);
  for (int i = 0; dims && i < s.rank; ++i)
    PyTuple_SET_ITEM(dims, i, s[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(s[i]));
  return dims;
}
static PyObject* get_born(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(as_tensor(self)->born);
}
static PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(as_tensor(self)->value.nbytes());
}
static PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(as_tensor(self)->value.numel); }
static PyObject* detach(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    TensorObject* t = new_tensor(as_tensor(self)->value);
    t->symbol = Py_XNewRef(as_tensor(self)->symbol);
    return reinterpret_cast<PyObject*>(t);
  });
}
static Py_hash_t unhashable(PyObject*) {
  PyErr_SetString(PyExc_TypeError, "Tensor is unhashable. Instead, use tensor.ref() as the key.");
  return -1;
}

static PyGetSetDef getset[] = {
    {"shape", get_shape, nullptr, "The shape, a TensorShape.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type, a DType.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"_symbol", get_symbol, set_symbol, nullptr, nullptr},
    {"_id", get_id, nullptr, nullptr, nullptr},
    {"_tracked", get_tracked, nullptr, "Whether a tape tracks this tensor.", nullptr},
    {"_origin", get_origin, nullptr, "(variable, key) of a tensor that was read by variable[key].", nullptr},
    {"_dims", get_dims, nullptr, "The shape as a tuple of ints, quicker than `shape`.", nullptr},
    {"_born", get_born, nullptr, "How many tensors were made before this one.", nullptr},
    {"_nbytes", get_nbytes, nullptr, nullptr, nullptr},
    {"_numel", get_size, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
static PyMethodDef methods[] = {{"__complex__", to_complex, METH_NOARGS, nullptr},
                                {"_detach", detach, METH_NOARGS, "The same value, on no tape."},
                                {}};
static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {}};

#define SLOT(slot, f) \
  { slot, reinterpret_cast<void*>(f) }
#define GT_NUMBER_SLOTS                                                                                    \
  SLOT(Py_nb_add, (binary<&EngineOps::add, &PyNumberMethods::nb_add>)),                                    \
      SLOT(Py_nb_subtract, (binary<&EngineOps::sub, &PyNumberMethods::nb_subtract>)),                      \
      SLOT(Py_nb_multiply, multiply),                                                                      \
      SLOT(Py_nb_true_divide, (binary<&EngineOps::div, &PyNumberMethods::nb_true_divide>)),                \
      SLOT(Py_nb_floor_divide, (binary<&EngineOps::floordiv, &PyNumberMethods::nb_floor_divide>)),         \
      SLOT(Py_nb_remainder, (binary<&EngineOps::mod, &PyNumberMethods::nb_remainder>)),                    \
      SLOT(Py_nb_power, power), SLOT(Py_nb_negative, (unary<&EngineOps::neg>)),                            \
      SLOT(Py_nb_positive, positive), SLOT(Py_nb_absolute, (unary<&EngineOps::abs>)),                      \
      SLOT(Py_nb_invert, invert),                                                                          \
      SLOT(Py_nb_and, (bits<&EngineOps::logical_and, &EngineOps::bitwise_and, &PyNumberMethods::nb_and>)), \
      SLOT(Py_nb_or, (bits<&EngineOps::logical_or, &EngineOps::bitwise_or, &PyNumberMethods::nb_or>)),     \
      SLOT(Py_nb_xor, (bits<&EngineOps::logical_xor, &EngineOps::bitwise_xor, &PyNumberMethods::nb_xor>)), \
      SLOT(Py_nb_lshift, (binary<&EngineOps::left_shift, &PyNumberMethods::nb_lshift>)),                   \
      SLOT(Py_nb_rshift, (binary<&EngineOps::right_shift, &PyNumberMethods::nb_rshift>)),                  \
      SLOT(Py_nb_matrix_multiply, (binary<&EngineOps::matmul, &PyNumberMethods::nb_matrix_multiply>)),     \
      SLOT(Py_tp_richcompare, compare)

static PyType_Slot slots[] = {GT_NUMBER_SLOTS,
                              SLOT(Py_tp_dealloc, tensor_dealloc),
                              SLOT(Py_tp_hash, unhashable),
                              SLOT(Py_nb_float, to_float),
                              SLOT(Py_nb_int, to_int),
                              SLOT(Py_nb_index, to_index),
                              SLOT(Py_nb_bool, to_bool),
                              SLOT(Py_sq_length, length),
                              SLOT(Py_sq_item, item_at),
                              SLOT(Py_mp_subscript, index_tensor),
                              SLOT(Py_tp_iter, iterate),
                              SLOT(Py_bf_getbuffer, tensor_buffer),
                              SLOT(Py_bf_releasebuffer, tensor_release_buffer),
                              SLOT(Py_tp_getset, getset),
                              SLOT(Py_tp_methods, methods),
                              SLOT(Py_tp_members, members),
                              {}};
static PyType_Spec spec = {"gradtape.Tensor", sizeof(TensorObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

// The same operators for the native part of Variable.
PyType_Slot* number_slots() {
  static PyType_Slot shared[] = {GT_NUMBER_SLOTS, {}};
  return shared;
}

// ---- numpy ------------------------------------------------------------------------------------

// The method `numpy`, which tensors without a value do not have: programs test that with `hasattr(x,
// "numpy")`. A call does not bind it first (Py_TPFLAGS_METHOD_DESCRIPTOR), so it is as fast as any method.
namespace {

struct NumpyMethod {
  PyObject_HEAD vectorcallfunc call;
};

PyObject* numpy_call(PyObject*, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (n < 1 || !PyObject_TypeCheck(args[0], TensorType)) {
    PyErr_SetString(PyExc_TypeError, "Tensor.numpy() is a method of a tensor");
    return nullptr;
  }
  if (n > 1) {
    PyErr_Format(PyExc_TypeError, "Tensor.numpy() takes no arguments (%zd given)", n - 1);
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] { return tensor_to_numpy(as_tensor(args[0])); });
}

PyObject* numpy_get(PyObject* self, PyObject* tensor, PyObject*) {
  if (!tensor || tensor == Py_None) return Py_NewRef(self);
  if (!as_tensor(tensor)->value.has_value()) return tensor_to_numpy(as_tensor(tensor));  // the error
  return PyMethod_New(self, tensor);
}

PyObject* numpy_name(PyObject*, void*) { return PyUnicode_FromString("numpy"); }

PyMemberDef numpy_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(NumpyMethod, call), READONLY, nullptr}, {}};
PyGetSetDef numpy_getset[] = {{"__name__", numpy_name, nullptr, nullptr, nullptr}, {}};
PyType_Slot numpy_slots[] = {
    SLOT(Py_tp_call, PyVectorcall_Call),
    SLOT(Py_tp_descr_get, numpy_get),
    SLOT(Py_tp_members, numpy_members),
    SLOT(Py_tp_getset, numpy_getset),
    SLOT(Py_tp_doc, const_cast<char*>("The value as a NumPy array (a copy) or NumPy scalar.")),
    {}};
PyType_Spec numpy_spec = {"gradtape._core.NumpyMethod", sizeof(NumpyMethod), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                              Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          numpy_slots};

}  // namespace

void init_tensor_type(PyObject* module) {
  TensorType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  keep_for_ever(reinterpret_cast<PyObject*>(TensorType));
  Ref<> kind(checked(PyType_FromSpec(&numpy_spec)));
  auto* type = reinterpret_cast<PyTypeObject*>(kind.get());
  Ref<> method(checked(type->tp_alloc(type, 0)));
  reinterpret_cast<NumpyMethod*>(method.get())->call = numpy_call;
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(TensorType), "numpy", method.get()) < 0)
    throw PythonError{};
  PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(TensorType));
}

void set_engine_op(const char* name, PyObject* op) {
  static const struct {
    const char* name;
    OpObject* EngineOps::*slot;
  } table[] = {
#define GT_ENGINE(n) {#n, &EngineOps::n}
      GT_ENGINE(add),          GT_ENGINE(sub),           GT_ENGINE(mul),         GT_ENGINE(div),
      GT_ENGINE(floordiv),     GT_ENGINE(mod),           GT_ENGINE(pow),         GT_ENGINE(neg),
      GT_ENGINE(abs),          GT_ENGINE(invert),        GT_ENGINE(logical_not), GT_ENGINE(matmul),
      GT_ENGINE(equal),        GT_ENGINE(not_equal),     GT_ENGINE(less),        GT_ENGINE(less_equal),
      GT_ENGINE(greater),      GT_ENGINE(greater_equal), GT_ENGINE(logical_and), GT_ENGINE(logical_or),
      GT_ENGINE(logical_xor),  GT_ENGINE(bitwise_and),   GT_ENGINE(bitwise_or),  GT_ENGINE(bitwise_xor),
      GT_ENGINE(left_shift),   GT_ENGINE(right_shift),   GT_ENGINE(sum_to),      GT_ENGINE(conj),
      GT_ENGINE(real),         GT_ENGINE(mul_no_nan),    GT_ENGINE(zero),        GT_ENGINE(index),
      GT_ENGINE(index_update), GT_ENGINE(cast)
#undef GT_ENGINE
  };
  for (auto& row : table)
    if (std::string_view(row.name) == name) {
      engine.*row.slot = as_op(Py_NewRef(op));
      return;
    }
  fail(Code::Value, std::string("the engine uses no op named ") + name);
}

void raise(const Error& e) {
  PyObject* make = !hooks.errors              ? PyExc_RuntimeError
                   : e.code == Code::Argument ? hooks.argument_error
                                              : PyTuple_GET_ITEM(hooks.errors, int(e.code));
  Ref<> text(PyUnicode_DecodeUTF8(e.text.data(), Py_ssize_t(e.text.size()), "replace"));
  if (!text) return;
  Ref<> error(PyObject_CallOneArg(make, text.get()));
  if (error) PyErr_SetObject((PyObject*)Py_TYPE(error.get()), error.get());
}

void locate_exception(const void* where) {
  if (!where) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref<> done(PyObject_CallFunctionObjArgs(hooks.locate, value, const_cast<void*>(where), nullptr));
  if (!done) PyErr_Clear();  // the exception itself matters more
  PyErr_Restore(type, value, traceback);
}

std::string text_of(PyObject* str) {
  Ref<> bytes(PyUnicode_AsEncodedString(str, "utf-8", "backslashreplace"));
  if (bytes) return PyBytes_AS_STRING(bytes.get());
  PyErr_Clear();
  return "?";
}

}  // namespace gt
