// Nodes of the recorded graph: how they are made, shared between tapes, and let go.
#include <algorithm>
#include <new>

#include "objects.h"
#include "../slabs.h"

namespace gt {

// Nodes in a list through themselves: to let go of nodes must not need memory.
class NodeList {
 public:
  bool empty() const { return !first_; }
  void push(Node* n) {
    n->next = first_;
    first_ = n;
  }
  Node* pop() {
    Node* n = first_;
    first_ = n->next;
    return n;
  }

 private:
  Node* first_ = nullptr;
};

static Slabs slabs;

static Node* new_node(OpObject* op, int n_in, int n_out, int rank) {
  size_t bytes = sizeof(Node) + size_t(n_in) * sizeof(Edge);
  if (rank >= 0) bytes += size_t(n_in + n_out) * Node::value_bytes(rank);
  const bool small = bytes <= Slabs::kLargest;
  void* block = small ? slabs.take(bytes) : ::operator new(bytes);
  Node* n = new (block) Node{};
  n->refs = 1;
  n->n_in = n_in;
  n->n_out = n_out;
  n->rank = uint8_t(std::max(rank, 0));
  n->in_slab = small;
  n->seq = ++tensor_count;  // the same count as for tensors: what is older than a trace can be told
  n->op = op;
  return n;
}

static void free_node(Node* n) {
  if (n->in_slab)
    slabs.give(n);
  else
    ::operator delete(n);
}

Node* new_leaf() { return new_node(nullptr, 0, 1, -1); }

static int highest_rank(TensorObject* const* in, int n_in, TensorObject* const* out, int n_out) {
  int rank = 0;
  for (int i = 0; i < n_in; ++i) rank = std::max<int>(rank, in[i]->value.shape.rank);
  for (int k = 0; k < n_out; ++k) rank = std::max<int>(rank, out[k]->value.shape.rank);
  return rank;
}

// Leaves keep no values, so only recorded calls have any to construct and destroy.
static bool has_values(Node* n) { return n->op || n->closure; }

static void unlink_from(Node* n, uint32_t k) {
  TapeLink link = n->link(k);
  auto& nodes = link.tape->nodes;
  Node* moved = nodes.back();
  nodes[link.at] = moved;
  nodes.pop_back();
  if (moved != n)
    for (uint32_t i = 0; i < moved->n_tapes; ++i)
      if (moved->link(i).tape == link.tape) moved->link(i).at = link.at;
  n->link(k) = n->link(n->n_tapes - 1);
  --n->n_tapes;
  if (n->more_tapes && n->n_tapes >= 2) n->more_tapes->resize(n->n_tapes - 2);
}

// Takes one reference away. A node without any leaves its tapes at once, so that nobody finds it there, and
// waits on `released`.
static void let_go(Node* n, NodeList& released) {
  if (--n->refs) return;
  while (n->n_tapes) unlink_from(n, n->n_tapes - 1);
  n->refs = 1;
  released.push(n);
}

// Empties a node; the nodes it pointed at are let go of, not freed, so that a chain of a million
// records is taken apart by a loop and not by recursion. Letting go of Python objects may run any
// code, this function on the same node included: the node is a leaf before that, and the caller
// keeps it alive.
static void empty_node(Node* n, NodeList& released) {
  if (!has_values(n)) return;
  int n_in = n->n_in, count = n->n_in + n->n_out;
  Edge* edges = n->edges();
  char* value = reinterpret_cast<char*>(edges + n_in);
  const size_t bytes = Node::value_bytes(n->rank);
  CallAttrs* attrs = n->attrs;
  PyObject *closure = n->closure, **symbols = n->symbols;
  n->op = nullptr;
  n->attrs = nullptr;
  n->closure = nullptr;
  n->symbols = nullptr;
  n->n_in = 0;
  for (int i = 0; i < n_in; ++i)
    if (edges[i].node) let_go(edges[i].node, released);
  for (int i = 0; i < count; ++i, value += bytes) reinterpret_cast<Tensor*>(value)->~Tensor();
  for (int i = 0; symbols && i < count; ++i) Py_XDECREF(symbols[i]);
  delete[] symbols;
  unref(attrs);
  Py_XDECREF(closure);
}

static void free_all(NodeList& released) {
  while (!released.empty()) {
    Node* n = released.pop();
    empty_node(n, released);
    delete n->more_tapes;
    free_node(n);
  }
}

void unref(Node* n) {
  if (!n) return;
  if (n->refs > 1) {
    --n->refs;
    return;
  }
  NodeList released;
  let_go(n, released);
  free_all(released);
}

bool on_tape(Node* n, const Tape* t) {
  for (uint32_t i = 0; i < n->n_tapes; ++i)
    if (n->link(i).tape == t) return true;
  return false;
}

void join_tape(Node* n, Tape* t) {
  if (on_tape(n, t)) return;
  TapeLink link{t, uint32_t(t->nodes.size())};
  t->nodes.push_back(n);
  if (n->n_tapes < 2) {
    n->tape[n->n_tapes] = link;
  } else {
    if (!n->more_tapes) n->more_tapes = new std::vector<TapeLink>;
    n->more_tapes->push_back(link);
  }
  ++n->n_tapes;
}

void leave_tape(Node* n, Tape* t) {
  for (uint32_t i = 0; i < n->n_tapes; ++i)
    if (n->link(i).tape == t) {
      unlink_from(n, i);
      break;
    }
  if (n->n_tapes) return;
  NodeList released;
  ref(n);
  empty_node(n, released);
  let_go(n, released);
  free_all(released);
}

// The active tapes that track one of the operands: any number, but seldom more than a few.
class Tracking {
 public:
  Tracking(TensorObject* const* in, int n_in) {
    for (Tape* t : active_tapes())
      if (!t->variables_only && tracks(t, in, n_in)) add(t);
  }
  bool empty() const { return n_ == 0; }
  template <class F> void each(F&& f) const {
    for (size_t i = 0; i < n_; ++i) f(i < kFew ? few_[i] : more_[i - kFew]);
  }

