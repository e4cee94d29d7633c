// Memory from the system: large blocks as pages of their own, huge ones where they can be had.
#include "blocks.h"

#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define GT_POSIX 1
#else
#define GT_POSIX 0
#endif
#if defined(__linux__)
#include <sys/sysinfo.h>
#endif

namespace gt {

namespace {

constexpr size_t kHugePage = size_t(1) << 21;

void* map_pages(size_t size) {
#if GT_POSIX
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  const bool huge = size >= kHugePage;
  const size_t room = huge ? size + kHugePage : size;
  char* p = static_cast<char*>(mmap(nullptr, room, PROT_READ | PROT_WRITE, flags, -1, 0));
  if (p == MAP_FAILED) return nullptr;
  if (huge) {  // start on a huge page, give back what lies before and behind
    char* start =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + kHugePage - 1) & ~(kHugePage - 1));
    if (start > p) munmap(p, size_t(start - p));
    if (p + room > start + size) munmap(start + size, size_t(p + room - (start + size)));
    p = start;
#if defined(MADV_HUGEPAGE)
    madvise(p, size, MADV_HUGEPAGE);  // advice: a refusal changes nothing
#endif
  }
  return p;
#else
  return ::operator new(size, std::align_val_t(64), std::nothrow);
#endif
}

size_t pages(size_t bytes) { return (bytes + kHeader + 4095) & ~size_t(4095); }

}  // namespace

size_t machine_memory() {  // 0: unknown
  static const size_t total = [] {
#if defined(__linux__)
    struct sysinfo s;
    if (sysinfo(&s) == 0) return (size_t(s.totalram) + s.totalswap) * s.mem_unit;
#endif
#if GT_POSIX && defined(_SC_PHYS_PAGES)
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0) return size_t(pages) * size_t(size);
#endif
    return size_t(0);
  }();
  return total;
}

Buffer* from_system(int bin) {
  const size_t bytes = bin_bytes(bin);
  void* p = bytes >= kMapped ? map_pages(pages(bytes))
                             : ::operator new(bytes + kHeader, std::align_val_t(64), std::nothrow);
  if (!p) return nullptr;
  Buffer* b = new (p) Buffer;
  b->bin = uint8_t(bin);
  b->bytes = bytes;
  b->data = static_cast<char*>(p) + kHeader;
  return b;
}

void to_system(Buffer* b) {
  open_block(b, b->bytes);
#if GT_POSIX
  if (b->bytes >= kMapped) {
    munmap(static_cast<void*>(b), pages(b->bytes));
    return;
  }
#endif
  ::operator delete(static_cast<void*>(b), std::align_val_t(64));
}

}  // namespace gt
