// The backward pass: walks the recorded graph from the targets, latest record first, and applies the rule of
// each op to its cotangents. A pass whose structure was seen before runs as a program instead.
#include "device.h"
#include "backward.h"
#include "lending.h"

#include <cstdlib>

#include "pass.h"

namespace gt {

namespace {

// The value of a tensor or, at this moment, of a variable.
Tensor value_of(PyObject* o) { return is_tensor(o) ? as_tensor(o)->value : gt::value_of(as_variable(o)); }

// Ones: the cotangent of a target when none is given.
Ref<> ones(PyObject* like) {
  Ref<TensorObject> t(new_tensor(Tensor(value_of(like).spec())));
  Tensor& x = t->value;
  x.allocate();
  visit(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(x.as<T>(), x.numel, T(1));
  });
  return Ref<>(reinterpret_cast<PyObject*>(t.release()));
}

// The same, as a call in a graph.
Ref<> symbolic_ones(PyObject* graph, PyObject* like) {
  return Ref<>(checked(PyObject_CallMethod(graph, "ones_like", "O", like)));
}

// A zero gradient as a tensor. It depends on the source, so that it can be differentiated again.
Ref<> zeros(PyObject* source) { return Ref<>(checked(call_unary(engine.zero, source))); }

// A target or source, as a place in the recorded graph.
struct End {
  PyObject* object;
  Node* node;
  uint32_t output;
};

End end_of(PyObject* o) {
  if (is_tensor(o)) return {o, as_tensor(o)->node, as_tensor(o)->output};
  if (is_variable(o)) return {o, as_variable(o)->leaf, 0};
  fail(Code::Type, "gradient: expected Tensors or Variables as targets and sources");
}

bool same(const End& a, const End& b) {
  return a.object == b.object || (a.node && a.node == b.node && a.output == b.output);
}

// Takes the exception that is set, and clears it.
Ref<> caught() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return Ref<>(value);
}

// Runs the rules on symbols and makes a program of what they compute.
bool compile(Compiled& c, Pass& pass, const Structure& s, const std::vector<End>& from,
             const std::vector<End>& to, const std::vector<int>& seeds, bool lower) {
  Quiet quiet;
  bool ok = guarded<bool>(false, [&] {
    Ref<> specs(checked(PyList_New(Py_ssize_t(s.inputs.size()))));
    for (size_t i = 0; i < s.inputs.size(); ++i) {
      Ref<> dims(checked(PyTuple_New(s.inputs[i]->shape.rank)));
      for (int d = 0; d < s.inputs[i]->shape.rank; ++d)
        PyTuple_SET_ITEM(dims.get(), d, PyLong_FromLongLong(s.inputs[i]->shape[d]));
      PyList_SET_ITEM(specs.get(), Py_ssize_t(i),
                      checked(Py_BuildValue("(iO)", int(s.inputs[i]->dtype), dims.get())));
    }
    Ref<> traced(checked(PyObject_CallOneArg(hooks.graph_inputs, specs.get())));
    PyObject* tensors = PyTuple_GetItem(traced.get(), 1);
    std::vector<Ref<TensorObject>> symbols;
    for (size_t i = 0; i < s.inputs.size(); ++i)
      symbols.push_back(Ref<TensorObject>::borrow(as_tensor(PyList_GetItem(tensors, Py_ssize_t(i)))));
    pass.use_symbols(symbols);
    for (size_t i = 0; i < from.size(); ++i)
      if (pass.visit(from[i].node)) {
        Ref<> seed = seeds[i] < 0 ? symbolic_ones(PyTuple_GetItem(traced.get(), 0), from[i].object)
                                  : Ref<>::borrow(symbols[size_t(seeds[i])].object());
        pass.add(from[i].node, from[i].output, std::move(seed));
      }
    pass.run();
    Ref<> results(checked(PyList_New(Py_ssize_t(to.size()))));
    for (size_t i = 0; i < to.size(); ++i) {
      PyObject* g = pass.visit(to[i].node) ? pass.cotangent(to[i].node, to[i].output) : nullptr;
      // In a graph for other code, zeros are tensors.
      PyList_SET_ITEM(results.get(), Py_ssize_t(i),
                      !g                     ? Py_NewRef(Py_None)
                      : is_zero(g) && !lower ? zeros(to[i].object).release()
                                             : Py_NewRef(g));
    }
    Ref<> program(checked(PyObject_CallFunctionObjArgs(hooks.graph_program, PyTuple_GetItem(traced.get(), 0),
                                                       results.get(), lower ? Py_False : Py_True, nullptr)));
    PyObject* places = PyTuple_GetItem(program.get(), 1);
    auto plan = std::make_shared<Plan>();
    for (size_t i = 0; i < to.size(); ++i) {
      PyObject* p = PyList_GetItem(places, Py_ssize_t(i));
      GradientPlace place;
      if (PyTuple_Check(p)) {
        place.tensor = int(PyLong_AsLong(PyTuple_GetItem(p, 0)));
        place.indices = int(PyLong_AsLong(PyTuple_GetItem(p, 1)));
        place.dense_shape = Ref<>::borrow(PyTuple_GetItem(p, 2));
      } else if (p != Py_None) {
        place.tensor = int(PyLong_AsLong(p));
      }
      plan->places.push_back(std::move(place));
    }
    plan->function = Ref<>::borrow(PyTuple_GetItem(program.get(), 0));
    if (lower) plan->program = Ref<>(checked(PyObject_GetAttrString(plan->function.get(), "program")));
    give_plan(c, std::move(plan));
    return true;
  });
  pass.forget_cotangents();
  note_compiled(c, ok);
  if (!ok) {
    // Interrupts are rethrown. Other errors are reported to Python: the rules can still be run one by one.
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError{};
    Ref<> error = caught();
    PyObject* ours = s.query.objects.empty() ? Py_True : Py_False;  // no user-defined rule
    Ref<>(checked(PyObject_CallFunctionObjArgs(hooks.not_compiled, error.get(), ours, nullptr)));
  }
  return ok;
}

