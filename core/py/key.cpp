// Keys, and two Python types: Cache, with an entry per kind of arguments, and Quick, a callable that looks
// there first.
#include "key.h"

#include "program_type.h"

#include <bit>

namespace gt {

namespace {

// Values that do not change and that Python compares without running code of the user's.
bool is_plain(PyObject* o) {
  if (o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
      PyComplex_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || PyType_Check(o))
    return true;
  if (PyFrozenSet_CheckExact(o)) {
    Ref<> elements(checked(PySequence_Tuple(o)));
    return is_plain(elements.get());
  }
  if (!PyTuple_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    if (!is_plain(PyTuple_GET_ITEM(o, i))) return false;
  return true;
}

// Equal and of one type; floats bit by bit, since a program for 0.0 is not one for -0.0.
bool equal_plain(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a))
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) == std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!equal_plain(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  if (PyType_Check(a)) return false;  // classes are equal only if identical
  int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) throw PythonError{};
  return equal == 1;
}

// The hash of an object; false if it cannot be hashed.
bool hash_of(PyObject* o, Py_hash_t& hash) {
  hash = PyObject_Hash(o);
  if (hash != -1 || !PyErr_Occurred()) return true;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
  PyErr_Clear();
  return false;
}

bool is_hashable(PyObject* o) {
  Py_hash_t hash;
  return hash_of(o, hash);
}

// The object of a weak reference; null if it has died.
Ref<> referent(PyObject* weak) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* o = nullptr;
  if (PyWeakref_GetRef(weak, &o) < 0) throw PythonError{};
  return Ref<>(o);
#else
  PyObject* o = PyWeakref_GetObject(weak);
  return o == Py_None ? Ref<>() : Ref<>::borrow(o);
#endif
}

}  // namespace

bool is_constant(PyObject* o) {
  if (is_plain(o)) return true;
  for (int i = 0; i < kDtypes; ++i)
    if (PyTuple_GET_ITEM(hooks.dtypes, i) == o) return true;
  return Py_TYPE(o)->tp_hash != PyBaseObject_Type.tp_hash && is_hashable(o);
}

void Query::add(const Tensor& t, uint32_t number) {
  words.push_back(uint64_t(t.dtype) << 48 | uint64_t(uint8_t(t.shape.rank)) << 32 | number);
  for (int i = 0; i < t.shape.rank; ++i) words.push_back(uint64_t(t.shape[i]));
}

void Query::add_object(PyObject* o) {
  Py_hash_t hash;
  if (!hash_of(o, hash)) hash = Py_hash_t(reinterpret_cast<uintptr_t>(o) >> 4);
  words.push_back(uint64_t(hash));
  words.push_back(reinterpret_cast<uintptr_t>(Py_TYPE(o)));
  objects.push_back(o);
  if constexpr (kFreeThreaded) held.push_back(Ref<>::borrow(o));
}

// Tags what follows, so that different nests have different words.
enum NestMark : uint64_t {
  kTensorMark = 0x7e5000001,
  kListMark,
  kTupleMark,
  kDictMark,
  kLeafMark,
  kVariableMark,
};

void Query::add_nest(PyObject* o) {
  if (is_tensor(o)) {
    add(kTensorMark);
    add(as_tensor(o)->value);
  } else if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    bool tuple = PyTuple_CheckExact(o);
    add(tuple ? kTupleMark : kListMark);
    Ref<> items(checked(fixed_items(o, "")));
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
    add(uint64_t(n));
    for (Py_ssize_t i = 0; i < n && i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      add_nest(PySequence_Fast_GET_ITEM(items.get(), i));
  } else if (PyDict_CheckExact(o)) {
    add(kDictMark);
    Ref<> items(kFreeThreaded ? checked(PyDict_Copy(o)) : Py_NewRef(o));
    add(uint64_t(PyDict_GET_SIZE(items.get())));
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(items.get(), &at, &key, &value);) {
      add_object(key);
      add_nest(value);
    }
  } else {
    add(kLeafMark);
    add_object(o);
  }
}

