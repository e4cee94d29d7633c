// Nodes of the recorded graph: how they are made, shared between tapes, and freed.
#include <algorithm>
#include <new>

#include "objects.h"
#include "../slabs.h"

namespace gt {

// An intrusive list of nodes, since freeing nodes must not allocate.
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

#ifdef Py_GIL_DISABLED
// From the system's allocator, which is made for blocks that another thread frees.
static void* take_block(size_t bytes) { return ::operator new(bytes); }
static void give_block(Node* n) { ::operator delete(n); }
#else
static Slabs slabs;
static void* take_block(size_t bytes) {
  return bytes <= Slabs::kLargest ? slabs.take(bytes) : ::operator new(bytes);
}
static void give_block(Node* n) {
  if (n->in_slab)
    slabs.give(n);
  else
    ::operator delete(n);
}
#endif

static Node* new_node(OpObject* op, int n_in, int n_out, int rank) {
  size_t bytes = sizeof(Node) + size_t(n_in) * sizeof(Edge);
  if (rank >= 0) bytes += size_t(n_in + n_out) * Node::value_bytes(rank);
  Node* n = new (take_block(bytes)) Node{};
  n->refs.add();
  n->n_in = n_in;
  n->n_out = n_out;
  n->rank = uint8_t(std::max(rank, 0));
  n->in_slab = bytes <= Slabs::kLargest;
  n->seq = next_number();  // counted together with tensors, so that one can tell what is older than a trace
  n->op = op;
  return n;
}

Node* new_leaf() { return new_node(nullptr, 0, 1, -1); }

// Makes sure that a record has a higher number than its operands, which other threads may have made.
static void come_after(TensorObject* const* in, int n_in) {
  if constexpr (kFreeThreaded)
    for (int i = 0; i < n_in; ++i)
      if (Node* from = in[i]->node) number_above(from->seq);
}

static int highest_rank(TensorObject* const* in, int n_in, TensorObject* const* out, int n_out) {
  int rank = 0;
  for (int i = 0; i < n_in; ++i) rank = std::max<int>(rank, in[i]->value.shape.rank);
  for (int k = 0; k < n_out; ++k) rank = std::max<int>(rank, out[k]->value.shape.rank);
  return rank;
}

// Leaves have no values to construct and destroy.
static bool has_values(Node* n) { return n->op || n->closure; }

// ---- links to tapes -----------------------------------------------------------------------
//
// The tape's lock guards its list and the index of each node in it; the node's lock, taken second, guards the
// links of the node. A tape with a node is alive: it needs its lock to remove its last node.

Spin& lock_of(const Tape* t) {
  static constinit struct alignas(64) { Spin lock; } locks[64];
  return locks[(reinterpret_cast<uintptr_t>(t) * 0x9e3779b97f4a7c15ull) >> 58].lock;
}

// The index of the link to the tape; the number of links if there is none. Under the lock of the node.
static uint32_t link_to(Node* n, const Tape* t) {
  const uint32_t all = n->n_tapes;
  for (uint32_t i = 0; i < all; ++i)
    if (n->link(i).tape == t) return i;
  return all;
}

// Under the lock of the tape. False: there is no such link.
static bool unlink_from(Node* n, Tape* t) {
  uint32_t at;
  {
    Holding hold(n->lock);
    const uint32_t k = link_to(n, t), last = n->n_tapes - 1;
    if (k > last || !n->n_tapes) return false;
    at = n->link(k).at;
    n->link(k) = n->link(last);
    n->n_tapes = last;
    if (n->more_tapes && last >= 2) n->more_tapes->resize(last - 2);
  }
  Node* moved = t->nodes.back();
  t->nodes[at] = moved;
  t->nodes.pop_back();
  if (moved == n) return true;
  Holding hold(moved->lock);
  moved->link(link_to(moved, t)).at = at;
  return true;
}

// For a node without references. The links are read a last time under the lock, when no other thread uses
// them.
static void leave_all_tapes(Node* n) {
  for (;;) {
    Tape* t;
    {
      Holding hold(n->lock);
      if (!n->n_tapes) return;
      t = n->link(n->n_tapes - 1).tape;
    }
    Holding hold(lock_of(t));
    unlink_from(n, t);
  }
}

// Drops a reference. If it was the last, the node leaves its tapes at once, so that nothing finds it there,
// and is put into `released`.
static void let_go(Node* n, NodeList& released) {
  if (!n->refs.take()) return;
  leave_all_tapes(n);
  released.push(n);
}

// Empties a node. The nodes it pointed to go into `released` and are not freed here, so that a chain of a
// million records is freed by a loop and not by recursion. Releasing Python objects may run any code, even
// this function on the same node: the node is made a leaf first, and the caller keeps it alive.
static void empty_node(Node* n, NodeList& released) {
  int n_in, count;
  CallAttrs* attrs;
  PyObject *closure, **symbols;
  {
    Holding hold(n->lock);
    if (!has_values(n) || n->n_tapes) return;
    n_in = n->n_in, count = n->n_in + n->n_out;
    attrs = n->attrs;
    closure = n->closure, symbols = n->symbols;
    n->op = nullptr;
    n->attrs = nullptr;
    n->closure = nullptr;
    n->symbols = nullptr;
    n->n_in = 0;
  }
  Edge* edges = n->edges();
  char* value = reinterpret_cast<char*>(edges + n_in);
  const size_t bytes = Node::value_bytes(n->rank);
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
    give_block(n);
  }
}

