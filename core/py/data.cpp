// The only native loop of tf.data: shuffling a stream of row numbers through a buffer.
#include <algorithm>

#include "../ops/philox.h"
#include "objects.h"

namespace gt {
namespace {

// A Python buffer, released at the end of its scope.
struct View {
  Py_buffer view{};
  View(PyObject* o, int flags, const char* what) {
    if (PyObject_GetBuffer(o, &view, flags | PyBUF_C_CONTIGUOUS)) throw PythonError{};
    if (view.itemsize != 8) {
      PyBuffer_Release(&view);
      fail(Code::Value, std::string("shuffle_indices: ") + what + " must be int64");
    }
  }
  View(const View&) = delete;
  ~View() { PyBuffer_Release(&view); }
  int64_t* data() const { return static_cast<int64_t*>(view.buf); }
  int64_t size() const { return view.len / 8; }
};

// shuffle_indices(buffer, cursor, incoming, key, high, last) -> the row numbers that leave the buffer.
//
// The same order as TensorFlow's: once the buffer is full, a random element leaves it and the oldest one
// takes its place. `cursor` is (start, end, drawn): after `drawn` draws, the buffer holds the elements start
// to end of the stream, at their number modulo its size. With `last`, `incoming` is the end of the stream,
// and the buffer is emptied.
PyObject* shuffle_indices(PyObject*, PyObject* args) {
  PyObject *buffer, *cursor, *incoming;
  long long key, high;
  int last;
  if (!PyArg_ParseTuple(args, "OOOLLp", &buffer, &cursor, &incoming, &key, &high, &last)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    View b(buffer, PyBUF_WRITABLE, "buffer"), c(cursor, PyBUF_WRITABLE, "cursor"),
        in(incoming, PyBUF_SIMPLE, "incoming");
    int64_t room = b.size(), n = in.size();
    if (room < 1 || c.size() != 3)
      fail(Code::Value, "shuffle_indices: expected a buffer with room and a cursor of three numbers");
    int64_t start = c.data()[0], end = c.data()[1], drawn = c.data()[2];
    constexpr int64_t most = INT64_MAX / 4;  // no sum below overflows
    if (start < 0 || end < start || end - start > room || drawn < 0 || end > most || drawn > most)
      fail(Code::Value, "shuffle_indices: the cursor is wrong");
    int64_t count = end - start + n;
    if (!last) count = std::max<int64_t>(0, count - (room - 1));
    Tensor out = empty(Dtype::I64, Shape(&count, 1));
    int64_t *slots = b.data(), *to = out.as<int64_t>();
    const int64_t* from = in.data();
    const int64_t* stop = from + n;
    PhiloxSequence next{Philox{uint64_t(key), uint64_t(high), 0}.skip(uint64_t(drawn) / 4)};
    for (int64_t i = drawn % 4; i > 0; --i) next();
    for (int64_t i = 0; i < count; ++i) {
      while (from < stop && end - start < room) slots[end++ % room] = *from++;
      int64_t at = (start + int64_t(next()) % (end - start)) % room;
      to[i] = slots[at];
      slots[at] = slots[start++ % room];
    }
    while (from < stop) slots[end++ % room] = *from++;
    c.data()[0] = start, c.data()[1] = end, c.data()[2] = drawn + count;
    return reinterpret_cast<PyObject*>(new_tensor(std::move(out)));
  });
}

PyMethodDef functions[] = {{"shuffle_indices", shuffle_indices, METH_VARARGS,
                            "Shuffles row numbers through a buffer, as tf.data does."},
                           {}};

}  // namespace

void init_data(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace gt
