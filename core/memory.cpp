// The caching allocator. Small blocks live in lists of the thread that frees them: no lock and
// no atomic read-modify-write between an eager scalar op and its memory. Large blocks share one
// cache behind a lock, bounded, oldest out first.
#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <new>
#include <string>

#include "blocks.h"
#include "error.h"
#include "fork.h"
#include "help.h"

// A fixed offset from the thread pointer instead of a call; it is used for one pointer only. glibc reserves
// some room for libraries that are loaded later; musl none.
#if defined(__GLIBC__)
#define GT_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define GT_FAST_TLS
#endif

namespace gt {

namespace {

constexpr size_t kListBytes = size_t(1) << 18;  // what a thread keeps of one size
constexpr int64_t kFlush = 1 << 16;             // a thread reports its live bytes in steps of this

std::string human(double bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int k = 0;
  while (bytes >= 1024 && k < 6) bytes /= 1024, ++k;
  char text[32];
  std::snprintf(text, sizeof text, k ? "%.1f %s" : "%.0f %s", bytes, units[k]);
  return text;
}

// ---- large blocks ----------------------------------------------------------------------------

// The links of a cached large block in two lists, at the start of its data.
struct Links {
  Buffer *newer, *older;  // of any size
  Buffer *above, *below;  // of the same size
};
Links& links(Buffer* b) { return *reinterpret_cast<Links*>(b->data); }

struct LargeCache {
  Lock lock;
  Buffer *newest = nullptr, *oldest = nullptr;
  Buffer* top[kBins] = {};
  size_t bytes = 0;

  void push(Buffer* b) {
    Links& l = links(b);
    l = {nullptr, newest, nullptr, top[b->bin]};
    if (newest)
      links(newest).newer = b;
    else
      oldest = b;
    if (l.below) links(l.below).above = b;
    newest = top[b->bin] = b;
    bytes += b->bytes;
  }
  void take(Buffer* b) {
    Links& l = links(b);
    (l.newer ? links(l.newer).older : newest) = l.older;
    (l.older ? links(l.older).newer : oldest) = l.newer;
    (l.above ? links(l.above).below : top[b->bin]) = l.below;
    if (l.below) links(l.below).above = l.above;
    bytes -= b->bytes;
  }
  // Takes the oldest blocks out until at most `keep` bytes are cached; returns them as a chain
  // for the caller to give back outside the lock.
  Buffer* shrink(size_t keep) {
    Buffer* chain = nullptr;
    while (bytes > keep) {
      Buffer* b = oldest;
      take(b);
      b->owner = chain;
      chain = b;
    }
    return chain;
  }
};

// Never destroyed: tensors may die after static destructors have run.
LargeCache& large_cache() {
  static auto* cache = new LargeCache;
  return *cache;
}

void free_chain(Buffer* b) {
  while (b) {
    Buffer* next = static_cast<Buffer*>(b->owner);
    to_system(b);
    b = next;
  }
}

// ---- counters and the lists of a thread --------------------------------------------------------

std::atomic<int64_t> live_bytes{0}, live_tensors{0}, peak_bytes{0};

void report_live(int64_t delta) {
  int64_t now = live_bytes.fetch_add(delta, std::memory_order_relaxed) + delta;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {}
}

// Written by its own thread only; other threads read it.
struct Counter {
  std::atomic<int64_t> value{0};
  void add(int64_t d) { value.store(value.load(std::memory_order_relaxed) + d, std::memory_order_relaxed); }
  int64_t get() const { return value.load(std::memory_order_relaxed); }
};

struct ThreadCache {
  Buffer* free[kSmallBins] = {};
  int32_t count[kSmallBins] = {};
  Counter bytes, tensors;  // live, beyond what has been reported
  Counter cached;
  ThreadCache *next = nullptr, **link = nullptr;

