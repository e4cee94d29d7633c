// Memory for many small objects of a few sizes, such as the records of tapes and the elements of scalars:
// each slab holds objects of one size, side by side, in the order in which they are created. Not thread-safe:
// the caller holds a lock, if only the interpreter's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

#include "blocks.h"

namespace gt {

inline constexpr size_t kSlab = size_t(1) << 17;  // bytes of a slab, and its alignment
inline constexpr size_t kSlabHead = 64;           // its header, which is not its user's
void* take_slab();                                // throws std::bad_alloc
void give_slab(void*);                            // needs no memory

class Slabs {
 public:
  static constexpr size_t kUnit = 32, kLargest = 1024;  // sizes are multiples of the one, up to the other

  void* take(size_t bytes) {
    const size_t size = (bytes + kUnit - 1) / kUnit * kUnit;
    Slab*& first = open_[size / kUnit];
    if (!first) list(new_slab(size));
    Slab* s = first;
    char* block = s->free;
    if (block)
      s->free = *reinterpret_cast<char**>(block);
    else
      block = s->next_block, s->next_block += size;
    ASAN_UNPOISON_MEMORY_REGION(block, size);
    ++s->used;
    if (!s->free && s->next_block + size > end_of(s)) unlist(s);
    return block;
  }

  // Needs no memory.
  void give(void* block) {
    Slab* s = reinterpret_cast<Slab*>((reinterpret_cast<uintptr_t>(block) & ~(kSlab - 1)) + kSlabHead);
    if (!s->listed) list(s);
    *static_cast<char**>(block) = s->free;
    s->free = static_cast<char*>(block);
    ASAN_POISON_MEMORY_REGION(s->free + sizeof(char*), s->size - sizeof(char*));
    if (--s->used) return;
    if (!s->before && !s->next) {  // the only one with room: the next request starts it again
      s->free = nullptr;
      s->next_block = reinterpret_cast<char*>(s + 1);
      return;
    }
    unlist(s);
    if (n_empty_ < kMostEmpty) {
      s->next = empty_;
      empty_ = s;
      ++n_empty_;
    } else {
      ASAN_UNPOISON_MEMORY_REGION(begin_of(s), kSlab);
      give_slab(begin_of(s));
    }
  }

 private:
  static constexpr size_t kMostEmpty = 4;
  struct alignas(64) Slab {
    Slab *next, *before;  // the list of slabs of its size that have room
    char *free, *next_block;
    size_t size, used;
    bool listed;
  };
  static char* begin_of(Slab* s) { return reinterpret_cast<char*>(s) - kSlabHead; }
  static char* end_of(Slab* s) { return begin_of(s) + kSlab; }

  Slab* new_slab(size_t size) {
    Slab* s = empty_;
    if (s) {
      empty_ = s->next;
      --n_empty_;
    } else {
      s = reinterpret_cast<Slab*>(static_cast<char*>(take_slab()) + kSlabHead);
    }
    return new (s) Slab{nullptr, nullptr, nullptr, reinterpret_cast<char*>(s + 1), size, 0, false};
  }
  void list(Slab* s) {
    Slab*& first = open_[s->size / kUnit];
    s->before = nullptr;
    s->next = first;
    if (first) first->before = s;
    first = s;
    s->listed = true;
  }
  void unlist(Slab* s) {
    (s->before ? s->before->next : open_[s->size / kUnit]) = s->next;
    if (s->next) s->next->before = s->before;
    s->listed = false;
  }

  Slab* open_[kLargest / kUnit + 1] = {};
  Slab* empty_ = nullptr;  // of any size
  size_t n_empty_ = 0;
};

}  // namespace gt
