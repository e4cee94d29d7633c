// The thread pool: started by the first call that needs it, asleep when there is no work.
#include "threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sys/mman.h>
#endif
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

namespace gt {

void prepare_to_throw() {
#if defined(__GLIBCXX__)
  void* volatile asked_for = abi::__cxa_get_globals();  // volatile, or the call is optimized away
  (void)asked_for;
#endif
}

namespace {

void pause() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits for ready() without giving up the core, for about 30 us: long enough to catch the next op of a
// program, too short to be seen in a profile.
template <class F> bool spin(F&& ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(30);
  do {
    for (int k = 0; k < 64; ++k) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// Whether there is memory for another thread: its stack, and what the libraries it calls keep for each
// thread.
bool has_room() {
#if defined(__unix__) || defined(__APPLE__)
  constexpr size_t kThreadBytes = size_t(16) << 20;
  void* p = mmap(nullptr, kThreadBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return false;
  munmap(p, kThreadBytes);
#endif
  return true;
}

// Starts a thread for f. Kernels have up to 128 kB of scratch memory on their stack, which is all that a
// thread gets with musl, and a quarter of what it gets on macOS: the size is set where possible.
constexpr size_t kStackBytes = 1 << 20;
template <class F> void start_thread(F f) {
#if defined(__unix__) || defined(__APPLE__)
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  size_t given = 0;
  pthread_attr_getstacksize(&attributes, &given);
  if (given < kStackBytes) pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto run = std::make_unique<F>(f);
  pthread_t thread;
  const int error = pthread_create(
      &thread, &attributes,
      [](void* f) -> void* {
        (*std::unique_ptr<F>(static_cast<F*>(f)))();
        return nullptr;
      },
      run.get());
  pthread_attr_destroy(&attributes);
  if (error) throw std::system_error(error, std::generic_category());
  run.release();
#else
  std::thread(f).detach();
#endif
}

struct Pool {
  std::mutex calls;             // held by the one caller whose chunks the workers take
  int wanted = 0, workers = 0;  // the system may refuse to start as many as wanted

  // The work of that call. A worker that has won a chunk (it decremented `left`) may read the rest, because
  // the call cannot return before the chunk is done. The caller takes chunks from the front, the workers from
  // the back: in the next op a thread finds the same part of an array in its own cache.
  const ChunkFunction* body = nullptr;
  int64_t n = 0, grain = 1, chunks = 0;
  int64_t front = 0;             // chunks that the caller has taken
  std::atomic<int64_t> back{0};  // chunks that workers have taken
  alignas(64) std::atomic<int64_t> left{0};
  alignas(64) std::atomic<int64_t> done{0};  // the caller may sleep on it; the last chunk wakes it
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of the first chunk that failed; for the caller, when all are done

  alignas(64) std::atomic<int> crew{0};  // workers of an earlier crew end
  std::atomic<int> asleep{0};
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<bool> started{false};  // the latest worker

  bool run_chunk(bool caller) {
    int64_t mine = left.load(std::memory_order_acquire);
    do {
      if (mine <= 0) return false;
    } while (
        !left.compare_exchange_weak(mine, mine - 1, std::memory_order_acq_rel, std::memory_order_acquire));
    const int64_t all = chunks, begin = (caller ? front++ : all - ++back) * grain;
    int64_t over = 1;
    try {
      (*body)(begin, std::min(begin + grain, n));
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
      over += left.exchange(0, std::memory_order_acq_rel);  // no thread begins these
    }
    if (done.fetch_add(over, std::memory_order_acq_rel) + over == all) done.notify_one();
    return true;
  }

  void work(int hired);
  void resize(int count) {
    const int hired = crew.fetch_add(1) + 1;
    { std::lock_guard hold(mutex); }
    wake.notify_all();
    wanted = count;
    try {
      for (workers = 0; workers < count && has_room(); ++workers) {
        started.store(false);
        start_thread([this, hired] { work(hired); });
        started.wait(false);
      }
    } catch (const std::exception&) {  // no memory for another stack: the existing workers do the work
    }
  }
};

thread_local bool inside = false;  // this thread is running a chunk
// Neither the pool nor its threads are ever destroyed: they may be needed by, and may outlive, anything else.
// After a fork the child has no workers, so it leaves the old pool behind.
std::atomic<Pool*> the_pool{nullptr};
std::atomic<int> threads_asked{0};

void Pool::work(int hired) {
  inside = true;
  prepare_to_throw();
  started.store(true);
  started.notify_one();
  auto busy = [&] {
    return left.load(std::memory_order_relaxed) > 0 || crew.load(std::memory_order_relaxed) != hired;
  };
  while (crew.load() == hired) {
    while (run_chunk(false)) {}
    if (spin(busy)) continue;
    std::unique_lock hold(mutex);
    asleep.fetch_add(1);  // before reading `left`: a caller publishes first and looks here second
    wake.wait(hold, [&] { return left.load() > 0 || crew.load() != hired; });
    asleep.fetch_sub(1);
  }
}

Pool& pool() {
  Pool* p = the_pool.load(std::memory_order_acquire);
  if (p) return *p;
  auto* made = new Pool;
  if (the_pool.compare_exchange_strong(p, made)) return *made;
  delete made;
  return *p;
}

// The number of cores that the cgroup may use; a large number without a limit.
double cgroup_cores() {
  double quota = 0, period = 0;
  if (FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    int got = std::fscanf(f, "%lf %lf", &quota, &period);
    std::fclose(f);
    if (got == 2 && quota > 0 && period > 0) return quota / period;
  }
  return 1e9;
}

int default_threads() {
  static const int count = [] {
    if (const char* asked = std::getenv("GRADTAPE_NUM_THREADS"))
      if (int n = std::atoi(asked); n > 0) return std::min(n, 1024);
    int cores = int(std::thread::hardware_concurrency());
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
#endif
    return std::max(1, int(std::min(double(cores), cgroup_cores() + 0.5)));
  }();
  return count;
}

void run_alone(int64_t n, int64_t grain, const ChunkFunction& f) {
  for (int64_t begin = 0; begin < n; begin += grain) f(begin, std::min(begin + grain, n));
}

}  // namespace

int num_threads() {
  int n = threads_asked.load(std::memory_order_relaxed);
  return n > 0 ? n : default_threads();
}

void leave_pool_behind() {
  the_pool.store(nullptr);
  inside = false;
}

// The pool is resized at the next parallel call.
void set_num_threads(int n) { threads_asked.store(std::clamp(n, 0, 1024), std::memory_order_relaxed); }

void parallel_for(int64_t n, int64_t grain, ChunkFunction f) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int threads = num_threads();
  if (n <= grain || inside || threads == 1) return run_alone(n, grain, f);
  Pool& p = pool();
  std::unique_lock call(p.calls, std::try_to_lock);
  if (!call) return run_alone(n, grain, f);  // another caller has the workers; waiting would be no faster
  if (p.wanted != threads - 1) p.resize(threads - 1);
  if (!p.workers) {
    call.unlock();
    return run_alone(n, grain, f);
  }

  inside = true;
  p.body = &f, p.n = n, p.grain = grain, p.chunks = (n - 1) / grain + 1;
  const int64_t chunks = p.chunks;
  p.done.store(0, std::memory_order_relaxed);
  p.failed.store(false, std::memory_order_relaxed);
  p.front = 0, p.back.store(0);
  p.left.store(chunks);
  if (p.asleep.load() > 0) {
    { std::lock_guard hold(p.mutex); }
    if (chunks == 2)
      p.wake.notify_one();
    else
      p.wake.notify_all();
  }
  while (p.run_chunk(true)) {}
  auto finished = [&] { return p.done.load(std::memory_order_acquire) == chunks; };
  // A worker that has lost its core in the middle of a chunk gets it back sooner if this thread neither spins
  // nor yields.
  if (!spin(finished))
    for (int64_t seen; (seen = p.done.load(std::memory_order_acquire)) != chunks;)
      p.done.wait(seen, std::memory_order_acquire);
  inside = false;
  if (p.failed.load(std::memory_order_relaxed)) std::rethrow_exception(std::exchange(p.error, nullptr));
}

}  // namespace gt
