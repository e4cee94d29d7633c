// Loops of programs: a traced `while` runs here, iteration after iteration, without Python.
//
// A loop that will be differentiated keeps the residuals of each iteration. The graph around it
// knows shapes, not numbers of iterations, so the residuals travel through it as a token: a scalar that names
// the values and owns them through its buffer.
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device.h"
#include "../fork.h"
#include "program_type.h"

namespace gt {

namespace {

struct Residuals {
  int64_t number = 0;
  std::vector<std::vector<Tensor>> iterations;
};

auto& residuals_lock = *new Lock;
auto& residuals_by_number =
    *new std::unordered_map<int64_t, std::weak_ptr<Residuals>>;  // never destroyed: tokens may outlive it
int64_t next_number = 0;

Tensor new_token(std::shared_ptr<Residuals> residuals) {
  auto owner = std::make_unique<std::shared_ptr<Residuals>>(residuals);
  {
    std::lock_guard hold(residuals_lock);
    residuals->number = ++next_number;
    residuals_by_number[residuals->number] = residuals;
  }
  Tensor t(Spec{Dtype::I64, Shape()});
  t.buffer = adopt(
      reinterpret_cast<char*>(&residuals->number), sizeof(int64_t),
      [](void* p) {
        std::unique_ptr<std::shared_ptr<Residuals>> residuals(static_cast<std::shared_ptr<Residuals>*>(p));
        std::lock_guard hold(residuals_lock);
        residuals_by_number.erase((*residuals)->number);
      },
      owner.get());
  owner.release();
  t.data = t.buffer->data;
  return t;
}

std::shared_ptr<Residuals> find_residuals(const Tensor& token) {
  if (token.dtype != Dtype::I64 || token.numel != 1 || !token.data)
    fail(Code::Type, "while_loop: expected the token of a loop");
  std::lock_guard hold(residuals_lock);
  auto entry = residuals_by_number.find(*token.as<int64_t>());
  std::shared_ptr<Residuals> residuals = entry == residuals_by_number.end() ? nullptr : entry->second.lock();
  if (!residuals) fail(Code::Runtime, "while_loop: the residuals of its iterations are gone");
  return residuals;
}

std::vector<Tensor> tensors_of(PyObject* list) {
  std::vector<Tensor> all;
  Ref<> items(checked(PySequence_Tuple(list)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    Ref<TensorObject> t = to_tensor(PyTuple_GET_ITEM(items.get(), i));
    if (t->value.has_value()) settled_on_host(t->value);
    all.push_back(t->value);
  }
  return all;
}

PyObject* list_of(std::vector<Tensor>& tensors) {
  Ref<> list(checked(PyList_New(Py_ssize_t(tensors.size()))));
  for (size_t k = 0; k < tensors.size(); ++k)
    PyList_SET_ITEM(list.get(), Py_ssize_t(k),
                    reinterpret_cast<PyObject*>(new_tensor(std::move(tensors[k]))));
  return list.release();
}

// What is long can be interrupted.
void check_signals() {
  WithLock lock;
  if (PyErr_CheckSignals()) throw PythonError{};
}

constexpr uint32_t kFastIterations = 1024;
constexpr uint32_t kMarginIterations = 64;  // after which it is looked again whether there is memory left

// A program whose inputs are the same tensors again and again, or others in their places.
class Body {
 public:
  Body(PyObject* o, const std::vector<Tensor>& inputs)
      : program(*reinterpret_cast<ProgramObject*>(o)->program) {
    if (program.n_inputs != inputs.size()) fail(Code::Value, "loop: wrong number of inputs");
    for (const Tensor& t : inputs) in_.push_back(&t);
    program.check_inputs(in_.data());
  }
  const Tensor& result(size_t k) const {  // its type and shape
    if (k >= program.results.size()) fail(Code::Value, "loop: the program has too few results");
    return program.values[program.results[k]].form;
  }
  // That result k can take the place of an input in the next iteration.
  void check_next(size_t k, const Tensor& input) const {
    if (!(result(k).shape == input.shape && result(k).dtype == input.dtype))
      fail(Code::Value, "loop: a variable changes its type or shape");
  }
  void check_condition(size_t k) const {
    if (result(k).dtype != Dtype::Bool || result(k).numel != 1)
      fail(Code::Value, "loop: the condition is not one bool");
  }
  // What an iteration gives may be written over what the one before gave.
  void run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outs) {
    for (size_t i = 0; i < inputs.size(); ++i) in_[i] = &inputs[i];
    if (runs_++ % kMarginIterations == 0) margin_ = has_margin();
    Program::Run(program, in_.data(), true, margin_).compute(outs);
  }
  Program& program;

 private:
  uint32_t runs_ = 0;
  bool margin_ = false;
  std::vector<const Tensor*> in_;
};

// loop(condition, step, inputs, n_vars, keeps): `step` gives the next variables, whether to go on,
// and the residuals of the iteration. Returns the last variables, and the token if it keeps residuals.
PyObject* loop(PyObject*, PyObject* args) {
  PyObject *condition, *step, *given;
  Py_ssize_t n_vars;
  int keeps;
  if (!PyArg_ParseTuple(args, "O!O!Onp", ProgramType, &condition, ProgramType, &step, &given, &n_vars,
                        &keeps))
    return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<Tensor> state = tensors_of(given), outs;
    Body first(condition, state), next(step, state);
    if (n_vars < 0 || size_t(n_vars) > state.size()) fail(Code::Value, "loop: wrong number of variables");
    for (size_t i = 0; i < size_t(n_vars); ++i) next.check_next(i, state[i]);
    first.check_condition(0);
    next.check_condition(size_t(n_vars));
    auto residuals = std::make_shared<Residuals>();
    without_lock([&] {
      first.run(state, outs);
      bool go = *outs[0].as<bool>();
      Patience patience(kFastIterations);
      while (go) {
        next.run(state, outs);
        for (Py_ssize_t i = 0; i < n_vars; ++i) state[size_t(i)] = std::move(outs[size_t(i)]);
        go = *outs[size_t(n_vars)].as<bool>();
        if (keeps)
          residuals->iterations.emplace_back(std::make_move_iterator(outs.begin() + n_vars + 1),
                                             std::make_move_iterator(outs.end()));
        patience.step();
      }
    });
    state.resize(size_t(n_vars));
    if (keeps) state.push_back(new_token(std::move(residuals)));
    return list_of(state);
  });
}

