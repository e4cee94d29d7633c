// The byte loop for image files: undoing the filters of PNG rows.
#include <cstdlib>
#include <cstring>

#include "objects.h"

namespace gt {
namespace {

// PNG's Paeth predictor: whichever of the three is nearest to left + up - corner, the first if equally near.
int nearest(int left, int up, int corner) {
  const int to_left = std::abs(up - corner), to_up = std::abs(left - corner),
            to_corner = std::abs(left + up - 2 * corner);
  return to_left <= to_up && to_left <= to_corner ? left : to_up <= to_corner ? up : corner;
}

// A row of `size` bytes from its differences to the pixel of `step` bytes on the left (1), to the row above
// (2), to the mean of both (3), or to the Paeth predictor (4). `step` is a compile-time constant.
template <size_t step>
void restore(int kind, const unsigned char* in, unsigned char* row, const unsigned char* above, size_t size) {
  if (kind == 0) {
    std::memcpy(row, in, size);
  } else if (kind == 2) {
    for (size_t i = 0; i < size; ++i) row[i] = static_cast<unsigned char>(in[i] + above[i]);
  } else {
    // One loop per kind, so that the kind is not tested for each pixel.
    auto walk = [&](auto guess) {
      int left[step] = {}, corner[step] = {};
      for (size_t x = 0; x < size; x += step)
        for (size_t k = 0; k < step; ++k) {
          const int up = above[x + k];
          left[k] = (in[x + k] + guess(left[k], up, corner[k])) & 255;
          corner[k] = up;
          row[x + k] = static_cast<unsigned char>(left[k]);
        }
    };
    if (kind == 1)
      walk([](int left, int, int) { return left; });
    else if (kind == 3)
      walk([](int left, int up, int) { return (left + up) / 2; });
    else
      walk(nearest);
  }
}

using Restore = void (*)(int, const unsigned char*, unsigned char*, const unsigned char*, size_t);
Restore restore_of(long long step) {
  switch (step) {
    case 1: return restore<1>;
    case 2: return restore<2>;
    case 3: return restore<3>;
    case 4: return restore<4>;
    case 6: return restore<6>;
    case 8: return restore<8>;
    default: return nullptr;
  }
}

// unfiltered(lines, height, width, step) -> uint8 [height, width, step]: the pixels of a PNG file. A line has
// one byte for the kind of its filter, then the differences.
PyObject* unfiltered(PyObject*, PyObject* args) {
  PyObject* data;
  long long height, width, step;
  if (!PyArg_ParseTuple(args, "SLLL", &data, &height, &width, &step)) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const Restore line = restore_of(step);
    constexpr long long most = 1LL << 31;
    if (!line || height < 1 || width < 1 || height > most || width > most)
      fail(Code::Value, "unfiltered: no such image");
    const int64_t size = width * step, bytes = PyBytes_GET_SIZE(data);
    if (bytes % (size + 1) != 0 || bytes / (size + 1) != height)
      fail(Code::Value, "unfiltered: " + std::to_string(bytes) + " bytes for " + std::to_string(height) +
                            " rows of " + std::to_string(size));
    const int64_t sizes[] = {height, width, step};
    Tensor out = empty(Dtype::U8, Shape(sizes, 3));
    Tensor zeros = empty(Dtype::U8, Shape(&size, 1));
    std::memset(zeros.data, 0, size_t(size));
    const auto* in = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(data));
    const auto* above = zeros.as<unsigned char>();
    auto* row = out.as<unsigned char>();
    for (int64_t y = 0; y < height; ++y, in += size + 1, row += size) {
      if (*in > 4) fail(Code::Value, "filter " + std::to_string(int(*in)));
      line(*in, in + 1, row, above, size_t(size));
      above = row;
    }
    return reinterpret_cast<PyObject*>(new_tensor(std::move(out)));
  });
}

PyMethodDef methods[] = {
    {"unfiltered", unfiltered, METH_VARARGS, "The pixels of a PNG file from its differences."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_images(PyObject* module) { PyModule_AddFunctions(module, methods); }

}  // namespace gt
