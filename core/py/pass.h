// One backward pass: the records it visits, its state for each, and a step over one record.
// What all rules have in common is done here: sums over broadcast axes, conjugates, zero cotangents,
// accumulation.
#pragma once
#include <algorithm>
#include <utility>

#include "compiled.h"
#include "numbers.h"

namespace gt {

struct Visit {
  Node* node;              // nullptr once the pass has released it
  uint64_t seq;            // the node's
  uint32_t residuals = 0;  // where in residuals_ the inputs for its values are listed
  uint32_t first = 0;      // index of its first cotangent
  bool needed = false;     // leads to a source
  bool source = false;     // its cotangent is kept
  bool beyond = false;     // belongs to another part of a long pass
  bool steps() const { return needed && !beyond && node->n_in; }
};

// Python's 0 stands for a gradient that is zero whatever the values are. Nothing is computed with it: a
// record with only such cotangents passes them on.
inline Ref<> zero_gradient() { return Ref<>(checked(PyLong_FromLong(0))); }
inline bool is_zero(PyObject* g) { return PyLong_CheckExact(g) && PyObject_Not(g) == 1; }

// Prefetches a record: a long pass waits for memory, not for arithmetic.
inline void prefetch(const Node* n) {
  for (int line = 0; line < 4; ++line) __builtin_prefetch(reinterpret_cast<const char*>(n) + 64 * line);
}
constexpr size_t kAhead = 8;  // how many records earlier

// Sets which record's rule is running, so that watchers can tell what a backward op belongs to.
struct Stepping {
  ThreadState& here = thread_state();
  const Node* before = here.stepping;
  explicit Stepping(const Node* n) { here.stepping = n; }
  ~Stepping() { here.stepping = before; }
};

// Whether it is on an active tape.
inline bool is_followed(Node* n) {
  if (active_tapes().empty()) return false;
  Pinned here;
  return std::any_of(active_tapes().begin(), active_tapes().end(), [&](Tape* t) { return on_tape(n, t); });
}

class Pass {
 public:
  Pass(Tape* tape, size_t n_targets) : tape_(tape) { visits_.reserve(2 * n_targets + 16); }
  ~Pass() {
    for (Visit& v : visits_) unref(v.node);
  }

  // Part of a long pass: a range of its visits, those that are needed, followed by the records in other parts
  // that they lead to.
  Pass(Pass& whole, size_t begin, size_t end) : Pass(whole.tape_, 0) {
    whole_ = &whole;
    begin_ = begin;
    own_.assign(end - begin, Numbers::kNone);
    for (size_t i = begin; i < end; ++i) {
      const Visit& v = whole.visits_[i];
      if (i + kAhead < end) prefetch(whole.visits_[i + kAhead].node);
      if (!v.needed) continue;
      own_[i - begin] = uint32_t(visits_.size());
      visits_.push_back(v);
      ref(v.node);
    }
    const size_t own = visits_.size();
    for (size_t i = 0; i < own; ++i)
      for (int k = 0; k < visits_[i].node->n_in; ++k) {
        Node* from = visits_[i].node->edges()[k].node;
        Visit* v = whole.visit(from);
        if (!v || !v->needed) continue;
        const size_t place = size_t(v - whole.visits_.data());
        const uint32_t next = uint32_t(visits_.size());
        if (place - begin < own_.size() ||
            beyond_.add(uint32_t(place), next, [](uint32_t) { return true; }) != next)
          continue;
        visits_.push_back({ref(from), from->seq});
        visits_.back().needed = visits_.back().source = visits_.back().beyond = true;
      }
    uint32_t count = 0;
    for (Visit& v : visits_) {
      v.first = count;
      count += uint32_t(v.node->n_out);
    }
    cotangents_.resize(count);
  }

  void add_target(Node* n) { push(n); }

  // Collects everything the targets depend on.
  void collect() {
    for (size_t i = 0; i < visits_.size(); ++i) {
      Node* n = visits_[i].node;
      // The record made before it usually lies before it in memory.
      prefetch(reinterpret_cast<Node*>(reinterpret_cast<char*>(n) - kAhead * 256));
      for (int k = 0; k < n->n_in; ++k)
        if (Node* from = n->edges()[k].node) push(from);
    }
    cotangents_.resize(n_cotangents_);
  }