uint64_t Query::hash() const {
  uint64_t h = 0x9e3779b97f4a7c15ull ^ words.size();
  for (uint64_t w : words) {
    h = (h ^ w) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

Held::Held(PyObject* o)
    : how_(is_plain(o)      ? How::Value
           : is_hashable(o) ? How::Equal
                            : How::Same),
      object_(Ref<>::borrow(o)) {
  if (how_ == How::Value) return;
  if (Ref<> weak{PyWeakref_NewRef(o, nullptr)}) {
    object_ = std::move(weak);
    weak_ = true;
  } else {
    // An object without weak references is kept alive, so that no other one gets its address.
    PyErr_Clear();
  }
}

bool Held::dead() const { return weak_ && !referent(object_.get()); }

bool Held::is(PyObject* o) const {
  if (how_ == How::Value) return equal_plain(object_.get(), o);
  Ref<> mine = weak_ ? referent(object_.get()) : object_;
  if (!mine) return false;
  if (mine.get() == o) return true;
  if (how_ == How::Same || Py_TYPE(mine.get()) != Py_TYPE(o)) return false;
  int equal = PyObject_RichCompareBool(mine.get(), o, Py_EQ);
  if (equal < 0) throw PythonError{};
  return equal == 1;
}

// ---- Cache --------------------------------------------------------------------------------

namespace {

struct CacheObject {
  PyObject_HEAD KeyedCache<Ref<>>* cache;
  size_t most;
  Shared<uint64_t> generation;  // when `remember` was last called
};
Shared<uint64_t> generation = 1;  // of the settings that decide how functions run: see new_generation
CacheObject* as_cache(PyObject* o) { return reinterpret_cast<CacheObject*>(o); }

PyObject* cache_new(PyTypeObject* type, PyObject* args, PyObject*) {
  Py_ssize_t most;
  if (!PyArg_ParseTuple(args, "n:Cache", &most)) return nullptr;
  if (most < 1) {
    PyErr_SetString(PyExc_ValueError, "Cache: it must hold at least one value");
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_cache(self)->most = size_t(most);
  as_cache(self)->cache = new (std::nothrow) KeyedCache<Ref<>>;
  if (as_cache(self)->cache) return self;
  Py_DECREF(self);
  return PyErr_NoMemory();
}

PyTypeObject* CacheType;

Ref<> find_value(PyObject* self, const Query& q) {
  Section here(self);
  auto found = as_cache(self)->cache->find(q);
  return found ? found->value : Ref<>();
}

PyObject* cache_find(PyObject* self, PyObject* what) {
  return guarded<PyObject*>(nullptr, [&] {
    Query q;
    q.add_nest(what);
    Ref<> found = find_value(self, q);
    return found ? found.release() : Py_NewRef(Py_None);
  });
}

void put(CacheObject* c, const Query& q, PyObject* value) {
  if (auto found = c->cache->find(q)) {
    found->value = Ref<>::borrow(value);
  } else {
    c->cache->add(q, Ref<>::borrow(value));
    while (c->cache->size() > c->most) c->cache->pop_oldest();
  }
}

PyObject* cache_add(PyObject* self, PyObject* args) {
  Section here(self);
  PyObject *what, *value;
  if (!PyArg_ParseTuple(args, "OO:add", &what, &value)) return nullptr;
  return guarded<PyObject*>(nullptr, [&] {
    Query q;
    q.add_nest(what);
    put(as_cache(self), q, value);
    return Py_NewRef(Py_None);
  });
}

// The arguments of a call as a key, and their leaves in the order in which they are written.
struct Arguments {
  Query key;
  std::vector<Ref<>> leaves;

  // False if there is something else than tensors, variables of known shape, and plain values, in lists and
  // tuples.
  bool add(PyObject* o, int depth = 0) {
    constexpr int kDeepest = 16;  // a list may be in itself
    if (is_tensor(o)) {
      if (as_tensor(o)->symbol) return false;
      key.add(kTensorMark);
      key.add(as_tensor(o)->value);
    } else if (is_variable(o)) {
      VariableObject* v = as_variable(o);
      if (v->declared) return false;
      key.add(kVariableMark);
      key.add(v->uid << 1 | uint64_t(bool(v->trainable)));
      key.objects.push_back(o);
    } else if (is_list(o)) {
      if (depth == kDeepest) return false;
      key.add(PyTuple_CheckExact(o) ? kTupleMark : kListMark);
      Ref<> items(checked(fixed_items(o, "")));
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
      key.add(uint64_t(n));
      for (Py_ssize_t i = 0; i < n; ++i)
        if (!add(PySequence_Fast_GET_ITEM(items.get(), i), depth + 1)) return false;
      return true;
    } else if (is_plain(o)) {
      key.add(kLeafMark);
      key.add_object(o);
    } else {
      return false;
    }
    leaves.push_back(Ref<>::borrow(o));
    return true;
  }
  bool add_all(PyObject* args, PyObject* kwargs) {
    key.words.reserve(32);
    leaves.reserve(size_t(Py_SIZE(args)));
    if (!PyTuple_CheckExact(args) || !add(args)) return false;
    PyObject *name, *value;
    if (kwargs)
      for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &name, &value);) {
        key.add_object(name);
        if (!add(value)) return false;
      }
    return true;
  }

 private:
  // Exact types: others may be compared and taken apart in ways of their own.
  static bool is_list(PyObject* o) { return PyTuple_CheckExact(o) || PyList_CheckExact(o); }
};

// takes(args, kwargs) -> whether `remember` can keep a runner for such a call
PyObject* cache_takes(PyObject*, PyObject* args) {
  PyObject *positional, *named;
  if (!PyArg_ParseTuple(args, "O!O!:takes", &PyTuple_Type, &positional, &PyDict_Type, &named)) return nullptr;
  return guarded<PyObject*>(nullptr, [&] {
    Arguments call;
    return PyBool_FromLong(!thread_state().changed && call.add_all(positional, named));
  });
}

// remember(args, kwargs, runner): `run` calls the runner for such arguments, until the next generation
PyObject* cache_remember(PyObject* self, PyObject* args) {
  PyObject *positional, *named, *runner;
  if (!PyArg_ParseTuple(args, "O!O!O:remember", &PyTuple_Type, &positional, &PyDict_Type, &named, &runner))
    return nullptr;
  CacheObject* c = as_cache(self);
  return guarded<PyObject*>(nullptr, [&] {
    Arguments call;
    if (!call.add_all(positional, named)) fail(Code::Type, "remember: expected what `takes` takes");
    Section here(self);
    std::list<KeyedCache<Ref<>>::Shared> gone;
    const uint64_t now = generation;
    if (c->generation != now) gone = c->cache->take_all();
    c->generation = now;
    put(c, call.key, runner);
    return Py_NewRef(Py_None);
  });
}

// The result of the runner that was remembered for such arguments. NotImplemented if there is none, or if
// this thread is in any context: a tape records, a trace is written, ops are watched, a scope is open.
PyObject* cache_run(PyObject* self, PyObject* args, PyObject* kwargs) {
  CacheObject* c = as_cache(self);
  if (c->generation != generation || thread_state().changed) Py_RETURN_NOTIMPLEMENTED;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Arguments call;
    if (!call.add_all(args, kwargs)) return Py_NewRef(Py_NotImplemented);
    Ref<> found = find_value(self, call.key);
    return found ? run_runner(found.get(), call.leaves) : Py_NewRef(Py_NotImplemented);
  });
}