std::vector<Ref<>> call_program(PyObject* program, Structure& s) {
  // Copied, because other threads may run meanwhile.
  std::vector<Tensor> held;
  held.reserve(s.inputs.size());
  for (const Tensor*& t : s.inputs) {
    held.push_back(*t);
    if (t->has_value()) settled_on_host(held.back());
    t = &held.back();
  }
  std::vector<Tensor> outs;
  run_program(reinterpret_cast<ProgramObject*>(program), s.inputs.data(), outs);
  std::vector<Ref<>> tensors;
  for (Tensor& t : outs) tensors.emplace_back(reinterpret_cast<PyObject*>(new_tensor(std::move(t))));
  return tensors;
}

// The inputs of a pass as tensors that outer tapes recognise.
Ref<> input_tensors(const Structure& s) {
  Ref<> inputs(checked(PyList_New(Py_ssize_t(s.owners.size()))));
  for (size_t i = 0; i < s.owners.size(); ++i) {
    TensorObject* t = new_tensor(*s.inputs[i]);
    t->node = ref(s.owners[i].first);
    t->output = s.owners[i].second;
    PyList_SET_ITEM(inputs.get(), Py_ssize_t(i), reinterpret_cast<PyObject*>(t));
  }
  return inputs;
}

// Under an active tape the pass is itself recorded, as a single call of its graph.
std::vector<Ref<>> call_followed(PyObject* function, const Structure& s) {
  Ref<> inputs = input_tensors(s);
  Ref<> results(checked(PyObject_CallOneArg(function, inputs.get())));
  std::vector<Ref<>> tensors;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results.get()); ++i)
    tensors.push_back(Ref<>::borrow(PyList_GET_ITEM(results.get(), i)));
  return tensors;
}

// Ones for targets up to this size are constants of the program.
constexpr int64_t kMostOnes = 64;

