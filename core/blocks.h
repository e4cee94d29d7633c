// Size classes of memory blocks, and how blocks of a class are taken from the system and returned. memory.cpp
// decides what is cached in between.
#pragma once
#include <bit>
#include <cstddef>

#include "memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#endif

namespace gt {

inline constexpr size_t kHeader = sizeof(Buffer);
inline constexpr size_t kSmall = size_t(1) << 16;   // largest block of the thread's lists
inline constexpr size_t kMapped = size_t(1) << 20;  // from here on pages come straight from the system

// Size classes. Up to 512 bytes: multiples of 64. Up to 64 KB: four an octave. Above: eight.
inline constexpr int kFine = 8, kSmallBins = kFine + 7 * 4, kBins = 252;

constexpr int small_bin(size_t bytes) {
  if (bytes <= 512) return bytes == 0 ? 0 : int((bytes - 1) >> 6);
  int octave = std::bit_width(bytes - 1) - 1;  // 2^octave <= bytes - 1
  return kFine + (octave - 9) * 4 + int(((bytes - 1) >> (octave - 2)) & 3);
}
constexpr int large_bin(size_t bytes) {
  int octave = std::bit_width(bytes - 1) - 1;
  return kSmallBins + (octave - 16) * 8 + int(((bytes - 1) >> (octave - 3)) & 7);
}
constexpr size_t bin_bytes(int bin) {
  if (bin < kFine) return size_t(bin + 1) * 64;
  if (bin < kSmallBins) return size_t(5 + (bin - kFine) % 4) << (7 + (bin - kFine) / 4);
  return size_t(9 + (bin - kSmallBins) % 8) << (13 + (bin - kSmallBins) / 8);
}
static_assert(bin_bytes(small_bin(513)) == 640 && bin_bytes(small_bin(kSmall)) == kSmall);
static_assert(large_bin(kSmall + 1) == kSmallBins && bin_bytes(large_bin(kMapped)) == kMapped);
inline constexpr size_t kLargest = bin_bytes(kBins - 1);

// Tells the address sanitizer which bytes of a block may be touched: as many as a tensor asked for, and only
// the first few while the block is cached.
inline Buffer* open_block(Buffer* b, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(b->data, bytes);
  ASAN_POISON_MEMORY_REGION(b->data + bytes, b->bytes - bytes);
  return b;
}
inline void close_block(Buffer* b, size_t except = 0) { open_block(b, except); }

size_t machine_memory();       // physical memory and swap; 0: unknown
void want_room(size_t bytes);  // throws as `allocate` would, for memory that other code will allocate
Buffer* from_system(int bin);  // nullptr when there is no more
void to_system(Buffer*);

}  // namespace gt