  void live(int64_t b, int64_t t) {
    tensors.add(t);
    bytes.add(b);
    if (bytes.get() > kFlush || bytes.get() < -kFlush) flush();
  }
  void flush() {
    report_live(bytes.get());
    bytes.value.store(0, std::memory_order_relaxed);
  }
  void clear() {
    for (int bin = 0; bin < kSmallBins; ++bin) {
      free_chain(free[bin]);
      free[bin] = nullptr;
      count[bin] = 0;
    }
    cached.value.store(0, std::memory_order_relaxed);
  }
};

struct Registry {
  Lock lock;
  ThreadCache* first = nullptr;
};
Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

GT_FAST_TLS thread_local constinit ThreadCache* thread_cache = nullptr;
thread_local constinit bool thread_over = false;  // blocks freed this late go straight to the system

struct ThreadExit {
  ~ThreadExit() {
    ThreadCache* c = thread_cache;
    thread_cache = nullptr;
    thread_over = true;
    if (!c) return;
    c->clear();
    Registry& r = registry();
    std::lock_guard hold(r.lock);
    c->flush();
    live_tensors.fetch_add(c->tensors.get(), std::memory_order_relaxed);
    *c->link = c->next;
    if (c->next) c->next->link = c->link;
    delete c;
  }
};

ThreadCache* start_thread_cache() noexcept {
  if (thread_over) return nullptr;
  thread_local ThreadExit at_exit;
  (void)at_exit;
  auto* c = new (std::nothrow) ThreadCache;
  if (!c) return nullptr;  // this may be for a block being freed: it goes straight to the system
  Registry& r = registry();
  std::lock_guard hold(r.lock);
  c->next = r.first;
  c->link = &r.first;
  if (r.first) r.first->link = &c->next;
  r.first = c;
  return thread_cache = c;
}

void count_live(int64_t bytes, int64_t tensors) {
  ThreadCache* c = thread_cache ? thread_cache : start_thread_cache();
  if (c) {
    c->live(bytes, tensors);
  } else {
    report_live(bytes);
    live_tensors.fetch_add(tensors, std::memory_order_relaxed);
  }
}

// ---- the slow paths ----------------------------------------------------------------------------

[[noreturn]] void exhausted(size_t bytes) {
  std::string text = "cannot allocate " + human(double(bytes)) + ": " +
                     human(double(memory_info().live_bytes)) + " are in use";
  if (machine_memory()) text += " and the machine has " + human(double(machine_memory()));
  fail(Code::ResourceExhausted, text + "." GT_MORE("memory"));
}

Buffer* cached_large(int bin) {
  LargeCache& cache = large_cache();
  std::lock_guard hold(cache.lock);
  for (int k = bin; k < std::min(bin + 2, kBins); ++k)
    if (Buffer* b = cache.top[k]) {
      cache.take(b);
      return b;
    }
  return nullptr;
}

// Linux grants more memory than there is and kills the process later: refuse here instead.
bool fits(size_t bytes) {
  if (bytes > kLargest) return false;
  const size_t total = machine_memory();
  if (!total || bytes < kMapped) return true;
  const MemoryInfo info = memory_info();
  if (size_t(info.live_bytes + info.cached_bytes) + bytes > total) release_cached();
  return size_t(info.live_bytes) + bytes <= total;
}

[[gnu::noinline]] Buffer* allocate_slow(size_t bytes) {
  if (bytes > kLargest) exhausted(bytes);
  const int bin = bytes <= kSmall ? small_bin(bytes) : large_bin(bytes);
  Buffer* b = bin < kSmallBins ? nullptr : cached_large(bin);
  if (!b) {
    if (fits(bytes)) {
      b = from_system(bin);
      if (!b) {
        release_cached();
        b = from_system(bin);
      }
    }
    if (!b) exhausted(bytes);
  }
  b->refs.store(1, std::memory_order_relaxed);
  b->owner = nullptr;
  count_live(int64_t(b->bytes), 1);
  if (b->bytes > kSmall && thread_cache) thread_cache->flush();  // keeps `peak` exact for large blocks
  return open_block(b, bytes);
}

[[gnu::noinline]] void recycle_slow(Buffer* b) {
  if (b->release) {
    b->release(b->owner);
    b->release = nullptr;
    b->data = reinterpret_cast<char*>(b) + kHeader;
    b->bytes = bin_bytes(b->bin);
    count_live(int64_t(b->bytes), 0);  // see adopt
    recycle(b);
    return;
  }
  count_live(-int64_t(b->bytes), -1);
  if (b->bin < kSmallBins) {  // the list is full, or the thread is ending
    to_system(b);
    return;
  }
  static const size_t bound = machine_memory() ? machine_memory() / 4 : size_t(1) << 30;
  if (b->bytes > bound) {
    to_system(b);
    return;
  }
  close_block(b, sizeof(Links));
  LargeCache& cache = large_cache();
  Buffer* surplus;
  {
    std::lock_guard hold(cache.lock);
    cache.push(b);
    surplus = cache.shrink(bound);
  }
  free_chain(surplus);
}

}  // namespace

Buffer* allocate(size_t bytes) {
  ThreadCache* c = thread_cache;
  if (bytes <= kSmall && c) {
    const int bin = small_bin(bytes);
    if (Buffer* b = c->free[bin]) {
      c->free[bin] = static_cast<Buffer*>(b->owner);
      --c->count[bin];
      c->cached.add(-int64_t(b->bytes));
      c->live(int64_t(b->bytes), 1);
      b->refs.store(1, std::memory_order_relaxed);
      b->owner = nullptr;
      return open_block(b, bytes);
    }
  }
  return allocate_slow(bytes);
}

void want_room(size_t bytes) {
  if (!fits(bytes)) exhausted(bytes);
}

void recycle(Buffer* b) {
  ThreadCache* c = thread_cache;
  if (c && !b->release && b->bin < kSmallBins && size_t(c->count[b->bin]) * b->bytes < kListBytes) {
    b->owner = c->free[b->bin];
    c->free[b->bin] = b;
    ++c->count[b->bin];
    c->cached.add(int64_t(b->bytes));
    c->live(-int64_t(b->bytes), -1);
    close_block(b);
    return;
  }
  recycle_slow(b);
}

// A foreign block is a live tensor, but its bytes are not ours.
Buffer* adopt(char* data, size_t bytes, void (*release)(void*), void* owner) {
  Buffer* b = allocate(0);
  count_live(-int64_t(b->bytes), 0);
  b->data = data;  // null on a device
  b->bytes = bytes;
  b->release = release;
  b->owner = owner;
  return b;
}

MemoryInfo memory_info() {
  MemoryInfo info{};
  {
    Registry& r = registry();
    std::lock_guard hold(r.lock);
    info.live_bytes = live_bytes.load(std::memory_order_relaxed);
    info.live_tensors = live_tensors.load(std::memory_order_relaxed);
    for (ThreadCache* c = r.first; c; c = c->next) {
      info.live_bytes += c->bytes.get();
      info.live_tensors += c->tensors.get();
      info.cached_bytes += c->cached.get();
    }
  }
  LargeCache& cache = large_cache();
  std::lock_guard hold(cache.lock);
  info.cached_bytes += int64_t(cache.bytes);
  info.peak = std::max(peak_bytes.load(std::memory_order_relaxed), info.live_bytes);
  return info;
}

void reset_peak() { peak_bytes.store(memory_info().live_bytes, std::memory_order_relaxed); }

void release_cached() {
  if (ThreadCache* c = thread_cache) c->clear();
  LargeCache& cache = large_cache();
  Buffer* chain;
  {
    std::lock_guard hold(cache.lock);
    chain = cache.shrink(0);
  }
  free_chain(chain);
}

}  // namespace gt
