// Loading OpenBLAS. It is 20 MB, so it is loaded at the first product that needs it. It is set to one thread,
// since it is called from our threads. It ends the process when it is out of memory, so it is called only
// when there is enough.
#include "blas.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

#include "error.h"
#include "fork.h"
#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace gt {
namespace {

std::string& library_path() {
  static std::string path;
  return path;
}

// Sets an environment variable for its lifetime.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) had_ = true, old_ = old;
    set(value);
  }
  ~ScopedEnv() { set(had_ ? old_.c_str() : nullptr); }

 private:
  void set(const char* value) {
#if defined(_WIN32)
    _putenv_s(name_, value ? value : "");
#else
    if (value)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
#endif
  }
  const char* name_;
  bool had_ = false;
  std::string old_;
};

// The versions that are tested (pyproject.toml says the same).
constexpr const char* kHint = ". Hint: pip install \"scipy-openblas32>=0.3.27,<0.4\"";

[[noreturn]] void missing(const std::string& why) {
  fail(Code::Runtime, "cannot load OpenBLAS, which products of matrices need: " + why + kHint);
}

// The memory the library takes when it is loaded, and again for each thread inside it: 56 and 32 MB were
// measured.
constexpr size_t kLibraryBytes = size_t(64) << 20, kThreadBytes = size_t(33) << 20;

void want_room(size_t bytes) {
#if !defined(_WIN32)
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    fail(Code::ResourceExhausted, "cannot multiply matrices: OpenBLAS needs " + std::to_string(bytes >> 20) +
                                      " MiB for itself, which are not available.");
  munmap(p, bytes);
#endif
}

void* open_library() {
  const std::string& path = library_path();
  if (path.empty()) missing("the package scipy-openblas32 is not installed");
  want_room(kLibraryBytes + kThreadBytes);
  ScopedEnv one_thread("OPENBLAS_NUM_THREADS", "1");
#if defined(_WIN32)
  void* h = reinterpret_cast<void*>(LoadLibraryA(path.c_str()));
  if (!h) missing(path + ": error " + std::to_string(GetLastError()));
#else
  void* h = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!h) {
    const char* why = dlerror();
    missing(why ? why : path);
  }
#endif
  return h;
}

// When loading throws, it is tried again at the next use. (Function-local statics have locks too, which a
// fork does not know.)
auto& loading = *new Lock;
std::atomic<void*> library{nullptr};
std::atomic<const Blas*> table{nullptr};

// Whether the system grants any number of pages that a process asks for; it may kill it later.
bool system_grants_all() {
#if defined(__linux__)
  std::ifstream file("/proc/sys/vm/overcommit_memory");
  int mode = 2;
  return file >> mode && mode != 2 && size_t(sysconf(_SC_PHYS_PAGES)) > 16 * kThreadBytes / 4096;
#else
  return false;
#endif
}
[[maybe_unused]] bool grants_all = false;

Blas load() {
  if (!library.load()) library.store(open_library());
  Blas b;
  b.sgemm = blas_function<decltype(b.sgemm)::Pointer>("cblas_sgemm");
  b.dgemm = blas_function<decltype(b.dgemm)::Pointer>("cblas_dgemm");
  b.cgemm = blas_function<decltype(b.cgemm)::Pointer>("cblas_cgemm");
  b.zgemm = blas_function<decltype(b.zgemm)::Pointer>("cblas_zgemm");
  b.sgemv = blas_function<decltype(b.sgemv)::Pointer>("cblas_sgemv");
  b.dgemv = blas_function<decltype(b.dgemv)::Pointer>("cblas_dgemv");
  b.cgemv = blas_function<decltype(b.cgemv)::Pointer>("cblas_cgemv");
  b.zgemv = blas_function<decltype(b.zgemv)::Pointer>("cblas_zgemv");
  // Other files look up more routines when they need them; one of each part of the library is looked up here,
  // so that a library with another prefix, or without LAPACK, is noticed now.
  for (const char* name : {"sgetrf_", "dgesdd_", "cheevd_", "zungqr_", "openblas_get_config"})
    blas_symbol(name);
  grants_all = system_grants_all();
  want_room(kThreadBytes);
  blas_function<void (*)(int)>("openblas_set_num_threads")(1);
  // Makes the library take its first buffer, now that there is room for it. A product of 1 x 1 takes none on
  // processors with kernels for small matrices (SkylakeX); a triangular solve takes one on all.
  using Solve = void (*)(int, int, int, int, int, int, int, float, const float*, int, float*, int);
  constexpr int kLeft = 141, kUpper = 121, kNonUnit = 131;
  const float one = 1;
  float x = 1;
  blas_function<Solve>("cblas_strsm")(kRowMajor, kLeft, kUpper, kNoTrans, kNonUnit, 1, 1, one, &one, 1, &x,
                                      1);
  InsideBlas::first_was_inside();
  return b;
}

}  // namespace

