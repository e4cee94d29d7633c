// Random bits in bulk: what the loops of philox.cpp are told. core/ops/philox.h says what a stream is.
#pragma once
#include <cstdint>

namespace gt {

struct PhiloxLoops {
  // The bits of groups [0, groups) of a stream, four numbers a group.
  void (*bits)(uint64_t key, uint64_t high, uint64_t low, int64_t groups, uint32_t* out);
  // The same as floats in [0, 1).
  void (*uniform)(uint64_t key, uint64_t high, uint64_t low, int64_t groups, float* out);
  // x * scale where those floats are at least `rate`, else 0.
  void (*dropout)(uint64_t key, uint64_t high, uint64_t low, int64_t n, const float* x, float* out,
                  float rate, double scale);
  void (*dropout_double)(uint64_t key, uint64_t high, uint64_t low, int64_t n, const double* x, double* out,
                         float rate, double scale);
};

}  // namespace gt