void unref(Node* n) {
  if (!n || !n->refs.take()) return;
  NodeList released;
  leave_all_tapes(n);
  released.push(n);
  free_all(released);
}

bool on_tape(Node* n, const Tape* t) {
  if (!n->n_tapes) return false;
  Holding hold(n->lock);
  return link_to(n, t) != n->n_tapes;
}

bool join_tape(Node* n, Tape* t) {
  Holding tape(lock_of(t));
  Holding hold(n->lock);
  const uint32_t count = n->n_tapes;
  if (link_to(n, t) != count) return false;
  TapeLink link{t, uint32_t(t->nodes.size())};
  if (count >= 2) {
    if (!n->more_tapes) n->more_tapes = new std::vector<TapeLink>;
    n->more_tapes->resize(count - 1);
  }
  t->nodes.push_back(n);
  n->link(count) = link;
  n->n_tapes = count + 1;
  return true;
}

// The caller holds a reference to the node.
static void empty_without_tapes(Node* n) {
  if (n->n_tapes) return;
  NodeList released;
  ref(n);
  empty_node(n, released);
  let_go(n, released);
  free_all(released);
}

HeldNodes::HeldNodes(const Tape* t) {
  Holding hold(lock_of(t));
  reserve(t->nodes.size());
  for (Node* n : t->nodes)
    if (n->refs.add_if_any()) push_back(n);
}

void leave_tape(Node* n, Tape* t) {
  {
    Holding hold(lock_of(t));
    unlink_from(n, t);
  }
  empty_without_tapes(n);
}

bool leave_tape(Tape* t) {
  Node* n;
  bool held;
  {
    Holding hold(lock_of(t));
    if (t->nodes.empty()) return false;
    n = t->nodes.back();
    held = n->refs.add_if_any();  // false if another thread is about to free it
    unlink_from(n, t);
  }
  if (!held) return true;
  empty_without_tapes(n);
  unref(n);
  return true;
}

// The active tapes that track one of the operands, usually very few.
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

// The nodes of results before they were recorded. Released after the record is made, since that may run any
// code.
struct Replaced {
  std::vector<Node*> nodes;
  ~Replaced() {
    for (Node* n : nodes) unref(n);
  }
};