PyObject* has_contexts(PyObject*, PyObject*) { return PyBool_FromLong(thread_state().changed); }

PyObject* new_generation(PyObject*, PyObject*) {
  ++generation;
  Py_RETURN_NONE;
}

PyObject* cache_values(PyObject* self, PyObject*) {
  Section here(self);
  return guarded<PyObject*>(nullptr, [&] {
    auto dead = as_cache(self)->cache->sweep();
    auto entries = as_cache(self)->cache->entries();
    Ref<> list(checked(PyList_New(0)));
    for (auto it = entries.rbegin(); it != entries.rend(); ++it)
      if (PyList_Append(list.get(), (*it)->value.get())) throw PythonError{};
    return list.release();
  });
}

int cache_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (as_cache(self)->cache)
    for (auto& e : as_cache(self)->cache->entries()) Py_VISIT(e->value.get());
  return 0;
}

int cache_clear(PyObject* self) {
  if (as_cache(self)->cache) as_cache(self)->cache->take_all();
  return 0;
}

PyObject* cache_clear_method(PyObject* self, PyObject*) {
  Section here(self);
  cache_clear(self);
  Py_RETURN_NONE;
}

void cache_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  cache_clear(self);
  delete as_cache(self)->cache;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

Py_ssize_t cache_length(PyObject* self) {
  Section here(self);
  return Py_ssize_t(as_cache(self)->cache->size());
}