bool run_compiled(Pass& pass, const std::vector<End>& from, const std::vector<End>& to, PyObject* cotangents,
                  std::vector<Ref<>>& gradients) {
  Structure s;
  s.query.words.reserve(std::min<size_t>(16 * pass.size(), 4096));
  // The counts come first, so that no two structures have the same words.
  s.query.add(uint64_t(from.size()) << 32 | to.size());
  if (!pass.describe(s)) return false;
  std::vector<int> seeds(from.size(), -1);
  std::vector<Ref<>> default_seeds;
  for (size_t i = 0; i < from.size(); ++i) {
    Visit* v = pass.visit(from[i].node);
    s.query.add(v ? pass.number(v) << 32 | from[i].output : ~0ull);
    if (!v) continue;
    PyObject* g = PyList_GET_ITEM(cotangents, Py_ssize_t(i));
    const Tensor target = value_of(from[i].object);
    bool constant = g == Py_None && target.numel <= kMostOnes;
    s.query.add(constant);
    if (constant) {
      s.query.add(target);
      continue;
    }
    if (g == Py_None) {
      default_seeds.push_back(ones(from[i].object));
      g = default_seeds.back().get();
    }
    if (!is_tensor(g) || as_tensor(g)->symbol) return false;
    Node* origin = as_tensor(g)->node;
    s.followed |= origin && is_followed(origin);
    s.query.add(as_tensor(g)->value);
    seeds[i] = int(s.inputs.size());
    s.inputs.push_back(&as_tensor(g)->value);
    s.owners.emplace_back(origin, as_tensor(g)->output);
  }
  for (const End& e : to) {
    Visit* v = pass.visit(e.node);
    s.query.add(v ? pass.number(v) << 32 | e.output : ~0ull);
  }
  auto [c, plan] = remember(s);
  if (!plan) {
    if (!worth_compiling(*c) || !compile(*c, pass, s, from, to, seeds, true)) return false;
    plan = plan_of(*c);
  }
  std::vector<Ref<>> tensors =
      s.followed ? call_followed(plan->function.get(), s) : call_program(plan->program.get(), s);
  for (const GradientPlace& p : plan->places) {
    if (p.tensor < 0) {
      gradients.push_back(p.tensor == GradientPlace::kZero ? zero_gradient() : Ref<>());
    } else if (p.indices < 0) {
      gradients.push_back(tensors[size_t(p.tensor)]);
    } else {
      gradients.emplace_back(checked(
          PyObject_CallFunctionObjArgs(hooks.slices, tensors[size_t(p.tensor)].get(),
                                       tensors[size_t(p.indices)].get(), p.dense_shape.get(), nullptr)));
    }
  }
  return true;
}

// A pass over more records than are compiled at once, part by part. A part passes on the cotangents of
// records in later parts.
void run_in_parts(Pass& pass) {
  for (size_t begin = 0, end; begin < pass.size(); begin = end) {
    end = pass.end_of_part(begin);
    Pass part(pass, begin, end);
    std::vector<End> from, to;
    Ref<> cotangents(checked(PyList_New(0)));
    bool whole = true;  // whether all cotangents are tensors
    for (const Visit& v : part.visits())
      for (int k = 0; k < v.node->n_out; ++k) {
        if (v.source) to.push_back({nullptr, v.node, uint32_t(k)});
        PyObject* g = v.beyond ? nullptr : pass.cotangent(*pass.visit(v.node), k).get();
        if (!g) continue;
        whole &= is_tensor(g);
        from.push_back({g, v.node, uint32_t(k)});
        if (PyList_Append(cotangents.get(), g)) throw PythonError{};
      }
    std::vector<Ref<>> gradients;
    if (from.empty()) {
    } else if (whole && run_compiled(part, from, to, cotangents.get(), gradients)) {
      for (size_t i = 0; i < to.size(); ++i) {
        const bool beyond = part.visit(to[i].node)->beyond;
        if (!beyond)  // it includes what earlier parts have added
          pass.cotangent(*pass.visit(to[i].node), int(to[i].output)) = std::move(gradients[i]);
        else if (gradients[i])
          pass.add(to[i].node, to[i].output, std::move(gradients[i]));
      }
    } else {
      pass.run(begin, end);
    }
    pass.drop(begin, end);
  }
}

// Collects and orders the records of a pass from the targets to the sources.
void prepare(Pass& pass, Tape* tape, std::vector<End>& from, std::vector<End>& to, PyObject* targets,
             PyObject* sources) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(targets); ++i)
    from.push_back(end_of(PyList_GET_ITEM(targets, i)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sources); ++i) to.push_back(end_of(PyList_GET_ITEM(sources, i)));
  for (End& t : from)
    if (t.node && on_tape(t.node, tape)) pass.add_target(t.node);
  pass.collect();
  for (End& s : to) pass.mark_source(s.node);
  pass.order();
}

constexpr uint64_t kPullback = 1ull << 63;  // in the first word of a structure: all targets have a cotangent

}  // namespace

std::pair<uint64_t, std::string> stepping() {
  const Node* n = thread_state().stepping;
  if (!n) return {0, ""};
  return {n->seq, n->op ? n->op->name : n->closure ? "custom gradient" : ""};
}

