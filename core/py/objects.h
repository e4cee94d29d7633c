// The Python objects of the core and what they are made of: Tensor, Variable, Op, Tape, and the
// nodes of the recorded graph. Written against CPython directly, because every microsecond of
// an eager operation is spent here.
#pragma once
#include <cstddef>
#include <Python.h>
#include <structmember.h>

#include <string>
#include <vector>

#include "../kernels/loops.h"
#include "../op.h"
#include "../step_error.h"
#include "lock.h"
#include "sharing.h"
#include "thread_state.h"

namespace gt {

struct Node;
struct Tape;
struct OpObject;

// Thrown when a Python exception is already set.
struct PythonError {};

inline PyObject* checked(PyObject* o) {
  if (!o) throw PythonError{};
  return o;
}

// Clears an exception that the caller handles. KeyboardInterrupt, SystemExit and MemoryError are rethrown.
inline void clear_exception() {
  if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
    throw PythonError{};
  PyErr_Clear();
}

// Owns a reference to a Python object.
template <class T = PyObject> class Ref {
 public:
  Ref() = default;
  explicit Ref(T* owned) : p_(owned) {}
  Ref(Ref&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  Ref(const Ref& o) : p_(o.p_) { Py_XINCREF(reinterpret_cast<PyObject*>(p_)); }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(reinterpret_cast<PyObject*>(p_)); }
  static Ref borrow(T* p) {
    Py_XINCREF(reinterpret_cast<PyObject*>(p));
    return Ref(p);
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  T* release() {
    T* p = p_;
    p_ = nullptr;
    return p;
  }
  PyObject* object() const { return reinterpret_cast<PyObject*>(p_); }

 private:
  T* p_ = nullptr;
};

// ---- Tensor -------------------------------------------------------------------------------

struct TensorObject {
  PyObject_HEAD Tensor value;
  Shared<Node*> node;  // the record it is a result of, if a tape tracks it; owned
  uint32_t output;     // which of the node's results it is
  uint64_t born;       // its number among all tensors and records, in the order of creation
  PyObject* symbol;    // a tensor of a trace: the object that writes calls on it into the graph; owned
  PyObject* dict;      // attributes that other libraries set (Keras masks)
  PyObject* weakrefs;
  PyObject *variable, *key;  // what `variable[key]` gave can be assigned to; owned
  PyObject* device;          // an array on a device with the same value (see device.h); owned
};
extern PyTypeObject* TensorType;
inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == TensorType; }
inline TensorObject* as_tensor(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }
// Tensors and records are numbered in the order of creation. `next_number`: the next number of this thread,
// above all earlier ones. `number_above`: the same, and above a given number, perhaps of another thread.
// `numbers_so_far`: at least the number of every existing tensor and record; later ones of this thread are
// above it.
#ifdef Py_GIL_DISABLED
uint64_t next_number();
void number_above(uint64_t seen);
uint64_t numbers_so_far();
#else
inline constinit uint64_t last_number = 0;
inline uint64_t next_number() { return ++last_number; }
inline void number_above(uint64_t) {}
inline uint64_t numbers_so_far() { return last_number; }
#endif
TensorObject* new_tensor();              // empty, owned by the caller
TensorObject* new_tensor(Tensor value);  // owned by the caller
void init_tensor_type(PyObject* module);

// ---- Variable -----------------------------------------------------------------------------

// The native part of tf.Variable: a value that changes, and the leaf all its reads belong to.
struct VariableObject {
  PyObject_HEAD Tensor value;  // its type does not change, and may be read without the lock
  Mutex lock;                  // of the value: see core/py/lending.h
  Shared<uint32_t> lent;       // nonzero: a run is overwriting the elements
  Node* leaf;
  uint64_t uid;  // order of construction
  Shared<bool> trainable;
  PyObject* declared;  // its TensorShape, if some sizes are unknown; owned
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject* VariableType;
inline bool is_variable(PyObject* o) { return PyObject_TypeCheck(o, VariableType); }
inline VariableObject* as_variable(PyObject* o) { return reinterpret_cast<VariableObject*>(o); }
Ref<TensorObject> read_variable(VariableObject*);  // and notes the read on the active tapes
void init_variable_type(PyObject* module);

// ---- Op -----------------------------------------------------------------------------------

// What a parameter of an op may be. gradtape/_src/ops/table.py writes signatures with these names.
// clang-format off
#define GT_PARAM_KINDS(X)                                                                              \
  X(Operand)   /* a tensor of the op's common type */                                                  \
  X(Index)     /* a tensor of int32 or int64 */                                                        \
  X(Condition) /* a tensor of bool */                                                                  \
  X(Free)      /* a tensor of any type of its own */                                                   \
  X(Operands)  /* a list of tensors of the common type */                                              \
  X(Axes) X(Axis) X(NewAxis) X(Perm) X(Shape) X(Reshape) X(Int) X(Ints) X(Float) X(Bool) X(Dtype)      \
  X(Object)                                                                                            \
  X(Ignored)   /* accepted for compatibility (`name`) */                                               \
  X(Extra)     /* anything but its default hands the call to the op's Python fallback */
// clang-format on
#define GT_NAME(name) name,
enum class ParamKind : uint8_t { GT_PARAM_KINDS(GT_NAME) };
constexpr bool is_operand(ParamKind k) { return k <= ParamKind::Operands; }
constexpr bool is_attribute(ParamKind k) { return !is_operand(k) && k < ParamKind::Ignored; }

struct Param {
  PyObject* name;  // interned; owned
  ParamKind kind;
  PyObject* fallback;  // the default; nullptr: required; owned
};

// How the gradient of one operand is computed from the cotangent.
struct Rule {
#define GT_RULE_KINDS(X) X(None) X(One) X(MinusOne) X(Derivative) X(Vjp) X(Zero)
  enum class Kind : uint8_t { GT_RULE_KINDS(GT_NAME) } kind = Kind::None;
  PyObject* function = nullptr;  // Derivative: (operands..., out); Vjp: (g, operands..., out, attrs...)
};

// Which values the rules of an op read, for calls of one kind (see record.cpp).
struct Reads {
  uint64_t call;
  std::vector<uint64_t> masks;  // one per rule; bit k: value k (operands, then results) is read
};

struct CallAttrs;

// Parsed attributes, cached by the objects they were parsed from.
struct KnownAttrs {
  int rank;
  PyObject* objects[4];
  CallAttrs* attrs;  // owned
};

struct OpObject {
  PyObject_HEAD vectorcallfunc call;
  std::string name;
  const Elementwise* kernel;  // element-wise ops
  const Impl* impl;           // all other native ops
  PyObject* python;           // ops of the user's: forward(operands..., attrs...) in Python
  PyObject* fallback;         // Python function for calls with Extra arguments
  PyObject* row;              // the row of the op table (Python)
  std::vector<Param> params;
  DtypeSet dtypes;  // allowed common types
  Growing<KnownAttrs> known;
  std::vector<Rule> rules;  // one per operand; one for all when `joint` or variadic
  bool many;                // results come as a tuple, even when there is one
  bool joint;               // rules[0] returns the gradients of all operands
  bool gaps;                // rules see None, not zeros, for a result without a cotangent
  bool no_zero;             // an integer zero as second operand is an error
  bool no_negative;         // a negative integer as second operand is an error
  bool true_division;       // integers divide as floats
  bool one_is_all;          // a tensor in place of a list is its only element, not the list of its rows
  bool no_nan;              // a zero cotangent gives a zero gradient even at a pole
  bool differentiable;
  Growing<Reads> reads;  // filled by the first recorded call of each kind
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject* OpType;
inline bool is_op(PyObject* o) { return Py_TYPE(o) == OpType; }
inline OpObject* as_op(PyObject* o) { return reinterpret_cast<OpObject*>(o); }
void init_op_type(PyObject* module);
extern Spin& ops_lock;  // of the caches of ops

// Attributes of one call, shared by its record.
struct CallAttrs {
  Count refs = 1;
  Attrs values;
  std::vector<ParamKind> kinds;
  Shared<PyObject*> tuple = nullptr;  // the same as Python values, made when first needed
  ~CallAttrs() {
    Py_XDECREF(static_cast<PyObject*>(tuple));
    for (Attr& a : values.values)
      if (a.kind == Attr::Kind::Object) Py_XDECREF(static_cast<PyObject*>(a.object));
  }
};
inline void unref(CallAttrs* a) {
  if (a && a->refs.take()) delete a;
}
inline CallAttrs* ref(CallAttrs* a) {
  if (a) a->refs.add();
  return a;
}
PyObject* attrs_tuple(CallAttrs* a);  // borrowed; an empty tuple for nullptr

// Runs `op` on operands that are tensors already. The result is a Tensor, or a tuple of them.
// `attrs` is borrowed (nullptr: none).
PyObject* run_op(OpObject* op, TensorObject* const* operands, int n, CallAttrs* attrs);
[[noreturn]] void no_value();  // for an operand that has no elements and does not belong to the trace
void infer_results(OpObject* op, const Tensor* const* in, int n, CallAttrs* attrs, Outs& outs);
PyObject* call_binary(OpObject* op, PyObject* x, PyObject* y);  // one of them is a tensor or variable
PyObject* call_unary(OpObject* op, PyObject* x);

// Operations the engine itself uses, by name; set from Python once the table is complete.
struct EngineOps {
  OpObject *add, *sub, *mul, *div, *floordiv, *mod, *pow, *neg, *abs, *invert, *logical_not, *matmul, *equal,
      *not_equal, *less, *less_equal, *greater, *greater_equal, *logical_and, *logical_or, *logical_xor,
      *bitwise_and, *bitwise_or, *bitwise_xor, *left_shift, *right_shift, *sum_to, *conj, *real, *mul_no_nan,
      *zero, *index, *index_update, *cast;
};
extern EngineOps engine;
void set_engine_op(const char* name, PyObject* op);

// ---- conversion ---------------------------------------------------------------------------

// Any Python object as a tensor. dtype < 0: the type is inferred; otherwise the value must fit.
Ref<TensorObject> to_tensor(PyObject* o, int dtype = -1);
bool converts_quietly(PyObject* o);  // numbers, lists, arrays: what an operator accepts beside a tensor
Ref<TensorObject> scalar(double v, Dtype t);
Dtype dtype_code(long long code);  // throws if there is no such type
Attr parse_attr(ParamKind kind, PyObject* value, const OpObject* op, const Param& param, const Tensor* first);
PyObject* attr_object(ParamKind kind, const Attr& a);   // new reference
PyObject* shape_object(const Shape& s);                 // a TensorShape; new reference
PyObject* index_tensor(PyObject* self, PyObject* key);  // x[key]
CallAttrs* index_attrs(const Shape& shape,
                       PyObject* key);  // begin, step, size, shape of x[key]; nullptr: a mask or the like
PyObject* tensor_to_numpy(TensorObject* t);  // a copy
PyObject* tensor_item(const Tensor& t);      // Python number of a one-element tensor
int tensor_buffer(PyObject* self, Py_buffer* view, int flags);
void tensor_release_buffer(PyObject* self, Py_buffer* view);
void init_exchange(PyObject* module);
void init_data(PyObject* module);
void init_records(PyObject* module);
void init_boxes(PyObject* module);
void init_images(PyObject* module);

// Python functions that the core calls in rare cases; set once from gradtape/_src/tensors/hooks.py.
struct Hooks {
  PyObject *convert,    // (object, dtype code or -1) -> Tensor
      *shape,           // tuple of ints -> TensorShape
      *dtypes,          // tuple of DType by code
      *reads,           // (op, operands, outputs, attrs) -> list of bit masks
      *index,           // (tensor, key) -> Tensor: masks and other rare keys
      *accumulate,      // (g, h) -> g + h, one of them not a Tensor
      *densify,         // IndexedSlices -> Tensor
      *errors,          // tuple of exception classes by Code
      *graph_inputs,    // list of (dtype, shape) -> (graph, symbolic tensors)
      *graph_program,   // (graph, results) -> (Program, descriptions of the results)
      *not_compiled,    // (exception, whether all rules are ours) -> None: a pass could not be compiled
      *slices,          // (values, indices, dense shape) -> IndexedSlices
      *dtype_code,      // anything that names a type -> code
      *np_empty,        // numpy.empty
      *np_dtypes,       // tuple of NumPy types by code
      *argument_error,  // the exception class of Code::Argument
      *fetch,           // an array on a device -> its bytes on the host
      *held,    // (op, operands, attributes) -> the result of an op on values that Python holds, or a tuple
      *stored,  // (bits, type's code) -> what numpy() gives for a type that is only stored
      *times_bools,  // (x, y) -> x * y, one of them a tensor of bools
      *locate;       // (exception, line): names the line of the user's program in the exception
};
extern Hooks hooks;

// Names of methods that the core calls, and other Python objects that it needs. Made with the module and not
// on first use: a thread waiting for another to make one could not be paused by Python.
struct Names {
  PyObject *array, *assign, *call, *defer, *read, *slow_call, *symbol_for, *tensor, *trace, *update, *nothing,
      *getitem;
};
extern Names names;
void init_names();

// The trace and the tracker of this thread, or null. To be read once: without the interpreter's lock another
// thread may leave their scope, and the next look at the state finds that.
inline Ref<> current_trace() { return Ref<>::borrow(thread_state().trace); }
inline Ref<> current_tracker() { return Ref<>::borrow(thread_state().tracker); }
std::vector<Ref<>> current_watchers();  // of the ops of this thread
// The tapes of this thread that record now.
std::vector<Ref<>> current_tapes();

// Notifies the watchers, if there are any, that a tensor is converted to NumPy or Python values.
void note_leaving(PyObject* tensor);

// ---- the recorded graph -------------------------------------------------------------------

struct Edge {
  Node* node;  // owned; nullptr: not tracked
  uint32_t output;
};

struct TapeLink {
  Tape* tape;
  uint32_t at;  // index of the node in tape->nodes
};

// One recorded call, or a leaf (a watched tensor, a variable). It lives as long as one of its results or a
// later record refers to it. Tapes do not own nodes; nodes point to their tapes.
struct Node {
  Count refs;
  int32_t n_in, n_out;
  Spin lock;             // of its links to tapes
  bool explicit_values;  // closures: called with cotangents, operands and results
  uint8_t rank;          // the highest of its values, which are allocated without room for more sizes
  bool in_slab;          // of slabs.h
  union {
    uint64_t seq;  // order of recording, a topological order
    Node* next;    // of a node without references: the next one to be freed
  };
  OpObject* op;  // nullptr: a leaf
  CallAttrs* attrs;
  PyObject* closure;   // custom gradients: called with the cotangents
  PyObject** symbols;  // of the values, when the call was traced; owned
  Shared<uint32_t> n_tapes;
  uint32_t place;  // its index in the last backward pass that visited it, see pass.h
  TapeLink tape[2];
  std::vector<TapeLink>* more_tapes;  // from the third on
  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  // Operands, then results. A tensor takes only the room its rank needs: a record of scalars, a third.
  Tensor& value(int i) {
    return *reinterpret_cast<Tensor*>(reinterpret_cast<char*>(edges() + n_in) +
                                      size_t(i) * value_bytes(rank));
  }
  static constexpr size_t value_bytes(int rank) {
    return offsetof(Tensor, shape) + offsetof(Shape, dims) + size_t(rank) * sizeof(int64_t);
  }
  TapeLink& link(uint32_t i) { return i < 2 ? tape[i] : (*more_tapes)[i - 2]; }
};
// The record of a tensor, or the leaf of a variable; nullptr: no tape tracks it.
inline Node* node_of(PyObject* o) {
  if (is_tensor(o)) return as_tensor(o)->node;
  return is_variable(o) ? as_variable(o)->leaf : nullptr;
}
Node* new_leaf();
inline Node* ref(Node* n) {
  if (n) n->refs.add();
  return n;
}
void unref(Node* n);  // needs no memory
bool on_tape(Node* n, const Tape* t);

struct Tape {
  PyObject_HEAD Context context;  // entered while it records
  enum class Stage : uint8_t { New, Open, Used } stage;
  bool persistent, watch_accessed;
  bool variables_only;               // only lists the variables that are read, and records nothing
  std::vector<Node*> nodes;          // not owned
  std::vector<PyObject*> variables;  // owned; in order of first access
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject* TapeType;
void init_tape_type(PyObject* module);

bool join_tape(Node* n, Tape* t);   // false: it was there already
void leave_tape(Node* n, Tape* t);  // a node on no tape is emptied of its values and edges
bool leave_tape(Tape* t);           // the last node of the tape leaves; false: there is none
// Guards the lists of a tape. Tapes share locks, which outlive them all.
Spin& lock_of(const Tape* t);
// The nodes that are on a tape now, with references: other threads may release theirs meanwhile.
struct HeldNodes : std::vector<Node*> {
  explicit HeldNodes(const Tape* t);
  HeldNodes(const HeldNodes&) = delete;
  ~HeldNodes() {
    for (Node* n : *this) unref(n);
  }
};

// Records a call on every active tape that tracks one of its operands.
void record(OpObject* op, CallAttrs* attrs, TensorObject* const* in, int n_in, TensorObject* const* out,
            int n_out);
// Records results whose gradient a Python function computes from their cotangents. If `keep` is not -1, the
// function is called with (cotangents, operands, results), of which the values in the mask are kept.
void record_closure(PyObject* closure, TensorObject* const* in, int n_in, TensorObject* const* out, int n_out,
                    bool explicit_values = false, uint64_t keep = 0);
void touch_variable(VariableObject* v);
void add_variable(Tape* t, VariableObject* v);  // whose leaf has joined the tape

// ---- errors -------------------------------------------------------------------------------

void raise(const Error& e);      // sets the Python exception
void raise(const StepError& e);  // the same, with what an op called by itself would say, and the line
// Names the line of the user's program, an object given with a step, in the exception that is set.
void locate_exception(const void* where);
std::string text_of(PyObject* str);  // for messages: what is not valid UTF-8 is replaced
// Calls f and turns C++ exceptions into a Python exception and `failed`.
template <class R, class F> R guarded(R failed, F&& f) noexcept {
  try {
    return f();
  } catch (const PythonError&) {
  } catch (const StepError& e) {
    raise(e);
  } catch (const Error& e) {
    raise(e);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  GT_CATCH_THREAD_END
  return failed;
}

}  // namespace gt