 private:
  static bool tracks(const Tape* t, TensorObject* const* in, int n_in) {
    for (int i = 0; i < n_in; ++i) {
      Node* from = in[i]->node;
      if (from && from->n_tapes && is_differentiable(in[i]->value.dtype) && on_tape(from, t)) return true;
    }
    return false;
  }
  void add(Tape* t) {
    if (n_ < kFew)
      few_[n_] = t;
    else
      more_.push_back(t);
    ++n_;
  }
  static constexpr size_t kFew = 8;
  Tape* few_[kFew];
  std::vector<Tape*> more_;
  size_t n_ = 0;
};

static void put_value(Tensor* at, const Tensor& x, bool keep) {
  if (keep) {
    new (at) Tensor(x);
    return;
  }
  new (at) Tensor;
  at->dtype = x.dtype, at->shape = x.shape, at->numel = x.numel;
}

static Node* attach(Node* node, TensorObject* const* in, int n_in, TensorObject* const* out, int n_out,
                    uint64_t keep, const Tracking& tapes) {
  for (int i = 0; i < n_in; ++i) {
    node->edges()[i] = {is_differentiable(in[i]->value.dtype) ? ref(in[i]->node) : nullptr, in[i]->output};
    put_value(&node->value(i), in[i]->value, keep >> std::min(i, 62) & 1);
  }
  for (int k = 0; k < n_out; ++k) {
    put_value(&node->value(n_in + k), out[k]->value, keep >> std::min(n_in + k, 63) & 1);
    if (!is_differentiable(out[k]->value.dtype)) continue;
    Node* before = out[k]->node;
    out[k]->node = ref(node);
    out[k]->output = uint32_t(k);
    unref(before);
  }
  auto symbol_of = [&](int i) { return i < n_in ? in[i]->symbol : out[i - n_in]->symbol; };
  bool traced = false;
  for (int i = 0; i < n_in + n_out; ++i) traced |= symbol_of(i) != nullptr;
  if (traced) {
    node->symbols = new PyObject*[size_t(n_in + n_out)];
    for (int i = 0; i < n_in + n_out; ++i) node->symbols[i] = Py_XNewRef(symbol_of(i));
  }
  tapes.each([&](Tape* t) { join_tape(node, t); });
  return node;
}

// Calls of one kind are taken to read the same values: a rule may go other ways for complex
// numbers, other ranks, other flags, but not for other sizes or other places of a slice, which
// would have every call looked at anew.
static uint64_t kind_of_call(const OpObject* op, const CallAttrs* attrs, TensorObject* const* in, int n_in) {
  uint64_t kind = uint64_t(n_in);
  auto mix = [&](uint64_t v) { kind = (kind ^ v) * 0x9e3779b97f4a7c15ull, kind ^= kind >> 29; };
  for (int i = 0; i < n_in; ++i)
    mix(uint64_t(is_complex(in[i]->value.dtype)) << 8 | uint64_t(op->kernel ? 0 : in[i]->value.shape.rank));
  if (!attrs) return kind;
  for (size_t k = 0; k < attrs->kinds.size(); ++k) {
    const Attr& a = attrs->values[k];
    bool flag = attrs->kinds[k] == ParamKind::Bool || attrs->kinds[k] == ParamKind::Dtype;
    mix(uint64_t(a.kind) << 32 ^ a.ints.size() << 40 ^ (flag ? uint64_t(a.i) : 0));
  }
  return kind;
}

static const Reads* known_reads(const OpObject* op, uint64_t kind) {
  for (const Reads& r : op->reads)
    if (r.call == kind) return &r;
  return nullptr;
}

// Which values the rules of the tracked operands read. Found by running each rule once on
// tensors that note whether their value is used.
static void find_reads(OpObject* op, uint64_t kind, CallAttrs* attrs, TensorObject* const* in, int n_in,
                       TensorObject* const* out, int n_out) {
  Ref<> ins(checked(PyTuple_New(n_in))), outs(checked(PyTuple_New(n_out)));
  for (int i = 0; i < n_in; ++i)
    PyTuple_SET_ITEM(ins.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(in[i])));
  for (int i = 0; i < n_out; ++i)
    PyTuple_SET_ITEM(outs.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(out[i])));
  Quiet quiet;
  Ref<> masks(checked(PyObject_CallFunctionObjArgs(hooks.reads, reinterpret_cast<PyObject*>(op), ins.get(),
                                                   outs.get(), attrs_tuple(attrs), nullptr)));
  Reads found{kind, {}};
  for (size_t i = 0; i < op->rules.size(); ++i) {
    found.masks.push_back(PyLong_AsUnsignedLongLongMask(PyList_GetItem(masks.get(), Py_ssize_t(i))));
    if (PyErr_Occurred()) throw PythonError{};
  }
  if (!known_reads(op, kind)) op->reads.push_back(std::move(found));
}

