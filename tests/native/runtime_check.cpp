// The allocator and the thread pool: counters, limits, threads, forks.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "error.h"
#include "memory.h"
#include "threads.h"

using namespace gt;

static int failures = 0;
#define CHECK(...)                                                                          \
  do {                                                                                      \
    if (!(__VA_ARGS__)) ++failures, std::printf("%d: wrong: %s\n", __LINE__, #__VA_ARGS__); \
  } while (0)

static void memory_counts() {
  const MemoryInfo before = memory_info();
  std::vector<Buffer*> all;
  int64_t bytes = 0;
  for (size_t n :
       std::initializer_list<size_t>{0, 1, 64, 65, 512, 513, 5000, 65536, 65537, 1 << 20, 5 << 20}) {
    Buffer* b = allocate(n);
    CHECK(b->bytes >= n && reinterpret_cast<uintptr_t>(b->data) % 64 == 0);
    CHECK(n < 1024 || double(b->bytes) <= 1.26 * double(n));
    std::memset(b->data, 1, n);
    bytes += int64_t(b->bytes);
    all.push_back(b);
  }
  MemoryInfo now = memory_info();
  CHECK(now.live_tensors - before.live_tensors == int64_t(all.size()));
  CHECK(now.live_bytes - before.live_bytes == bytes);
  CHECK(now.peak >= now.live_bytes);
  for (Buffer* b : all) unref(b);
  now = memory_info();
  CHECK(now.live_tensors == before.live_tensors && now.live_bytes == before.live_bytes);
  CHECK(now.cached_bytes - before.cached_bytes == bytes);
  Buffer* again = allocate(size_t(5) << 20);
  CHECK(again == all.back());
  unref(again);
  release_cached();
  CHECK(memory_info().cached_bytes == 0);
  reset_peak();
  CHECK(memory_info().peak == memory_info().live_bytes);
}

static void memory_limits() {
  for (size_t n : {size_t(1) << 60, SIZE_MAX, size_t(1) << 45}) {
    bool thrown = false;
    try {
      allocate(n);
    } catch (const Error& e) {
      thrown = e.code == Code::ResourceExhausted;
      std::printf("%s\n", e.text.c_str());
    }
    CHECK(thrown);
  }
}

static void memory_foreign() {
  const MemoryInfo before = memory_info();
  static int released = 0;
  char data[100];
  Buffer* b = adopt(
      data, 100, [](void* n) { *static_cast<int*>(n) += 1; }, &released);
  CHECK(b->data == data && memory_info().live_tensors == before.live_tensors + 1 &&
        memory_info().live_bytes == before.live_bytes);
  unref(b);
  CHECK(released == 1 && memory_info().live_tensors == before.live_tensors &&
        memory_info().live_bytes == before.live_bytes);
}

// Blocks made on one thread and freed on others, which then end.
static void memory_threads() {
  const MemoryInfo before = memory_info();
  for (int round = 0; round < 20; ++round) {
    std::vector<Buffer*> blocks;
    for (int k = 0; k < 4000; ++k) blocks.push_back(allocate(size_t(k) * 37 % 200000));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (size_t k = size_t(t); k < blocks.size(); k += 4) unref(blocks[k]);
        for (int k = 0; k < 1000; ++k) unref(allocate(size_t(k) * 100));
      });
    for (auto& t : threads) t.join();
  }
  const MemoryInfo now = memory_info();
  CHECK(now.live_tensors == before.live_tensors && now.live_bytes == before.live_bytes);
  release_cached();
  CHECK(memory_info().cached_bytes == 0);
}

static int64_t parallel_sum(int64_t n, int64_t grain) {
  std::atomic<int64_t> sum{0};
  std::vector<std::atomic<int>> seen(size_t(n ? (n - 1) / grain + 1 : 0));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    if (begin % grain || (end != n && end - begin != grain)) ++failures;
    seen[size_t(begin / grain)]++;
    int64_t s = 0;
    for (int64_t i = begin; i < end; ++i) s += i;
    sum += s;
  });
  for (auto& s : seen)
    if (s != 1) ++failures;
  return sum;
}

static void threads_work() {
  for (int threads : {1, 2, 5, 3, 0, 2}) {
    set_num_threads(threads);
    for (int64_t n : {0, 1, 2, 10, 1000, 100003})
      for (int64_t grain : {1, 7, 1000}) CHECK(parallel_sum(n, grain) == n * (n - 1) / 2);
  }
  set_num_threads(4);
  std::atomic<int64_t> total{0};
  parallel_for(50, 1, [&](int64_t, int64_t) { total += parallel_sum(100, 10); });  // nested
  CHECK(total == 50 * 4950);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([] {
      for (int k = 0; k < 2000; ++k) CHECK(parallel_sum(100, 10) == 4950);
    });
  for (auto& t : callers) t.join();
  for (int k = 0; k < 200; ++k) {  // workers asleep in between
    usleep(200);
    CHECK(parallel_sum(64, 1) == 2016);
  }
}

// The first exception reaches the caller, chunks that have not begun do not begin, and the pool goes on.
static void threads_throw() {
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int64_t> begun{0};
      bool thrown = false;
      try {
        parallel_for(100000, 1, [&](int64_t begin, int64_t) {
          ++begun;
          if (begin % 100 == 7) throw Error{Code::Value, std::to_string(begin)};
        });
      } catch (const Error& e) {
        thrown = e.code == Code::Value && std::stoi(e.text) % 100 == 7;
      }
      CHECK(thrown && begun < 100000);
      CHECK(parallel_sum(1000, 10) == 499500);
    }
    bool exhausted = false;
    try {
      parallel_for(64, 1, [](int64_t, int64_t) { throw std::bad_alloc(); });
    } catch (const std::bad_alloc&) {
      exhausted = true;
    }
    CHECK(exhausted && parallel_sum(1000, 10) == 499500);
  }
}

static void threads_fork() {
  parallel_sum(1000, 10);
  for (int k = 0; k < 5; ++k) {
    pid_t child = fork();
    if (child == 0) {
      unref(allocate(1 << 22));
      _exit(parallel_sum(1000, 10) == 499500 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
}

int main() {
  memory_counts();
  memory_limits();
  memory_foreign();
  memory_threads();
  threads_work();
  threads_throw();
  threads_fork();
  std::printf(failures ? "%d failures\n" : "all right\n", failures);
  return failures != 0;
}