static Node* attach(Node* node, TensorObject* const* in, int n_in, TensorObject* const* out, int n_out,
                    uint64_t keep, const Tracking& tapes, Replaced& replaced) {
  for (int i = 0; i < n_in; ++i) {
    node->edges()[i] = {
        is_differentiable(in[i]->value.dtype) ? ref(static_cast<Node*>(in[i]->node)) : nullptr,
        in[i]->output};
    put_value(&node->value(i), in[i]->value, keep >> std::min(i, 62) & 1);
  }
  for (int k = 0; k < n_out; ++k) {
    put_value(&node->value(n_in + k), out[k]->value, keep >> std::min(n_in + k, 63) & 1);
    if (!is_differentiable(out[k]->value.dtype)) continue;
    Node* before = out[k]->node;
    out[k]->node = ref(node);
    out[k]->output = uint32_t(k);
    if (before) replaced.nodes.push_back(before);
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

// The rules of an op are assumed to read the same values in all calls of one kind: they may branch on complex
// types, ranks and flags, but not on sizes or the position of a slice, or every call would be of its own
// kind.
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
  return op->reads.find_if([&](const Reads& r) { return r.call == kind; });
}

// Finds which values the rules of the tracked operands read, by running each rule once on tensors that note
// whether their value is used.
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
  Holding hold(ops_lock);
  if (!known_reads(op, kind)) op->reads.add(std::move(found));
}

static uint64_t values_to_keep(const OpObject* op, const Reads& reads, TensorObject* const* in, int n_in) {
  if (op->joint) return reads.masks[0];
  uint64_t keep = 0;
  for (int i = 0; i < n_in; ++i)
    if (Node* from = in[i]->node; from && from->n_tapes) keep |= reads.masks[i];
  return keep;
}

static void record(OpObject* op, CallAttrs* attrs, TensorObject* const* in, int n_in,
                   TensorObject* const* out, int n_out, const Reads& reads, const Tracking& tapes,
                   Replaced& before) {
  come_after(in, n_in);
  Node* node = new_node(op, n_in, n_out, highest_rank(in, n_in, out, n_out));
  node->attrs = ref(attrs);
  attach(node, in, n_in, out, n_out, values_to_keep(op, reads, in, n_in), tapes, before);
  unref(node);
}

void record(OpObject* op, CallAttrs* attrs, TensorObject* const* in, int n_in, TensorObject* const* out,
            int n_out) {
  if (!op->differentiable) return;
  uint64_t kind;
  {
    Replaced before;
    Pinned here;
    Tracking tapes(in, n_in);
    if (tapes.empty()) return;
    kind = kind_of_call(op, attrs, in, n_in);
    if (const Reads* reads = known_reads(op, kind))
      return record(op, attrs, in, n_in, out, n_out, *reads, tapes, before);
  }
  find_reads(op, kind, attrs, in, n_in, out, n_out);
  // Once more, because find_reads runs Python code, which may end a tape.
  Replaced before;
  Pinned here;
  Tracking left(in, n_in);
  if (!left.empty()) record(op, attrs, in, n_in, out, n_out, *known_reads(op, kind), left, before);
}

void record_closure(PyObject* closure, TensorObject* const* in, int n_in, TensorObject* const* out, int n_out,
                    bool explicit_values, uint64_t keep) {
  Replaced before;
  Pinned here;
  Tracking tapes(in, n_in);
  if (tapes.empty()) return;
  come_after(in, n_in);
  Node* node = new_node(nullptr, n_in, n_out, highest_rank(in, n_in, out, n_out));
  node->closure = Py_NewRef(closure);
  node->explicit_values = explicit_values;
  attach(node, in, n_in, out, n_out, keep, tapes, before);
  unref(node);
}

void add_variable(Tape* t, VariableObject* v) {
  Holding hold(lock_of(t));
  t->variables.push_back(Py_NewRef(reinterpret_cast<PyObject*>(v)));
}

void touch_variable(VariableObject* v) {
  if (!v->trainable) return;
  Pinned here;
  for (Tape* t : active_tapes()) {
    if (!t->watch_accessed || on_tape(v->leaf, t)) continue;
    if (join_tape(v->leaf, t)) add_variable(t, v);
  }
}

}  // namespace gt