// The pass as a graph: its function, whose last inputs are a cotangent for each target, and the other inputs.
// None if the pass cannot be described.
Ref<> pullback(Tape* tape, PyObject* targets, PyObject* sources) {
  std::vector<End> from, to;
  Pass pass(tape, size_t(PyList_GET_SIZE(targets)));
  prepare(pass, tape, from, to, targets, sources);
  Ref<> none = Ref<>::borrow(Py_None);
  Structure s;
  s.query.words.reserve(256);
  s.query.add(kPullback | uint64_t(from.size()) << 32 | to.size());
  if (!compiles() || !pass.describe(s)) return none;
  std::vector<int> seeds;
  std::vector<Tensor> ends;
  ends.reserve(from.size());
  for (const End& f : from) {
    Visit* v = pass.visit(f.node);
    if (!v) return none;
    s.query.add(pass.number(v) << 32 | f.output);
    s.query.add(ends.emplace_back(value_of(f.object)));
    seeds.push_back(int(s.inputs.size()));
    s.inputs.push_back(&ends.back());
  }
  for (const End& e : to) {
    Visit* v = pass.visit(e.node);
    for (const End& f : from)
      if (!v && same(f, e)) return none;
    s.query.add(v ? pass.number(v) << 32 | e.output : ~0ull);
  }
  auto [c, plan] = remember(s);
  if (!plan) {
    if (c->failed || !compile(*c, pass, s, from, to, seeds, false)) return none;
    plan = plan_of(*c);
  }
  Ref<> function = plan->function, inputs = input_tensors(s);
  return Ref<>(checked(PyTuple_Pack(2, function.get(), inputs.get())));
}

Ref<> reached_by(Tape* tape, PyObject* targets, PyObject* sources) {
  std::vector<End> from, to;
  Pass pass(tape, size_t(PyList_GET_SIZE(targets)));
  prepare(pass, tape, from, to, targets, sources);
  auto edges = [](const std::vector<End>& ends) {
    std::vector<Edge> edges;
    for (const End& e : ends) edges.push_back({e.node, e.output});
    return edges;
  };
  const size_t words = (from.size() + 63) / 64;
  std::vector<uint64_t> bits = pass.reached(edges(from), edges(to), words);
  Ref<> result(checked(PyList_New(Py_ssize_t(to.size()))));
  for (size_t i = 0; i < to.size(); ++i)
    PyList_SET_ITEM(result.get(), Py_ssize_t(i),
                    checked(_PyLong_FromByteArray(
                        reinterpret_cast<const unsigned char*>(bits.data() + i * words), words * 8, 1, 0)));
  return result;
}

Ref<> backward(Tape* tape, PyObject* targets, PyObject* cotangents, PyObject* sources, bool bare_zeros) {
  Py_ssize_t n_targets = PyList_GET_SIZE(targets), n_sources = PyList_GET_SIZE(sources);
  std::vector<End> from, to;
  Pass pass(tape, size_t(n_targets));
  prepare(pass, tape, from, to, targets, sources);
  auto cotangent = [&](Py_ssize_t i) {
    PyObject *g = PyList_GET_ITEM(cotangents, i), *target = from[size_t(i)].object;
    if (g != Py_None) return Ref<>::borrow(g);
    Ref<> trace = current_trace();
    const bool traced = trace && is_tensor(target) && as_tensor(target)->symbol;
    return traced ? symbolic_ones(trace.get(), target) : ones(target);
  };
  std::vector<Ref<>> gradients;
  const bool fits = pass.size() <= kMostRecords;
  if (compiles() && fits && run_compiled(pass, from, to, cotangents, gradients)) {
    pass.leave();
  } else {
    for (Py_ssize_t i = 0; i < n_targets; ++i)
      if (pass.visit(from[i].node)) pass.add(from[i].node, from[i].output, cotangent(i));
    if (compiles() && !fits)
      run_in_parts(pass);
    else
      pass.run();
    for (End& s : to)
      gradients.push_back(pass.visit(s.node) ? Ref<>::borrow(pass.cotangent(s.node, s.output)) : Ref<>());
  }
  Ref<> result(checked(PyList_New(n_sources)));
  for (Py_ssize_t s = 0; s < n_sources; ++s) {
    Ref<> g = std::move(gradients[s]);
    if (!pass.visit(to[s].node)) {
      // A target that is also the source has a gradient even if nothing was recorded.
      for (Py_ssize_t i = 0; i < n_targets; ++i)
        if (same(from[i], to[s])) {
          Ref<> c = cotangent(i);
          g = g ? Ref<>(checked(PyObject_CallFunctionObjArgs(hooks.accumulate, g.get(), c.get(), nullptr)))
                : c;
        }
    }
    if (g && !bare_zeros && is_zero(g.get())) g = zeros(to[s].object);
    PyList_SET_ITEM(result.get(), s, g ? g.release() : Py_NewRef(Py_None));
  }
  return result;
}

}  // namespace gt
