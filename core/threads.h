// The thread pool. Work is cut at places that depend on the size of the work only, so that
// results do not depend on the number of threads.
#pragma once
#include <cstdint>
#include <functional>

namespace gt {

// What a thread needs to throw is allocated when it is first asked for, and the process ends if that fails: a
// thread that begins asks for it at once.
void prepare_to_throw();

int num_threads();
void set_num_threads(int n);  // 0: as many as the machine has cores

// Calls f(begin, end) over [0, n) in chunks of `grain` (the last may be shorter), on all
// threads; on the calling thread alone when there is one chunk. f must not touch Python. When f throws,
// no further chunk begins, and the call throws the first exception once those that have begun are done.
// Calls from inside f run on the calling thread.
void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& f);

// For the child of a fork, which has no workers: the next call starts others.
void leave_pool_behind();

}  // namespace gt
