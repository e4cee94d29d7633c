// Buffers and the caching allocator under them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gt {

// A reference-counted block of memory. Owned blocks carry their data 64 bytes after the
// header; foreign ones (NumPy, DLPack) point elsewhere and call `release` when they die.
struct alignas(64) Buffer {
  std::atomic<int32_t> refs{1};
  uint8_t bin = 0;   // size class the block came from; meaningless for foreign blocks
  size_t bytes = 0;  // capacity
  char* data = nullptr;
  void (*release)(void* owner) = nullptr;
  void* owner = nullptr;
};
static_assert(sizeof(Buffer) == 64);

Buffer* allocate(size_t bytes);  // uninitialised, 64-byte aligned; throws ResourceExhausted
Buffer* adopt(char* data, size_t bytes, void (*release)(void*), void* owner);
void recycle(Buffer*);  // called by unref when the last reference is gone

inline void ref(Buffer* b) {
  if (b) b->refs.fetch_add(1, std::memory_order_relaxed);
}
inline void unref(Buffer* b) {
  if (b && b->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(b);
}

struct MemoryInfo {
  int64_t live_bytes, live_tensors, cached_bytes, peak;
};
MemoryInfo memory_info();
void reset_peak();
void release_cached();

}  // namespace gt
