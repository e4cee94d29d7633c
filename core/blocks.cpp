// Memory from the system: large blocks as separate mappings, in huge pages if possible; slabs for small
// objects, cut out of huge pages that are returned when nothing is left in them.
#include "blocks.h"

#include <mutex>
#include <new>

#include "fork.h"
#include "slabs.h"

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

// `advised`: in huge pages if possible. Those are filled with zeros as a whole on first touch.
void* map_pages(size_t size, [[maybe_unused]] bool advised = true) {
#if GT_POSIX
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  const bool huge = size >= kHugePage;
  const size_t room = huge ? size + kHugePage : size;
  char* p = static_cast<char*>(mmap(nullptr, room, PROT_READ | PROT_WRITE, flags, -1, 0));
  if (p == MAP_FAILED) return nullptr;
  if (huge) {  // start on a huge page, return what lies before and after it
    char* start =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + kHugePage - 1) & ~(kHugePage - 1));
    if (start > p) munmap(p, size_t(start - p));
    if (p + room > start + size) munmap(start + size, size_t(p + room - (start + size)));
    p = start;
#if defined(MADV_HUGEPAGE)
    if (advised) madvise(p, size, MADV_HUGEPAGE);  // advice: a refusal changes nothing
#endif
  }
  return p;
#else
  return ::operator new(size, std::align_val_t(size == kHugePage ? kHugePage : 64), std::nothrow);
#endif
}

// Rounds up to whole pages of this system's size: 4 KB on x86-64, 4 to 64 KB on ARM.
size_t pages(size_t bytes) {
#if GT_POSIX
  static const size_t page = size_t(sysconf(_SC_PAGESIZE));
#else
  constexpr size_t page = 4096;
#endif
  return (bytes + kHeader + page - 1) & ~(page - 1);
}

// ---- slabs ------------------------------------------------------------------------------------

// A huge page that is cut into slabs. This header is at its start: slabs leave that room free.
struct Region {
  Region *next, *before;  // the list of regions with free slabs
  uint32_t free;          // which ones: a bit each
};
static_assert(sizeof(Region) <= kSlabHead);
constexpr uint32_t kAllFree = (uint32_t(1) << kHugePage / kSlab) - 1;

struct Regions {
  Lock lock;
  Region* first = nullptr;
  size_t count = 0, empty = 0;  // all regions, and those with no slab in use

  void list(Region* r) {
    r->before = nullptr;
    r->next = first;
    if (first) first->before = r;
    first = r;
  }
  void unlist(Region* r) {
    (r->before ? r->before->next : first) = r->next;
    if (r->next) r->next->before = r->before;
  }
};
Regions& regions() {
  static auto* regions = new Regions;  // never destroyed, see memory.cpp
  return *regions;
}

// Blocks of few bytes.
struct SmallBlocks {
  Lock lock;
  Slabs slabs;
};
SmallBlocks& small_blocks() {
  // A thread that holds its lock takes the regions' lock, which is created first (fork.h).
  static auto* blocks = (regions(), new SmallBlocks);
  return *blocks;
}
[[maybe_unused]] const SmallBlocks& made = small_blocks();

}  // namespace

void* take_slab() {
  Regions& all = regions();
  std::lock_guard hold(all.lock);
  Region* r = all.first;
  if (!r) {
    // The first region is not in a huge page: with few records, filling it with zeros would not pay.
    void* p = map_pages(kHugePage, all.count > 0);
    if (!p) throw std::bad_alloc();
    r = new (p) Region{nullptr, nullptr, kAllFree};
    ++all.count, ++all.empty;
    all.list(r);
  }
  if (r->free == kAllFree) --all.empty;
  const int k = std::countr_zero(r->free);
  r->free &= r->free - 1;
  if (!r->free) all.unlist(r);
  return reinterpret_cast<char*>(r) + size_t(k) * kSlab;
}

void give_slab(void* slab) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(slab);
  Region* r = reinterpret_cast<Region*>(at & ~(kHugePage - 1));
  Regions& all = regions();
  std::lock_guard hold(all.lock);
  if (!r->free) all.list(r);
  r->free |= uint32_t(1) << (at & (kHugePage - 1)) / kSlab;
  if (r->free != kAllFree) return;
  if (!all.empty) {  // keep one: short-lived tapes would map it again and again
    ++all.empty;
    return;
  }
  all.unlist(r);
  --all.count;
#if GT_POSIX
  munmap(static_cast<void*>(r), kHugePage);
#else
  ::operator delete(static_cast<void*>(r), std::align_val_t(kHugePage));
#endif
}

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
  void* p;
  if (bytes + kHeader <= Slabs::kLargest) {
    SmallBlocks& small = small_blocks();
    std::lock_guard hold(small.lock);
    try {
      p = small.slabs.take(bytes + kHeader);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  } else {
    p = bytes >= kMapped ? map_pages(pages(bytes))
                         : ::operator new(bytes + kHeader, std::align_val_t(64), std::nothrow);
    if (!p) return nullptr;
  }
  Buffer* b = new (p) Buffer;
  b->bin = uint8_t(bin);
  b->bytes = bytes;
  b->data = static_cast<char*>(p) + kHeader;
  return b;
}

void to_system(Buffer* b) {
  open_block(b, b->bytes);
  if (b->bytes + kHeader <= Slabs::kLargest) {
    SmallBlocks& small = small_blocks();
    std::lock_guard hold(small.lock);
    small.slabs.give(b);
    return;
  }
#if GT_POSIX
  if (b->bytes >= kMapped) {
    munmap(static_cast<void*>(b), pages(b->bytes));
    return;
  }
#endif
  ::operator delete(static_cast<void*>(b), std::align_val_t(64));
}

}  // namespace gt
