// Records of files: the frames of TFRecord, and the protocol buffers in them. Sizes in a file are checked
// against the number of its bytes, and checksums are verified.
#include <cstring>

#include "../checksum.h"
#include "objects.h"

namespace gt {
namespace {

// ---- TFRecord: the length (8 bytes), its checksum, the data, their checksum ----

constexpr Py_ssize_t kHead = 12, kFoot = 4;

uint32_t masked(const char* data, size_t n) {
  const uint32_t crc = crc32c(data, n);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}
template <class T> T number_at(const char* p) {  // little-endian
  T n = 0;
  for (size_t i = 0; i < sizeof(T); ++i) n |= T(static_cast<unsigned char>(p[i])) << 8 * i;
  return n;
}
template <class T> void put(char* p, T n) {
  for (size_t i = 0; i < sizeof(T); ++i) p[i] = char(n >> 8 * i & 255);
}

PyObject* framed(PyObject*, PyObject* data) {
  if (!PyBytes_Check(data)) return PyErr_SetString(PyExc_TypeError, "framed: expected bytes"), nullptr;
  const Py_ssize_t n = PyBytes_GET_SIZE(data);
  if (n > PY_SSIZE_T_MAX - 64) return PyErr_NoMemory();
  PyObject* out = PyBytes_FromStringAndSize(nullptr, kHead + n + kFoot);
  if (!out) return nullptr;
  char *p = PyBytes_AS_STRING(out), *body = p + kHead;
  put<uint64_t>(p, uint64_t(n));
  put<uint32_t>(p + 8, masked(p, 8));
  std::memcpy(body, PyBytes_AS_STRING(data), size_t(n));
  put<uint32_t>(body + n, masked(body, size_t(n)));
  return out;
}

// unframed(data) -> the complete records at its beginning, how many bytes they take, and then how many bytes
// the next record needs at least, or the name of what is wrong.
PyObject* unframed(PyObject*, PyObject* data) {
  if (!PyBytes_Check(data)) return PyErr_SetString(PyExc_TypeError, "unframed: expected bytes"), nullptr;
  const char* p = PyBytes_AS_STRING(data);
  const uint64_t size = uint64_t(PyBytes_GET_SIZE(data));
  PyObject* records = PyList_New(0);
  if (!records) return nullptr;
  uint64_t at = 0, need = kHead;
  const char* wrong = nullptr;
  while (size - at >= uint64_t(kHead)) {
    if (number_at<uint32_t>(p + at + 8) != masked(p + at, 8)) {
      wrong = "length";
      break;
    }
    const uint64_t length = number_at<uint64_t>(p + at);
    if (length > uint64_t(PY_SSIZE_T_MAX) - kHead - kFoot) {
      need = uint64_t(PY_SSIZE_T_MAX);
      break;
    }
    need = kHead + length + kFoot;
    if (size - at < need) break;
    const char* body = p + at + kHead;
    if (number_at<uint32_t>(body + length) != masked(body, length)) {
      wrong = "data";
      break;
    }
    PyObject* record = PyBytes_FromStringAndSize(body, Py_ssize_t(length));
    const bool added = record && PyList_Append(records, record) == 0;
    Py_XDECREF(record);
    if (!added) return Py_DECREF(records), nullptr;
    at += need;
    need = kHead;
  }
  if (wrong) return Py_BuildValue("(NKs)", records, static_cast<unsigned long long>(at), wrong);
  return Py_BuildValue("(NKK)", records, static_cast<unsigned long long>(at),
                       static_cast<unsigned long long>(need));
}

// ---- protocol buffers ----

// The next integer, seven bits per byte; null, with a ValueError, if it is cut off or too long.
const char* varint(const char* p, const char* end, uint64_t& n) {
  n = 0;
  for (int shift = 0;; shift += 7) {
    if (shift > 63) return PyErr_SetString(PyExc_ValueError, "an integer of more than 64 bits"), nullptr;
    if (p == end) return PyErr_SetString(PyExc_ValueError, "cut off"), nullptr;
    const unsigned char byte = static_cast<unsigned char>(*p++);
    n |= uint64_t(byte & 127) << shift;
    if (byte < 128) return p;
  }
}

// One field of a message: its number, wire type, and an integer or bytes.
struct Field {
  uint64_t number = 0, value = 0;
  int kind = 0;
  const char* data = nullptr;  // of kinds other than 0; `value` is their size
};

const char* next_field(const char* p, const char* end, Field& f) {
  uint64_t tag;
  if (!(p = varint(p, end, tag))) return nullptr;
  f.kind = int(tag & 7);
  f.number = tag >> 3;
  if (f.kind == 0) {
    if (!(p = varint(p, end, f.value))) return nullptr;
  } else {
    if (f.kind == 2) {
      if (!(p = varint(p, end, f.value))) return nullptr;
    } else if (f.kind == 1 || f.kind == 5) {
      f.value = f.kind == 1 ? 8 : 4;
    } else {
      return PyErr_Format(PyExc_ValueError, "wire type %d", f.kind), nullptr;
    }
    if (f.value > uint64_t(end - p)) return PyErr_SetString(PyExc_ValueError, "cut off"), nullptr;
    f.data = p;
    p += f.value;
  }
  if (tag < 8) return PyErr_SetString(PyExc_ValueError, "a field without a number"), nullptr;
  return p;
}

// Calls `take(field)` for each field; false if a field is invalid or `take` fails.
template <class F> bool each_field(const char* p, uint64_t size, F&& take) {
  for (const char* end = p + size; p != end;) {
    Field f;
    if (!(p = next_field(p, end, f)) || !take(f)) return false;
  }
  return true;
}

PyObject* bytes_of(const Field& f) { return PyBytes_FromStringAndSize(f.data, Py_ssize_t(f.value)); }

bool append(PyObject* list, PyObject* made) {
  const bool done = made && PyList_Append(list, made) == 0;
  Py_XDECREF(made);
  return done;
}

// A map of names to messages, such as Features and FeatureLists: field 1 has entries of a name (1) and a
// message (2).
bool add_entries(PyObject* out, const Field& map) {
  return each_field(map.data, map.value, [&](const Field& entry) {
    if (entry.number != 1 || entry.kind != 2) return true;
    Field name, message;
    if (!each_field(entry.data, entry.value, [&](const Field& f) {
          if (f.kind == 2 && f.number == 1) name = f;
          if (f.kind == 2 && f.number == 2) message = f;
          return true;
        }))
      return false;
    PyObject* key = PyUnicode_DecodeUTF8(name.data, Py_ssize_t(name.value), nullptr);
    PyObject* value = key ? bytes_of(message) : nullptr;
    const bool done = value && PyDict_SetItem(out, key, value) == 0;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return done;
  });
}

// maps_of(message, count) -> the maps in its fields 1 to count: the features of an Example, the context and
// the feature lists of a SequenceExample.
PyObject* maps_of(PyObject*, PyObject* args) {
  PyObject* data;
  int count;
  if (!PyArg_ParseTuple(args, "Si", &data, &count)) return nullptr;
  if (count < 0 || count > 16) return PyErr_SetString(PyExc_ValueError, "maps_of: up to 16 maps"), nullptr;
  PyObject* out = PyList_New(0);
  if (!out) return nullptr;
  bool good = true;
  for (int i = 0; good && i < count; ++i) good = append(out, PyDict_New());
  good = good && each_field(PyBytes_AS_STRING(data), uint64_t(PyBytes_GET_SIZE(data)), [&](const Field& f) {
           if (f.kind != 2 || f.number < 1 || f.number > uint64_t(count)) return true;
           return add_entries(PyList_GET_ITEM(out, Py_ssize_t(f.number - 1)), f);
         });
  if (good) return out;
  Py_DECREF(out);
  return nullptr;
}

// The numbers of a FloatList or an Int64List, packed or one by one, as the bytes of float32 or int64.
bool add_numbers(std::string& out, const Field& list, bool floats) {
  auto add = [&](uint64_t n) {
    char eight[8];
    put<uint64_t>(eight, n);
    out.append(eight, 8);
  };
  return each_field(list.data, list.value, [&](const Field& f) {
    if (f.number != 1) return true;
    if (floats) {
      if (f.kind == 2 || f.kind == 5) out.append(f.data, size_t(f.value));
      return true;
    }
    if (f.kind == 0) add(f.value);
    if (f.kind == 2)
      for (const char *p = f.data, *end = p + f.value; p != end;) {
        uint64_t n;
        if (!(p = varint(p, end, n))) return false;
        add(n);
      }
    return true;
  });
}

PyObject* list_of(const Field& f) {
  if (f.number != 1) {
    std::string numbers;
    if (!add_numbers(numbers, f, f.number == 2)) return nullptr;
    return PyBytes_FromStringAndSize(numbers.data(), Py_ssize_t(numbers.size()));
  }
  PyObject* out = PyList_New(0);
  if (out && each_field(f.data, f.value, [&](const Field& one) {
        return one.number != 1 || one.kind != 2 || append(out, bytes_of(one));
      }))
    return out;
  Py_XDECREF(out);
  return nullptr;
}

// rows_of(features, kind, size) -> the numbers of all features, one after the other, as bytes of float32
// (kind 2) or int64 (3). None if one of them is missing, or has another kind or another number of values.
PyObject* rows_of(PyObject*, PyObject* args) {
  PyObject* features;
  int kind;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "O!in:rows_of", &PyTuple_Type, &features, &kind, &size)) return nullptr;
  if (kind < 2 || kind > 3) return PyErr_SetString(PyExc_ValueError, "rows_of: kind 2 or 3"), nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const size_t row = size_t(size) * (kind == 2 ? 4 : 8);
    std::string numbers;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(features); ++i) {
      PyObject* feature = PyTuple_GET_ITEM(features, i);
      if (!PyBytes_Check(feature)) return Py_NewRef(Py_None);
      Field list;
      if (!each_field(PyBytes_AS_STRING(feature), uint64_t(PyBytes_GET_SIZE(feature)), [&](const Field& f) {
            if (f.kind == 2 && f.number >= 1 && f.number <= 3) list = f;
            return true;
          }))
        return nullptr;
      if (list.number != uint64_t(kind)) return Py_NewRef(Py_None);
      if (!add_numbers(numbers, list, kind == 2)) return nullptr;
      if (numbers.size() != size_t(i + 1) * row) return Py_NewRef(Py_None);
    }
    return checked(PyBytes_FromStringAndSize(numbers.data(), Py_ssize_t(numbers.size())));
  });
}