// The parts that iterations gave, one after the other along the first axis.
Tensor joined(const std::vector<std::vector<Tensor>>& iterations, size_t which, const Tensor& like) {
  Shape shape = like.shape;
  if (shape.rank == 0) fail(Code::Value, "loop: parts without an axis cannot be joined");
  shape[0] *= int64_t(iterations.size());
  Tensor all = empty(like.dtype, shape);
  char* at = all.data;
  for (auto& parts : iterations) {
    std::memcpy(at, parts[which].data, size_t(parts[which].nbytes()));
    at += parts[which].nbytes();
  }
  return all;
}

// loop_back(step, token, state, constants): runs `step(residuals, state, constants) -> state, parts` over
// the iterations, last to first. Returns the last state, and the parts of all iterations joined.
PyObject* loop_back(PyObject*, PyObject* args) {
  PyObject *step, *token, *given, *rest;
  if (!PyArg_ParseTuple(args, "O!O!OO", ProgramType, &step, TensorType, &token, &given, &rest))
    return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<Tensor> state = tensors_of(given), constants = tensors_of(rest), inputs, outs;
    const std::shared_ptr<Residuals> residuals = find_residuals(as_tensor(token)->value);
    const auto& iterations = residuals->iterations;
    const Program& p = *reinterpret_cast<ProgramObject*>(step)->program;
    if (p.results.size() < state.size()) fail(Code::Value, "loop: the program has too few results");
    std::optional<Body> body;
    if (!iterations.empty()) {
      inputs = iterations[0];
      inputs.insert(inputs.end(), state.begin(), state.end());
      inputs.insert(inputs.end(), constants.begin(), constants.end());
      body.emplace(step, inputs);
      for (size_t i = 0; i < state.size(); ++i) body->check_next(i, state[i]);
    }
    std::vector<std::vector<Tensor>> parts;
    without_lock([&] {
      Patience patience(kFastIterations);
      for (size_t i = iterations.size(); i-- > 0;) {
        inputs = iterations[i];
        inputs.insert(inputs.end(), std::make_move_iterator(state.begin()),
                      std::make_move_iterator(state.end()));
        inputs.insert(inputs.end(), constants.begin(), constants.end());
        body->run(inputs, outs);
        size_t n = state.size();
        if (outs.size() > n) {
          parts.emplace_back(std::make_move_iterator(outs.begin() + Py_ssize_t(n)),
                             std::make_move_iterator(outs.end()));
          outs.resize(n);
        }
        std::swap(state, outs);
        patience.step();
      }
    });
    size_t n = state.size();
    for (size_t k = n; k < p.results.size(); ++k)
      state.push_back(joined(parts, k - n, p.values[p.results[k]].form));
    return list_of(state);
  });
}

PyMethodDef functions[] = {
    {"loop", loop, METH_VARARGS, "Runs a program repeatedly, until its condition is false."},
    {"loop_back", loop_back, METH_VARARGS,
     "Runs a program over the residuals of a loop's iterations, last to first."},
    {}};

}  // namespace

void init_loop(PyObject* module) {
  PyModule_AddFunctions(module, functions);
  check_interrupt = check_signals;
}

}  // namespace gt