void set_blas_path(const char* path) { library_path() = path; }

void* blas_symbol(const char* name) {
  std::string full = std::string("scipy_") + name;
#if defined(_WIN32)
  void* f = reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library.load()), full.c_str()));
#else
  void* f = dlsym(library.load(), full.c_str());
#endif
  if (!f) fail(Code::Runtime, "the BLAS library " + library_path() + " has no function " + full + kHint);
  return f;
}

const Blas& blas() {
  const Blas* loaded = table.load(std::memory_order_acquire);
  if (loaded) [[likely]]
    return *loaded;
  std::lock_guard hold(loading);
  if (!table.load()) table.store(new Blas(load()));
  return *table.load();
}

#if defined(__GLIBC__)
extern "C" void* __tls_get_addr(void* module_and_offset);
#endif

#if defined(__linux__)
// The library does not say how many buffers it has. A new one would be mapped in the hole that was probed: if
// something is mapped there after the call, the library has taken another buffer.
namespace {
std::mutex holes;  // taken by threads that are inside only
constexpr int kMostHoles = 256;
void* filled[kMostHoles];
int n_filled = 0;

void* find_hole() {
  std::lock_guard lock(holes);
  void* p = mmap(nullptr, kThreadBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  munmap(p, kThreadBytes);
  return p;
}

// Whether this process may have one more buffer, without mapping memory to find out: that is slow, and
// threads that do it wait for each other. Limits may change at any time, but reading them waits as well, so a
// thread reads them at most once in a millisecond.
bool room_is_sure() {
  using Clock = std::chrono::steady_clock;
  static thread_local constinit Clock::time_point asked{};
  if (!grants_all) return false;
  const auto now = Clock::now();
  if (now - asked < std::chrono::milliseconds(1)) return true;
  for (auto kind : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit;
    if (getrlimit(kind, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return false;
  }
  asked = now;
  return true;
}

bool was_filled(void* hole) {
  std::lock_guard lock(holes);
  const size_t page = size_t(sysconf(_SC_PAGESIZE)), middle = kThreadBytes / 2 / page * page;
  unsigned char resident;
  const bool taken = mincore(static_cast<char*>(hole) + middle, page, &resident) == 0;
  if (!taken || n_filled == kMostHoles) return false;
  if (std::find(filled, filled + n_filled, hole) != filled + n_filled) return false;  // by another thread
  filled[n_filled++] = hole;
  return true;
}
}  // namespace

// What the library keeps for each thread is allocated on first use, and the process ends if that fails.
void InsideBlas::get_to_know_thread() {
#if defined(__GLIBC__)
  struct {
    size_t module = 0, offset = 0;
  } data;
  if (dlinfo(library.load(), RTLD_DI_TLS_MODID, &data.module) == 0 && data.module) {
    want_room(kThreadBytes);
    __tls_get_addr(&data);
  }
#endif
  thread_is_known_ = true;
}

bool InsideBlas::find_room() {
  if (room_is_sure()) return true;
  hole_ = find_hole();
  number_ = inside_.load(std::memory_order_relaxed) % kForking;
  return hole_;
}

void InsideBlas::look_for_buffer() {
  int known = buffers_.load(std::memory_order_relaxed);
  if (known < number_ && was_filled(hole_)) buffers_.fetch_add(1, std::memory_order_relaxed);
}
#else
void InsideBlas::get_to_know_thread() { thread_is_known_ = true; }
bool InsideBlas::find_room() {
  buffers_.store(kForking - 1);
  return true;
}
void InsideBlas::look_for_buffer() {}
#endif

namespace {
void wait_a_little() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }
}  // namespace

void InsideBlas::enter_slowly() {
  while (inside_.load(std::memory_order_relaxed) >= kForking || !find_room()) {
    inside_.fetch_sub(1, std::memory_order_release);
    wait_a_little();
    if (inside_.fetch_add(1, std::memory_order_acquire) < buffers_.load(std::memory_order_relaxed)) return;
  }
}

void InsideBlas::keep_out() {
  inside_.fetch_add(kForking);
  while (inside_.load(std::memory_order_acquire) != kForking) wait_a_little();
}
void InsideBlas::let_in() { inside_.fetch_sub(kForking, std::memory_order_release); }
void InsideBlas::let_in_after_fork() { inside_.store(0); }

void InsideBlas::first_was_inside() {
  if (buffers_.load() == 0) buffers_.store(1);
}

const char* blas_config() {
  blas();
  return blas_function<const char* (*)()>("openblas_get_config")();
}

}  // namespace gt
