// Loops of programs: a traced `while` runs here, iteration after iteration, without Python.
//
// A loop that will be differentiated keeps what each iteration's backward pass reads. The graph
// around it knows shapes, not numbers of iterations, so what is kept travels through it as a
// token: a scalar that names the values and owns them through its buffer.
#include <mutex>
#include <unordered_map>

#include "program_type.h"

namespace gt {

namespace {

struct Kept {
  int64_t number = 0;
  std::vector<std::vector<Tensor>> iterations;
};

std::mutex kept_mutex;
auto& kept_by_number = *new std::unordered_map<int64_t, Kept*>;  // never destroyed: tokens may outlive it
int64_t next_kept = 0;

Tensor new_token(std::unique_ptr<Kept> kept) {
  {
    std::lock_guard lock(kept_mutex);
    kept->number = ++next_kept;
    kept_by_number[kept->number] = kept.get();
  }
  Kept* owned = kept.release();
  Tensor t(Spec{Dtype::I64, Shape()});
  t.buffer = adopt(reinterpret_cast<char*>(&owned->number), sizeof(int64_t),
                   [](void* p) {
                     auto* kept = static_cast<Kept*>(p);
                     {
                       std::lock_guard lock(kept_mutex);
                       kept_by_number.erase(kept->number);
                     }
                     delete kept;
                   },
                   owned);
  t.data = t.buffer->data;
  return t;
}

Kept& find_kept(const Tensor& token) {
  std::lock_guard lock(kept_mutex);
  auto found = kept_by_number.find(*token.as<int64_t>());
  if (found == kept_by_number.end()) fail(Code::Runtime, "while_loop: what the iterations computed is no longer there");
  return *found->second;
}

std::vector<Tensor> tensors_of(PyObject* list) {
  std::vector<Tensor> all;
  Ref<> fast(checked(PySequence_Fast(list, "expected a sequence of tensors")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) all.push_back(to_tensor(PySequence_Fast_GET_ITEM(fast.get(), i))->value);
  return all;
}

PyObject* list_of(std::vector<Tensor>& tensors) {
  Ref<> list(checked(PyList_New(Py_ssize_t(tensors.size()))));
  for (size_t k = 0; k < tensors.size(); ++k) PyList_SET_ITEM(list.get(), Py_ssize_t(k), reinterpret_cast<PyObject*>(new_tensor(std::move(tensors[k]))));
  return list.release();
}

// Runs `work` without the interpreter's lock and lets its errors through.
template <class F> void without_lock(F&& work) {
  std::optional<Error> error;
  bool python_error = false;
  Py_BEGIN_ALLOW_THREADS try { work(); } catch (const Error& e) {
    error = e;
  } catch (const PythonError&) {
    python_error = true;
  }
  Py_END_ALLOW_THREADS if (python_error) throw PythonError{};
  if (error) throw *error;
}

// What is long can be interrupted.
void check_signals() {
  PyGILState_STATE gil = PyGILState_Ensure();
  bool stop = PyErr_CheckSignals() != 0;
  PyGILState_Release(gil);
  if (stop) throw PythonError{};
}

constexpr uint32_t kFastIterations = 1024;

// What an iteration gives may be written over what the one before gave.
void run(Program& p, const std::vector<Tensor>& inputs, std::vector<Tensor>& outs) {
  const Tensor* small[32];
  std::vector<const Tensor*> large;
  const Tensor** in = small;
  if (inputs.size() > 32) {
    large.resize(inputs.size());
    in = large.data();
  }
  for (size_t i = 0; i < inputs.size(); ++i) in[i] = &inputs[i];
  outs.clear();
  p.run(in, outs, nullptr, true);
}

Program& program_of(PyObject* o, size_t inputs) {
  Program& p = *reinterpret_cast<ProgramObject*>(o)->program;
  if (p.n_inputs != inputs) fail(Code::Value, "loop: wrong number of inputs");
  return p;
}

// loop(condition, step, inputs, n_vars, keeps): `step` gives the next variables, whether to go on,
// and what to keep of the iteration. Returns the last variables, and the token if it keeps.
PyObject* loop(PyObject*, PyObject* args) {
  PyObject *condition, *step, *given;
  Py_ssize_t n_vars;
  int keeps;
  if (!PyArg_ParseTuple(args, "O!O!Onp", ProgramType, &condition, ProgramType, &step, &given, &n_vars, &keeps)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<Tensor> state = tensors_of(given), outs;
    Program& first = program_of(condition, state.size());
    Program& next = program_of(step, state.size());
    auto kept = std::make_unique<Kept>();
    without_lock([&] {
      run(first, state, outs);
      bool go = *outs[0].as<bool>();
      Patience patience(kFastIterations);
      while (go) {
        run(next, state, outs);
        for (Py_ssize_t i = 0; i < n_vars; ++i) state[size_t(i)] = std::move(outs[size_t(i)]);
        go = *outs[size_t(n_vars)].as<bool>();
        if (keeps) kept->iterations.emplace_back(std::make_move_iterator(outs.begin() + n_vars + 1), std::make_move_iterator(outs.end()));
        patience.step();
      }
    });
    state.resize(size_t(n_vars));
    if (keeps) state.push_back(new_token(std::move(kept)));
    return list_of(state);
  });
}

// The parts that iterations gave, one after the other along the first axis.
Tensor joined(const std::vector<std::vector<Tensor>>& iterations, size_t which, const Tensor& like) {
  Shape shape = like.shape;
  shape[0] *= int64_t(iterations.size());
  Tensor all = empty(like.dtype, shape);
  char* at = all.data;
  for (auto& parts : iterations) {
    std::memcpy(at, parts[which].data, size_t(parts[which].nbytes()));
    at += parts[which].nbytes();
  }
  return all;
}

// loop_back(step, token, state, constants): runs `step(kept, state, constants) -> state, parts` over
// the iterations, last to first. Returns the last state, and the parts of all iterations joined.
PyObject* loop_back(PyObject*, PyObject* args) {
  PyObject *step, *token, *given, *rest;
  if (!PyArg_ParseTuple(args, "O!O!OO", ProgramType, &step, TensorType, &token, &given, &rest)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<Tensor> state = tensors_of(given), constants = tensors_of(rest), inputs, outs;
    Kept& kept = find_kept(as_tensor(token)->value);
    if (!kept.iterations.empty()) program_of(step, kept.iterations[0].size() + state.size() + constants.size());
    Program& p = *reinterpret_cast<ProgramObject*>(step)->program;
    std::vector<std::vector<Tensor>> parts;
    without_lock([&] {
      Patience patience(kFastIterations);
      for (size_t i = kept.iterations.size(); i-- > 0;) {
        inputs = kept.iterations[i];
        inputs.insert(inputs.end(), std::make_move_iterator(state.begin()), std::make_move_iterator(state.end()));
        inputs.insert(inputs.end(), constants.begin(), constants.end());
        run(p, inputs, outs);
        size_t n = state.size();
        if (outs.size() > n) {
          parts.emplace_back(std::make_move_iterator(outs.begin() + Py_ssize_t(n)), std::make_move_iterator(outs.end()));
          outs.resize(n);
        }
        std::swap(state, outs);
        patience.step();
      }
    });
    size_t n = state.size();
    for (size_t k = n; k < p.results.size(); ++k) state.push_back(joined(parts, k - n, p.values[p.results[k]].form));
    return list_of(state);
  });
}

PyMethodDef functions[] = {{"loop", loop, METH_VARARGS, "Runs a program again and again, until it says that it is done."},
                           {"loop_back", loop_back, METH_VARARGS, "Runs a program over what the iterations of a loop kept, last to first."},
                           {}};

}  // namespace

void init_loop(PyObject* module) {
  PyModule_AddFunctions(module, functions);
  check_interrupt = check_signals;
}

}  // namespace gt
