// Loading OpenBLAS. It is 20 MB and starts threads of its own, so it is loaded at the first
// product that needs it and told to use one thread: the threads around it are ours. It ends the
// process when it finds no memory for itself, so it is asked only where there is enough.
#include "blas.h"

#include <cstdlib>
#include <string>

#include "error.h"
#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#include <sys/mman.h>
#endif

namespace gt {
namespace {

std::string& library_path() {
  static std::string path;
  return path;
}

// Sets an environment variable for as long as it lives.
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

[[noreturn]] void missing(const std::string& why) {
  fail(Code::Runtime, "cannot load OpenBLAS, which products of matrices need: " + why + ". Hint: pip install scipy-openblas32");
}

// What the library takes when it is loaded, and again for each thread that is inside of it at a time: 56 and 32 MB were seen.
constexpr size_t kLibraryBytes = size_t(64) << 20, kThreadBytes = size_t(33) << 20;

void want_room(size_t bytes) {
#if !defined(_WIN32)
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    fail(Code::ResourceExhausted, "cannot multiply matrices: OpenBLAS needs " + std::to_string(bytes >> 20) + " MiB for itself, which there are not.");
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

void* library() {
  static void* handle = open_library();  // tried again at the next use when it throws
  return handle;
}

Blas load() {
  Blas b;
  b.sgemm = blas_function<decltype(b.sgemm)>("cblas_sgemm");
  b.dgemm = blas_function<decltype(b.dgemm)>("cblas_dgemm");
  b.cgemm = blas_function<decltype(b.cgemm)>("cblas_cgemm");
  b.zgemm = blas_function<decltype(b.zgemm)>("cblas_zgemm");
  b.sgemv = blas_function<decltype(b.sgemv)>("cblas_sgemv");
  b.dgemv = blas_function<decltype(b.dgemv)>("cblas_dgemv");
  b.cgemv = blas_function<decltype(b.cgemv)>("cblas_cgemv");
  b.zgemv = blas_function<decltype(b.zgemv)>("cblas_zgemv");
  blas_function<void (*)(int)>("openblas_set_num_threads")(1);
  return b;
}

}  // namespace

void set_blas_path(const char* path) { library_path() = path; }

void* blas_symbol(const char* name) {
  std::string full = std::string("scipy_") + name;
#if defined(_WIN32)
  void* f = reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library()), full.c_str()));
#else
  void* f = dlsym(library(), full.c_str());
#endif
  if (!f) fail(Code::Runtime, "the BLAS library " + library_path() + " has no function " + full);
  return f;
}

const Blas& blas() {
  static const Blas table = load();
  thread_local bool fits = false;
  if (!fits) [[unlikely]] {
    want_room(kThreadBytes);
    fits = true;
  }
  return table;
}

const char* blas_config() { return blas_function<const char* (*)()>("openblas_get_config")(); }

}  // namespace gt