  Visit* visit(const Node* n) {  // nullptr when the targets do not depend on it
    if (!n) return nullptr;
    if (whole_) return visit_of_part(n);
    if constexpr (kFreeThreaded) {
      const uint32_t k =
          places_.find(hash_of(nullptr, n, 0), [&](uint32_t k) { return visits_[k].seq == n->seq; });
      return k == Numbers::kNone ? nullptr : &visits_[k];
    }
    if (is_at(n, n->place)) return &visits_[n->place];
    // Another pass over the same records, in a rule's Python code or in another thread, has set its own
    // places.
    auto older = [](const Visit& v, uint64_t seq) { return v.seq > seq; };
    auto found = std::lower_bound(visits_.begin(), visits_.end(), n->seq, older);
    return found != visits_.end() && found->seq == n->seq ? &*found : nullptr;
  }
  uint64_t number(const Visit* v) const { return uint64_t(v - visits_.data()); }

  size_t size() const { return visits_.size(); }
  std::vector<Visit>& visits() { return visits_; }
  Ref<>& cotangent(const Visit& v, int output) { return cotangents_[v.first + size_t(output)]; }

  // Where the part of a long pass that begins at `begin` should end: where its first ops occur again, so that
  // the iterations of a loop fall into equal parts, which share a program. Parts are short, because the
  // second-level cache of a processor core holds about a thousand records.
  size_t end_of_part(size_t begin) const {
    constexpr size_t kLeast = 1024, kAlike = 64;
    auto op = [&](size_t i) { return static_cast<const void*>(visits_[i].node->op); };
    const size_t most = std::min(begin + kMostRecords, visits_.size());
    for (size_t end = begin + kLeast; end < most && end + kAlike < visits_.size(); ++end) {
      size_t k = 0;
      while (k < kAlike && op(begin + k) == op(end + k)) ++k;
      if (k == kAlike) return end;
    }
    return most;
  }

  // After `collect`, before `order`.
  void mark_source(Node* n) {
    if constexpr (kFreeThreaded) {
      if (Visit* v = visit(n)) v->source = true;
    } else if (n && is_at(n, n->place)) {
      visits_[n->place].source = true;
    }
  }

  // Youngest first. Only records that lie between a source and a target are worth differentiating.
  void order() {
    sort();
    if constexpr (kFreeThreaded) {
      places_ = Numbers(visits_.size());
      for (size_t i = 0; i < visits_.size(); ++i)
        places_.add(hash_of(nullptr, visits_[i].node, 0), uint32_t(i), [](uint32_t) { return false; });
    }
    for (size_t i = visits_.size(); i-- > 0;) {
      Visit& v = visits_[i];
      if (i >= kAhead) prefetch(visits_[i - kAhead].node);
      if constexpr (!kFreeThreaded) v.node->place = uint32_t(i);
      v.needed = v.source;
      for (int k = 0; k < v.node->n_in && !v.needed; ++k) v.needed = needs(v.node->edges()[k]);
    }
  }

  void add(Node* n, uint32_t output, Ref<> g) {
    Ref<>& slot = cotangents_[visit(n)->first + output];
    if (!slot) {
      slot = std::move(g);
    } else if (is_tensor(slot.get()) && is_tensor(g.get())) {
      slot = Ref<>(checked(call_binary(engine.add, slot.get(), g.get())));
    } else if (is_zero(slot.get())) {
      slot = std::move(g);
    } else if (!is_zero(g.get())) {
      slot = Ref<>(checked(PyObject_CallFunctionObjArgs(hooks.accumulate, slot.get(), g.get(), nullptr)));
    }
  }

  PyObject* cotangent(Node* n, uint32_t output) { return cotangents_[visit(n)->first + output].get(); }

