// Non-maximum suppression: of many boxes, keeps the best ones that overlap no better one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "objects.h"

namespace gt {
namespace {

// The bits of a float as an integer with the same order; -0 and 0 are equal.
uint32_t ordered(float x) {
  uint32_t bits;
  x += 0.0f;
  std::memcpy(&bits, &x, 4);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The boxes that are kept, coordinate by coordinate, so that a candidate is compared with several at a time.
struct Kept {
  static constexpr size_t kLanes = 16;
  std::vector<float> low[2], high[2], area;
  size_t count = 0;

  void add(const float* lo, const float* hi, float a) {
    if (count % kLanes == 0) {
      for (int k = 0; k < 2; ++k) low[k].resize(count + kLanes), high[k].resize(count + kLanes);
      area.resize(count + kLanes);  // zeros: those overlap nothing
    }
    for (int k = 0; k < 2; ++k) low[k][count] = lo[k], high[k][count] = hi[k];
    area[count++] = a;
  }
  // Whether the intersection over union with one of them is above the threshold. The latest are the most
  // likely to overlap and are compared first.
  bool overlap(const float* lo, const float* hi, float a, float threshold) const {
    for (size_t block = (count + kLanes - 1) / kLanes; block-- > 0;) {
      const size_t at = block * kLanes;
      int any = 0;
      for (size_t i = at; i < at + kLanes; ++i) {
        const float down = std::min(hi[0], high[0][i]) - std::max(lo[0], low[0][i]),
                    across = std::min(hi[1], high[1][i]) - std::max(lo[1], low[1][i]);
        const float common = std::max(down, 0.0f) * std::max(across, 0.0f);
        const bool some = a > 0 && area[i] > 0;
        any |= int(some) & int(common / (a + area[i] - common) > threshold);
      }
      if (any) return true;
    }
    return false;
  }
};

struct Floats {
  Py_buffer view{};
  explicit Floats(PyObject* o) {
    if (PyObject_GetBuffer(o, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) throw PythonError{};
    if (view.itemsize != 4 || !view.format || std::strcmp(view.format, "f") != 0) {
      PyBuffer_Release(&view);
      fail(Code::Value, "best_boxes: expected arrays of float32");
    }
  }
  Floats(const Floats&) = delete;
  ~Floats() { PyBuffer_Release(&view); }
  const float* data() const { return static_cast<const float*>(view.buf); }
  size_t size() const { return size_t(view.len) / 4; }
};

// best_boxes(boxes, scores, most, threshold, least) -> the indices of the boxes that are kept, int32. Boxes
// are given by any two opposite corners; equal scores keep their order; scores must be above `least`.
PyObject* best_boxes(PyObject*, PyObject* args) {
  PyObject *given, *with;
  long long most;
  float threshold, least;
  if (!PyArg_ParseTuple(args, "OOLff", &given, &with, &most, &threshold, &least)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Floats boxes(given), scores(with);
    const size_t n = scores.size();
    if (boxes.size() != 4 * n || n > 0xffffffffu)
      fail(Code::Value, "best_boxes: expected four numbers a box");
    std::vector<uint64_t> queue;  // the bits of the score, then the index, in which smaller ones rank higher
    for (size_t i = 0; i < n; ++i)
      if (scores.data()[i] > least) queue.push_back(uint64_t(ordered(scores.data()[i])) << 32 | uint32_t(~i));
    std::make_heap(queue.begin(), queue.end());
    std::vector<int32_t> found;
    Kept kept;
    while (!queue.empty() && static_cast<long long>(found.size()) < most) {
      std::pop_heap(queue.begin(), queue.end());
      const uint32_t i = ~uint32_t(queue.back());
      queue.pop_back();
      const float* b = boxes.data() + 4 * size_t(i);
      const float lo[] = {std::min(b[0], b[2]), std::min(b[1], b[3])},
                  hi[] = {std::max(b[0], b[2]), std::max(b[1], b[3])};
      const float area = (hi[0] - lo[0]) * (hi[1] - lo[1]);
      if (kept.overlap(lo, hi, area, threshold)) continue;
      kept.add(lo, hi, area);
      found.push_back(int32_t(i));
    }
    const int64_t count = int64_t(found.size());
    Tensor out = empty(Dtype::I32, Shape(&count, 1));
    std::copy(found.begin(), found.end(), out.as<int32_t>());
    return reinterpret_cast<PyObject*>(new_tensor(std::move(out)));
  });
}

PyMethodDef methods[] = {
    {"best_boxes", best_boxes, METH_VARARGS,
     "The indices of the best boxes, without those that overlap a better one."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_boxes(PyObject* module) { PyModule_AddFunctions(module, methods); }

}  // namespace gt