static uint64_t values_to_keep(const OpObject* op, const Reads& reads, TensorObject* const* in, int n_in) {
  if (op->joint) return reads.masks[0];
  uint64_t keep = 0;
  for (int i = 0; i < n_in; ++i)
    if (in[i]->node && in[i]->node->n_tapes) keep |= reads.masks[i];
  return keep;
}

static void record(OpObject* op, CallAttrs* attrs, TensorObject* const* in, int n_in,
                   TensorObject* const* out, int n_out, const Reads& reads, const Tracking& tapes) {
  Node* node = new_node(op, n_in, n_out, highest_rank(in, n_in, out, n_out));
  node->attrs = attrs;
  if (attrs) ++attrs->refs;
  attach(node, in, n_in, out, n_out, values_to_keep(op, reads, in, n_in), tapes);
  unref(node);
}

void record(OpObject* op, CallAttrs* attrs, TensorObject* const* in, int n_in, TensorObject* const* out,
            int n_out) {
  if (!op->differentiable) return;
  Tracking tapes(in, n_in);
  if (tapes.empty()) return;
  uint64_t kind = kind_of_call(op, attrs, in, n_in);
  if (const Reads* reads = known_reads(op, kind))
    return record(op, attrs, in, n_in, out, n_out, *reads, tapes);
  find_reads(op, kind, attrs, in, n_in, out, n_out);
  // Once more: looking for reads runs Python code, which may end a tape.
  Tracking left(in, n_in);
  if (!left.empty()) record(op, attrs, in, n_in, out, n_out, *known_reads(op, kind), left);
}

void record_closure(PyObject* closure, TensorObject* const* in, int n_in, TensorObject* const* out, int n_out,
                    bool explicit_values, uint64_t keep) {
  Tracking tapes(in, n_in);
  if (tapes.empty()) return;
  Node* node = new_node(nullptr, n_in, n_out, highest_rank(in, n_in, out, n_out));
  node->closure = Py_NewRef(closure);
  node->explicit_values = explicit_values;
  attach(node, in, n_in, out, n_out, keep, tapes);
  unref(node);
}

void touch_variable(VariableObject* v) {
  if (!v->trainable) return;
  for (Tape* t : active_tapes()) {
    if (!t->watch_accessed || on_tape(v->leaf, t)) continue;
    join_tape(v->leaf, t);
    t->variables.push_back(Py_NewRef(reinterpret_cast<PyObject*>(v)));
  }
}

}  // namespace gt
