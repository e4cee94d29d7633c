// Loops in programs: a traced `while` runs here, iteration by iteration, without Python.
//
// A loop that will be differentiated keeps the residuals of each iteration. Their number is not known to the
// graph around it, so they are passed on as a token: a scalar that identifies the residuals and owns them
// through its buffer.
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
  size_t iterations = 0, width = 0;  // `width` values per iteration
  std::vector<Tensor> values;
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

// Raises KeyboardInterrupt, so that a long loop can be interrupted.
void check_signals() {
  WithLock lock;
  if (PyErr_CheckSignals()) throw PythonError{};
}

constexpr uint32_t kFastIterations = 1024;

// The program of an iteration, checked to fit these inputs.
Program& fitting(PyObject* o, const std::vector<Tensor>& inputs) {
  Program& program = *reinterpret_cast<ProgramObject*>(o)->program;
  if (program.n_inputs != inputs.size()) fail(Code::Value, "loop: wrong number of inputs");
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  program.check_inputs(in.data());
  return program;
}

const Tensor& form_of(const Program& program, size_t k) {  // the type and shape of a result
  if (k >= program.results.size()) fail(Code::Value, "loop: the program has too few results");
  return program.values[program.results[k]].form;
}

void check_condition(const Program& program, size_t k) {
  if (form_of(program, k).dtype != Dtype::Bool || form_of(program, k).numel != 1)
    fail(Code::Value, "loop: the condition is not one bool");
}

// For each result, which input it becomes in the next iteration: for the first `n`, those from `first` on.
std::vector<int32_t> next_inputs(const Program& program, const std::vector<Tensor>& inputs, size_t first,
                                 size_t n) {
  std::vector<int32_t> next(std::max(n, program.results.size()), -1);
  for (size_t k = 0; k < n; ++k) {
    const Tensor &form = form_of(program, k), &input = inputs[first + k];
    if (!(form.shape == input.shape && form.dtype == input.dtype))
      fail(Code::Value, "loop: a variable changes its type or shape");
    next[k] = int32_t(first + k);
  }
  return next;
}

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
    std::vector<Tensor> state = tensors_of(given);
    Program &first = fitting(condition, state), &body = fitting(step, state);
    if (n_vars < 0 || size_t(n_vars) > state.size()) fail(Code::Value, "loop: wrong number of variables");
    const size_t n = size_t(n_vars), n_results = body.results.size();
    const std::vector<int32_t> next = next_inputs(body, state, 0, n);
    check_condition(first, 0);
    check_condition(body, n);
    auto residuals = std::make_shared<Residuals>();
    residuals->width = n_results - n - 1;
    without_lock([&] {
      Program::Repeat asking(first, state, {-1});
      asking.run();
      if (!*asking.elements(0)) return;
      Program::Repeat iteration(body, std::move(state), next);
      Patience patience(kFastIterations);
      for (bool go = true; go;) {
        iteration.run();
        go = *iteration.elements(n);
        for (size_t k = n + 1; keeps && k < n_results; ++k) residuals->values.push_back(iteration.result(k));
        ++residuals->iterations;
        iteration.advance();
        patience.step();
      }
      state.clear();
      for (size_t i = 0; i < n; ++i) state.push_back(iteration.input(i));
    });
    state.resize(n);
    if (keeps) state.push_back(new_token(std::move(residuals)));
    return list_of(state);
  });
}

// The parts that the iterations returned (`width` each), concatenated along the first axis.
Tensor joined(const std::vector<Tensor>& parts, size_t which, size_t width, const Tensor& like) {
  Shape shape = like.shape;
  if (shape.rank < 1) fail(Code::Value, "loop: parts without an axis cannot be joined");
  shape[0] *= int64_t(parts.size() / width);
  Tensor all = empty(like.dtype, shape);
  char* at = all.data;
  for (size_t i = which; i < parts.size(); i += width) {
    std::memcpy(at, parts[i].data, size_t(parts[i].nbytes()));
    at += parts[i].nbytes();
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
    std::vector<Tensor> state = tensors_of(given), constants = tensors_of(rest);
    const std::shared_ptr<Residuals> residuals = find_residuals(as_tensor(token)->value);
    const Program& p = *reinterpret_cast<ProgramObject*>(step)->program;
    const size_t n = state.size();
    if (p.results.size() < n) fail(Code::Value, "loop: the program has too few results");
    std::vector<Tensor> parts;
    if (residuals->iterations) {
      const size_t n_residuals = residuals->width;
      std::vector<Tensor> inputs(residuals->values.begin(),
                                 residuals->values.begin() + Py_ssize_t(n_residuals));
      inputs.insert(inputs.end(), std::make_move_iterator(state.begin()),
                    std::make_move_iterator(state.end()));
      inputs.insert(inputs.end(), constants.begin(), constants.end());
      Program& body = fitting(step, inputs);
      const std::vector<int32_t> next = next_inputs(body, inputs, n_residuals, n);
      without_lock([&] {
        Program::Repeat iteration(body, std::move(inputs), next);
        Patience patience(kFastIterations);
        for (size_t i = residuals->iterations; i-- > 0;) {
          for (size_t k = 0; k < n_residuals; ++k) iteration.give(k, residuals->values[i * n_residuals + k]);
          iteration.run();
          for (size_t k = n; k < body.results.size(); ++k) parts.push_back(iteration.result(k));
          iteration.advance();
          patience.step();
        }
        for (size_t k = 0; k < n; ++k) state[k] = iteration.input(n_residuals + k);
      });
    }
    for (size_t k = n; k < p.results.size(); ++k)
      state.push_back(joined(parts, k - n, p.results.size() - n, p.values[p.results[k]].form));
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