// feature_of(message) -> the kind of a Feature's list (1 bytes, 2 floats, 3 integers, 0 none) and its values:
// a list, or the bytes of float32 or int64 numbers. If there are several lists, the last one.
PyObject* feature_of(PyObject*, PyObject* data) {
  if (!PyBytes_Check(data)) return PyErr_SetString(PyExc_TypeError, "feature_of: expected bytes"), nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    uint64_t kind = 0;
    PyObject* values = nullptr;
    const bool good =
        each_field(PyBytes_AS_STRING(data), uint64_t(PyBytes_GET_SIZE(data)), [&](const Field& f) {
          if (f.kind != 2 || f.number < 1 || f.number > 3) return true;
          Py_XDECREF(values);
          kind = f.number;
          values = list_of(f);
          return values != nullptr;
        });
    if (!good) return Py_XDECREF(values), nullptr;
    if (!values) values = Py_NewRef(Py_None);
    return Py_BuildValue("(KN)", static_cast<unsigned long long>(kind), values);
  });
}

PyMethodDef methods[] = {
    {"framed", framed, METH_O, "Bytes as a record of a TFRecord file."},
    {"unframed", unframed, METH_O,
     "The complete records at the beginning of bytes, their size, and what follows."},
    {"maps_of", maps_of, METH_VARARGS, "The maps in the first fields of a message, by name."},
    {"rows_of", rows_of, METH_VARARGS, "The numbers of features that have the same number of them."},
    {"feature_of", feature_of, METH_O, "The kind and the values of a feature of an example."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_records(PyObject* module) { PyModule_AddFunctions(module, methods); }

}  // namespace gt