  void run() { run(0, visits_.size()); }
  void run(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      Visit& v = visits_[i];
      bool reached = false;
      for (int k = 0; k < v.node->n_out; ++k) reached |= bool(cotangents_[v.first + k]);
      if (reached && v.steps()) step(v);
      if (!v.source)
        for (int k = 0; k < v.node->n_out; ++k) cotangents_[v.first + k] = Ref<>();
      if (!symbolic_ && !tape_->persistent) leave_tape(v.node, tape_);
    }
  }

  // For each edge of `to`, which cotangents its gradient depends on, as a bit mask of `words` words: bit k is
  // the cotangent of edge k of `from`. No rule is run.
  std::vector<uint64_t> reached(const std::vector<Edge>& from, const std::vector<Edge>& to, size_t words) {
    std::vector<uint64_t> bits(cotangents_.size() * words);
    auto at = [&](const Edge& e) { return bits.data() + (visit(e.node)->first + e.output) * words; };
    for (size_t k = 0; k < from.size(); ++k)
      if (visit(from[k].node)) at(from[k])[k / 64] |= uint64_t(1) << k % 64;
    std::vector<uint64_t> mine(words);
    for (Visit& v : visits_) {
      std::fill(mine.begin(), mine.end(), 0);
      for (int k = 0; k < v.node->n_out; ++k)
        for (size_t w = 0; w < words; ++w) mine[w] |= bits[(v.first + size_t(k)) * words + w];
      if (v.needed)
        each_dependent(v.node, [&](const Edge& e) {
          for (size_t w = 0; w < words; ++w) at(e)[w] |= mine[w];
        });
    }
    std::vector<uint64_t> found;
    for (const Edge& e : to) {
      Visit* v = visit(e.node);
      for (size_t w = 0; w < words; ++w) found.push_back(v ? bits[(v->first + e.output) * words + w] : 0);
    }
    return found;
  }

  void leave() {
    if (!tape_->persistent)
      for (Visit& v : visits_) leave_tape(v.node, tape_);
  }