PyMethodDef methods[] = {
    {"find", cache_find, METH_O, "The value that was added for this, or None."},
    {"add", cache_add, METH_VARARGS, "Keeps a value for this key; the least recently used one is dropped."},
    {"takes", cache_takes, METH_VARARGS, "Whether a runner can be kept for these arguments."},
    {"remember", cache_remember, METH_VARARGS,
     "Keeps a runner for these arguments, until there is a new generation."},
    {"values", cache_values, METH_NOARGS, "All values, the most recently used last."},
    {"clear", cache_clear_method, METH_NOARGS, "Removes all entries."},
    {}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(cache_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(cache_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(cache_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(cache_clear)},
    {Py_tp_methods, methods},
    {Py_sq_length, reinterpret_cast<void*>(cache_length)},
    {Py_tp_doc,
     const_cast<char*>(
         "Cache(most, /)\n--\n\nAt most `most` values, found by nests of tensors (by type and shape), plain "
         "values, and objects, which it does not keep alive.")},
    {}};
PyType_Spec spec = {"gradtape._core.Cache", sizeof(CacheObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                    slots};

// ---- Quick: a callable that runs without Python code of ours if its cache has a runner ---------------

struct QuickObject {
  PyObject_HEAD PyObject* cache;  // a Cache, whose runners are tried first
};
QuickObject* as_quick(PyObject* o) { return reinterpret_cast<QuickObject*>(o); }

PyObject* quick_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* cache = as_quick(self)->cache;
  if (cache && Py_TYPE(cache) == CacheType) {
    Ref<> held = Ref<>::borrow(cache);
    Ref<> result(cache_run(cache, args, kwargs));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  Ref<> slow(PyObject_GetAttr(self, names.slow_call));
  return slow ? PyObject_Call(slow.get(), args, kwargs) : nullptr;
}

int quick_clear(PyObject* self) {
  Py_CLEAR(as_quick(self)->cache);
  return 0;
}

int quick_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_quick(self)->cache);
  return 0;
}

void quick_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  quick_clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef quick_members[] = {
    {"_quick", T_OBJECT_EX, offsetof(QuickObject, cache), 0, "The cache that is tried first."}, {}};
PyType_Slot quick_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {Py_tp_dealloc, reinterpret_cast<void*>(quick_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(quick_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(quick_clear)},
    {Py_tp_call, reinterpret_cast<void*>(quick_call)},
    {Py_tp_members, quick_members},
    {Py_tp_doc,
     const_cast<char*>(
         "Base of callables: a call runs what `_quick` remembers for it, or else `_call(*args, **kwargs)`.")},
    {}};
PyType_Spec quick_spec = {"gradtape._core.Quick", sizeof(QuickObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, quick_slots};

}  // namespace

static PyMethodDef functions[] = {
    {"has_contexts", has_contexts, METH_NOARGS, "Whether this thread is in any context."},
    {"new_generation", new_generation, METH_NOARGS,
     "Invalidates all remembered runners, after a setting that decides how functions run has changed."},
    {}};

void init_cache_type(PyObject* module) {
  PyModule_AddFunctions(module, functions);
  CacheType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  PyModule_AddObjectRef(module, "Cache", reinterpret_cast<PyObject*>(CacheType));
  PyModule_AddObjectRef(module, "Quick", Ref<>(checked(PyType_FromSpec(&quick_spec))).get());
}

}  // namespace gt
