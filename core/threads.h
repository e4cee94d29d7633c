// The thread pool. Work is cut at places that depend on the size of the work only, so that
// results do not depend on the number of threads.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace gt {

// The memory a thread needs to throw is allocated on first use, and the process ends if that fails: so a new
// thread allocates it at once.
void prepare_to_throw();

int num_threads();
void set_num_threads(int n);  // 0: as many as the machine has cores

// A reference to a function of (begin, end), which the caller keeps alive: two pointers, where std::function
// would carry the means to copy it and name its type, for each of 500 lambdas.
class ChunkFunction {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, ChunkFunction>) ChunkFunction(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, int64_t begin, int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(object))(begin, end);
        }) {}
  void operator()(int64_t begin, int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int64_t);
};

// Calls f(begin, end) over [0, n) in chunks of `grain` (the last may be shorter), on all threads; on the
// calling thread if there is one chunk. f must not touch Python. When f throws, no further chunk begins, and
// the call throws the first exception once the running chunks are done. Nested calls run on the calling
// thread.
void parallel_for(int64_t n, int64_t grain, ChunkFunction f);

// For the child of a fork, which has no workers: the next call starts new ones.
void leave_pool_behind();

}  // namespace gt