  // Frees the state of a part once its records have been visited.
  void drop(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      Visit& v = visits_[i];
      if (!tape_->persistent) leave_tape(v.node, tape_);
      if (v.source) continue;
      for (int k = 0; k < v.node->n_out; ++k) cotangents_[v.first + size_t(k)] = Ref<>();
      unref(std::exchange(v.node, nullptr));
    }
  }

  // Describes what this pass will compute. False if it cannot be compiled: a custom gradient, or a record of
  // a trace.
  bool describe(Structure& s) {
    Numbers origins(2 * visits_.size());
    residuals_.clear();
    for (Visit& v : visits_) {
      Node* n = v.node;
      if (!v.needed) continue;
      if (!v.steps()) {
        s.query.add(~0ull - uint64_t(n->n_out));
        continue;
      }
      s.followed |= is_followed(n);
      if (n->symbols || (n->closure && !n->explicit_values)) return false;
      ++s.records;
      // Each word says how many follow, so that different structures have different words.
      s.query.add(uint64_t(n->n_in) << 32 | uint64_t(n->n_out) << 1 | bool(n->attrs));
      if (n->closure)
        s.query.add_object(n->closure);
      else if (!n->op->kernel && !n->op->impl)
        s.query.add_object(reinterpret_cast<PyObject*>(n->op));  // a user-defined op may die
      else
        s.query.add(reinterpret_cast<uintptr_t>(n->op));
      if (n->attrs && !describe(s, n->attrs->values)) return false;
      for (int i = 0; i < n->n_in; ++i) {
        Visit* from = visit(n->edges()[i].node);
        s.query.add(from && from->needed ? number(from) << 32 | n->edges()[i].output : ~0ull);
      }
      v.residuals = uint32_t(residuals_.size());
      for (int k = 0; k < n->n_in + n->n_out; ++k) {
        const Tensor& t = n->value(k);
        uint32_t which = ~0u;
        if (t.has_value()) {
          // The same elements of the same origin are one input.
          Node* owner = k < n->n_in ? n->edges()[k].node : n;
          uint32_t output = k < n->n_in ? n->edges()[k].output : uint32_t(k - n->n_in);
          const uint32_t next = uint32_t(s.inputs.size());
          which = origins.add(hash_of(t.data, owner, output), next, [&](uint32_t k) {
            return s.inputs[k]->data == t.data && s.owners[k] == std::pair(owner, output);
          });
          bool fresh = which == next;
          if (!fresh && !(s.inputs[which]->shape == t.shape && s.inputs[which]->dtype == t.dtype)) {
            which = uint32_t(s.inputs.size());
            fresh = true;
          }
          if (fresh) {
            s.inputs.push_back(&t);
            s.owners.emplace_back(owner, output);
          }
        }
        s.query.add(t, which);
        residuals_.push_back(which);
      }
    }
    return true;
  }

  // False if an attribute is a mutable object, which may change between calls.
  static bool describe(Structure& s, const Attrs& attrs) {
    for (const Attr& a : attrs.values) {
      s.query.add(uint64_t(a.kind) << 32 | a.ints.size());
      s.query.add(uint64_t(a.i) ^ std::bit_cast<uint64_t>(a.f));
      for (int64_t i : a.ints) s.query.add(uint64_t(i));
      if (a.kind != Attr::Kind::Object) continue;
      PyObject* o = static_cast<PyObject*>(a.object);
      if (!is_constant(o)) return false;
      s.query.add_object(o);
    }
    return true;
  }

  // From here on rules run on these tensors instead of the residuals.
  void use_symbols(std::vector<Ref<TensorObject>> tensors) {
    symbols_ = std::move(tensors);
    symbolic_ = true;
  }
  void forget_cotangents() {
    for (Ref<>& c : cotangents_) c = Ref<>();
    symbolic_ = false;
    symbols_.clear();
  }

 private:
  bool is_at(const Node* n, size_t place) const {
    return place < visits_.size() && visits_[place].seq == n->seq;
  }
  void push(Node* n) {
    if (!on_tape(n, tape_)) return;
    if constexpr (kFreeThreaded) {
      const uint32_t next = uint32_t(visits_.size());
      auto same = [&](uint32_t k) { return visits_[k].seq == n->seq; };
      if (places_.add(hash_of(nullptr, n, 0), next, same) != next) return;
    } else {
      if (is_at(n, n->place)) return;
      n->place = uint32_t(visits_.size());
    }
    visits_.push_back({ref(n), n->seq});
    visits_.back().first = n_cotangents_;
    n_cotangents_ += uint32_t(n->n_out);
  }
  Visit* visit_of_part(const Node* n) {
    Visit* v = whole_->visit(n);
    if (!v) return nullptr;
    const size_t place = size_t(v - whole_->visits_.data());
    const uint32_t k = place - begin_ < own_.size()
                           ? own_[place - begin_]
                           : beyond_.find(uint32_t(place), [](uint32_t) { return true; });
    return k == Numbers::kNone ? nullptr : &visits_[k];
  }
  // A merge sort of runs that are in order already: there are few.
  void sort() {
    auto younger = [](const Visit& a, const Visit& b) { return a.seq > b.seq; };
    std::vector<std::vector<Visit>::iterator> runs{visits_.begin()};
    for (auto it = visits_.begin(); it != visits_.end();) {
      it = std::is_sorted_until(it, visits_.end(), younger);
      runs.push_back(it);
    }
    while (runs.size() > 2) {
      size_t n = 1;
      for (size_t k = 2; k < runs.size(); k += 2) {
        std::inplace_merge(runs[k - 2], runs[k - 1], runs[k], younger);
        runs[n++] = runs[k];
      }
      if (runs.size() % 2 == 0) runs[n++] = runs.back();
      runs.resize(n);
    }
  }
  bool needs(const Edge& e) {
    Visit* v = visit(e.node);
    return v && v->needed;
  }

  // A residual as a tensor that outer tapes recognise.
  Ref<TensorObject> wrap(Node* n, int i) {
    Ref<TensorObject> t(new_tensor(n->value(i)));
    t->node = ref(i < n->n_in ? n->edges()[i].node : n);
    t->output = i < n->n_in ? n->edges()[i].output : uint32_t(i - n->n_in);
    t->born = n->seq;  // and not the next number: a trace that began since then must take it as an input
    if (n->symbols) t->symbol = Py_XNewRef(n->symbols[i]);
    return t;
  }

  Ref<TensorObject> symbol_of(const Visit& v, int i) {
    uint32_t which = residuals_[v.residuals + size_t(i)];
    if (which != ~0u) return symbols_[which];
    return Ref<TensorObject>(new_tensor(Tensor(v.node->value(i).spec())));
  }

  Ref<> dense(Ref<> g) {  // nothing for a zero
    if (is_tensor(g.get())) return g;
    if (is_zero(g.get())) return {};
    return Ref<>(checked(PyObject_CallOneArg(hooks.densify, g.get())));
  }

  Ref<> zeros(const Tensor& like) {
    Ref<TensorObject> z(new_tensor(Tensor(like.spec())));
    z->value.allocate();
    std::memset(z->value.data, 0, size_t(z->value.nbytes()));
    return Ref<>(reinterpret_cast<PyObject*>(z.release()));
  }

  void step(Visit& v) {
    Node* n = v.node;
    Stepping here(n);
    std::vector<Ref<>> g;
    bool zero = true;
    for (int k = 0; k < n->n_out; ++k) {
      Ref<> one = cotangents_[v.first + k];
      g.push_back(one ? dense(std::move(one)) : Ref<>());
      zero &= !g.back();
    }
    if (zero && !connected_of(n)) return step_zero(n);
    if (n->closure && !n->explicit_values) return step_closure(n, g);
    OpObject* op = n->op;
    std::vector<Ref<TensorObject>> values;
    for (int i = 0; i < n->n_in + n->n_out; ++i) values.push_back(symbolic_ ? symbol_of(v, i) : wrap(n, i));
    if (n->closure) return step_function(v, g, values);
    if (op->joint) return step_joint(n, g, values);
    for (int i = 0; i < n->n_in; ++i) {
      if (!needs(n->edges()[i])) continue;
      Ref<> gx = op->kernel ? step_elementwise(n, i, g[0], values) : step_vjp(n, i, g, values);
      if (gx && gx.get() != Py_None) add(n->edges()[i].node, n->edges()[i].output, std::move(gx));
    }
  }

  // Which operands the gradient function of a graph has gradients for; null for other functions.
  static Ref<> connected_of(Node* n) {
    if (!n->closure || !n->explicit_values) return {};
    Ref<> connected(PyObject_GetAttrString(n->closure, "connected"));
    if (!connected) PyErr_Clear();
    return connected && PyTuple_Check(connected.get()) ? connected : Ref<>();
  }

  // Calls `f` with the operands that get a gradient, even if it is zero.
  template <class F> void each_dependent(Node* n, F&& f) {
    Ref<> connected = connected_of(n);
    for (int i = 0; i < n->n_in; ++i) {
      bool dependent = !n->op || n->op->joint || n->op->rules[i].kind != Rule::Kind::None;
      if (connected && i < PyTuple_GET_SIZE(connected.get()))
        dependent = PyTuple_GET_ITEM(connected.get(), i) == Py_True;
      if (dependent && needs(n->edges()[i])) f(n->edges()[i]);
    }
  }

  void step_zero(Node* n) {
    each_dependent(n, [&](const Edge& e) { add(e.node, e.output, zero_gradient()); });
  }

  Ref<> step_elementwise(Node* n, int i, const Ref<>& g, std::vector<Ref<TensorObject>>& values) {
    OpObject* op = n->op;
    const Rule& rule = op->rules[i];
    const Tensor& x = n->value(i);
    Ref<> gx;
    switch (rule.kind) {
      case Rule::Kind::None: return {};
      case Rule::Kind::Zero: return zero_gradient();
      case Rule::Kind::One: gx = g; break;
      case Rule::Kind::MinusOne: gx = Ref<>(checked(call_unary(engine.neg, g.get()))); break;
      case Rule::Kind::Vjp: {
        PyObject* args[8] = {nullptr, g.get()};
        for (size_t k = 0; k < values.size(); ++k) args[k + 2] = values[k].object();
        gx = Ref<>(checked(PyObject_Vectorcall(
            rule.function, args + 1, (values.size() + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)));
        if (gx.get() == Py_None) return gx;
        break;
      }
      case Rule::Kind::Derivative: {
        PyObject* args[8] = {nullptr};
        for (size_t k = 0; k < values.size(); ++k) args[k + 1] = values[k].object();
        Ref<> d(checked(PyObject_Vectorcall(rule.function, args + 1,
                                            values.size() | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)));
        if (d.get() == Py_None) return d;
        if (is_tensor(d.get()) && is_complex(as_tensor(d.get())->value.dtype))
          d = Ref<>(checked(call_unary(engine.conj, d.get())));
        gx = op->no_nan ? Ref<>(checked(call_binary(engine.mul_no_nan, d.get(), g.get())))
                        : Ref<>(checked(call_binary(engine.mul, g.get(), d.get())));
      }
    }
    return fit(std::move(gx), x);
  }

  // Brings a gradient to the shape and kind of its operand.
  Ref<> fit(Ref<> gx, const Tensor& x) {
    if (!is_tensor(gx.get())) return gx;
    if (is_complex(as_tensor(gx.get())->value.dtype) && !is_complex(x.dtype))
      gx = Ref<>(checked(call_unary(engine.real, gx.get())));
    const Shape& have = as_tensor(gx.get())->value.shape;
    if (have == x.shape || have.rank < x.shape.rank) return gx;
    Ref<> shape(shape_object(x.shape));
    return Ref<>(checked(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(engine.sum_to), gx.get(),
                                                      shape.get(), nullptr)));
  }

  // Arguments of an explicit rule: g (a tuple when the op has several results), operands, out, attributes.
  Ref<> rule_arguments(Node* n, std::vector<Ref<>>& g, std::vector<Ref<TensorObject>>& values) {
    PyObject* attrs = attrs_tuple(n->attrs);
    Py_ssize_t n_attrs = PyTuple_GET_SIZE(attrs), at = 0;
    bool variadic = n->op->params[0].kind == ParamKind::Operands;
    for (int k = 0; k < n->n_out; ++k)
      if (!g[k])
        g[k] = !n->op->gaps && is_differentiable(n->value(n->n_in + k).dtype) ? zeros(n->value(n->n_in + k))
                                                                              : Ref<>::borrow(Py_None);
    Ref<> args(checked(PyTuple_New(1 + (variadic ? 1 : n->n_in) + 1 + n_attrs)));
    auto put = [&](PyObject* owned) { PyTuple_SET_ITEM(args.get(), at++, checked(owned)); };
    auto pack = [&](auto&& list, size_t from, size_t to) {
      PyObject* t = checked(PyTuple_New(Py_ssize_t(to - from)));
      for (size_t k = from; k < to; ++k)
        PyTuple_SET_ITEM(t, Py_ssize_t(k - from), Py_NewRef(reinterpret_cast<PyObject*>(list[k].get())));
      return t;
    };
    bool many = n->op->many;
    put(many ? pack(g, 0, g.size()) : Py_NewRef(g[0].get()));
    if (variadic)
      put(pack(values, 0, n->n_in));
    else
      for (int i = 0; i < n->n_in; ++i) put(Py_NewRef(values[i].object()));
    put(many ? pack(values, n->n_in, values.size()) : Py_NewRef(values[n->n_in].object()));
    for (Py_ssize_t k = 0; k < n_attrs; ++k) put(Py_NewRef(PyTuple_GET_ITEM(attrs, k)));
    return args;
  }

  Ref<> step_vjp(Node* n, int i, std::vector<Ref<>>& g, std::vector<Ref<TensorObject>>& values) {
    const Rule& rule = n->op->rules[i];
    if (rule.kind == Rule::Kind::None) return {};
    if (rule.kind == Rule::Kind::Zero) return zero_gradient();
    if (rule.kind == Rule::Kind::One) return g[0];
    Ref<> args = rule_arguments(n, g, values);
    return fit(Ref<>(checked(PyObject_CallObject(rule.function, args.get()))), n->value(i));
  }

  void step_joint(Node* n, std::vector<Ref<>>& g, std::vector<Ref<TensorObject>>& values) {
    Ref<> args = rule_arguments(n, g, values);
    Ref<> all(checked(PyObject_CallObject(n->op->rules[0].function, args.get())));
    give(n, std::move(all), n->op->name);
  }

  void step_closure(Node* n, std::vector<Ref<>>& g) {
    Ref<> args(checked(PyTuple_New(n->n_out)));
    for (int k = 0; k < n->n_out; ++k) {
      const Tensor& like = n->value(n->n_in + k);
      PyTuple_SET_ITEM(args.get(), k,
                       g[k]                            ? g[k].release()
                       : is_differentiable(like.dtype) ? zeros(like).release()
                                                       : Py_NewRef(Py_None));
    }
    Ref<> closure = Ref<>::borrow(n->closure);
    give(n, Ref<>(checked(PyObject_CallObject(closure.get(), args.get()))), "custom_gradient");
  }

  void step_function(Visit& v, std::vector<Ref<>>& g, std::vector<Ref<TensorObject>>& values) {
    Node* n = v.node;
    const bool tells_zeros = bool(connected_of(n));
    Ref<> gs(checked(PyTuple_New(n->n_out))), ins(checked(PyTuple_New(n->n_in))),
        outs(checked(PyTuple_New(n->n_out)));
    for (int k = 0; k < n->n_out; ++k) {
      const bool zero = tells_zeros && !g[k] && cotangents_[v.first + k];
      PyTuple_SET_ITEM(gs.get(), k,
                       g[k]   ? g[k].release()
                       : zero ? zero_gradient().release()
                              : Py_NewRef(Py_None));
      PyTuple_SET_ITEM(outs.get(), k, Py_NewRef(values[size_t(n->n_in + k)].object()));
    }
    for (int i = 0; i < n->n_in; ++i) PyTuple_SET_ITEM(ins.get(), i, Py_NewRef(values[size_t(i)].object()));
    Ref<> closure = Ref<>::borrow(n->closure);
    give(
        n,
        Ref<>(checked(PyObject_CallFunctionObjArgs(closure.get(), gs.get(), ins.get(), outs.get(), nullptr))),
        "function");
  }

  void give(Node* n, Ref<> all, const std::string& name) {
    Ref<> list(checked(fixed_items(all.get(), "a gradient rule must return one gradient per operand")));
    if (PySequence_Fast_GET_SIZE(list.get()) != n->n_in)
      fail(Code::Value, name + ": the gradient rule must return " + std::to_string(n->n_in) +
                            " gradients, but returned " +
                            std::to_string(PySequence_Fast_GET_SIZE(list.get())));
    for (int i = 0; i < n->n_in; ++i) {
      PyObject* gx = PySequence_Fast_GET_ITEM(list.get(), i);
      if (gx == Py_None || !needs(n->edges()[i])) continue;
      // What a custom gradient returns is passed on unchanged.
      add(n->edges()[i].node, n->edges()[i].output,
          n->closure ? Ref<>::borrow(gx) : fit(Ref<>::borrow(gx), n->value(i)));
    }
  }

  Tape* tape_;
  std::vector<Visit> visits_;
  Numbers places_;  // of nodes, if free-threaded: passes of several threads share leaves
  uint32_t n_cotangents_ = 0;
  // Of a part:
  Pass* whole_ = nullptr;      // the pass that it is a part of
  size_t begin_ = 0;           // where it begins in that pass
  std::vector<uint32_t> own_;  // for each visit of the part, its index here
  Numbers beyond_;             // for visits of other parts, by their places
  std::vector<Ref<>> cotangents_;
  std::vector<uint32_t> residuals_;
  std::vector<Ref<TensorObject>> symbols_;
  bool symbolic_ = false;
};

}  // namespace gt
