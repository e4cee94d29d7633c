// Walking over many small chunks of work that each need memory of their own: batches of matrices,
// lines of transforms.
#pragma once
#include <algorithm>

#include "strided.h"

namespace gt {

// Calls f(i, scratch) for i < count, on all threads. `work` is a figure of the operations one call takes;
// `scratch` points at `bytes` bytes that no other thread uses, and that are allocated before any thread
// starts: f must not throw.
template <class F> void each_item(int64_t count, double work, int64_t bytes, F&& f) {
  constexpr double kWorthAThread = 1 << 17;
  const int64_t grain = std::max<int64_t>({1, int64_t(kWorthAThread / (work + 500)), count / 64});
  const int64_t chunks = (count + grain - 1) / grain, step = (bytes + 63) / 64 * 64, length = chunks * step;
  Tensor scratch = empty(Dtype::U8, Shape(&length, 1));
  each_chunk(count, grain, [&](int64_t begin, int64_t end) {
    char* own = scratch.data + begin / grain * step;
    for (int64_t i = begin; i < end; ++i) f(i, own);
  });
}

// Takes memory for several arrays out of one block; without a block it only counts the bytes.
struct Carve {
  char* at;
  int64_t bytes = 0;
  template <class T> T* take(int64_t n) {
    char* p = at ? at + bytes : nullptr;
    bytes += (n * int64_t(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(p);
  }
};

}  // namespace gt
